"""Writes the passages of records into the body index.

Data flow: whoever changes a row marks its entry as pending, in the same transaction -> `bodies_sync` takes
the pending ones, pool by pool: out with their old passages, in with the new, commit -> the mark goes, unless
the record has changed again meanwhile. Killed anywhere in between, the next run does it once more.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Sum
from filelock import Timeout

from records import places
from records.fulltext import overflow_shown
from records.models import Record, SearchEntry
from records.models import Scope as Pool
from records.recordfile import body_of
from records.secrets.policy import Find, is_redacted
from records.secrets.redaction import body_finds

from .cards import card_fields, cards_purge, cards_write
from .engine import Entry, IndexDamaged, Part, Writer, writing
from .extraction import Extract, Piece, TakenApart, extract, take_apart
from .extractors import WORTH_BYTES, Extractors
from .pools import PoolName, bodies_lock, folder_discard, layout_ensure

logger = logging.getLogger(__name__)

# Records whose passages are written with one commit.
BATCH = 200
# A pool with fewer bytes of records is written anew at once when something in it was forgotten.
SMALL_POOL_BYTES = 32 * 1024 * 1024
# In a pool's folder: something was forgotten, and its words are still in the folder's files.
_STALE = "stale"

Say = Callable[[int, int], None]


@dataclass
class Synced:
    records: int = 0
    passages: int = 0
    removed: int = 0


def bodies_pending() -> int:
    return SearchEntry.objects.filter(pending=1).count()


def bodies_sync(
    *, timeout: float = -1, most_records: int | None = None, purge: bool = False, say: Say | None = None
) -> Synced:
    """Brings the body index up to date, or as far as `most_records` goes. `purge`: also write those pools
    anew that still hold words of what was forgotten. `say(done, pending)` after each batch. Timeout when
    another process holds the lock for longer than `timeout` seconds."""
    done = Synced()
    with bodies_lock(timeout):
        if layout_ensure():
            SearchEntry.objects.update(pending=1)
        _vanished_mark()
        total = bodies_pending() if say else 0
        with _extractors(most_records) as extractors:
            while most_records is None or done.records + done.removed < most_records:
                batch = _next_batch(BATCH if most_records is None else most_records)
                if not batch:
                    break
                _write(batch, done, extractors)
                if say:
                    say(done.records + done.removed, total)
            if purge:
                for pool in _stale_pools():
                    _write_anew(pool, extractors)
    return done


def _extractors(most_records: int | None) -> Extractors:
    """Several processes only where they are worth their start."""
    if most_records is not None:
        return Extractors(0)
    waiting = SearchEntry.objects.filter(pending=1).values("record_id")
    size = Record.objects.filter(pk__in=waiting, cold=0).aggregate(size=Sum("bytes"))["size"] or 0
    return Extractors() if size >= WORTH_BYTES else Extractors(0)


def bodies_rebuild(workspace_key: str | None = None, say: Say | None = None) -> Synced:
    """Writes the body index anew from the record files."""
    with bodies_lock():
        entries = SearchEntry.objects.all()
        if workspace_key is not None:
            entries = entries.filter(workspace_key=workspace_key)
        for key, scope in entries.values_list("workspace_key", "scope").distinct():
            folder_discard(PoolName(key, scope))
        entries.update(pending=1)
    return bodies_sync(say=say)


def pool_discard(pool: PoolName) -> None:
    """For a folder that can't be read: the next sync writes it anew."""
    with suppress(Timeout), bodies_lock(timeout=5):
        folder_discard(pool)
        SearchEntry.objects.filter(workspace_key=pool.workspace_key, scope=pool.scope).update(pending=1)


def pool_stale(pool: PoolName) -> None:
    """Its folder's files hold words that no record in it has any more: the next purge writes it anew."""
    if pool.path.is_dir():
        (pool.path / _STALE).touch()


def pool_leave(pool: PoolName, record_id: str) -> None:
    """A record has moved to another pool: it is found here no longer."""
    pool_stale(pool)
    numbers = SearchEntry.objects.filter(record_id=record_id).values_list("number", flat=True)
    with suppress(Timeout, IndexDamaged), bodies_lock(timeout=5):
        if (pool.path / "meta.json").is_file():
            with writing(pool.path) as writer:
                writer.remove(numbers)
                writer.commit()


def _vanished_mark() -> None:
    """A folder that somebody removed is written anew."""
    for key, scope in SearchEntry.objects.filter(pending=0).values_list("workspace_key", "scope").distinct():
        if not (PoolName(key, scope).path / "meta.json").is_file():
            SearchEntry.objects.filter(workspace_key=key, scope=scope).update(pending=1)


def _next_batch(size: int) -> list[SearchEntry]:
    """Of one pool."""
    pending = SearchEntry.objects.filter(pending=1).order_by("workspace_key", "scope", "number")
    first = pending.first()
    if first is None:
        return []
    return list(pending.filter(workspace_key=first.workspace_key, scope=first.scope)[:size])


def _write(batch: Sequence[SearchEntry], done: Synced, extractors: Extractors) -> None:
    pool = PoolName(batch[0].workspace_key, batch[0].scope)
    records = {record.id: record for record in Record.objects.filter(pk__in=[e.record_id for e in batch])}
    gone = [entry for entry in batch if entry.record_id not in records]
    try:
        with writing(pool.path) as writer:
            # Of new ones too: a run that was killed may have written them and not said so.
            writer.remove(entry.number for entry in batch)
            there = [entry for entry in batch if entry.record_id in records]
            _add_all(writer, ((entry.number, records[entry.record_id]) for entry in there), extractors)
            writer.commit()
            done.passages += writer.added
    except IndexDamaged as error:
        logger.warning("The body index is written anew: %s", error)
        folder_discard(pool)
        SearchEntry.objects.filter(workspace_key=pool.workspace_key, scope=pool.scope).update(pending=1)
        return
    if gone:
        (pool.path / _STALE).touch()
    _settle(batch, records, gone)
    if gone and not SearchEntry.objects.filter(workspace_key=pool.workspace_key, scope=pool.scope).exists():
        folder_discard(pool)
    done.records += len(records)
    done.removed += len(gone)


