"""One log at a time: whether it may be read, what reading and archiving it came to."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from records.files import StoreFull
from records.tombstones import is_forgotten

from .archive import Archived, session_archive
from .eventrefs import with_lanes
from .ingest import Ingested, source_ingest, source_is_read
from .levels import level_enable, may_read, pool_session_id
from .locks import archive_lock
from .models import AgentSession, Source
from .pushsource import is_pushed
from .sessionfile import WorkspacesDamaged, workspace_key_of

log = logging.getLogger(__name__)


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
class Pass:
    """What a pass has come to so far. `lock`: the archive lock, or nothing for whom it is held already."""

    result: ArchiveResult
    say: Callable[[str], None]
    lock: Callable[[], AbstractContextManager[None]] = archive_lock
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


def source_pass(source: Source, run: Pass, *, named: bool) -> None:
    """Reads what is new in a log and archives it. `named`: a person named its file."""
    with run.guarded(source.path):
        ingested = source_read(source, run, named=named)
        if ingested:
            run.session_ids.update(ingested.sessions)
            sessions_archive(ingested.sessions, run, touched_ns=source.mtime_ns)


def source_read(source: Source, run: Pass, *, named: bool) -> Ingested | None:
    """None when nothing of it may be read."""
    if source_is_read(source):
        if _may_read(source):
            run.result.skipped += 1
            return Ingested(sessions=with_lanes([source.session_id]))
    # Asked before as well, lest the lock be waited for in vain.
    elif run.lock is nullcontext or _may_read(source):
        with run.lock():
            # While this one waited another process may have read it, or forgotten or paused it.
            source.refresh_from_db()
            if _may_read(source):
                ingested = source_ingest(source, take_torn_tail=named or _is_idle(source))
                run.result.events += ingested.events
                run.result.warnings += ingested.warnings
                return ingested
    run.result.skipped += 1
    return None


def sessions_archive(
    session_ids: list[str], run: Pass, *, touched_ns: int, log_is_gone: bool = False
) -> None:
    """`touched_ns`: when their log was last written; one that is gone won't be again."""
    now = int(time.time() * 1000)
    for session_id in sorted(session_ids):
        with run.lock():
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


def pool_of(source: Source) -> str:
    return pool_session_id(source.session_id, source.parent_id, source.relation)


def sources_enable(sources: Iterable[Source], level: str | None) -> None:
    """Switches a level on, if one is given, for whom these logs belong to."""
    for source in sources if level else ():
        if not _is_forgotten(source):
            level_enable(pool_of(source), level or "")


def _is_forgotten(source: Source) -> bool:
    return is_forgotten("session", source.session_id) or is_forgotten("session", pool_of(source))


def _may_read(source: Source) -> bool:
    pool = pool_of(source)
    if _is_forgotten(source) or is_pushed(source.session_id):
        return False  # what is pushed is read from nowhere else
    return may_read(source.session_id, pool, workspace_key_of(pool, source.cwd))


def _is_idle(source: Source) -> bool:
    hours = settings.MEMEX_IDLE_ARCHIVE_HOURS
    return bool(hours) and time.time() - source.mtime_ns / 1e9 >= hours * 3600
