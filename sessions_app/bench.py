"""How fast logs are imported, as ratios to the raw operation in the same run.

The logs of a folder are copied under fresh ids until there is enough of them, then parsed, then archived
into a throw-away store; the raw operation is a bare `orjson.loads` of every line.
"""

import re
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from records.bench.clock import Pair
from records.bench.writing import WORKSPACE_KEY
from records.clock import now_ms
from records.models import Scope as Tier
from records.scope import Scope
from records.search.search import search

from .access import Access
from .archiving import archive_run
from .discovery import files_under
from .injection.prestep import prestep
from .levels import Levels
from .logs import registry
from .logs.rows import Row, RowSplitter
from .logs.streams import read_stream
from .models import OpenedSession
from .opening import KnownSession
from .principals import OWNER_PRINCIPAL

_UUID = re.compile(rb"\b([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b")


@dataclass(slots=True)
class ImportBench:
    """Seconds; `*_ratio`: to `raw_seconds`. `peak_mb`: of the largest process that archived."""

    files: int = 0
    megabytes: float = 0.0
    rows: int = 0
    raw_seconds: float = 0.0
    parse_seconds: float = 0.0
    parse_ratio: float = 0.0
    archive_seconds: float = 0.0
    archive_ratio: float = 0.0
    archived: int = 0
    events: int = 0
    peak_mb: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def logs_multiply(logs: Path, target: Path, megabytes: int) -> list[Path]:
    """Copies the logs below `logs` that Memex reads into `target`, under fresh ids, over and over until
    they come to `megabytes`. Raises ValueError when there are none."""
    known = {
        path: name
        for path in files_under(logs)
        if path.suffix == ".jsonl" and (name := _session_id(path)) is not None
    }
    if not known:
        raise ValueError(f"{logs}: no plain .jsonl log of an agent that Memex knows")
    names = sorted({name.encode() for name in known.values() if name and not _UUID.search(name.encode())})
    made: list[Path] = []
    size, turn = 0, 0
    while size < megabytes * 1_000_000:
        for path in known:
            data = _renamed(path.read_bytes(), names, turn)
            copy = target / str(turn) / path.relative_to(logs)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
            made.append(copy)
            size += len(data)
        turn += 1
    return made


def _renamed(data: bytes, names: list[bytes], turn: int) -> bytes:
    def fresh(match: re.Match[bytes]) -> bytes:
        return b"%08x%s" % (int(match[1], 16) ^ turn, match[2])

    data = _UUID.sub(fresh, data)
    for name in names:
        data = data.replace(b'"%s"' % name, b'"%s-%d"' % (name, turn))
    return data


def _session_id(path: Path) -> str | None:
    found = registry.sniff(list(islice(_rows(path), 200)), str(path))
    return found[1].session_id if found else None


def _rows(path: Path) -> Iterator[Row]:
    splitter = RowSplitter()
    for chunk in read_stream(path):
        yield from splitter.feed(chunk)
    if splitter.tail:
        yield Row(splitter.number, splitter.offset, splitter.tail)


def import_bench(paths: list[Path]) -> ImportBench:
    """The store of the running process is written to: give it a throw-away one."""
    result = ImportBench(files=len(paths))
    # First, as a command would: logs that this process has held would count as its own and be forked along.
    archived = archive_run(paths, level="l2", processes=None)
    result.archive_seconds = archived.seconds
    result.archived, result.events = archived.archived, archived.events
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    result.peak_mb = round(max(peaks) / 1024, 1)
    logs = [list(_rows(path)) for path in paths]
    result.megabytes = round(sum(len(row.raw) for rows in logs for row in rows) / 1e6, 1)
    result.rows = sum(map(len, logs))
    result.raw_seconds = _timed(_loads, logs)
    result.parse_seconds = _timed(_parse, logs, paths)
    result.parse_ratio = round(result.parse_seconds / result.raw_seconds, 2)
    result.archive_ratio = round(result.archive_seconds / result.raw_seconds, 2)
    return result


def prompt_bench(questions: list[str]) -> dict[str, dict[str, Any]]:
    """What a prompt costs an agent, besides HTTP: each question as one, against searching for it alone. In the
    store that the bench of records has filled."""
    now = now_ms()
    opened = OpenedSession(session_id="bench", handle="mxs_bench", agent="bench", opened_at=now, heard_at=now)
    OpenedSession.objects.bulk_create([opened], ignore_conflicts=True)
    session = KnownSession("bench", "bench", "", WORKSPACE_KEY, "bench", handle="mxs_bench")
    scope = Scope(frozenset({WORKSPACE_KEY}), frozenset({Tier.WORKSPACE}))
    access = Access(OWNER_PRINCIPAL, scope, Levels(l3=True), session, WORKSPACE_KEY)
    pair = Pair()
    for text in questions:
        pair.ours.time(prestep, access, text=text, keeps_all=True)
        pair.raw.time(search, scope, text)
    return {"prompt": pair.as_percentiles()}


def _timed(work: Callable[..., None], *arguments: object) -> float:
    started = time.perf_counter()
    work(*arguments)
    return round(time.perf_counter() - started, 4)


def _loads(logs: list[list[Row]], *_: object) -> None:
    for rows in logs:
        for row in rows:
            with suppress(ValueError):
                orjson.loads(row.raw)


def _parse(logs: list[list[Row]], paths: list[Path]) -> None:
    for path, rows in zip(paths, logs, strict=True):
        if found := registry.sniff(rows[:200], str(path)):
            log_format, head = found
            reader = log_format.reader(head, None, ())
            for row in rows:
                reader.feed(row)
