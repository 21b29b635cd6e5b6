"""Threads for the work behind a call. A pool's threads are waited for when the process ends, so that one that is
busy keeps it from ending; these are not."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")
# Of all callers together: more wait their turn.
AT_ONCE = 8


class DaemonThreads(Executor):
    """Each call in a daemon thread of its own, at most `at_once` of them running."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._room = threading.BoundedSemaphore(at_once)

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            with self._room:
                if not future.set_running_or_notify_cancel():
                    return
                try:
                    result = work(*args, **kwargs)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)

        threading.Thread(target=run, name="memex-mcp", daemon=True).start()
        return future


# asgiref's annotation names the one executor that it knows of; any works.
_threads: Any = DaemonThreads()


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`work(…)`, which may use the database, off the event loop."""
    run = database_sync_to_async(work, thread_sensitive=False, executor=_threads)
    result: T = await run(*args, **kwargs)
    return result
