"""Logs that are moved, renamed, cut, replaced or gone, and files that are no log at all, end to end."""

import json
import shutil
from pathlib import Path

import pytest

from sessions_app.counts import session_events
from sessions_app.models import AgentSession, Event, ImportWarning, SessionSettings, Source

from .builders import archive, archive_run, assert_kept, assert_sound, encode, records, session, window, write
from .logs import claude_lines as claude
from .logs import codex_lines as codex
from .logs.claude_lines import SESSION
from .logs.dsh_builder import DshLog, story

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

TALK = [
    claude.user("u1", "the first question"),
    claude.assistant("a1", "the first answer"),
    claude.boundary("b1"),
    claude.summary("s1", "b1"),
    claude.user("u2", "go on"),
]
MORE = [claude.assistant("a2", "I went on"), claude.user("u3", "thanks")]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "agent" / "projects" / "-home-dev---" / f"{SESSION}.jsonl"


def test_a_log_that_was_moved_is_the_same_session(log):
    write(log, TALK)
    archive(log)
    moved = log.parent.with_name("-home-dev-elsewhere") / log.name
    moved.parent.mkdir()
    log.rename(moved)
    data = write(moved, [*TALK, *MORE])
    result = archive(moved)
    assert (result.events, result.archived, result.already) == (2, 0, 1)
    assert session(SESSION).generations.count() == 1
    assert session(SESSION).cwd == "/home/dev/项目"
    assert_sound({SESSION: data}, [moved])


def test_a_log_and_its_copy(log):
    data = write(log, TALK)
    copy = log.parent.with_name("-backup") / log.name
    copy.parent.mkdir()
    shutil.copy(log, copy)
    result = archive(log, copy)
    assert (result.files, result.archived, result.compactions) == (2, 1, 1)
    assert Event.objects.count() == 5
    assert_sound({SESSION: data}, [log, copy])


def test_a_log_and_an_older_copy(log):
    data = write(log, [*TALK, *MORE])
    copy = log.parent.with_name("-backup") / log.name
    write(copy, TALK)
    for paths in ([log, copy], [copy, log]):
        archive(*paths)
    assert Event.objects.count() == 7
    assert session(SESSION).generations.count() == 1
    assert_sound({SESSION: data}, [log, copy])


def test_a_codex_log_under_another_name(tmp_path):
    rows = [codex.meta(), codex.message("user", "why?"), codex.compacted(text="Done.")]
    path = tmp_path / "sessions" / f"rollout-2026-04-11T20-42-59-{codex.CHILD}.jsonl"
    data = write(path, rows)
    archive(path)
    other = path.rename(path.with_name("exported.jsonl"))
    assert (archive(other).archived, archive(other).already) == (0, 1)
    assert AgentSession.objects.get().pk == codex.CHILD
    assert_sound({codex.CHILD: data}, [other])


def test_a_log_that_was_cut_loses_nothing(log):
    data = write(log, [*TALK, *MORE])
    archive(log)
    write(log, TALK)
    result = archive(log)
    assert (result.events, result.archived, result.already) == (0, 0, 1)
    assert_sound({SESSION: data}, [log])


def test_a_log_that_was_cut_and_grows_another_way(log):
    old = write(log, [*TALK, *MORE])
    archive(log)
    (record,) = records()
    data = write(log, [*TALK, claude.user("u9", "another way")])
    result = archive(log)
    assert (result.archived, result.already) == (0, 1)
    assert records() == [record]
    assert window(SESSION) == [claude.SUMMARY_TEXT, "go on", "another way"]
    assert_kept(SESSION, old, generation=0)
    assert_sound({SESSION: data}, [log])


def test_a_log_that_was_replaced(log):
    old = write(log, TALK)
    archive(log)
    other = [claude.user("v1", "something else"), claude.assistant("v2", "indeed")]
    data = write(log, [*other, claude.boundary("vb"), claude.summary("vs", "vb")])
    assert archive(log).archived == 1
    assert len(records()) == 2
    assert [event.uid for event in session_events(session(SESSION)).order_by("seq")] == [
        "v1",
        "v2",
        "vb",
        "vs",
    ]
    assert_kept(SESSION, old, generation=0)
    assert_sound({SESSION: data}, [log])


def test_a_log_that_is_gone_stays_in_the_store(log):
    data = write(log, TALK)
    archive(log)
    log.unlink()
    assert_kept(SESSION, data)
    archive_run(None)
    assert Source.objects.get().missing_since
    assert len(records()) == 1


