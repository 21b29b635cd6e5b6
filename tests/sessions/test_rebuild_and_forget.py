"""The database is a projection: it can be lost. And what is forgotten is gone until it is undone."""

import json
import os
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from records import trash
from records.models import Record
from sessions_app.archiving import archive_run
from sessions_app.checkup import store_findings
from sessions_app.forget import forget_plan, forget_resume, forget_run, forget_undo
from sessions_app.levels import level_enable
from sessions_app.models import AgentSession, Compaction, Receipt
from tests.sessions.stories import DERIVED, as_bytes, dump, everything_in, session_id, story, write_log

pytestmark = pytest.mark.django_db(transaction=True)
WORD = "zanzibarite"


@pytest.fixture
def agent(settings, tmp_path, memex_home) -> Path:
    settings.AGENT_HOMES = {
        "claude-code": tmp_path / "claude", "codex": tmp_path / "codex", "dsh": tmp_path / "dsh",
    }  # fmt: skip
    return tmp_path / "claude"


def lose_all_rows() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_keys=OFF")
        for table in DERIVED:
            cursor.execute(f"DELETE FROM {table}")
        cursor.execute("PRAGMA foreign_keys=ON")


def test_reindex_gives_the_same_rows_back(agent):
    write_log(agent, 1, compactions=3, micros=True)
    log = write_log(agent, 2, compactions=1)
    for number in (1, 2):
        level_enable(session_id(number), "l2")
    archive_run()
    # In several runs, one of them after the log was rewritten, one after the session ended.
    log.write_bytes(as_bytes(story(2, compactions=2)))
    archive_run()
    log.write_bytes(as_bytes(story(2, compactions=3)[5:]))
    archive_run()
    os.utime(log, (1, 1))
    AgentSession.objects.filter(session_id=session_id(1)).update(ended_at=1)
    (agent / "projects" / "-work-demo" / f"{session_id(1)}.jsonl").touch()
    archive_run()
    before = dump()
    assert all(before[table] for table in DERIVED if table != "session_files")
    lose_all_rows()
    call_command("reindex", verbosity=0)
    after = dump()
    for table in DERIVED:
        assert after[table] == before[table], table
    call_command("reindex", verbosity=0)
    assert dump() == after
    assert list(store_findings(repair=False)) == []


@pytest.mark.parametrize("with_orphans", [True, False])
def test_rows_that_are_lost_in_part_come_back_as_well(agent, with_orphans):
    write_log(agent, 1, compactions=3, micros=True)
    level_enable(session_id(1), "l2")
    archive_run()
    before = dump()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_keys=OFF")
        for table in ("records", "sources", "agent_sessions", "events"):
            cursor.execute(f"DELETE FROM {table}")
        if not with_orphans:
            cursor.execute("DELETE FROM generations")
        cursor.execute("PRAGMA foreign_keys=ON")
    call_command("reindex", verbosity=0)
    assert dump() == before


def test_a_closing_archive_is_linked_by_the_next_compaction(agent):
    log = write_log(agent, compactions=0)
    level_enable(session_id(), "l2")
    archive_run()
    assert not Record.objects.exists()
    AgentSession.objects.update(ended_at=1)
    assert archive_run().closing == 1
    assert archive_run().closing == 0
    AgentSession.objects.update(ended_at=None)
    log.write_bytes(as_bytes(story(compactions=1)))
    assert archive_run().archived == 1
    closing = Record.objects.get(provenance__source="session-end")
    later = Record.objects.get(provenance__source="compaction-archive")
    assert later.links["previous"] == [closing.id]
    # All that it dropped can be opened from it; what the closing archive has is not said twice.
    assert later.provenance["earlierRows"] == closing.provenance["rows"]
    assert later.provenance["rows"] == []


def test_a_forgotten_session_stays_forgotten_until_it_is_undone(agent, memex_home):
    write_log(agent, 1, compactions=2, word=WORD, micros=True)
    write_log(agent, 2, compactions=1)
    for number in (1, 2):
        level_enable(session_id(number), "l3")
    archive_run()
    before, receipts = dump(), sorted(Receipt.objects.values_list("session_id", "record_id"))
    files = dict(everything_in(memex_home / "records"))
    plan = forget_plan(session_ids=[session_id(1)])
    assert (len(plan.records), plan.session_ids, plan.shared) == (4, [session_id(1)], [])
    assert plan.mirror_bytes > 0
    bundle = forget_run(plan, actor="owner")

    def gone() -> None:
        assert not AgentSession.objects.filter(session_id=session_id(1)).exists()
        assert not Record.objects.filter(provenance__sessionId=session_id(1)).exists()
        for path, data in everything_in(memex_home):
            assert WORD.encode() not in data or path.is_relative_to(memex_home / "trash"), path

    gone()
    assert archive_run().archived == 0
    gone()
    call_command("reindex", verbosity=0)
    gone()
    assert AgentSession.objects.get().session_id == session_id(2)
    forget_undo(bundle, actor="owner")
    assert dict(everything_in(memex_home / "records")) == files
    after = dump()
    for table in DERIVED:
        assert after[table] == before[table], table
    assert sorted(Receipt.objects.values_list("session_id", "record_id")) == receipts
    assert archive_run().archived == 0
    assert trash.bundle_list() == []


