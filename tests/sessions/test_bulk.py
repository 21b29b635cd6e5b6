"""Imports that are shared among processes: the same store as from one process, whatever happens to them."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock, Timeout

from sessions_app.processes import families, shared_work
from tests.sessions.stories import DERIVED, ROOT, Store, as_bytes, session_id, story, write_log

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="work is shared among processes on Linux only"
)

# Keys that the database gives out, and when a switch was set.
_LEFT_OUT = {"session_settings": {"updated_at"}, "records": set(), "agent_sessions": set()}


@pytest.fixture
def logs(tmp_path) -> Path:
    """Sessions that have nothing to do with each other, copies that share compactions, a sub-agent."""
    folder = tmp_path / "claude"
    for number in range(1, 6):
        write_log(folder, number, compactions=3, turns=8, micros=True, size=200)
    original = (folder / "projects" / "-work-demo" / f"{session_id(1)}.jsonl").read_bytes()
    for number in (21, 22):
        # Resumed under another id, as old versions did: nothing in it says where it came from.
        copy = folder / "projects" / "-work-demo" / f"{session_id(number)}.jsonl"
        more = as_bytes(story(number, compactions=1, turns=2))
        copy.write_bytes(original.replace(session_id(1).encode(), session_id(number).encode()) + more)
    child = folder / "projects" / "-work-demo" / session_id(2) / "subagents" / "agent-a1b2c3.jsonl"
    child.parent.mkdir(parents=True)
    lines = [
        {**line, "isSidechain": True, "agentId": "a1b2c3", "sessionId": session_id(2)} for line in story(31)
    ]
    child.write_bytes(as_bytes(lines))
    # A second log of a session that has one already.
    again = folder / "projects" / "-work-other" / f"{session_id(3)}.jsonl"
    again.parent.mkdir()
    again.write_bytes(as_bytes(story(3, compactions=1, turns=9, word="lantern")))
    return folder


def archived(folder: Path, logs: Path, *arguments: str) -> Store:
    store = Store(folder)
    store.run("archive", str(logs), "--level", "l3", *arguments)
    return store


def contents(store: Store) -> dict[str, Any]:
    """Every file of the store and every row, but for what depends on the time."""
    found: dict[str, Any] = {}
    for path in sorted(store.home.rglob("*")):
        name = str(path.relative_to(store.home))
        if path.is_file() and name.startswith(("records/", "cold/", "sessions/", "blobs/")):
            data = path.read_bytes()
            if path.name == "session.json":
                given = json.loads(data)
                given.pop("levels_updated_at", None)
                data = json.dumps(given, sort_keys=True).encode()
            found[name] = data
    with closing(sqlite3.connect(store.home / "index.db")) as database:
        for table in (*DERIVED, "receipts"):
            rows = database.execute(f"SELECT * FROM {table}")
            left_out = _LEFT_OUT.get(table, {"id"})
            names = [column[0] for column in rows.description]
            found[table] = sorted(
                repr([value for name, value in zip(names, row, strict=True) if name not in left_out])
                for row in rows
            )
    return found


def test_it_ends_in_the_same_store_as_from_one_process(tmp_path, logs):
    alone = archived(tmp_path / "alone", logs, "--processes", "1")
    expected = contents(alone)
    assert any("'inherited'" in row for row in expected["compactions"]), "the copies test nothing"
    for count in ("2", "3"):
        shared = archived(tmp_path / count, logs, "--processes", count)
        assert contents(shared) == expected
        assert json.loads(shared.run("doctor", "--json"))["ok"]
        again = shared.json("archive", str(logs), "--processes", count)
        assert (again["events"], again["archived"], again["closing"]) == (0, 0, 0)


def test_its_counts_are_those_of_one_process(tmp_path, logs):
    results = []
    for count in ("1", "2"):
        result = Store(tmp_path / count).json("archive", str(logs), "--level", "l2", "--processes", count)
        del result["seconds"]
        results.append(result)
    assert results[0] == results[1]
    assert results[0]["archived"] > 10


def test_killed_at_any_moment_it_ends_in_the_same_store(tmp_path, logs):
    chance = random.Random(11)
    expected = contents(archived(tmp_path / "calm", logs, "--processes", "1"))
    rough = Store(tmp_path / "rough")
    rough.run("memory", "status")
    killed = 0
    for _ in range(10):
        process = rough.start("archive", str(logs), "--level", "l3", "--processes", "2")
        time.sleep(chance.uniform(0.3, 1.2))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.communicate()
    rough.run("archive", str(logs), "--level", "l3", "--processes", "2")
    assert killed, "the machine was too fast for this test to kill anything"
    rough.run("doctor", "--repair")
    assert contents(rough) == expected


def test_a_process_that_is_killed_is_reported_and_made_up_for(tmp_path, logs):
    expected = contents(archived(tmp_path / "calm", logs, "--processes", "1"))
    rough = Store(tmp_path / "rough")
    process = rough.start("archive", str(logs), "--level", "l3", "--processes", "2")
    while not (children := children_of(process.pid)):
        assert process.poll() is None, "it ended before it had forked"
    os.kill(children[0], signal.SIGKILL)
    _, complaint = process.communicate()
    assert process.returncode == 1
    assert b"ended from outside" in complaint
    assert b"Traceback" not in complaint
    rough.run("archive", str(logs), "--level", "l3", "--processes", "2")
    rough.run("doctor", "--repair")
    assert contents(rough) == expected


def children_of(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def test_what_goes_wrong_with_a_log_is_said_and_the_others_are_archived(tmp_path, logs):
    store = archived(tmp_path / "store", logs, "--processes", "2")
    records = len(store.json("memory", "list", "--limit", "500")["records"])
    segment = next((store.home / "sessions").glob(f"*/{session_id(4)}/g0000-0000.zst"))
    data = bytearray(segment.read_bytes())
    data[20:40] = bytes(20)
    segment.write_bytes(data)
    for number in (4, 5):
        log = logs / "projects" / "-work-demo" / f"{session_id(number)}.jsonl"
        log.write_bytes(as_bytes(story(number, compactions=4, turns=8, micros=True, size=200)))
    process = store.start("archive", str(logs), "--processes", "2", "--json")
    out, complaint = process.communicate()
    assert json.loads(out.splitlines()[-1])["archived"] == 1
    said = next(line for line in complaint.decode().splitlines() if line.startswith("warning: "))
    assert said.startswith(f"warning: {logs}/projects/-work-demo/{session_id(4)}.jsonl: ")
    assert len(store.json("memory", "list", "--limit", "500")["records"]) > records


def test_a_full_disk_ends_it_as_it_does_from_one_process(tmp_path, logs):
    store = Store(tmp_path / "store")
    store.env["MEMEX_MIN_FREE_MB"] = str(10**9)
    for count in ("1", "2"):
        assert b"of disk are free" in store.run("archive", str(logs), "--processes", count, fails=True)


def _pid(_: int) -> int:
    return os.getpid()


def _refused(number: int) -> int:
    if number == 2:
        raise OSError(number, "nothing doing")
    return number


def _is_locked(path: Path, _: int) -> bool:
    try:
        FileLock(path, timeout=0).acquire()
    except Timeout:
        return True
    return False


def test_work_is_done_elsewhere_and_under_the_lock(memex_home):
    found: list[int] = []
    shared_work(_pid, range(20), 2, found.append)
    assert len(found) == 20
    assert os.getpid() not in found
    locked: list[bool] = []
    shared_work(partial(_is_locked, memex_home / "archive.lock"), range(4), 2, locked.append)
    assert locked == [True] * 4
    assert not _is_locked(memex_home / "archive.lock", 0)


def test_what_work_raises_is_raised_here(memex_home):
    with pytest.raises(OSError, match="nothing doing") as caught:
        shared_work(_refused, range(4), 2, lambda _: None)
    assert caught.value.errno == 2
    assert not _is_locked(memex_home / "archive.lock", 0)


def test_what_does_not_fit_into_a_round_is_done_in_the_next(memex_home, monkeypatch):
    monkeypatch.setattr("sessions_app.processes._ROUND_SECONDS", 0.05)
    found: list[int] = []
    shared_work(_slowly, range(12), 2, found.append)
    assert sorted(found) == list(range(12))


def _slowly(number: int) -> int:
    time.sleep(0.03)
    return number


ORPHANS = """
import os, time
import django
django.setup()
from sessions_app.processes import shared_work
def work(_):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)
shared_work(work, [1, 2], 2, print)
"""


def test_processes_end_with_their_parent_and_hold_the_lock_until_then(memex_home, tmp_path):
    env = {**os.environ, "MEMEX_HOME": str(memex_home), "DJANGO_SETTINGS_MODULE": "memex_site.settings"}
    parent = subprocess.Popen([sys.executable, "-c", ORPHANS], cwd=ROOT, env=env, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    os.kill(workers[0], signal.SIGSTOP)
    parent.kill()
    parent.wait()
    try:
        # The one that can't run holds the lock still, though its parent is gone.
        assert _is_locked(memex_home / "archive.lock", 0)
    finally:
        os.kill(workers[0], signal.SIGCONT)
    FileLock(memex_home / "archive.lock", timeout=60).acquire()
    assert parent.stdout.read() == b"", "a worker went on"


def test_families_hold_what_shares_a_name():
    names = {1: ["a"], 2: ["b", "c"], 3: ["d"], 4: ["c", "e"], 5: ["e", "a"], 6: ["f"]}
    assert families(list(names), names.__getitem__) == [[1, 2, 4, 5], [3], [6]]
    assert families([], names.__getitem__) == []
