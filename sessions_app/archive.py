"""Turns what left a window into records: compactions, evictions, and the end of a session.

Data flow: a Compaction row (ready) -> the events it removed, transitively -> their text from the mirror
-> card, body, what the summary lost -> record file, its row and ours in one transaction. Idempotent:
the record's id follows from the session and the compaction. The caller holds the archive lock.
"""

from dataclasses import dataclass, field

from django.db import transaction

from records.models import Record
from records.models import Scope as Tier
from records.recordfile import RecordDraft
from records.secrets.policy import is_sensitive
from records.services import WriteOutcome, records_write

from .archiveplan import Plan, closing_plan, compaction_plan, compactions_ready, has_ended
from .archiverows import compaction_link, compaction_settle, events_own, previews_redact, rows_write
from .archivetext import ArchiveText, archive_text
from .batch import ranges
from .eventrefs import mirror_session_id
from .levels import Levels, default_adopt, levels_of
from .models import AgentSession, Compaction


@dataclass(slots=True)
class Archived:
    """Ids of what an archive pass made."""

    compactions: list[str] = field(default_factory=list)
    evictions: list[str] = field(default_factory=list)
    closing: list[str] = field(default_factory=list)


def session_archive(
    session: AgentSession,
    *,
    now: int,
    idle_since: int | None = None,
    log_is_gone: bool = False,
    link_only: bool = False,
) -> Archived:
    """Archives every compaction of a session that is ready and, when the session has ended, been idle since
    `idle_since` (ms) for long enough, or lost its log, what is left in its window. `link_only`: only those
    whose record exists get their rows (`reindex`)."""
    done = Archived()
    levels = default_adopt(session.pool_session_id, session.workspace_key)
    if not levels.any:
        return done
    for compaction in compactions_ready(session, now, link_only=link_only):
        plan = compaction_plan(compaction, session)
        if plan.known:
            compaction_link(compaction, plan.known)
            events_own(plan.dropped, plan.known.record_id)
        elif not plan.dropped:
            compaction_settle(compaction, Compaction.State.EMPTY)
        elif plan.is_forgotten:
            # Nobody else takes them for free.
            events_own(plan.owned, plan.make_id(length=10))
            compaction_settle(compaction, Compaction.State.FORGOTTEN)
        elif made := _plan_write(plan, levels, link_only=link_only):
            (done.compactions if compaction.kind == "compaction" else done.evictions).append(made)
    if not link_only and (log_is_gone or has_ended(session, now, idle_since)):
        closing = closing_plan(session)
        if closing and (made := _plan_write(closing, levels, link_only=False)):
            done.closing.append(made)
    return done


def _plan_write(plan: Plan, levels: Levels, *, link_only: bool) -> str:
    """The id of the record that was made; "" if it was there already or has been forgotten."""
    if existing := _existing(plan):
        with transaction.atomic():
            lost = existing.provenance.get("lost", {})
            seen = not _is_hidden(existing.scope, existing.tags, _pool(plan, levels)[2])
            rows_write(plan, existing.id, lost, existing.created_at, receipt=not link_only and seen)
            previews_redact(existing.id, existing.provenance)
        return ""
    if link_only:
        return ""
    text = archive_text(plan)
    draft = _draft(plan, levels, text)
    seen = not _is_hidden(draft.scope, draft.tags, _pool(plan, levels)[2])
    made: list[str] = []

    def within(outcomes: list[WriteOutcome]) -> None:
        outcome = outcomes[0]
        if outcome.tombstoned:
            return  # forgotten meanwhile; the next pass settles it
        rows_write(plan, outcome.record_id, text.lost, draft.created_at, receipt=seen)
        previews_redact(outcome.record_id, draft.provenance)
        if outcome.created:
            made.append(outcome.record_id)

    records_write([draft], actor="import", verb="archive", within=within)
    return made[0] if made else ""


def _is_hidden(scope: str, tags: dict[str, list[str]], levels: Levels) -> bool:
    """Private because of a secret, with only the shared level on: its owner sees it, no agent is told."""
    return scope == Tier.SESSION and is_sensitive(tags) and not levels.l2


def eviction_archive(plan: Plan, levels: Levels) -> str:
    """The id of a planned eviction's record, written now or before; "" when it was forgotten. It is on disk
    when this returns: only then may its events leave the window."""
    if plan.is_forgotten:
        return ""
    if made := _plan_write(plan, levels, link_only=False):
        return made
    existing = _existing(plan)
    return existing.id if existing else ""


