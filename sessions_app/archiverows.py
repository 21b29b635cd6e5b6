"""The rows of archives: who owns which event, which compaction has which record."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection

from records.models import Record
from records.secrets.policy import FINDS_KEPT, REDACT, decision_of, redacted_as

from .archiveplan import Plan
from .eventrefs import EventRef, events_of_mirror
from .models import ArchivedCompaction, Compaction, Event, L1Eviction, Receipt, Surface


def rows_write(plan: Plan, record_id: str, lost: dict[str, Any], created_at: int, *, receipt: bool) -> None:
    compaction = plan.compaction
    events_own(plan.owned, record_id)
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


def compaction_link(compaction: Compaction, known: ArchivedCompaction) -> None:
    """The compaction has its record already, under this session or the one it happened in."""
    _archived_add([compaction.session_id], compaction.compaction_id, known.record_id, known.created_at)
    record = Record.objects.filter(id=known.record_id).only("provenance").first()
    given = record.provenance if record else {}
    is_here = compaction.session_id in (given.get("sessionId"), given.get("mirrorSessionId"))
    compaction.state = Compaction.State.ARCHIVED if is_here else Compaction.State.INHERITED
    compaction.record_id = known.record_id
    compaction.lost = given.get("lost", {})
    compaction.save()


def compaction_settle(compaction: Compaction, state: str) -> None:
    """It needs no record, and `state` says why."""
    compaction.state = state
    compaction.save(update_fields=["state"])


def previews_redact(record_id: str, provenance: Mapping[str, Any]) -> None:
    """Of events in which something was found that their beginnings alone didn't show."""
    decision = decision_of(provenance)
    if decision is None or decision.policy != REDACT:
        return
    events = Event.objects.filter(record_id=record_id).exclude(preview="")
    if len(decision.marks) < FINDS_KEPT:
        seqs = {mark.seq for mark in decision.marks if mark.seq is not None}
        events = events.filter(generation=provenance.get("generation", 0), seq__in=seqs)
    events.update(preview=redacted_as(", ".join(decision.rules))[:200])


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
    previews_redact(record.id, given)
    if given["source"] == "session-end":
        _archived_add([given["sessionId"]], given["compactionId"], record.id, record.created_at)


def events_own(events: Iterable[EventRef], record_id: str) -> None:
    rows = [(record_id, event.pk) for event in events if not event.record_id]
    with connection.cursor() as cursor:
        cursor.executemany("UPDATE events SET record_id = %s WHERE id = %s AND record_id = ''", rows)
