"""The whole pass: find logs, read what is new in those that are on, archive. What `manage.py archive`,
the worker and the first visit run."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Max, Q

from records.files import StoreFull, ensure_free_space
from records.tombstones import is_forgotten

from .archive import Archived, session_archive
from .discovery import NotRecognised, files_under, home_files, missing_mark, source_discover
from .eventrefs import with_lanes
from .forget import forget_resume, trash_expire
from .ingest import Ingested, source_ingest, source_is_read
from .levels import level_enable, may_read, pool_session_id, settings_expire
from .locks import archive_lock
from .models import AgentSession, Compaction, Source
from .sessionfile import WorkspacesDamaged, workspace_key_of

log = logging.getLogger(__name__)

AGENTS = ("claude-code", "codex", "dsh")


@dataclass(slots=True)
class ArchiveResult:
    """The last line of `archive --json`. compactions = archived + already + pending + inherited + empty."""

    files: int = 0
    skipped: int = 0
    sessions: int = 0
    events: int = 0
    compactions: int = 0
    archived: int = 0
    already: int = 0
    pending: int = 0
    inherited: int = 0
    empty: int = 0
    micro: int = 0
    closing: int = 0
    warnings: int = 0
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class Progress:
    """Told after each file."""

    done: int
    total: int
    path: str


@dataclass(slots=True)
class _Pass:
    result: ArchiveResult
    say: Callable[[str], None]
    session_ids: set[str] = field(default_factory=set)
    archived: int = 0

    def warn(self, path: str | Path, message: str) -> None:
        self.result.warnings += 1
        self.say(f"{path}: {message}")

    @contextmanager
    def guarded(self, path: str) -> Iterator[None]:
        """One bad file never stops the scan; what was read of it so far is kept."""
        try:
            yield
        except (StoreFull, WorkspacesDamaged):
            raise
        except FileNotFoundError:
            self.warn(path, "it vanished before it was read")
            Source.objects.filter(path=path, read_size__lt=0).delete()
        except Exception as error:
            log.exception("Reading %s failed", path)
            self.warn(path, f"{type(error).__name__}: {error}")


def archive_run(
    paths: list[Path] | None = None,
    *,
    agent: str | None = None,
    level: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
    is_sample: bool = False,
    watched: bool = False,
) -> ArchiveResult:
    """`paths`: files and folders, None = the agents' known homes; `watched`: they were not named by a
    person, but are files of a home that changed. `level`: switched on for the sessions of these files.
    `say` gets one line a warning. Raises FileNotFoundError for a path that isn't there, StoreFull when the
    disk is, WorkspacesDamaged."""
    started = time.monotonic()
    ensure_free_space()
    forget_resume()
    run = _Pass(ArchiveResult(), say)
    sources = _sources(paths, agent, run, is_sample=is_sample)
    if level:
        for source in sources:
            if not _is_forgotten(source):
                level_enable(_pool(source), level)
    for number, source in enumerate(sources, 1):
        if stopped():
            break
        _source_pass(source, run, named=paths is not None and not watched)
        progress(Progress(number, len(sources), source.path))
    if paths is None:
        missing_mark()
        settings_expire()
        trash_expire()
        _left_over_pass(run)
    _count(run)
    run.result.seconds = round(time.monotonic() - started, 3)
    return run.result


def _sources(paths: list[Path] | None, agent: str | None, run: _Pass, *, is_sample: bool) -> list[Source]:
    agents = (agent,) if agent else AGENTS
    if paths is None:
        files: list[tuple[Path, str | None]] = [(path, name) for name in agents for path in home_files(name)]
    else:
        files = [(path, agent) for given in paths for path in files_under(given)]
    run.result.files = len(files)
    found: dict[str, Source] = {}
    for path, name in files:
        source = source_discover(path, name, is_sample=is_sample)
        if isinstance(source, NotRecognised):
            run.result.skipped += 1
            run.warn(source.path, source.message)
        else:
            found[source.path] = source
    return sorted(found.values(), key=_parents_first)


def homes_discover() -> None:
    """The source rows of every log in the agents' known homes."""
    for name in AGENTS:
        for path in home_files(name):
            source_discover(path, name)