def _existing(plan: Plan) -> Record | None:
    """Its record, when it was written before: by a run that was killed, or before a rebuild."""
    shortest = plan.make_id(length=10)
    # Longer ids begin with the shorter; as a range this uses the primary key, as LIKE it would not.
    found = Record.objects.filter(id__gte=shortest, id__lt=shortest + "~").order_by("id")
    for record in found.only("created_at", "provenance", "scope", "tags"):
        given = record.provenance
        if (given.get("source"), given.get("sessionId"), given.get("compactionId")) == (
            plan.source, plan.origin_id, plan.compaction_id,
        ):  # fmt: skip
            return record
    return None


def _pool(plan: Plan, levels: Levels) -> tuple[str, str, Levels]:
    """(session id of the pool, workspace key, levels): those of the session it happened in, unless that
    one is off, when the inherited part belongs to the session that brought it."""
    session = plan.session
    if plan.origin_id != session.session_id:
        origin = AgentSession.objects.filter(session_id=plan.origin_id).first()
        pool, key = (
            (origin.pool_session_id, origin.workspace_key)
            if origin
            else (plan.origin_id, session.workspace_key)
        )
        origin_levels = levels_of(pool, key)
        if origin_levels.any:
            return pool, key, origin_levels
    return session.pool_session_id, session.workspace_key, levels


def _draft(plan: Plan, levels: Levels, text: ArchiveText) -> RecordDraft:
    session, compaction = plan.session, plan.compaction
    pool_id, key, pool_levels = _pool(plan, levels)
    times = [event.time for event in plan.dropped if event.time is not None]
    created_at = max(times, default=(compaction and compaction.time) or session.last_event_at or 0)
    owners = (event.record_id for event in plan.dropped if event.record_id)
    earlier = list(dict.fromkeys((*plan.linked, *owners)))
    scope = text.decision.scope_for(pool_levels.capture_scope)
    return RecordDraft(
        id=plan.make_id(length=10),
        id_at=lambda length: plan.make_id(length=length),
        kind="open-thread" if text.card.open_thread else "episode",
        scope=scope,
        workspace=session.cwd,
        workspace_key=key,
        session_id=pool_id,
        title=text.card.title,
        summary=text.card.summary,
        use_when=text.card.use_when,
        status="active",
        trust="derived",
        confidence=None,
        slot="",
        tags=text.decision.tags(text.card.tags),
        entities=[],
        sources=[{"session_id": plan.origin_id, "kind": "session"}],
        links={"previous": earlier} if earlier else {},
        provenance=_provenance(plan, text),
        created_at=created_at,
        updated_at=created_at,
        body=text.body,
    )


def _provenance(plan: Plan, text: ArchiveText) -> dict[str, object]:
    session, compaction, first = plan.session, plan.compaction, plan.dropped[0]
    mirror_id = mirror_session_id(session.session_id, first.mirror_id)
    given = {
        "source": plan.source,
        "agent": session.agent,
        "sessionId": plan.origin_id,
        "compactionId": plan.compaction_id,
        # Whose mirror the rows stand in, when it is not that session's own.
        "mirrorSessionId": mirror_id if mirror_id != plan.origin_id else "",
        "generation": first.generation,
        "seqStart": plan.dropped[0].seq,
        "seqEnd": plan.dropped[-1].seq,
        # Rows that this record owns, and those that left with it but an earlier record owns.
        "rows": ranges(sorted({event.row for event in plan.owned})),
        "earlierRows": ranges(sorted({event.row for event in plan.dropped if event.record_id})),
        "shadowedEventCount": len(plan.dropped),
        "shadowedTokenCount": sum(event.tokens for event in plan.dropped),
        "provider": compaction.provider if compaction else "",
        "model": (compaction.model if compaction else "") or session.model,
        "cwd": session.cwd,
        "trigger": compaction.trigger if compaction else "",
        "tokensBefore": compaction.tokens_before if compaction else None,
        "tokensAfter": compaction.tokens_after if compaction else None,
        "unconfirmed": bool(compaction and not compaction.confirmed),
        # Events whose text is not all in the body, and how much of it is: records.fulltext finds the rest.
        "cut": text.cut,
        "cutShown": text.cut_shown,
        "lost": text.lost,
    }
    said = {name: value for name, value in given.items() if value or name == "rows" or type(value) is int}
    return text.decision.provenance(said)
