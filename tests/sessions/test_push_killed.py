"""A real process that pushes is killed where it hurts; the next one makes up for it."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.sessions.stories import ROOT, Store


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path)


def program(store: Store, where: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-m", "tests.sessions.push_program", where],
        cwd=ROOT, env=store.env, capture_output=True,
    )  # fmt: skip


def killed(store: Store, where: str) -> None:
    done = program(store, where)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def look(store: Store) -> dict[str, Any]:
    done = program(store, "look")
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("findings") == []
    return found


def test_between_the_mirror_and_its_rows(store):
    killed(store, "events")
    assert look(store) == {
        "read": 8, "archived": 0, "events": 48, "window": 48, "records": 0, "evictions": 0, "states": [],
    }  # fmt: skip
    assert look(store)["read"] == 0


def test_between_a_compaction_and_its_archive(store):
    killed(store, "compaction")
    assert look(store) == {
        "read": 0, "archived": 1, "events": 41, "window": 33, "records": 1, "evictions": 0,
        "states": ["archived"],
    }  # fmt: skip


def test_between_the_archive_of_an_eviction_and_its_note(store):
    killed(store, "eviction")
    first = look(store)
    assert (first["events"], first["window"], first["records"], first["states"]) == (40, 40, 1, [])
