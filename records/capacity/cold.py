"""The cold tier: a record's file moves to cold/ and back, byte for byte, and its row follows.

The files are renamed, then their rows are written in one transaction, which holds the store's write lock
from before the first rename on. Killed in between, a file lies where its row does not say; readers look in
both places, and the next move of that record, `reindex` or `doctor --repair` brings the row after it.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from django.db import DatabaseError, transaction

from records import places
from records.clock import now_ms
from records.files import Moves
from records.header import HeaderError
from records.ledger import ledger_write
from records.models import Record, Status
from records.places import Place
from records.rows import Row, chunks, project, rows_known, rows_put
from records.services import Conflict, Unreadable
from records.tombstones import is_forgotten

logger = logging.getLogger(__name__)

# Records moved in one transaction: others wait for the write lock no longer than that takes.
BATCH = 50


@dataclass
class Moved:
    """`skipped`: why a record was not moved, by id. One that was there already is in neither."""

    ids: list[str] = field(default_factory=list)
    tokens: int = 0
    skipped: dict[str, str] = field(default_factory=dict)


def record_cool(record_ids: Sequence[str], *, actor: str) -> Moved:
    """Moves records to the cold tier; pinned ones never go. Must not be called inside a transaction."""
    result = Moved()
    for batch in chunks(record_ids, BATCH):
        moved = _shift(batch, cold=True)
        result.ids += moved.ids
        result.tokens += moved.tokens
        result.skipped |= moved.skipped
        if moved.ids:
            ledger_write(actor, "cool", moved.ids)
    return result


def record_restore(record_id: str, *, actor: str) -> Record:
    """Brings a record back among the hot ones and clears its abstract; a hot one stays as it is.

    It counts as read now, so that the next compression takes it last. Record.DoesNotExist, Unreadable,
    Conflict (another file lies where it belongs).
    """
    known = rows_known([record_id]).get(record_id)
    if known is None:
        raise Record.DoesNotExist(f"No record {record_id}.")
    moved = _shift([record_id], cold=False)
    if record_id in moved.skipped:
        why = moved.skipped[record_id]
        raise Conflict(f"{record_id}: {why}") if why == _TWICE else Unreadable(f"{record_id}: {why}")
    if moved.ids:
        Record.objects.filter(pk=record_id).update(last_read_at=now_ms())
        ledger_write(actor, "restore", [record_id])
    return Record.objects.get(pk=record_id)


_TWICE = "it has a file in both tiers"


def _shift(record_ids: Sequence[str], *, cold: bool) -> Moved:
    result = Moved()
    moves = Moves()
    try:
        with transaction.atomic(durable=True):
            known = rows_known(record_ids)
            rows: list[Row] = []
            for record_id in record_ids:
                row = known.get(record_id)
                why = _why_not(record_id, row, cold=cold)
                if why is None and row is not None:
                    why = _shift_one(row, moves, rows, cold=cold)
                if why:
                    result.skipped[record_id] = why
            moves.sync()
            rows_put(rows)
    except BaseException:
        _take_back(moves, cold=cold)
        raise
    result.ids = [row["id"] for row in rows]
    result.tokens = sum(row["tokens"] for row in rows)
    return result


def _why_not(record_id: str, row: Row | None, *, cold: bool) -> str | None:
    if row is None or is_forgotten("record", record_id):
        return "it is gone"
    return "it is pinned" if cold and row["status"] == Status.PINNED else None


def _shift_one(known: Row, moves: Moves, rows: list[Row], *, cold: bool) -> str | None:
    """Why it can't be moved; None when it was, or is there already."""
    target = places.place_of(known["id"], known["workspace_key"], cold=cold)
    place = places.find(target.other_tier)
    if place is None:
        return "its file is missing"
    try:
        row = _row_at(target, place, known)
    except (HeaderError, OSError) as error:
        return f"its file can't be read: {error}"
    if cold and row["status"] == Status.PINNED:
        return "it is pinned"
    if place != target:
        try:
            moves.add(place.path, target.path)
        except FileExistsError:
            return _TWICE
    if (known["cold"], known["path"]) != (row["cold"], row["path"]):
        rows.append(row)
    return None


def _row_at(target: Place, place: Place, known: Row) -> Row:
    """What the row of the file at `place` is once that lies at `target`."""
    return project(target, places.read(place), known).row


def _take_back(moves: Moves, *, cold: bool) -> None:
    """Undoes the renames, unless the rows were written after all."""
    ids = [target.stem for _, target in moves.done]
    with suppress(DatabaseError, OSError), transaction.atomic():
        if not Record.objects.filter(pk__in=ids, cold=int(cold)).exists():
            moves.undo()
            return
    if ids:
        logger.warning("A move that failed is to be completed by `doctor --repair`: %s", ", ".join(ids[:5]))
