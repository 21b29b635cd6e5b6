"""Logs that go back and forth, mirrors that were lost, rows of no known shape, and what comes in between."""

import json
import os
import threading
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from records.models import Record
from sessions_app.archiving import archive_run
from sessions_app.checkup import store_findings
from sessions_app.forget import forget_plan, forget_run
from sessions_app.levels import level_enable
from sessions_app.locks import archive_lock
from sessions_app.mirror import MirrorDamaged
from sessions_app.models import AgentSession, Compaction, Event, ImportWarning, SessionSettings, Source
from sessions_app.originals import record_rows
from sessions_app.queries import rows_read, session_get
from tests.sessions.logs.dsh_builder import story as dsh_story
from tests.sessions.stories import as_bytes, dump, session_id, story, write_log

pytestmark = pytest.mark.django_db(transaction=True)
WORD = "zanzibarite"


@pytest.fixture
def agent(settings, tmp_path, memex_home) -> Path:
    settings.AGENT_HOMES = {
        "claude-code": tmp_path / "claude", "codex": tmp_path / "codex", "dsh": tmp_path / "dsh",
    }  # fmt: skip
    level_enable(session_id(), "l2")
    return tmp_path / "claude"


def kept(generation: int | None = None) -> bytes:
    return b"".join(rows_read(session_get(session_id()), 0, 10**6, generation))


def codes(*, repair: bool = False) -> set[str]:
    return {finding.code for finding in store_findings(repair=repair)}


def test_a_log_that_goes_back_to_an_earlier_version_counts_as_it_is(agent):
    first, other = as_bytes(story(compactions=0)), as_bytes(story(compactions=0, word="lantern")[4:])
    log = write_log(agent)
    for content in (first, other, as_bytes(story(compactions=1))):
        log.write_bytes(content)
        result = archive_run()
        assert result.warnings == 0
        assert kept() == content
    assert result.archived == 1
    assert kept(1) == other
    (record,) = Record.objects.all()
    assert len(list(record_rows(record))) == 16
    log.unlink()
    assert archive_run().archived == 0
    before = dump()
    call_command("reindex", verbosity=0)
    assert dump() == before


def test_two_versions_of_one_session_do_not_push_each_other_out(agent):
    one = write_log(agent)
    two = agent / "projects" / "-elsewhere" / one.name
    two.parent.mkdir(parents=True)
    two.write_bytes(as_bytes(story(compactions=1, word="lantern")))
    one.write_bytes(as_bytes(story(compactions=1)))
    archive_run()
    for _ in range(2):
        assert archive_run().events == 0
    assert AgentSession.objects.get().generations.count() == 2
    for log in (one, two):
        generation = Source.objects.get(path=str(log)).generation
        assert kept(generation) == log.read_bytes()


def test_what_was_forgotten_is_not_taken_by_a_later_archive(agent, memex_home):
    log = write_log(agent, word=WORD, compactions=1, turns=2)
    archive_run()
    forget_run(forget_plan(record_ids=[Record.objects.get().id]), actor="owner")
    call_command("reindex", verbosity=0)
    more = story(word="lantern", compactions=2, turns=2)[10:]
    log.write_bytes(as_bytes(story(word=WORD, compactions=1, turns=2)[:10] + more))
    assert archive_run().archived == 1
    AgentSession.objects.update(ended_at=1)
    assert archive_run().closing == 1
    for record in Record.objects.all():
        assert f"{WORD} of step 0.0" not in (memex_home / record.path).read_text()


def test_a_forgotten_closing_archive_is_not_written_again(agent, memex_home):
    log = write_log(agent, word=WORD, compactions=0, turns=2)
    AgentSession.objects.update(ended_at=1)
    os.utime(log, (1, 1))
    assert archive_run().closing == 1
    forget_run(forget_plan(record_ids=[Record.objects.get().id]), actor="owner")
    call_command("reindex", verbosity=0)
    log.write_bytes(
        as_bytes([*story(word=WORD, compactions=0, turns=2), *story(word="lantern", compactions=0)[8:]])
    )
    os.utime(log, (2, 2))
    assert archive_run().closing == 1
    assert WORD not in (memex_home / Record.objects.get().path).read_text()


