"""The whole pass: find logs, read what is new in those that are on, archive. What `manage.py archive`,
the worker and the first visit run."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.db.models import Max, Q

from records.files import ensure_free_space

from .bulk import bulk_pass
from .discovery import NotRecognised, files_under, home_files, missing_mark, sources_discover
from .forget import forget_resume, trash_expire
from .levels import may_read, settings_expire
from .models import AgentSession, Compaction, Source
from .pushlog import push_read, pushes_unread
from .sourcepass import ArchiveResult, Pass, sessions_archive, source_pass, sources_enable

AGENTS = ("claude-code", "codex", "dsh")


@dataclass(slots=True)
class Progress:
    """Told after each file."""

    done: int
    total: int
    path: str


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
    processes: int | None = 1,
) -> ArchiveResult:
    """`paths`: files and folders, None = the agents' known homes; `watched`: they were not named by a
    person, but are files of a home that changed. `level`: switched on for the sessions of these files.
    `say` gets one line a warning. `processes`: among how many the work is shared, None = as many as there are
    processors if it is worth it; for programs without threads. Raises FileNotFoundError for a path that
    isn't there, StoreFull when the disk is, WorkspacesDamaged, WorkerLost."""
    started = time.monotonic()
    ensure_free_space()
    forget_resume()
    run = Pass(ArchiveResult(), say)
    sources = _sources(paths, agent, run, is_sample=is_sample)
    named = paths is not None and not watched
    left = sources
    if processes != 1:
        left = bulk_pass(sources, run, named=named, level=level, processes=processes)
    sources_enable(left, level)
    for number, source in enumerate(left, 1 + len(sources) - len(left)):
        if stopped():
            break
        source_pass(source, run, named=named)
        progress(Progress(number, len(sources), source.path))
    if paths is None:
        missing_mark()
        settings_expire()
        trash_expire()
        _pushed_pass(run)
        _left_over_pass(run)
    _count(run)
    run.result.seconds = round(time.monotonic() - started, 3)
    return run.result


def _sources(paths: list[Path] | None, agent: str | None, run: Pass, *, is_sample: bool) -> list[Source]:
    agents = (agent,) if agent else AGENTS
    if paths is None:
        files: list[tuple[Path, str | None]] = [(path, name) for name in agents for path in home_files(name)]
    else:
        files = [(path, agent) for given in paths for path in files_under(given)]
    run.result.files = len(files)
    found: dict[str, Source] = {}
    for source in sources_discover(files, is_sample=is_sample):
        if isinstance(source, NotRecognised):
            run.result.skipped += 1
            run.warn(source.path, source.message)
        else:
            found[source.path] = source
    return sorted(found.values(), key=_parents_first)


def _parents_first(source: Source) -> tuple[int, int, str]:
    # A fork brings its parent's compactions along: they are archived under the parent if it is there.
    order = {"": 0, "fork": 1, "subagent": 2}
    return order.get(source.relation, 0), source.started_at or 0, source.path


def homes_discover() -> None:
    """The source rows of every log in the agents' known homes."""
    sources_discover([(path, name) for name in AGENTS for path in home_files(name)])


def _pushed_pass(run: Pass) -> None:
    """What a push wrote and was killed before it had read it; archived with what is left over."""
    for source in pushes_unread():
        with run.guarded(source.path), run.lock():
            run.result.events += push_read(source)


def _left_over_pass(run: Pass) -> None:
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
                sessions_archive([session.session_id], run, touched_ns=touched or 0, log_is_gone=is_gone)


def _count(run: Pass) -> None:
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
