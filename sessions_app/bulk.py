"""A bulk import in several processes: first every log is read, then all is archived.

Sessions that have something to do with each other stay in one process and in order: of a family of parents,
sub-agents and forks, and of two that hold the same compaction, the first archives it and the others inherit
it. Which compactions they hold is known once they are read, hence the two steps.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from .archiveplan import RANDOM_ID
from .models import Compaction, Source
from .processes import can_share, families, processors, shared_work
from .sourcepass import ArchiveResult, Pass, pool_of, sessions_archive, source_read, sources_enable

# Of less than this each process would have hardly begun.
_WORTHWHILE_BYTES = 8 * 1024 * 1024


@dataclass(slots=True)
class _Read:
    """A log that was read. `session_ids`: it and its inline sub-agents."""

    path: str
    size: int
    touched_ns: int
    session_ids: list[str]
    relatives: list[str]


_Sized = TypeVar("_Sized", Source, _Read)


@dataclass(slots=True)
class _Done:
    """What one process did of its share."""

    result: ArchiveResult = field(default_factory=ArchiveResult)
    lines: list[str] = field(default_factory=list)
    session_ids: set[str] = field(default_factory=set)
    archived: int = 0
    read: list[_Read] = field(default_factory=list)


def bulk_pass(
    sources: list[Source], run: Pass, *, named: bool, level: str | None, processes: int | None
) -> list[Source]:
    """Does what can be shared among processes, and gives back the sources that are left to do. `level`: is
    switched on first. `processes` None: as many as there are processors, if there is enough to read. Raises
    what `source_pass` does, and WorkerLost."""
    count = (processes or processors()) if can_share() else 1
    first = processes is not None
    while count > 1 and (first or _bytes_to_read(sources) >= _WORTHWHILE_BYTES):
        # Of a session with several logs, a later one is compared with what records own of those before.
        wave, later = _one_a_session(sources)
        groups = _largest_first(families(wave, _relatives))
        if len(groups) < 2:
            break
        _wave_pass(wave, partial(_family_read, named=named, level=level), groups, run, processes=count)
        sources, first = later, False
    return sources


def _wave_pass(
    sources: list[Source],
    read_one: Callable[[list[Source]], _Done],
    groups: list[list[Source]],
    run: Pass,
    *,
    processes: int,
) -> None:
    read: list[_Read] = []

    def take(done: _Done) -> None:
        _merge(run, done)
        read.extend(done.read)

    shared_work(read_one, groups, processes, take)
    shared_work(_kin_archive, _largest_first(_kin(read, sources)), processes, partial(_merge, run))


def _one_a_session(sources: list[Source]) -> tuple[list[Source], list[Source]]:
    """The first log of each session, and the others."""
    first: dict[str, Source] = {}
    for source in sources:
        first.setdefault(source.session_id, source)
    return list(first.values()), [source for source in sources if first[source.session_id] is not source]


def _bytes_to_read(sources: list[Source]) -> int:
    return sum(max(0, source.size - max(0, source.read_size)) for source in sources)


def _relatives(source: Source) -> list[str]:
    return [name for name in (source.session_id, source.parent_id, pool_of(source)) if name]


def _largest_first(groups: list[list[_Sized]]) -> list[list[_Sized]]:
    """The last to be begun is then a small one, and no process works alone for long."""
    return sorted(groups, key=lambda group: -sum(each.size for each in group))


def _kin(read: list[_Read], sources: list[Source]) -> list[list[_Read]]:
    order = {source.path: number for number, source in enumerate(sources)}
    held = _compactions_waiting()
    return families(
        sorted(read, key=lambda log: order[log.path]),
        lambda log: [*log.relatives, *(name for each in log.session_ids for name in held.get(each, ()))],
    )


def _compactions_waiting() -> dict[str, list[str]]:
    """By session, what tells that another session holds the same compaction."""
    found: dict[str, list[str]] = {}
    waiting = Compaction.objects.filter(state__in=(Compaction.State.READY, Compaction.State.PENDING))
    for session_id, origin, name in waiting.values_list("session_id", "origin_session_id", "compaction_id"):
        # Ids that a session counts itself mean something only together with it.
        key = name if RANDOM_ID.fullmatch(name) else f"{name} {origin or session_id}"
        found.setdefault(session_id, []).append(key)
    return found


def _family_read(family: list[Source], *, named: bool, level: str | None) -> _Done:
    done, run = _begin()
    sources_enable(family, level)
    for source in family:
        with run.guarded(source.path):
            ingested = source_read(source, run, named=named)
            if ingested:
                run.session_ids.update(ingested.sessions)
                done.read.append(
                    _Read(source.path, source.size, source.mtime_ns, ingested.sessions, _relatives(source))
                )
    return _end(done, run)


def _kin_archive(kin: list[_Read]) -> _Done:
    done, run = _begin()
    for log in kin:
        with run.guarded(log.path):
            sessions_archive(log.session_ids, run, touched_ns=log.touched_ns)
    return _end(done, run)


def _begin() -> tuple[_Done, Pass]:
    done = _Done()
    return done, Pass(done.result, done.lines.append, lock=nullcontext)


def _end(done: _Done, run: Pass) -> _Done:
    done.session_ids, done.archived = run.session_ids, run.archived
    return done


def _merge(run: Pass, done: _Done) -> None:
    for name in ("skipped", "events", "warnings", "closing"):
        setattr(run.result, name, getattr(run.result, name) + getattr(done.result, name))
    run.session_ids |= done.session_ids
    run.archived += done.archived
    for line in done.lines:
        run.say(line)
