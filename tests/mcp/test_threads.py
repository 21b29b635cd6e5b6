import threading

import pytest

from memex_site.mcp.threads import DaemonThreads


def test_a_call_gives_what_its_work_gives() -> None:
    threads = DaemonThreads()
    assert threads.submit(lambda number: number + 1, 1).result() == 2
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result()
    assert threads.submit(lambda: threading.current_thread().daemon).result() is True


def test_only_so_many_run_at_once() -> None:
    threads = DaemonThreads(at_once=2)
    all_here = threading.Barrier(3)
    go = threading.Event()

    def work() -> None:
        all_here.wait()
        go.wait()

    busy = [threads.submit(work) for _ in range(2)]
    all_here.wait()
    waiting = threads.submit(lambda: "done")
    # One that has not begun can be taken back.
    assert waiting.cancel()
    go.set()
    for each in busy:
        each.result()
    assert threads.submit(lambda: "done").result() == "done"
