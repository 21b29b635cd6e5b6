"""Writes the passages of records into the body index.

Data flow: whoever changes a row marks its entry as pending, in the same transaction -> `bodies_sync` takes
the pending ones, pool by pool: out with their old passages, in with the new, commit -> the mark goes, unless
the record has changed again meanwhile. Killed anywhere in between, the next run does it once more.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.db import transaction
from filelock import Timeout

from records import places
from records.fulltext import overflow_texts
from records.models import Record, SearchEntry
from records.models import Scope as Pool
from records.recordfile import body_of

from .cards import card_fields, cards_purge, cards_write
from .engine import Entry, IndexDamaged, Part, Writer, writing
from .passages import passages
from .pools import PoolName, bodies_lock, folder_discard, layout_ensure
from .terms import Extract, extract

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
        while most_records is None or done.records + done.removed < most_records:
            batch = _next_batch(BATCH if most_records is None else most_records)
            if not batch:
                break
            _write(batch, done)
            if say:
                say(done.records + done.removed, total)
        if purge:
            for pool in _stale_pools():
                _write_anew(pool)
    return done


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


def _write(batch: Sequence[SearchEntry], done: Synced) -> None:
    pool = PoolName(batch[0].workspace_key, batch[0].scope)
    records = {record.id: record for record in Record.objects.filter(pk__in=[e.record_id for e in batch])}
    gone = [entry for entry in batch if entry.record_id not in records]
    try:
        with writing(pool.path) as writer:
            # Of new ones too: a run that was killed may have written them and not said so.
            writer.remove(entry.number for entry in batch)
            for entry in batch:
                if entry.record_id in records:
                    _add_record(writer, entry.number, records[entry.record_id])
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


def _write_anew(pool: PoolName) -> None:
    """In one commit: readers see the old state until it is done, then the old files go."""
    entries = SearchEntry.objects.filter(workspace_key=pool.workspace_key, scope=pool.scope)
    with writing(pool.path) as writer:
        writer.clear()
        for entry in entries.order_by("number").iterator():
            record = Record.objects.filter(pk=entry.record_id).first()
            if record is not None:
                _add_record(writer, entry.number, record)
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
            with bodies_lock():
                _write_anew(pool)


def _add_record(writer: Writer, number: int, record: Record) -> None:
    """The card goes in last: it holds every term of the record once."""
    session = record.session_id if record.scope == Pool.SESSION else ""
    whole: set[str] = set()
    entries = [] if record.cold else list(_body_entries(number, session, record, whole))
    card = extract("\n".join([record.id, *filter(None, card_fields(_row(record)).values())]))
    total = card.length + sum(entry.length for entry in entries)
    for entry in entries:
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


def _body_entries(number: int, session: str, record: Record, whole: set[str]) -> Iterator[Entry]:
    place = places.find(places.place_of(record.id, record.workspace_key, cold=bool(record.cold)))
    if place is None:
        return
    body = body_of(places.read(place).data)
    for passage in passages(body):
        found = extract(passage.text)
        whole.update(found.terms.split())
        entry = _entry(number, Part.BODY, found, passage.start, passage.size, session)
        entry.tail = len(body) - passage.start
        entry.seq_start, entry.seq_end = passage.seq_start, passage.seq_end
        yield entry


def _overflow_entries(number: int, session: str, record: Record, whole: set[str]) -> Iterator[Entry]:
    """What the body leaves out of its longest events."""
    for event in overflow_texts(record):
        text = event.text.encode("utf-8", "surrogatepass")
        start = len(event.text[: event.shown].encode("utf-8", "surrogatepass"))
        for passage in passages(text[start:]):
            found = extract(passage.text)
            whole.update(found.terms.split())
            entry = _entry(number, Part.OVERFLOW, found, start + passage.start, passage.size, session)
            entry.seq_start = entry.seq_end = event.seq
            yield entry


def _entry(number: int, part: int, found: Extract, at: int, size: int, session: str) -> Entry:
    return Entry(number, part, found.terms, found.exact, at, size, None, None, found.length, session=session)
