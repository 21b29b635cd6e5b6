"""Real stores from real files: writes logs, archives them, and checks what a user relies on whatever the
log went through."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.db.models import Model

from records.maintenance.reindex import records_reindex
from records.models import PoolTotal, Record
from sessions_app.archiving import ArchiveResult, archive_run
from sessions_app.counts import session_events
from sessions_app.discovery import files_under
from sessions_app.locks import archive_lock
from sessions_app.models import (
    AgentSession,
    ArchivedCompaction,
    Compaction,
    Event,
    Generation,
    ImportWarning,
    L1Eviction,
    SessionFile,
    Source,
)
from sessions_app.originals import record_rows
from sessions_app.queries import events_read, mirror_of, rows_read
from sessions_app.rebuild import sessions_rebuild

LAST = 10**9
DERIVED: tuple[type[Model], ...] = (
    Event,
    SessionFile,
    Compaction,
    Generation,
    ArchivedCompaction,
    L1Eviction,
    Source,
    AgentSession,
    Record,
    PoolTotal,
)
Line = Mapping[str, Any] | bytes


def encode(lines: Iterable[Line]) -> bytes:
    """A log of these rows, each with its line end; bytes are taken as they are."""
    return b"".join(
        (
            line
            if isinstance(line, bytes)
            else json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass")
        )
        + b"\n"
        for line in lines
    )


def write(path: Path, data: bytes | Iterable[Line]) -> bytes:
    """Writes a log, with its folders; what it holds."""
    content = data if isinstance(data, bytes) else encode(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return content


def archive(*paths: Path) -> ArchiveResult:
    return archive_run(list(paths), level="l3")


def archive_watched(path: Path) -> ArchiveResult:
    """As when the file was seen to change: nobody says that its last row is complete."""
    return archive_run([path], level="l3", watched=True)


def session(session_id: str) -> AgentSession:
    return AgentSession.objects.get(pk=session_id)


def compactions(session_id: str, kind: str = "compaction") -> list[Compaction]:
    return list(Compaction.objects.filter(session_id=session_id, kind=kind).order_by("at_seq"))


def records(source: str = "compaction-archive") -> list[Record]:
    found = Record.objects.filter(provenance__source=source)
    return list(found.order_by("created_at", "provenance__seqStart", "id"))


def warnings(path: Path) -> list[tuple[int | None, str]]:
    found = ImportWarning.objects.filter(path=str(path)).order_by("row", "code")
    return list(found.values_list("row", "code"))


def previews(events: Iterable[Event]) -> list[str]:
    return [event.preview for event in events]


def window(session_id: str) -> list[str]:
    """What the model sees now."""
    return previews(session_events(session(session_id)).filter(surface="current").order_by("seq"))


def body(record: Record, home: Path) -> str:
    return (home / record.path).read_text(encoding="utf-8")


def original(record: Record) -> bytes:
    return b"".join(record_rows(record))


def dump() -> dict[str, list[str]]:
    """Every row that can be made again, by table, without the keys that the database gives out."""
    return {model._meta.db_table: sorted(map(_row, model._base_manager.all())) for model in DERIVED}


def _row(row: Model) -> str:
    columns = [column for column in row._meta.concrete_fields if column.get_internal_type() != "BigAutoField"]
    return json.dumps({column.attname: getattr(row, column.attname) for column in columns}, sort_keys=True)


def reindex() -> None:
    """The database is lost, the files are there."""
    for model in DERIVED:
        model._base_manager.all().delete()
    with archive_lock():
        records_reindex()
        sessions_rebuild()


def touch(paths: Iterable[Path]) -> None:
    """Makes these logs look changed, so that they are read again."""
    for file in (file for path in paths for file in files_under(path)):
        if file.exists():
            os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000_000))


def assert_sound(logs: Mapping[str, bytes], paths: Sequence[Path]) -> None:
    """What holds whatever the log: every byte of it is kept (`logs`, by session id), every event opens,
    records can give back all they own, reading it again adds nothing, and the files alone give the same
    rows."""
    for session_id, data in logs.items():
        assert_kept(session_id, data)
    assert_records_open()
    before = dump()
    touch(paths)
    again = archive(*paths)
    assert (again.events, again.archived, again.closing) == (0, 0, 0)
    sources = Source._meta.db_table
    assert dump() | {sources: []} == before | {sources: []}
    before = dump()
    reindex()
    after = dump()
    for table, rows in before.items():
        lost, new = set(rows) - set(after[table]), set(after[table]) - set(rows)
        assert after[table] == rows, f"{table}: lost {lost}, new {new}"


def assert_kept(session_id: str, data: bytes, generation: int | None = None) -> None:
    kept = session(session_id)
    number = kept.view_generation if generation is None else generation
    assert b"".join(rows_read(kept, 0, LAST, generation)) == data
    assert mirror_of(kept.session_id, number).length == len(data)
    for each in events_read(kept, 0, LAST):
        event = each.event
        if event.generation == number:
            assert each.raw == data[event.offset : event.offset + event.length]


def assert_records_open() -> None:
    for record in Record.objects.filter(provenance__has_key="rows"):
        rows, given = original(record), record.provenance
        mirror_id = given.get("mirrorSessionId") or given["sessionId"]
        mirror = mirror_of(mirror_id, given["generation"])
        owned = Event.objects.filter(record_id=record.id, generation=given["generation"])
        # A fork's copies of these events are rows of its own.
        here = [event for event in owned if (event.mirror_id or event.session_id) == mirror_id]
        assert here or not given["rows"]
        assert len(here) <= given["shadowedEventCount"]
        for event in here:
            assert mirror.read(event.offset, event.length) in rows
