"""Rebuilds the rows of records from their files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.db import transaction

from records import places
from records.header import HeaderError
from records.models import Record
from records.places import Content, Place
from records.rows import Row, chunks, project, rows_differ, rows_drop, rows_known, rows_put
from records.tombstones import is_forgotten
from records.totals import totals_recount

# Files whose contents are held at once.
BATCH = 100


@dataclass
class ReindexCounts:
    """Files found; rows added, changed and removed; files that can't be read, which keep their row."""

    found: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    unreadable: int = 0


@dataclass
class _Run:
    counts: ReindexCounts = field(default_factory=ReindexCounts)
    seen: set[str] = field(default_factory=set)


def records_reindex(workspace_key: str | None = None) -> ReindexCounts:
    """Read counts stay, and what was forgotten stays so. Safe beside processes that write."""
    run = _Run()
    for batch in chunks(_first_places(run, places.record_files(workspace_key)), BATCH):
        _index(run, batch)
    _remove_vanished(run, workspace_key)
    totals_recount()
    return run.counts


def _first_places(run: _Run, paths: Iterable[Path]) -> Iterator[Place]:
    """Of a record that lies in two places the first counts: hot ones come first."""
    for path in paths:
        place = places.place_at(path)
        if place is None:
            run.counts.unreadable += 1
        elif place.record_id not in run.seen and not is_forgotten("record", place.record_id):
            run.seen.add(place.record_id)
            yield place


def _index(run: _Run, batch: list[Place]) -> None:
    known = rows_known(place.record_id for place in batch)
    read = [(place, content) for place in batch if (content := _content(place)) is not None]
    projected = [
        (place, content, row)
        for place, content in read
        if (row := _row(place, content, known.get(place.record_id))) is not None
    ]
    run.counts.found += len(read)
    run.counts.unreadable += len(read) - len(projected)
    with transaction.atomic():
        # Whoever changed a file meanwhile has written its row as well.
        rows = [row for place, content, row in projected if places.is_unchanged(place, content)]
        added = [row for row in rows if row["id"] not in known]
        changed = [row for row in rows if row["id"] in known and rows_differ(row, known[row["id"]])]
        rows_put(added + changed)
    run.counts.added += len(added)
    run.counts.changed += len(changed)


def _content(place: Place) -> Content | None:
    try:
        return places.read(place)
    except FileNotFoundError:
        return None


def _row(place: Place, content: Content, known: Row | None) -> Row | None:
    try:
        return project(place, content, known).row
    except HeaderError:
        return None


def _remove_vanished(run: _Run, workspace_key: str | None) -> None:
    indexed = Record.objects.order_by("pk").values_list("pk", "workspace_key", "cold")
    if workspace_key is not None:
        indexed = indexed.filter(workspace_key=workspace_key)
    unseen = [entry for entry in indexed.iterator() if entry[0] not in run.seen]
    for batch in chunks(unseen):
        with transaction.atomic():
            gone = [record_id for record_id, key, cold in batch if _is_gone(record_id, key, bool(cold))]
            rows_drop(gone)
        run.counts.removed += len(gone)


def _is_gone(record_id: str, workspace_key: str, cold: bool) -> bool:
    """Looked at once more, now that nobody else can write: it may have been written meanwhile."""
    place = places.place_of(record_id, workspace_key, cold=cold)
    return places.find(place) is None or is_forgotten("record", record_id)
