"""Receipts: what an agent is told once after something of its window was archived."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db.models import F, Q, Value
from django.db.models.functions import Concat

from records.clock import now_ms
from records.models import Record
from sessions_app.models import Receipt

from .texts import ReceiptLine

PENDING_MAX, OFFERS_MAX = 4, 3


class Pending(NamedTuple):
    receipt_id: int
    line: ReceiptLine


def receipts_pending(session_id: str, *, offered_before: int | None = None) -> list[Pending]:
    """The newest few that are neither delivered nor given up, in the order of what they archived.
    `offered_before` (ms): not those that were offered since, of which the log may still be to tell."""
    waiting = Receipt.objects.filter(session_id=session_id, delivered_at=None, offered__lt=OFFERS_MAX)
    if offered_before is not None:
        waiting = waiting.filter(Q(offered_at=None) | Q(offered_at__lt=offered_before))
    waiting = waiting.order_by("-created_at", "-pk")
    rows = {row.record_id: row.pk for row in reversed(waiting[:PENDING_MAX])}
    records = Record.objects.in_bulk(list(rows))
    return [Pending(pk, _line(records[record_id])) for record_id, pk in rows.items() if record_id in records]


def _line(record: Record) -> ReceiptLine:
    given = record.provenance
    return ReceiptLine(
        record.id,
        record.kind,
        record.title,
        int(given.get("shadowedTokenCount") or record.tokens),
        given.get("seqStart"),
        given.get("seqEnd"),
    )


def receipts_offered(pending: Sequence[Pending], message_id: str) -> None:
    """Counted as offered; delivered they are when the message is seen in the log or acknowledged."""
    ids = [each.receipt_id for each in pending]
    Receipt.objects.filter(pk__in=ids).update(
        offered=F("offered") + 1,
        offered_at=now_ms(),
        message_ids=Concat("message_ids", Value(f"{message_id} ")),
    )


def receipts_delivered(message_ids: Iterable[str], *, session_id: str | None = None) -> int:
    """The agent has these messages; how many receipts they held that were open until now. `session_id`: only
    this session's count, when it is the agent who says so."""
    wanted = frozenset(message_ids)
    if not wanted:
        return 0
    # Those that were offered and are not delivered yet are a handful.
    offered = Receipt.objects.filter(delivered_at=None).exclude(message_ids="")
    if session_id is not None:
        offered = offered.filter(session_id=session_id)
    found = [pk for pk, ids in offered.values_list("pk", "message_ids") if not wanted.isdisjoint(ids.split())]
    return Receipt.objects.filter(pk__in=found, delivered_at=None).update(delivered_at=now_ms())
