"""The store's one background worker: follows agents' logs and archives, inside the server or alone.

Whoever holds the lease in the database works; the others look again every few seconds and take over when
its heartbeat stops.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

from django.conf import settings
from django.db import close_old_connections, connection, transaction
from filelock import Timeout
from watchfiles import watch

from records.search.indexing import bodies_sync

from .archiving import archive_run
from .discovery import home_files
from .jobs import job_next, job_run, jobs_abandoned
from .models import Lease

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 10
# A holder that was not heard of for this long is gone.
_LOST_MS = 3 * HEARTBEAT_SECONDS * 1000
# A whole pass as well, whatever the watcher says: it is a hint, the scan is the truth.
# Whoever holds the lock that long is at the same work.
_INDEX_WAIT_SECONDS = 5
_FULL_PASS_SECONDS = 300
_LEASE = "archive"
# An agent whose window was just compacted waits for its receipt.
_LOOK_EVERY_MS = 250
_nudges: SimpleQueue[Path] = SimpleQueue()


def _holder() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def lease_take(now: int) -> bool:
    """Takes the lease, or keeps it; False while somebody else holds it."""
    holder = _holder()
    with transaction.atomic():
        lease = Lease.objects.filter(name=_LEASE).first()
        if lease and lease.holder != holder and now - lease.heartbeat_at < _LOST_MS:
            return False
        Lease.objects.update_or_create(name=_LEASE, defaults={"holder": holder, "heartbeat_at": now})
    return True


def lease_drop() -> None:
    Lease.objects.filter(name=_LEASE, holder=_holder()).delete()


def start(stop: threading.Event) -> None:
    """Works until `stop` is set. Nothing that goes wrong in a pass ends it."""
    try:
        while not stop.is_set():
            close_old_connections()
            if not _lease_try():
                stop.wait(HEARTBEAT_SECONDS / 2)
                continue
            _work(stop)
    finally:
        lease_drop()
        close_old_connections()


def _lease_try() -> bool:
    try:
        return lease_take(int(time.time() * 1000))
    except Exception:
        log.exception("The worker's lease could not be renewed")
        return False


def _work(stop: threading.Event) -> None:
    """Holds the lease: one full pass, then what changes, until the lease is lost or a full pass is due."""
    over = threading.Event()
    heart = threading.Thread(target=_lease_keep, args=(over,), daemon=True)
    heart.start()
    try:
        _work_while(stop, over)
    finally:
        over.set()
        heart.join()


def _lease_keep(over: threading.Event) -> None:
    """Renews the lease while the worker works, however long one log takes."""
    while not over.wait(HEARTBEAT_SECONDS):
        if not _lease_try():
            over.set()
    connection.close()


def _work_while(stop: threading.Event, over: threading.Event) -> None:
    jobs_abandoned()
    if settings.MEMEX_AUTO_ARCHIVE:
        archive_quietly(None, stop)
    due = time.monotonic() + _FULL_PASS_SECONDS
    for changed in _changes(stop):
        if changed and settings.MEMEX_AUTO_ARCHIVE:
            archive_quietly(sorted(changed), stop)
        while not stop.is_set() and not over.is_set() and (job := job_next()):
            job_run(job, stop.is_set)
        if over.is_set() or time.monotonic() > due:
            return


def nudge(path: Path) -> None:
    """A hook says that this log has grown: a hint, for where watching a folder tells nothing."""
    _nudges.put(path)


def _nudged() -> set[Path]:
    found: set[Path] = set()
    while not _nudges.empty():
        found.add(_nudges.get())
    return found


def _changes(stop: threading.Event) -> Iterator[set[Path]]:
    """Log files that changed, a set at a time; an empty set now and then."""
    roots = _existing_roots()
    if not roots:
        while not stop.wait(1) and not _existing_roots():
            yield _nudged()
        return
    for changes in watch(
        *roots, stop_event=stop, rust_timeout=_LOOK_EVERY_MS, yield_on_timeout=True, debounce=400, step=100,
        raise_interrupt=False,
    ):  # fmt: skip
        wanted = {Path(path) for _, path in changes}
        if wanted:
            wanted &= {path for agent in settings.AGENT_HOMES for path in home_files(agent)}
        yield wanted | _nudged()
        if _existing_roots() != roots:
            return  # an agent was installed meanwhile


def _existing_roots() -> list[Path]:
    return [root for root in watched_folders() if root.is_dir()]


def watched_folders() -> list[Path]:
    homes = settings.AGENT_HOMES
    return [
        homes["claude-code"] / "projects",
        homes["codex"] / "sessions",
        homes["codex"] / "archived_sessions",
        homes["dsh"] / "sessions",
    ]


def archive_quietly(paths: list[Path] | None, stop: threading.Event) -> None:
    try:
        result = archive_run(paths, say=log.warning, stopped=stop.is_set, watched=True)
    except Exception:
        # Whatever it was, the next change or the next full pass tries again.
        log.exception("An archive pass failed")
        return
    index_quietly()
    if result.archived or result.closing:
        log.info("Archived %d compactions, %d closing archives", result.archived, result.closing)


def index_quietly() -> None:
    """What was written, by whomever, can be searched; what was forgotten leaves the index's files."""
    try:
        bodies_sync(timeout=_INDEX_WAIT_SECONDS, purge=True)
    except Timeout:
        return
    except Exception:
        log.exception("The body index could not be brought up to date")
