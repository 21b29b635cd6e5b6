"""A forgotten session is nowhere offered as if it were only off."""

import pytest

from records.trash import bundle_list
from sessions_app.forget import forget_plan, forget_run
from sessions_app.models import AgentSession, SessionSettings, Source
from sessions_app.overview import workspaces_found

from .pages import PAGE, SESSION
from .stories import write_log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def forgotten(archived):
    forget_run(forget_plan(session_ids=[SESSION]), actor="owner")
    return archived


def test_its_page_leads_to_the_trash(owner, forgotten):
    text = owner.get(PAGE).text
    assert "<h1>Forgotten</h1>" in text
    assert f'href="/trash/#{bundle_list()[0].id}"' in text
    assert "Switch on" not in text
    assert "This session is off" not in text


def test_its_page_says_when_it_was_purged(owner, forgotten):
    owner.post(f"/trash/{bundle_list()[0].id}/purge")
    text = owner.get(PAGE).text
    assert "purged from the trash" in text
    assert "Restore it" not in text
    assert "Switch on" not in text


def test_its_page_is_there_without_its_log(owner, forgotten):
    Source.objects.all().delete()
    assert "<h1>Forgotten</h1>" in owner.get(PAGE).text


def test_a_level_is_not_switched_on_and_it_is_said_why(owner, forgotten):
    answer = owner.post(f"{PAGE}level", {"level": "l3"}, follow=True)
    assert answer.status_code == 200
    assert "Nothing was changed: this session was forgotten" in answer.text
    assert not SessionSettings.objects.exists()


def test_the_admin_says_the_same(owner, forgotten):
    answer = owner.post("/admin/sessions_app/sessionsettings/add/", {"session_id": SESSION, "l3": "on"})
    assert answer.status_code == 200
    assert "This session was forgotten" in answer.text
    assert not SessionSettings.objects.exists()


def test_it_is_not_listed_as_off(owner, forgotten, agent_home):
    write_log(agent_home, 2)
    Source.objects.create(
        path="/l/child", agent="codex", session_id="child", parent_id=SESSION, relation="subagent",
        cwd="/home/dev/demo", size=1, mtime_ns=1,
    )  # fmt: skip
    Source.objects.create(
        path="/l/off", agent="codex", session_id="off", cwd="/home/dev/demo", size=1, mtime_ns=1
    )
    text = owner.get("/sessions/?show=off").text
    assert SESSION not in text
    assert ">off</bdi>" in text
    assert "1 session switched off" in owner.get("/sessions/").text
    (row,) = workspaces_found()
    assert (row.sessions, row.on, row.forgotten) == (1, 0, 1)
    assert "1 session, 1 forgotten" in owner.get("/workspaces/").text


def test_a_sub_agent_of_it_is_forgotten_too(owner, forgotten):
    Source.objects.filter(session_id=SESSION).delete()
    Source.objects.create(
        path="/l/child", agent="codex", session_id="child", parent_id=SESSION, relation="subagent",
        cwd="/home/dev/demo", size=1, mtime_ns=1,
    )  # fmt: skip
    assert "<h1>Forgotten</h1>" in owner.get("/sessions/child/").text
    assert "child" not in owner.get("/sessions/?show=off").text
    assert (
        "this session was forgotten" in owner.post("/sessions/child/level", {"level": "l2"}, follow=True).text
    )
    (row,) = workspaces_found()
    assert (row.sessions, row.forgotten) == (0, 1)


def test_restoring_it_brings_the_reader_back(owner, forgotten):
    owner.post(f"/trash/{bundle_list()[0].id}/restore")
    assert AgentSession.objects.exists()
    assert "harbour" in owner.get(PAGE).text


def test_the_trash_calls_it_by_words_and_counts_its_records(owner, forgotten, agent_home):
    text = owner.get("/trash/").text
    assert "<h2><bdi>Please look at the harbour" in text
    assert "session, 2 records" in text
    assert SESSION not in text


def test_a_single_record_is_one_record(owner, archived):
    from records.models import Record

    record = Record.objects.first()
    owner.post("/records/forget", {"id": record.pk})
    text = owner.get("/trash/").text
    assert ">1 record<" in text
    assert f"<h2><bdi>{record.title}</bdi></h2>" in text