def test_a_newer_format_of_a_dsh_session_renumbers_nothing_that_a_record_owns(tmp_path):
    folder = tmp_path / "sessions" / "--work-demo--" / "session-demo"
    write(folder / "session.v3.jsonl", story(3).data())
    archive(folder)
    before = {record.id for record in records()}
    new = story(4)
    data = write(folder / "session.v4.jsonl", new.data())
    result = archive(folder)
    assert (result.files, result.archived) == (1, 0)
    assert {record.id for record in records()} == before
    assert session_events(session("session-demo")).count() == len(new.rows) - 1
    assert_sound({"session-demo": data}, [folder])


def test_a_dsh_session_that_is_being_written(tmp_path):
    log = story()
    path = log.write(tmp_path / "sessions")
    packed = path.read_bytes()
    path.write_bytes(packed[: len(packed) * 2 // 3])
    archive(path)
    path.write_bytes(packed)
    archive(path)
    assert Event.objects.count() == len(log.rows) - 1
    assert_sound({"session-demo": log.data()}, [path])


def test_a_fork_of_a_dsh_session_brings_its_parents_compaction(tmp_path):
    parent = story()
    own_start = len(parent.rows) - 1
    child = DshLog(session_id="session-child", parentSession="session-demo", isSeeded=True)
    child.rows += parent.rows[1:]
    child.seq = own_start
    child.event("session/end-seed", {"inherited": True})
    child.user("another way")
    folder = tmp_path / "sessions" / "--work-demo--"
    paths = [folder / name / "session.v4.jsonl" for name in ("session-demo", "session-child")]
    logs = {"session-demo": write(paths[0], parent.data()), "session-child": write(paths[1], child.data())}
    archive(folder)
    assert {record.provenance["sessionId"] for record in records()} == {"session-demo"}
    assert {record.provenance["compactionId"] for record in records()} == {"k1", "k3"}
    assert session("session-child").relation == "fork"
    assert_sound(logs, [folder])


# --- no log ---------------------------------------------------------------------------------------

GEMINI = {
    "sessionId": "abc",
    "projectHash": "0" * 64,
    "startTime": "2026-01-30T10:00:00.000Z",
    "messages": [{"id": "1", "type": "user", "content": "hello", "timestamp": "2026-01-30T10:00:00.000Z"}],
}
NO_LOGS = {
    "one JSON document": json.dumps(GEMINI, indent=2).encode(),
    "one JSON document on a row": json.dumps(GEMINI).encode(),
    "chat messages of nobody": encode(
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    ),
    "what codex exec prints": encode([{"type": "thread.started", "thread_id": codex.CHILD}]),
    "no text": bytes(range(256)) * 40,
}


@pytest.mark.parametrize("name", NO_LOGS)
def test_what_is_no_log_is_one_warning_and_nothing_else(log, name):
    path = log.with_name("session-2026.jsonl")
    write(path, NO_LOGS[name])
    data = write(log, TALK)
    said: list[str] = []
    result = archive_run([log.parent], level="l3", say=said.append)
    assert (result.files, result.skipped, result.warnings, result.archived) == (2, 1, 1, 1)
    assert [str(path) in line for line in said] == [True]
    assert not ImportWarning.objects.exists()
    assert Source.objects.count() == AgentSession.objects.count() == SessionSettings.objects.count() == 1
    assert_sound({SESSION: data}, [log.parent])


def test_a_file_that_cannot_be_read_does_not_stop_the_others(log):
    data = write(log, TALK)
    broken = log.with_name(f"{claude.OTHER_SESSION}.jsonl")
    broken.symlink_to(log.with_name("nowhere.jsonl"))
    assert archive(log.parent).archived == 1
    assert_sound({SESSION: data}, [log.parent])


def test_a_file_that_vanishes_while_it_is_read(log, monkeypatch):
    data = write(log, TALK)
    gone = log.with_name(f"{claude.OTHER_SESSION}.jsonl")
    write(gone, [{**row, "uuid": f"o-{row['uuid']}"} for row in TALK])
    archived = archive_run([log.parent], level="l3", progress=lambda step: gone.unlink(missing_ok=True))
    assert archived.warnings == 1
    assert archived.archived == 1
    assert_sound({SESSION: data}, [log])