def test_a_forgotten_record_is_not_archived_again(agent):
    log = write_log(agent, compactions=2)
    level_enable(session_id(), "l2")
    archive_run()
    first = Record.objects.order_by("created_at").first()
    assert first is not None
    before = dump()
    bundle = forget_run(forget_plan(record_ids=[first.id]), actor="owner")
    log.write_bytes(as_bytes(story(compactions=3)))
    archive_run()
    call_command("reindex", verbosity=0)
    archive_run()
    assert not Record.objects.filter(id=first.id).exists()
    assert Record.objects.count() == 2
    assert Compaction.objects.filter(state=Compaction.State.FORGOTTEN).count() == 1
    forget_undo(bundle, actor="owner")
    assert Record.objects.count() == 3
    assert set(before["records"]) <= set(dump()["records"])
    assert not Compaction.objects.exclude(state=Compaction.State.ARCHIVED).exists()


@pytest.mark.parametrize("cut", ["before the rows", "before the files"])
def test_forgetting_that_was_cut_short_is_completed(agent, memex_home, monkeypatch, cut):
    write_log(agent, compactions=1, word=WORD)
    level_enable(session_id(), "l2")
    archive_run()

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    target = "sessions_app.forget._rows_delete" if cut == "before the rows" else "records.trash.bundle_fill"
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(target, die)
        forget_run(forget_plan(session_ids=[session_id()]), actor="owner")
    assert len(forget_resume()) == 1
    assert not AgentSession.objects.exists()
    assert not Record.objects.exists()
    assert list(store_findings(repair=False)) == []
    (bundle,) = trash.bundle_list()
    forget_undo(bundle.id, actor="owner")
    assert Record.objects.count() == 1


def test_doctor_names_what_is_wrong_and_mends_it(agent, memex_home, capsys):
    write_log(agent, compactions=2)
    level_enable(session_id(), "l2")
    archive_run()
    before = dump()
    AgentSession.objects.all().delete()
    (memex_home / "blobs" / "ab").mkdir(parents=True)
    (memex_home / "blobs" / "ab" / ("ab" * 32)).write_bytes(b"nobody's")
    codes = {finding.code for finding in store_findings(repair=False)}
    assert codes >= {"mirror-without-session", "unreferenced-blob"}
    with pytest.raises(SystemExit) as ended:
        call_command("doctor")
    assert ended.value.code == 1
    call_command("doctor", "--repair", "--json")
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["ok"]
    assert dump() == before
    assert list(store_findings(repair=False)) == []


def test_doctor_names_a_damaged_mirror(agent, memex_home):
    write_log(agent, compactions=1)
    level_enable(session_id(), "l2")
    archive_run()
    (segment,) = memex_home.glob("sessions/*/*/g0000-0000.zst")
    data = bytearray(segment.read_bytes())
    data[-30] ^= 0xFF
    segment.write_bytes(data)
    (finding,) = store_findings(repair=True)
    assert finding.code == "damaged-mirror"
    assert segment.name in finding.message


def test_a_damaged_session_file_is_named_and_stops_nothing(agent, memex_home):
    for number in (1, 2):
        write_log(agent, number, compactions=1)
        level_enable(session_id(number), "l2")
    archive_run()
    (file,) = memex_home.glob(f"sessions/*/{session_id(1)}/session.json")
    file.write_text("{ torn")
    (finding, *_) = [found for found in store_findings(repair=True) if found.code == "damaged-session"]
    assert str(file) in finding.message
    call_command("reindex", verbosity=0)
    assert AgentSession.objects.get().session_id == session_id(2)
    again = archive_run()
    assert (again.warnings, again.already, again.closing) == (1, 1, 0)


def test_a_damaged_workspaces_file_refuses_rather_than_guesses(agent, memex_home):
    write_log(agent, compactions=1)
    (memex_home / "workspaces.json").write_text("[1]")
    with pytest.raises(CommandError, match=r"workspaces\.json is damaged"):
        call_command("archive", "--level", "l2", str(agent))
    assert not AgentSession.objects.exists()