def _settle(batch: Sequence[SearchEntry], records: Mapping[str, Record], gone: Sequence[SearchEntry]) -> None:
    """Takes the marks away, except where a record has changed meanwhile."""
    with transaction.atomic():
        cards_write([_row(record) for record in records.values()])
        for entry in batch:
            same = SearchEntry.objects.filter(number=entry.number, version=entry.version)
            if entry in gone:
                # Its record may have come back meanwhile.
                same.exclude(record_id__in=Record.objects.values("pk")).delete()
            else:
                same.update(pending=0)


def _row(record: Record) -> dict[str, object]:
    names = ("id", "title", "tags", "entities", "summary", "use_when", "abstract")
    return {name: getattr(record, name) for name in names}


def _stale_pools() -> Iterator[PoolName]:
    for key, scope in SearchEntry.objects.values_list("workspace_key", "scope").distinct():
        if (PoolName(key, scope).path / _STALE).exists():
            yield PoolName(key, scope)


def _write_anew(pool: PoolName, extractors: Extractors) -> None:
    """In one commit: readers see the old state until it is done, then the old files go."""
    entries = SearchEntry.objects.filter(workspace_key=pool.workspace_key, scope=pool.scope)
    with writing(pool.path) as writer:
        writer.clear()
        records = (
            (entry.number, record)
            for entry in entries.order_by("number").iterator()
            for record in Record.objects.filter(pk=entry.record_id)
        )
        _add_all(writer, records, extractors)
        writer.commit()
    (pool.path / _STALE).unlink(missing_ok=True)


def bodies_forgotten() -> None:
    """After something was forgotten: takes its words out of the indexes' files. A large pool's turn
    comes with the next `bodies_sync(purge=True)`; nothing of it is found until then either."""
    bodies_sync()
    cards_purge()
    for key, scope in SearchEntry.objects.filter(pending=0).values_list("workspace_key", "scope").distinct():
        pool = PoolName(key, scope)
        if not (pool.path / _STALE).exists():
            continue
        records = Record.objects.filter(workspace_key=key, scope=scope).values_list("bytes", flat=True)
        if sum(records) <= SMALL_POOL_BYTES:
            with bodies_lock(), Extractors(0) as extractors:
                _write_anew(pool, extractors)


def _add_all(writer: Writer, records: Iterable[tuple[int, Record]], extractors: Extractors) -> None:
    """(entry's number, record)"""
    for (number, record, body, finds), taken in extractors.taken_apart(map(_task, records)):
        taken = take_apart(body, finds) if finds else taken
        _add_record(writer, number, record, taken, len(body))


def _task(given: tuple[int, Record]) -> tuple[tuple[int, Record, bytes, Sequence[Find]], bytes]:
    """What is redacted is taken apart here: only here it is known what to leave out."""
    number, record = given
    body = _body(record)
    finds = body_finds(body) if body and is_redacted(record.provenance) else ()
    return (number, record, body, finds), b"" if finds else body


def _body(record: Record) -> bytes:
    """Empty for a cold one, and when its file is missing."""
    if record.cold:
        return b""
    place = places.find(places.place_of(record.id, record.workspace_key, cold=False))
    return body_of(places.read(place).data) if place else b""


def _add_record(writer: Writer, number: int, record: Record, taken: TakenApart, size: int) -> None:
    """`size`: bytes of its body. The card goes in last: it holds every term of the record once."""
    session = record.session_id if record.scope == Pool.SESSION else ""
    card = extract("\n".join([record.id, *filter(None, card_fields(_row(record)).values())]))
    total = card.length + taken.length
    whole = taken.whole
    for piece in taken.pieces:
        entry = _entry(number, Part.BODY, piece, piece.start, piece.size, session)
        entry.tail = size - piece.start
        entry.seq_start, entry.seq_end = piece.seq_start, piece.seq_end
        entry.total = total
        writer.add(entry)
    if not record.cold:
        for entry in _overflow_entries(number, session, record, whole):
            total += entry.length
            entry.total = total
            writer.add(entry)
    whole.update(card.terms.split())
    entry = _entry(number, Part.CARD, card, 0, 0, session)
    entry.total, entry.whole = total, " ".join(whole)
    writer.add(entry)


def _overflow_entries(number: int, session: str, record: Record, whole: set[str]) -> Iterator[Entry]:
    """What the body leaves out of its longest events."""
    for event in overflow_shown(record):
        text = event.text.encode("utf-8", "surrogatepass")
        start = len(event.text[: event.shown].encode("utf-8", "surrogatepass"))
        taken = take_apart(text[start:])
        whole.update(taken.whole)
        for piece in taken.pieces:
            entry = _entry(number, Part.OVERFLOW, piece, start + piece.start, piece.size, session)
            entry.seq_start = entry.seq_end = event.seq
            yield entry


def _entry(number: int, part: int, found: Extract | Piece, at: int, size: int, session: str) -> Entry:
    return Entry(number, part, found.terms, found.exact, at, size, None, None, found.length, session=session)