@pytest.mark.parametrize("deed", ["forget", "pause"])
def test_what_is_forgotten_or_paused_meanwhile_is_not_read(agent, memex_home, deed):
    log = write_log(agent, compactions=1)
    archive_run()
    log.write_bytes(as_bytes(story(compactions=2)))
    with archive_lock():
        waiting = threading.Thread(target=call_command, args=("archive",), kwargs={"verbosity": 0})
        waiting.start()
        waiting.join(1.0)
        assert waiting.is_alive()
        if deed == "pause":
            call_command("memory", "pause")
        else:
            (memex_home / "forgotten.jsonl").write_text(
                json.dumps({"kind": "session", "id": session_id(), "at": 1}) + "\n"
            )
    waiting.join(30)
    assert Event.objects.count() == len(story(compactions=1))
    assert Record.objects.count() == 1


def segments(memex_home: Path) -> list[Path]:
    return sorted(memex_home.glob("sessions/*/*/g*.zst"))


def test_a_lost_mirror_is_named_and_its_rows_are_left(agent, memex_home):
    write_log(agent, compactions=1)
    archive_run()
    before = dump()
    for path in segments(memex_home):
        path.unlink()
    assert codes(repair=True) == {"damaged-mirror"}
    with pytest.raises(MirrorDamaged):
        list(record_rows(Record.objects.get()))
    with pytest.raises(MirrorDamaged):
        kept()
    with pytest.raises(SystemExit):
        call_command("reindex", verbosity=0)
    assert dump()["events"] == before["events"]
    assert codes() == {"damaged-mirror"}


@pytest.mark.parametrize("where", ["header", "first segment"])
def test_a_damaged_mirror_is_never_appended_to(agent, memex_home, monkeypatch, where):
    monkeypatch.setattr("sessions_app.mirrorwriter.FRAME_BYTES", 2_000)
    monkeypatch.setattr("sessions_app.mirrorwriter.SEGMENT_BYTES", 500)
    log = write_log(agent, compactions=1)
    archive_run()
    first = segments(memex_home)[0]
    if where == "header":
        data = bytearray(first.read_bytes())
        data[3] ^= 0xFF
        first.write_bytes(data)
    else:
        first.unlink()
    there = {path: path.read_bytes() for path in segments(memex_home)}
    log.write_bytes(as_bytes(story(compactions=2)))
    assert archive_run().warnings == 1
    assert {path: path.read_bytes() for path in segments(memex_home)} == there
    assert codes() == {"damaged-mirror"}


def test_one_damaged_mirror_does_not_stop_the_rebuild_of_the_others(agent, memex_home, capsys):
    for number in (1, 2, 3):
        write_log(agent, number, compactions=1)
        level_enable(session_id(number), "l2")
    archive_run()
    before = dump()
    (segment,) = memex_home.glob(f"sessions/*/{session_id(2)}/g*.zst")
    segment.write_bytes(segment.read_bytes()[:-200])
    with pytest.raises(SystemExit):
        call_command("reindex", verbosity=0)
    assert session_id(2) in capsys.readouterr().err
    assert dump() == before


def test_a_row_of_no_known_shape_costs_a_warning(agent, monkeypatch):
    from sessions_app.logs.claude_code import ClaudeCodeReader

    honest = ClaudeCodeReader.feed

    def feed(self, row):
        if row.number == 5:
            raise TypeError("unhashable type: 'list'")
        return honest(self, row)

    monkeypatch.setattr(ClaudeCodeReader, "feed", feed)
    log = write_log(agent, compactions=1)
    result = archive_run()
    assert (result.archived, result.warnings) == (1, 1)
    warning = ImportWarning.objects.get()
    assert (warning.row, warning.code, warning.path) == (5, "unreadable", str(log))
    assert kept() == log.read_bytes()


def test_a_log_that_its_agent_deleted_is_closed_at_once(agent):
    log = write_log(agent, compactions=1)
    assert archive_run().closing == 0
    log.unlink()
    assert archive_run().closing == 1
    assert archive_run().closing == 0
    assert Record.objects.filter(provenance__source="session-end").count() == 1


