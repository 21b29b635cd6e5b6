"""Finds agents' logs and reads their heads, no more: of an off session nothing else is known."""

import re
import time
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from stat import S_ISREG

from django.conf import settings

from .logs import registry
from .logs.events import Head
from .logs.rows import MAX_PARSED_ROW, Row, RowSplitter
from .logs.streams import StreamDamaged, read_stream
from .models import Source
from .pushsource import PREFIX

_HEAD_ROWS, _HEAD_BYTES = 200, 1024 * 1024
# What a head tells of a source; the rest of its row is what was read.
_FROM_HEAD = (
    "agent", "session_id", "cwd", "size", "mtime_ns", "started_at", "parent_id", "relation",
    "missing_since", "is_sample",
)  # fmt: skip
# Files whose rows are looked up and written together.
_TOGETHER = 500
_PATTERNS = {
    "claude-code": ("projects/*/*.jsonl", "projects/*/*/subagents/**/agent-*.jsonl"),
    "codex": (
        "sessions/**/rollout-*.jsonl",
        "sessions/**/rollout-*.jsonl.zst",
        "archived_sessions/rollout-*.jsonl",
        "archived_sessions/rollout-*.jsonl.zst",
    ),
    "dsh": ("sessions/*/*/session*.jsonl", "sessions/*/*/session*.jsonl.zstd"),
}
_LOG_NAME = re.compile(r"\.jsonl(\.zstd?)?$")
_DSH_GENERATION = re.compile(r"^session(?:\.v([1-9]\d*))?\.jsonl(?:\.zstd)?$")


@dataclass(slots=True)
class NotRecognised:
    """A file that is no agent's log, or can't be read; `message` says which."""

    path: Path
    message: str


def home_files(agent: str) -> list[Path]:
    root = settings.AGENT_HOMES[agent]
    return _without_twins(path for pattern in _PATTERNS[agent] for path in root.glob(pattern))


def files_under(path: Path) -> list[Path]:
    """`path` itself, or every log below it. Raises FileNotFoundError."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    return _without_twins(found for found in path.rglob("*") if _LOG_NAME.search(found.name))


def _without_twins(paths: Iterator[Path]) -> list[Path]:
    """Leaves out what another file supersedes: Codex' compressed copy of a log that is being opened
    again, and all but the newest format generation in a DSH session's folder."""
    files = sorted({path for path in paths if path.is_file()})
    plain = set(files)
    newest: dict[Path, tuple[int, Path]] = {}
    for path in files:
        if match := _DSH_GENERATION.match(path.name):
            best = newest.get(path.parent)
            version = int(match[1] or 0)
            if best is None or version > best[0]:
                newest[path.parent] = (version, path)
    return [
        path
        for path in files
        if not (path.suffix == ".zst" and path.with_suffix("") in plain)
        and not (_DSH_GENERATION.match(path.name) and newest[path.parent][1] != path)
    ]


def agent_root(agent: str, path: Path) -> Path:
    """The folder below which a log of this agent may point to files."""
    home: Path = settings.AGENT_HOMES[agent]
    if path.is_relative_to(home):
        return home
    for above in path.parents:
        if above.name in ("projects", "sessions", "archived_sessions"):
            return above.parent
    return path.parent


def head_read(path: Path, agent: str | None = None) -> Head | None:
    """What the first rows tell. None: not a log. Raises OSError."""
    found = registry.sniff(list(islice(_head_rows(path), _HEAD_ROWS)), str(path), agent)
    return found[1] if found else None


def _head_rows(path: Path) -> Iterator[Row]:
    splitter, read = RowSplitter(), 0
    try:
        for chunk in read_stream(path, chunk=128 * 1024):
            yield from splitter.feed(chunk)
            read += len(chunk)
            # A first row of many megabytes is read to its end: without it there is no head at all.
            if read >= _HEAD_BYTES and (splitter.number or read > MAX_PARSED_ROW):
                return
    except StreamDamaged:
        return
    if splitter.tail:
        yield Row(splitter.number, splitter.offset, splitter.tail)


def sources_discover(
    files: Sequence[tuple[Path, str | None]], *, is_sample: bool = False
) -> list[Source | NotRecognised]:
    """The rows of log files (path and, if known, agent), made or brought up to date; one each. Only their
    heads are read, and only of those that are new or were replaced."""
    found: list[Source | NotRecognised] = []
    for start in range(0, len(files), _TOGETHER):
        group = [(path.absolute(), agent) for path, agent in files[start : start + _TOGETHER]]
        known = Source.objects.in_bulk([str(path) for path, _ in group], field_name="path")
        rows = [_discovered(path, agent, known.get(str(path)), is_sample) for path, agent in group]
        # Each path once: a row can't be written twice by one statement.
        new = {row.path: row for row in rows if isinstance(row, Source) and row is not known.get(row.path)}
        Source.objects.bulk_create(
            new.values(), update_conflicts=True, unique_fields=["path"], update_fields=_FROM_HEAD
        )
        found += (new.get(row.path, row) if isinstance(row, Source) else row for row in rows)
    return found


def _discovered(
    path: Path, agent: str | None, known: Source | None, is_sample: bool
) -> Source | NotRecognised:
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):
            return NotRecognised(path, "not a regular file")
        if known and (known.size, known.mtime_ns) == (status.st_size, status.st_mtime_ns):
            return known
        head = head_read(path, agent)
    except OSError as error:
        return NotRecognised(path, error.strerror or str(error))
    if head is None or not head.session_id:
        return NotRecognised(path, "not a log of an agent that Memex knows")
    source = copy(known) if known else Source(path=str(path))
    source.agent, source.session_id, source.cwd = head.agent, head.session_id[:200], head.cwd
    source.size, source.mtime_ns = status.st_size, status.st_mtime_ns
    source.started_at, source.parent_id, source.relation = (
        head.started_at,
        head.parent_id[:200],
        head.relation,
    )
    source.missing_since = None
    source.is_sample = is_sample or bool(known and known.is_sample)
    return source


def missing_mark() -> int:
    """Notes which log files are gone; how many are newly so."""
    gone = [
        source.pk
        for source in Source.objects.filter(missing_since=None)
        .exclude(path__startswith=PREFIX)
        .only("pk", "path")
        if not Path(source.path).exists()
    ]
    return Source.objects.filter(pk__in=gone).update(missing_since=int(time.time() * 1000))
