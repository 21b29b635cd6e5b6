import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from records.search.extraction import take_apart
from records.search.extractors import Extractors

BODIES = [
    *(f"### [#{n}] tool\nsrc/app_{n}/reader.py:{n} raised E{n:04}\n\n".encode() * n for n in range(1, 40)),
    b"",
    "刷新令牌的竞争 in the worker\n".encode() * 5_000,
    b"one more",
]


def test_processes_give_what_one_gives_and_in_order():
    with Extractors(2) as extractors:
        found = list(extractors.taken_apart(enumerate(BODIES)))
    assert [number for number, _ in found] == list(range(len(BODIES)))
    assert [taken for _, taken in found] == [take_apart(body) for body in BODIES]


def test_one_processor_works_by_itself():
    with Extractors(1) as extractors:
        assert not extractors.pids
        assert [taken for _, taken in extractors.taken_apart(enumerate(BODIES))] == [
            take_apart(body) for body in BODIES
        ]


def test_what_a_killed_process_had_is_done_here():
    with Extractors(2) as extractors:
        given = []
        for number, taken in extractors.taken_apart(enumerate(BODIES)):
            given.append(taken)
            if number in (3, 20):
                os.kill(extractors.pids[number // 20], signal.SIGKILL)
    assert given == [take_apart(body) for body in BODIES]


STARTER = """
import sys, time
from records.search.extractors import Extractors
if __name__ == "__main__":
    with Extractors(2) as extractors:
        list(extractors.taken_apart([(0, b"ready")]))
        print(*extractors.pids, flush=True)
        time.sleep(600)
"""


def test_they_end_with_the_process_that_started_them(tmp_path):
    script = tmp_path / "starter.py"
    script.write_text(STARTER)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    starter = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, env=environment, text=True
    )
    pids = [int(pid) for pid in starter.stdout.readline().split()]
    assert len(pids) == 2
    assert all(map(_lives, pids))
    starter.kill()
    starter.wait()
    until = time.monotonic() + 60
    while any(map(_lives, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(_lives, pids))


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Where its parent is gone, one that has ended may wait to be asked about: it does nothing any more.
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
