"""Takes bodies apart in processes of their own: it is what indexing spends its time on, and Python does one
thing at a time. Pure: what they get and give are bytes and terms.

Each process has a pipe to the one that started it, and ends when that does, however it ends. When a process
is lost its bodies are taken apart here.
"""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, Self, TypeVar, cast

from .extraction import TakenApart, take_apart

# Starting them takes as long as a few megabytes.
WORTH_BYTES = 16_000_000
# Each remembers some 50 MB of terms.
_MOST = 4
# How many bodies are on their way for each process: results are given in order, and sizes differ.
_AHEAD = 4

T = TypeVar("T")


class _Task(NamedTuple):
    number: int
    body: bytes


class Extractors:
    """A context; `count`: how many processes, by default one for each processor."""

    def __init__(self, count: int | None = None) -> None:
        self._count = count if count is not None else min(_MOST, _processors())
        self._idle: list[Connection] = []
        self._busy: dict[Connection, _Task] = {}
        self._processes: list[Any] = []

    def __enter__(self) -> Self:
        # Not forked: that is safe in a server with threads, and on every system.
        context = get_context("spawn")
        for _ in range(self._count if self._count > 1 else 0):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._idle.append(ours)
        return self

    def __exit__(self, *_: object) -> None:
        for connection in [*self._idle, *self._busy]:
            connection.close()
        for process in self._processes:
            process.terminate()
            process.join()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def taken_apart(self, items: Iterable[tuple[T, bytes]]) -> Iterator[tuple[T, TakenApart]]:
        """Each item with its body taken apart, in order. Not for two at once."""
        names: dict[int, T] = {}
        results: dict[int, TakenApart] = {}
        given = 0
        for number, (item, body) in enumerate(items):
            names[number] = item
            self._begin(_Task(number, body), results)
            # The rest are waited for only as far as they are in the way of others.
            while given in results or len(names) > _AHEAD * self._count:
                self._await(given, results)
                yield names.pop(given), results.pop(given)
                given += 1
        for number in sorted(names):
            self._await(number, results)
            yield names[number], results.pop(number)

    def _begin(self, task: _Task, results: dict[int, TakenApart]) -> None:
        while not self._idle and self._busy:
            self._collect(results)
        if not self._idle:
            results[task.number] = take_apart(task.body)
            return
        connection = self._idle.pop()
        try:
            connection.send_bytes(task.body)
        except OSError:
            connection.close()
            self._begin(task, results)
        else:
            self._busy[connection] = task

    def _await(self, number: int, results: dict[int, TakenApart]) -> None:
        while number not in results:
            self._collect(results)

    def _collect(self, results: dict[int, TakenApart]) -> None:
        for ready in cast("list[Connection]", wait(list(self._busy))):
            task = self._busy.pop(ready)
            try:
                results[task.number] = ready.recv()
            except (EOFError, OSError):
                ready.close()
                results[task.number] = take_apart(task.body)
            else:
                self._idle.append(ready)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _serve(connection: Connection) -> None:
    # Ctrl-C is for the one that started us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            connection.send(take_apart(connection.recv_bytes()))
