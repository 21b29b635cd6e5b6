"""Levels: what is off leaves no trace; what is on stays on; whose levels hold."""

import json
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection

from records.ids import workspace_key
from records.models import Record
from sessions_app.archiving import archive_run
from sessions_app.levels import LevelSticky, level_enable, levels_of, settings_expire
from sessions_app.models import AgentSession, SessionSettings, Source
from sessions_app.workspaces import pause_set, workspace_default_set
from tests.sessions.logs.claude_lines import assistant, boundary, summary, user
from tests.sessions.stories import as_bytes, everything_in, session_id, story, write_log

pytestmark = pytest.mark.django_db(transaction=True)
WORD = "feldspathine"


@pytest.fixture
def agent(settings, tmp_path, memex_home) -> Path:
    home = tmp_path / "claude"
    settings.AGENT_HOMES = {
        "claude-code": home, "codex": tmp_path / "codex", "dsh": tmp_path / "dsh",
    }  # fmt: skip
    return home


def texts_of_all_tables() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        rows = []
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += [repr(row) for row in cursor.fetchall()]
    return "\n".join(rows)


def test_an_off_session_leaves_one_source_row_and_nothing_else(agent, memex_home):
    log = write_log(agent, word=WORD, compactions=2, micros=True)
    before = {model: model.objects.count() for model in apps.get_models()}
    result = archive_run()
    assert (result.files, result.skipped, result.sessions, result.events) == (1, 1, 0, 0)
    changed = {model for model, count in before.items() if model.objects.count() != count}
    assert changed == {Source}
    source = Source.objects.get()
    assert (source.path, source.size, source.session_id, source.cwd) == (
        str(log), log.stat().st_size, session_id(), "/home/dev/demo",
    )  # fmt: skip
    assert WORD not in texts_of_all_tables()
    for path, data in everything_in(memex_home):
        assert WORD.encode() not in data, path
    kept = {field.name for field in Source._meta.fields}
    assert not kept & {"title", "preview", "text", "events", "tokens"}


def test_switching_on_archives_the_whole_log_so_far(agent):
    write_log(agent, compactions=2)
    archive_run()
    level_enable(session_id(), "l2")
    assert archive_run().archived == 2
    assert set(Record.objects.values_list("scope", "session_id")) == {("session", session_id())}


def test_a_level_is_sticky_and_a_later_one_moves_nothing(agent):
    log = write_log(agent, compactions=1)
    level_enable(session_id(), "l2")
    archive_run()
    with pytest.raises(LevelSticky):
        level_enable(session_id(), "off")
    level_enable(session_id(), "l3")
    log.write_bytes(as_bytes(story(compactions=2)))
    archive_run()
    assert sorted(Record.objects.order_by("created_at").values_list("scope", flat=True)) == [
        "session",
        "workspace",
    ]
    levels = levels_of(session_id(), workspace_key("/home/dev/demo", ""))
    assert (levels.l2, levels.l3, levels.capture_scope) == (True, True, "workspace")


def test_a_workspace_default_that_was_used_becomes_the_session_s_own(agent):
    key = workspace_key("/home/dev/demo", "")
    write_log(agent, 1, compactions=1)
    workspace_default_set(key, "/home/dev/demo", l2=False, l3=True)
    assert archive_run().archived == 1
    workspace_default_set(key, "/home/dev/demo", l2=False, l3=False)
    write_log(agent, 2, compactions=1)
    result = archive_run()
    assert result.archived == 0
    assert SessionSettings.objects.get().session_id == session_id(1)
    assert levels_of(session_id(1), key).l3
    assert not levels_of(session_id(2), key).any


def test_default_levels_hold_where_nothing_was_chosen(agent, settings):
    settings.MEMEX_DEFAULT_LEVELS = "l2+l3"
    write_log(agent, compactions=1)
    assert archive_run().archived == 1
    row = SessionSettings.objects.get()
    assert (row.l2, row.l3) == (1, 1)


def test_paused_reads_nothing_more_and_keeps_the_levels(agent):
    log = write_log(agent, compactions=1)
    level_enable(session_id(), "l2")
    archive_run()
    for kind, value in (
        ("all", ""),
        ("workspaces", workspace_key("/home/dev/demo", "")),
        ("sessions", session_id()),
    ):
        pause_set(kind, value, paused=True)
        log.write_bytes(as_bytes(story(compactions=2)))
        assert archive_run().events == 0
        pause_set(kind, value, paused=False)
    assert archive_run().archived == 1


@pytest.mark.parametrize("layout", ["beside", "folder"])
def test_a_sub_agent_uses_its_parent_s_levels_and_pool(agent, layout):
    parent = write_log(agent, compactions=0)
    name = "agent-0a1b2c3d4e5f60718"
    folder = parent.parent if layout == "beside" else parent.with_suffix("") / "subagents"
    folder.mkdir(parents=True, exist_ok=True)
    owner = session_id() if layout == "beside" else name
    about = {
        "sessionId": owner,
        "agentId": name.removeprefix("agent-"),
        "isSidechain": True,
        "cwd": "/home/dev/demo",
    }
    lines = [
        user("00000000-0000-4000-8000-0000000000a1", "Look for unused imports", **about),
        assistant("00000000-0000-4000-8000-0000000000a2", "There are three.", **about),
        boundary("00000000-0000-4000-8000-0000000000a3", **about),
        summary("00000000-0000-4000-8000-0000000000a4", "00000000-0000-4000-8000-0000000000a3", **about),
    ]
    (folder / f"{name}.jsonl").write_bytes(as_bytes(lines))
    assert archive_run().events == 0
    level_enable(session_id(), "l2")
    assert archive_run().archived == 1
    child = AgentSession.objects.get(session_id=name)
    assert (child.parent_id, child.pool_session_id, child.relation) == (
        session_id(),
        session_id(),
        "subagent",
    )
    record = Record.objects.get()
    assert (record.session_id, record.scope) == (session_id(), "session")
    assert record.provenance["sessionId"] == name
    assert not SessionSettings.objects.filter(session_id=name).exists()


def test_levels_survive_a_lost_database(agent, memex_home):
    write_log(agent, compactions=1)
    level_enable(session_id(), "l2", "l3")
    archive_run()
    (file,) = memex_home.glob("sessions/*/*/session.json")
    data = json.loads(file.read_text())
    assert (data["l2"], data["l3"], data["workspace_key"]) == (
        True,
        True,
        workspace_key("/home/dev/demo", ""),
    )


def test_switches_that_nothing_came_of_expire(agent, settings, memex_home):
    level_enable("never-seen", "l2")
    write_log(agent, compactions=1)
    level_enable(session_id(), "l2")
    archive_run()
    SessionSettings.objects.update(updated_at=1)
    settings.MEMEX_SETTINGS_TTL_DAYS = 0
    assert settings_expire() == 0
    settings.MEMEX_SETTINGS_TTL_DAYS = 90
    assert settings_expire() == 1
    assert SessionSettings.objects.get().session_id == session_id()
    assert not list(memex_home.glob("sessions/never-seen*"))