def _parents_first(source: Source) -> tuple[int, int, str]:
    # A fork brings its parent's compactions along: they are archived under the parent if it is there.
    order = {"": 0, "fork": 1, "subagent": 2}
    return order.get(source.relation, 0), source.started_at or 0, source.path


def _pool(source: Source) -> str:
    return pool_session_id(source.session_id, source.parent_id, source.relation)


def _is_forgotten(source: Source) -> bool:
    return is_forgotten("session", source.session_id) or is_forgotten("session", _pool(source))


def _may_read(source: Source) -> bool:
    pool = _pool(source)
    return not _is_forgotten(source) and may_read(source.session_id, pool, workspace_key_of(pool, source.cwd))


def _source_pass(source: Source, run: _Pass, *, named: bool) -> None:
    with run.guarded(source.path):
        ingested = _ingest(source, run, named=named)
        if ingested:
            run.session_ids.update(ingested.sessions)
            _sessions_archive(ingested.sessions, run, touched_ns=source.mtime_ns)


def _ingest(source: Source, run: _Pass, *, named: bool) -> Ingested | None:
    """None when nothing of it may be read."""
    if _may_read(source):
        if source_is_read(source):
            run.result.skipped += 1
            return Ingested(sessions=with_lanes([source.session_id]))
        with archive_lock():
            # While this one waited another process may have read it, or forgotten or paused it.
            source.refresh_from_db()
            if _may_read(source):
                ingested = source_ingest(source, take_torn_tail=named or _is_idle(source))
                run.result.events += ingested.events
                run.result.warnings += ingested.warnings
                return ingested
    run.result.skipped += 1
    return None


def _is_idle(source: Source) -> bool:
    hours = settings.MEMEX_IDLE_ARCHIVE_HOURS
    return bool(hours) and time.time() - source.mtime_ns / 1e9 >= hours * 3600


def _sessions_archive(
    session_ids: list[str], run: _Pass, *, touched_ns: int, log_is_gone: bool = False
) -> None:
    """`touched_ns`: when their log was last written; one that is gone won't be again."""
    now = int(time.time() * 1000)
    for session_id in sorted(session_ids):
        with archive_lock():
            session = AgentSession.objects.filter(session_id=session_id).first()
            if session is None:
                continue  # forgotten meanwhile
            done: Archived = session_archive(
                session, now=now, idle_since=touched_ns // 1_000_000, log_is_gone=log_is_gone
            )
        run.archived += len(done.compactions)
        run.result.closing += len(done.closing)
        if done.compactions or done.closing:
            run.session_ids.add(session_id)


def _left_over_pass(run: _Pass) -> None:
    """Sessions that no log brought up: their log is gone or lies elsewhere, or an earlier run was killed
    before it had archived what it had read."""
    waiting = Compaction.objects.filter(state__in=(Compaction.State.READY, Compaction.State.PENDING))
    left = AgentSession.objects.filter(
        Q(current_count__gt=0) | Q(session_id__in=waiting.values("session_id"))
    )
    for session in left.exclude(session_id__in=run.session_ids):
        if may_read(session.session_id, session.pool_session_id, session.workspace_key):
            with run.guarded(session.session_id):
                logs = Source.objects.filter(session_id__in=(session.session_id, session.parent_id))
                touched = logs.aggregate(latest=Max("mtime_ns"))["latest"]
                is_gone = touched is not None and not logs.filter(missing_since=None).exists()
                _sessions_archive([session.session_id], run, touched_ns=touched or 0, log_is_gone=is_gone)


def _count(run: _Pass) -> None:
    result, state = run.result, Compaction.State
    result.sessions = len(run.session_ids)
    states: dict[str, int] = {}
    for kind, value in Compaction.objects.filter(session_id__in=run.session_ids).values_list("kind", "state"):
        if kind != "compaction":
            result.micro += value in (state.ARCHIVED, state.INHERITED)
        else:
            states[value] = states.get(value, 0) + 1
    result.archived = run.archived
    result.already = states.get(state.ARCHIVED, 0) - run.archived
    result.pending = states.get(state.PENDING, 0) + states.get(state.READY, 0)
    result.inherited = states.get(state.INHERITED, 0)
    result.empty = states.get(state.EMPTY, 0)
    result.compactions = result.archived + result.already + result.pending + result.inherited + result.empty
