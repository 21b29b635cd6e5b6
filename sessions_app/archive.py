"""Turns what left a window into records: compactions, evictions, and the end of a session.

Data flow: a Compaction row (ready) -> the events it removed, transitively -> their text from the mirror
-> card, body, what the summary lost -> record file, its row and ours in one transaction. Idempotent:
the record's id follows from the session and the compaction. The caller holds the archive lock.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from records import ids
from records.models import Record
from records.recordfile import RecordDraft
from records.services import WriteOutcome, records_write
from records.tombstones import is_forgotten

from .archivetext import ArchiveText, archive_text
from .batch import ranges, unranged
from .counts import session_counts_save, session_events
from .eventrefs import EventRef, event_refs, events_of_mirror, mirror_session_id, refs_by_seq
from .levels import Levels, default_adopt, levels_of
from .logs.events import INJECTED
from .models import AgentSession, ArchivedCompaction, Compaction, L1Eviction, Receipt, Surface

# A boundary that no summary follows is archived all the same after this long (spec: 10 minutes).
UNCONFIRMED_AFTER_MS = 10 * 60 * 1000
# Ids that agents draw at random and a copied log keeps; shorter ones may be a session's own counting.
_GLOBALLY_UNIQUE = 32
_HOUR_MS = 3600 * 1000


@dataclass(slots=True)
class Archived:
    """Ids of what an archive pass made."""

    compactions: list[str] = field(default_factory=list)
    evictions: list[str] = field(default_factory=list)
    closing: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Plan:
    """One archive about to be written."""

    session: AgentSession
    origin_id: str  # the session it happened in
    source: str  # provenance.source
    compaction_id: str
    make_id: Callable[..., str]  # (length=…): the record's id, longer on a collision
    dropped: list[EventRef]  # all that left the window, by seq
    owned: list[EventRef]  # those that no earlier record owns
    compaction: Compaction | None = None


def session_archive(
    session: AgentSession, *, now: int, idle_since: int | None = None, link_only: bool = False
) -> Archived:
    """Archives every compaction of a session that is ready and, when the session has ended or been idle
    since `idle_since` (ms) for long enough, what is left in its window. `link_only`: only those whose
    record exists get their rows (`reindex`)."""
    done = Archived()
    if not settings.MEMEX_AUTO_ARCHIVE and not link_only:
        return done
    levels = default_adopt(session.pool_session_id, session.workspace_key)
    if not levels.any:
        return done
    _confirm_overdue(session, now, link_only=link_only)
    ready = Compaction.objects.filter(session=session, state=Compaction.State.READY).order_by("at_seq")
    for compaction in ready:
        plan = _compaction_plan(compaction, session)
        if plan is None:
            continue
        made = _plan_write(plan, levels, link_only=link_only)
        if made:
            kind = done.compactions if compaction.kind == "compaction" else done.evictions
            kind.append(made)
    if not link_only and _has_ended(session, now, idle_since):
        closing = _closing_plan(session)
        if closing and (made := _plan_write(closing, levels, link_only=False)):
            done.closing.append(made)
    return done


def _confirm_overdue(session: AgentSession, now: int, *, link_only: bool) -> None:
    """A boundary that no summary followed for long is taken for a compaction without one."""
    pending = Compaction.objects.filter(
        session=session, state=Compaction.State.PENDING, summary_seq=None, kind="compaction"
    )
    for compaction in pending:
        if link_only:
            origin = compaction.origin_session_id or session.session_id
            overdue = Record.objects.filter(id=ids.archive_id(origin, compaction.compaction_id)).exists()
        else:
            overdue = compaction.time is not None and compaction.time <= now - UNCONFIRMED_AFTER_MS
        if not overdue:
            continue
        compaction.state = Compaction.State.READY if compaction.dropped else Compaction.State.EMPTY
        compaction.confirmed = False
        compaction.save()
        session_events(session).filter(seq__in=unranged(compaction.dropped), surface=Surface.CURRENT).update(
            surface=Surface.SHADOWED, shadowed_by=compaction.at_seq
        )
        session_counts_save(session)


def _has_ended(session: AgentSession, now: int, idle_since: int | None) -> bool:
    if session.ended_at is not None:
        return True
    hours = settings.MEMEX_IDLE_ARCHIVE_HOURS
    latest = max(idle_since or 0, session.last_event_at or 0)
    return bool(hours and latest and now - latest >= hours * _HOUR_MS)


# --- what to archive ------------------------------------------------------------------------------


def _compaction_plan(compaction: Compaction, session: AgentSession) -> _Plan | None:
    """None when it needs no record of its own; its state says why."""
    origin = compaction.origin_session_id or session.session_id
    if is_forgotten("session", origin):
        origin = session.session_id  # the inherited part belongs to whom it is left with
    known = _record_of(session.session_id, origin, compaction)
    dropped = _dropped_events(compaction, session)
    if known:
        _link(compaction, known)
        _own(dropped, known.record_id)
        return None
    if compaction.kind == "compaction":
        source, make_id = "compaction-archive", partial(ids.archive_id, origin, compaction.compaction_id)
    else:
        source = compaction.kind
        make_id = partial(ids.eviction_id, origin, compaction.compaction_id.removeprefix("prune:"))
    owned = [event for event in dropped if not event.record_id]
    return _Plan(session, origin, source, compaction.compaction_id, make_id, dropped, owned, compaction)


def _record_of(session_id: str, origin: str, compaction: Compaction) -> ArchivedCompaction | None:
    rows = ArchivedCompaction.objects.filter(compaction_id=compaction.compaction_id)
    found = {row.session_id: row for row in rows.order_by("session_id")}
    if own := found.get(session_id) or found.get(origin):
        return own
    if not found or len(compaction.compaction_id) < _GLOBALLY_UNIQUE:
        return None
    agent = compaction.session.agent
    same_agent = AgentSession.objects.filter(agent=agent, session_id__in=found).order_by("session_id").first()
    return found[same_agent.session_id] if same_agent else None


def _dropped_events(compaction: Compaction, session: AgentSession) -> list[EventRef]:
    """The transitive closure: an event that left may itself have replaced others, which left with it,
    unless an earlier archive owns them."""
    events = session_events(session).filter(generation=compaction.generation)
    found = {ref.seq: ref for ref in refs_by_seq(events, unranged(compaction.dropped))}
    # Few events have replaced others: a handful a compaction.
    replacing = set(events.exclude(shadowed_by=None).values_list("shadowed_by", flat=True).distinct())
    frontier = replacing & found.keys()
    while frontier:
        replaced = events.filter(shadowed_by__in=frontier, record_id="").exclude(seq=compaction.at_seq)
        below = {ref.seq: ref for ref in event_refs(replaced) if ref.seq not in found}
        found.update(below)
        frontier = replacing & below.keys()
    return [found[seq] for seq in sorted(found)]


def _closing_plan(session: AgentSession) -> _Plan | None:
    left = (
        session_events(session)
        .filter(record_id="", surface__in=(Surface.CURRENT, Surface.SHADOWED), inherited=False)
        .exclude(source=INJECTED)
        .order_by("generation", "seq")
    )
    events = list(event_refs(left))
    if not any(event.role in ("user", "assistant", "tool") for event in events):
        return None
    last = events[-1]
    last_id = last.uid or str(last.seq)
    make_id = partial(ids.closing_id, session.session_id, last_id)
    return _Plan(session, session.session_id, "session-end", f"end:{last_id}", make_id, events, events)


# --- writing it -----------------------------------------------------------------------------------


def _plan_write(plan: _Plan, levels: Levels, *, link_only: bool) -> str:
    """The id of the record that was made; "" if it was there already or has been forgotten."""
    if existing := _existing(plan):
        with transaction.atomic():
            lost = existing.provenance.get("lost", {})
            _rows_write(plan, existing.id, lost, existing.created_at, receipt=not link_only)
        return ""
    if link_only:
        return ""
    text = archive_text(
        plan.session, plan.origin_id, plan.compaction_id, plan.dropped, plan.owned, plan.compaction,
        plan.source,
    )  # fmt: skip
    draft = _draft(plan, levels, text)
    made: list[str] = []

    def within(outcomes: list[WriteOutcome]) -> None:
        outcome = outcomes[0]
        if outcome.tombstoned:
            if plan.compaction:
                Compaction.objects.filter(pk=plan.compaction.pk).update(state=Compaction.State.FORGOTTEN)
            return
        _rows_write(plan, outcome.record_id, text.lost, draft.created_at, receipt=True)
        if outcome.created:
            made.append(outcome.record_id)

    records_write([draft], actor="import", verb="archive", within=within)
    return made[0] if made else ""


def _existing(plan: _Plan) -> Record | None:
    """Its record, when it was written before: by a run that was killed, or before a rebuild."""
    shortest = plan.make_id(length=10)
    # Longer ids begin with the shorter; as a range this uses the primary key, as LIKE it would not.
    for record in Record.objects.filter(id__gte=shortest, id__lt=shortest + "~").order_by("id"):
        given = record.provenance
        if (given.get("source"), given.get("sessionId"), given.get("compactionId")) == (
            plan.source, plan.origin_id, plan.compaction_id,
        ):  # fmt: skip
            return record
    return None


def _pool(plan: _Plan, levels: Levels) -> tuple[str, str, Levels]:
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


def _draft(plan: _Plan, levels: Levels, text: ArchiveText) -> RecordDraft:
    session, compaction = plan.session, plan.compaction
    pool_id, key, pool_levels = _pool(plan, levels)
    times = [event.time for event in plan.dropped if event.time is not None]
    created_at = max(times, default=(compaction and compaction.time) or session.last_event_at or 0)
    earlier = list(dict.fromkeys(event.record_id for event in plan.dropped if event.record_id))
    return RecordDraft(
        id=plan.make_id(length=10),
        id_at=lambda length: plan.make_id(length=length),
        kind="open-thread" if text.card.open_thread else "episode",
        scope=pool_levels.capture_scope,
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
        tags=text.card.tags,
        entities=[],
        sources=[{"session_id": plan.origin_id, "kind": "session"}],
        links={"previous": earlier} if earlier else {},
        provenance=_provenance(plan, text),
        created_at=created_at,
        updated_at=created_at,
        body=text.body,
    )


def _provenance(plan: _Plan, text: ArchiveText) -> dict[str, object]:
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
        "lost": text.lost,
    }
    return {name: value for name, value in given.items() if value or name == "rows" or type(value) is int}


def _rows_write(plan: _Plan, record_id: str, lost: dict[str, Any], created_at: int, *, receipt: bool) -> None:
    compaction = plan.compaction
    _own(plan.owned, record_id)
    if compaction and compaction.kind != "compaction":
        eviction = L1Eviction(
            session_id=plan.origin_id, start_seq=plan.dropped[0].seq, end_seq=plan.dropped[-1].seq,
            record_id=record_id, created_at=created_at,
            shadowed_tokens=sum(event.tokens for event in plan.dropped),
        )  # fmt: skip
        L1Eviction.objects.bulk_create([eviction], ignore_conflicts=True)
    else:
        holders = sorted({plan.session.session_id, plan.origin_id})
        _archived_add(holders, plan.compaction_id, record_id, created_at)
    if compaction is None:
        return
    Compaction.objects.filter(pk=compaction.pk).update(
        state=Compaction.State.ARCHIVED, record_id=record_id, lost=lost
    )
    if receipt and compaction.kind == "compaction":
        queued = Receipt(session_id=plan.session.session_id, record_id=record_id, created_at=created_at)
        Receipt.objects.bulk_create([queued], ignore_conflicts=True)


def _archived_add(session_ids: Iterable[str], compaction_id: str, record_id: str, created_at: int) -> None:
    ArchivedCompaction.objects.bulk_create(
        (
            ArchivedCompaction(
                session_id=session_id, compaction_id=compaction_id, record_id=record_id, created_at=created_at
            )
            for session_id in session_ids
        ),
        ignore_conflicts=True,
    )


def _link(compaction: Compaction, known: ArchivedCompaction) -> None:
    """The compaction has its record already, under this session or the one it happened in."""
    _archived_add([compaction.session_id], compaction.compaction_id, known.record_id, known.created_at)
    record = Record.objects.filter(id=known.record_id).only("provenance").first()
    given = record.provenance if record else {}
    is_here = compaction.session_id in (given.get("sessionId"), given.get("mirrorSessionId"))
    compaction.state = Compaction.State.ARCHIVED if is_here else Compaction.State.INHERITED
    compaction.record_id = known.record_id
    compaction.lost = given.get("lost", {})
    compaction.save()


def rows_relink(record: Record) -> None:
    """Gives a record the events of the rows that its provenance says it owns."""
    given = record.provenance
    mirror_id = given.get("mirrorSessionId") or given["sessionId"]
    events = events_of_mirror(mirror_id, given["generation"]).filter(
        record_id="", seq__range=(given["seqStart"], given["seqEnd"])
    )
    for first, last in given["rows"]:
        within = events.filter(row__range=(first, last))
        within.exclude(surface=Surface.LOG_ONLY).update(record_id=record.id)
    if given["source"] == "session-end":
        _archived_add([given["sessionId"]], given["compactionId"], record.id, record.created_at)


def _own(events: Iterable[EventRef], record_id: str) -> None:
    rows = [(record_id, event.pk) for event in events if not event.record_id]
    with connection.cursor() as cursor:
        cursor.executemany("UPDATE events SET record_id = %s WHERE id = %s AND record_id = ''", rows)
