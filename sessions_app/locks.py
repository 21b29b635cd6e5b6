"""The store's archive lock."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from records.home import home


class StoreBusy(Exception):
    """MEMORY_BUSY: a long import or a rebuild holds the store."""


def _path() -> Path:
    return home() / "archive.lock"


@contextmanager
def archive_lock(wait_seconds: float = -1) -> Iterator[None]:
    """Held by whoever reads logs into the store, archives, forgets or rebuilds: one at a time, across
    processes and threads. A process that dies lets go of it. Raises StoreBusy when it isn't free within
    `wait_seconds`; -1 waits for ever."""
    lock = FileLock(_path())
    try:
        lock.acquire(timeout=wait_seconds)
    except Timeout as error:
        raise StoreBusy("An import or a rebuild is running. Try again in a moment.") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def archive_lock_inherited() -> Iterator[None]:
    """The same lock, of which FileLock would rid a forked process: one that is forked within has it too,
    and it is free once all of them have let go."""
    descriptor = os.open(_path(), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # unlocking it would unlock it for the others as well