def test_a_session_from_elsewhere_is_closed_when_it_is_idle(agent, tmp_path):
    log = write_log(tmp_path / "copied", compactions=1)
    archive_run([log], level="l2")
    assert archive_run().closing == 0
    os.utime(log, (1, 1))
    Source.objects.update(mtime_ns=1)
    result = archive_run()
    assert (result.files, result.closing) == (0, 1)
    assert archive_run().closing == 0


def test_lost_rows_are_not_lost_levels(agent):
    log = write_log(agent, compactions=1)
    archive_run()
    for model in (SessionSettings, AgentSession, Source, Record, Compaction):
        model.objects.all().delete()
    log.write_bytes(as_bytes(story(compactions=2)))
    result = archive_run()
    assert (result.sessions, result.compactions) == (1, 2)
    assert SessionSettings.objects.get().l2 == 1


def test_what_is_no_file_is_passed_over(agent):
    write_log(agent, compactions=1)
    folder = agent / "projects" / "-work-demo"
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "folder.jsonl").mkdir()
    (folder / "empty.jsonl").touch()
    (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")
    (folder / "nothing.jsonl").write_bytes(b"\0" * 300_000)
    assert archive_run().archived == 1
    assert archive_run([folder / "pipe.jsonl"]).warnings == 1


def test_a_row_too_long_to_hold_is_kept_and_passed_over(agent, monkeypatch):
    for module in ("stretch", "logs.rows", "discovery"):
        monkeypatch.setattr(f"sessions_app.{module}.MAX_PARSED_ROW", 3 << 20)
    lines = as_bytes(story(compactions=1))
    long = b'{"type": "user", "text": "' + b"x" * (7 << 20) + b'"}\n'
    log = write_log(agent)
    log.write_bytes(
        lines[:3000]
        + lines[3000 : lines.index(b"\n", 3000) + 1]
        + long
        + lines[lines.index(b"\n", 3000) + 1 :]
    )
    assert archive_run().archived == 1
    assert ImportWarning.objects.get().code == "too-long"
    assert kept() == log.read_bytes()
    tail = b"\0" * (5 << 20)
    with log.open("ab") as file:
        file.write(tail)
    archive_run()
    os.utime(log, (1, 1))
    archive_run()
    assert kept() == log.read_bytes()
    with log.open("ab") as file:
        file.write(b"\n" + as_bytes(story(compactions=2)[35:]))
    archive_run()
    assert kept() == log.read_bytes()
    assert Compaction.objects.count() == 2


def test_what_a_prune_cut_belongs_to_the_compaction_too(settings, tmp_path, memex_home):
    folder = tmp_path / "dsh" / "sessions" / "--demo--" / "session-demo"
    folder.mkdir(parents=True)
    log = folder / "session.v4.jsonl"
    log.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in dsh_story().rows))
    archive_run([log], level="l3")
    cut = Record.objects.get(provenance__source="prune")
    whole = Record.objects.filter(provenance__source="compaction-archive").order_by("created_at").first()
    assert whole is not None
    assert cut.id in whole.links["previous"]
    assert set(record_rows(cut)) <= set(record_rows(whole))


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--limit", "-1"),
        ("list", "--offset", "-5"),
        ("sessions", "--limit", "-1"),
        ("open", "mem_0123456789", "--offset", "-5"),
        ("read", session_id(), "--seq", "5-1"),
        ("read", session_id(), "--seq", "0-99999999999999999999999"),
        ("read", session_id(), "--rows", "999999"),
        ("read", session_id(), "--rows", "0", "--generation", "7"),
        ("read", session_id(), "--rows", "0", "--seq", "0"),
        ("pause", ""),
        ("pause", session_id(), "--workspace", "/x"),
        ("level", session_id(), "l3", "--workspace", "/x"),
        ("level", "", "l3"),
        ("forget",),
        ("trash", "restore", "../../etc"),
    ],
)
def test_senseless_arguments_are_refused(agent, arguments):
    write_log(agent, compactions=1)
    archive_run()
    before = dump()
    with pytest.raises(CommandError):
        call_command("memory", *arguments)
    assert dump() == before
