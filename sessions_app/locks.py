"""The store's archive lock."""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock

from records.home import home


@contextmanager
def archive_lock() -> Iterator[None]:
    """Held by whoever reads logs into the store, archives, forgets or rebuilds: one at a time, across
    processes and threads. A process that dies lets go of it."""
    with FileLock(home() / "archive.lock"):
        yield
