"""grep with ripgrep, and with stand-ins for it that misbehave."""

import os
import stat
import time
from pathlib import Path

import pytest

from records import places
from records.models import Record
from records.scope import OWNER, Scope
from records.search import grep as greps
from records.search import grep_rg
from records.search.grep import grep

from .drafts import WHEN, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _small_stores_too(monkeypatch):
    monkeypatch.setattr(greps, "RIPGREP_FROM_BYTES", 0)


def path_of(record_id: str) -> Path:
    record = Record.objects.get(pk=record_id)
    return places.place_of(record_id, record.workspace_key, cold=bool(record.cold)).path


def stand_in(tmp_path: Path, monkeypatch, script: str) -> Path:
    program = tmp_path / "rg"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(grep_rg, "binary", lambda: program)
    return program


def test_only_files_of_visible_records_are_handed_to_ripgrep(tmp_path, monkeypatch):
    write("mine", scope="session", session_id="s1", body="needle")
    theirs = write("theirs", scope="session", session_id="s2", body="needle")
    real = grep_rg.binary()
    seen = tmp_path / "seen"
    stand_in(tmp_path, monkeypatch, f'printf "%s\\n" "$@" > {seen}; exec {real} "$@"')
    assert len(grep(Scope(None, session_ids=frozenset({"s1"})), "needle").hits) == 1
    arguments = seen.read_text().splitlines()
    assert sum(argument.endswith(".md") for argument in arguments) == 1
    assert not any(theirs in argument for argument in arguments)
    assert "--no-config" in arguments
    assert "-P" not in arguments


@pytest.mark.parametrize("script", ["sleep 300 & echo $! > CHILD; sleep 300", "exec >&-; sleep 300 & echo $! > CHILD; wait"])  # fmt: skip
def test_ripgrep_is_ended_with_its_children_when_time_is_up(tmp_path, monkeypatch, script):
    write(body="needle")
    child = tmp_path / "child"
    stand_in(tmp_path, monkeypatch, script.replace("CHILD", str(child)))
    for seconds in (0.5, 4, 30):  # on a machine that is slow to start it
        answer = grep(OWNER, "needle", timeout_s=seconds)
        assert (answer.why, answer.hits) == ("time", [])
        if child.exists() and child.read_text():
            break
    assert_ends(int(child.read_text()))


def test_ripgrep_is_ended_when_whoever_waits_is_interrupted(tmp_path, monkeypatch):
    write(body="needle")
    child = tmp_path / "child"
    stand_in(tmp_path, monkeypatch, f"sleep 300 & echo $! > {child}; wait")

    def interrupted(*_):
        while not (child.exists() and child.read_text().strip()):
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(grep_rg.select, "select", interrupted)
    with pytest.raises(KeyboardInterrupt):
        grep(OWNER, "needle")
    assert_ends(int(child.read_text()))


def assert_ends(pid: int) -> None:
    """Who was killed is gone, or waits to be reaped by whoever inherited it."""
    for _ in range(1_000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            os.kill(pid, 0)
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} is still there")


@pytest.mark.parametrize("script", ["exit 2", "exit 3", "kill -9 $$", "yes records/x", "exit 127"])
def test_when_ripgrep_cannot_be_used_the_hits_are_the_same(tmp_path, monkeypatch, script):
    ids = [write(f"c{number}", body="needle", created_at=WHEN + number) for number in range(3)]
    stand_in(tmp_path, monkeypatch, script)
    assert [hit.record_id for hit in grep(OWNER, "needle").hits] == ids[::-1]


def test_of_a_file_that_ripgrep_could_not_open_the_other_tier_is_read(tmp_path, monkeypatch):
    stays, moves = write("a", body="needle"), write("b", body="needle")
    target = places.place_of(moves, HERE, cold=True).path
    target.parent.mkdir(parents=True)
    path_of(moves).rename(target)
    seen = tmp_path / "seen"
    stand_in(tmp_path, monkeypatch, f'{grep_rg.binary()} "$@"; code=$?; echo $code > {seen}; exit $code')
    assert {hit.record_id for hit in grep(OWNER, "needle").hits} == {stays, moves}
    assert seen.read_text() == "2\n"


def test_a_program_that_is_none_is_done_without(tmp_path, monkeypatch):
    record_id = write(body="needle")
    monkeypatch.setattr(grep_rg, "binary", lambda: tmp_path / "nothing")
    assert [hit.record_id for hit in grep(OWNER, "needle").hits] == [record_id]
