"""Work in several processes, all of them under the one archive lock. On Linux alone: other systems'
libraries don't bear a fork.

The processes inherit the lock: whatever becomes of the one that took it, nobody else gets it before the
last of them is gone, and they end as soon as their parent does.
"""

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from django.db import connection, connections

from .locks import archive_lock_inherited

T = TypeVar("T")
R = TypeVar("R")

MOST = 4
# Whoever waits for the lock gets it between two rounds; what is begun in one is ended in it.
_ROUND_SECONDS, _PAUSE_SECONDS = 5.0, 0.2


class WorkerLost(RuntimeError):
    """A process was ended from outside, by a person or for want of memory."""


def can_share() -> bool:
    """Whether work can be shared among processes here and now."""
    return sys.platform == "linux" and threading.active_count() == 1 and not connection.in_atomic_block


def processors() -> int:
    """How many processes this machine is good for."""
    return min(MOST, len(os.sched_getaffinity(0)))


def families(items: Sequence[T], names_of: Callable[[T], Iterable[str]]) -> list[list[T]]:
    """Groups of items that share a name, be it through others. Groups and their items keep their order."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while (above := leader.setdefault(name, name)) != name:
            leader[name] = leader[above]
            name = above
        return name

    for item in items:
        first, *others = names_of(item)
        for other in others:
            leader[find(other)] = find(first)
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(find(next(iter(names_of(item)))), []).append(item)
    return list(groups.values())


def shared_work(
    work: Callable[[T], R], items: Sequence[T], processes: int, done: Callable[[R], None]
) -> None:
    """Calls `work` with each item in one of `processes` processes, and `done` here with what it gave; in
    which order is left to chance. The caller doesn't hold the archive lock; `work` does.

    What `work` raises is raised here, after what was begun has ended. Raises WorkerLost."""
    left = list(items)
    while left:
        until = time.monotonic() + _ROUND_SECONDS
        with archive_lock_inherited(), _pool(processes) as pool, _losses_told():
            begun = [(item, pool.submit(_unless_late, until, work, item)) for item in left]
            left = []
            for item, future in begun:
                given = future.result()
                if given is None:
                    left.append(item)
                else:
                    done(given[0])
        if left:
            time.sleep(_PAUSE_SECONDS)


@contextmanager
def _losses_told() -> Iterator[None]:
    """The pool says so at whatever is asked of it next."""
    try:
        yield
    except BrokenProcessPool as error:
        raise WorkerLost(
            "A process that was archiving was ended from outside. What it had done is kept; run it again."
        ) from error


def _unless_late(until: float, work: Callable[[T], R], item: T) -> tuple[R] | None:
    return (work(item),) if time.monotonic() < until else None


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    # A connection must not be used by two processes.
    connections.close_all()
    alive, parent = os.pipe()
    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("fork"), initializer=_begin, initargs=(alive, parent)
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        os.close(alive)
        os.close(parent)


def _begin(alive: int, parent: int) -> None:
    """In a new process. Nobody ever writes to the pipe: it ends when no parent holds its other end."""
    os.close(parent)
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
    # What was there before the fork is shared memory as long as nobody touches it. A log makes objects by
    # the hundred thousand and hardly a cycle among them: looking for some at each 700 takes a tenth of the time.
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def _end_with_parent(alive: int) -> None:
    os.read(alive, 1)
    os._exit(1)
