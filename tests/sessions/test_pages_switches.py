"""What is switched, paused and resumed in the browser, and what the pages then say."""

import pytest

from records.models import Record
from sessions_app.archiving import archive_run
from sessions_app.levels import levels_of
from sessions_app.models import AgentSession, Job, SessionSettings, Source
from sessions_app.overview import workspaces_found
from sessions_app.workspaces import is_paused, workspace_default, workspaces_read

from .pages import HTMX, PAGE, SESSION, work, workspace_keys
from .stories import session_id, write_log

pytestmark = pytest.mark.django_db(transaction=True)


def source(name, **more):
    values = {"agent": "codex", "session_id": name, "cwd": "/home/dev/demo", "size": 1, "mtime_ns": 1}
    return Source.objects.create(path=f"/l/{name}", **values | more)


def test_switching_on_shows_the_run_and_then_the_session(owner, agent_home):
    write_log(agent_home, 1)
    owner.get("/workspaces/")
    text = owner.post(f"{PAGE}level", {"level": "l3"}, follow=True).text
    job = Job.objects.get()
    assert job.arguments == {}
    assert "Not read yet" in text
    assert f'hx-get="/jobs/{job.pk}/"' in text
    assert "data-reload-after-job" in text
    work(job)
    assert "harbour" in owner.get(PAGE).text


def test_a_log_outside_of_the_agents_homes_is_named_to_the_run(owner, agent_home, tmp_path):
    path = write_log(tmp_path / "elsewhere", 1)
    archive_run([path])
    owner.post(f"{PAGE}level", {"level": "l3"})
    assert Job.objects.get().arguments == {"paths": [str(path)]}
    work(Job.objects.get())
    assert Record.objects.count() == 2


def test_a_paused_session_is_not_queued(owner, agent_home):
    write_log(agent_home, 1)
    owner.get("/workspaces/")
    owner.post("/pause", {"paused": "1"})
    text = owner.post(f"{PAGE}level", {"level": "l3"}, follow=True).text
    assert "It is paused: nothing of it is read until you resume." in text
    assert "A level is on, but it is paused" in text
    assert not Job.objects.exists()


def test_resuming_reads_what_was_added_meanwhile(owner, archived, agent_home):
    owner.post(f"{PAGE}pause", {"paused": "1"})
    assert ">paused<" in owner.get("/sessions/").text
    write_log(agent_home, 1, compactions=3)
    archive_run()
    assert Record.objects.count() == 2
    assert (
        "Resumed. The session&#x27;s log is being read."
        in owner.post(f"{PAGE}pause", {"paused": "0"}, follow=True).text
    )
    work(Job.objects.get())
    assert Record.objects.count() == 3
    assert ">paused<" not in owner.get("/sessions/").text


def test_a_folder_is_paused_and_resumed(owner, archived):
    key = archived.workspace_key
    row = owner.post(f"/workspaces/{key}/pause", {"paused": "1"}, headers=HTMX).text
    assert row.lstrip().startswith(f'<li id="workspace-{key}"')
    assert ">paused<" in row
    assert is_paused((SESSION,), key)
    for address in ("/workspaces/", "/sessions/"):
        assert ">paused<" in owner.get(address).text
    assert (
        "workspace, or everything, is paused still"
        in owner.post(f"{PAGE}pause", {"paused": "0"}, follow=True).text
    )
    assert not Job.objects.exists()
    row = owner.post(f"/workspaces/{key}/pause", {"paused": "0"}, headers=HTMX).text
    assert ">paused<" not in row
    assert 'id="job"' in row
    assert Job.objects.count() == 1
    assert owner.post("/workspaces/x/pause", {"paused": "1"}).status_code == 404


def test_everything_is_paused_and_resumed(owner, archived):
    assert "Everything is paused" in owner.post("/pause", {"paused": "1"}, follow=True).text
    for address in ("/workspaces/", "/sessions/", "/health/"):
        assert 'id="resume-everything"' in owner.get(address).text
    key = archived.workspace_key
    answer = owner.post(f"/workspaces/{key}/pause", {"paused": "0"}, follow=True)
    assert "everything is paused still" in answer.text
    assert not Job.objects.exists()
    owner.post("/pause", {"paused": "0"})
    assert workspaces_read()["paused"]["all"] is False
    assert Job.objects.count() == 1
    for address in ("/workspaces/", "/sessions/", "/health/"):
        assert 'id="resume-everything"' not in owner.get(address).text


def test_a_folder_that_is_off_offers_no_pause(owner, agent_home):
    write_log(agent_home, 1)
    owner.get("/workspaces/")
    (key,) = workspace_keys()
    assert f'id="pause-{key}"' not in owner.get("/workspaces/").text
    owner.post(f"/workspaces/{key}/levels", {"l2": "on"})
    assert f'id="pause-{key}"' in owner.get("/workspaces/").text


def test_a_folder_says_what_is_on_and_what_new_sessions_get(owner, agent_home):
    write_log(agent_home, 1)
    write_log(agent_home, 2)
    owner.get("/workspaces/")
    (key,) = workspace_keys()
    assert ">off</span>" in owner.get("/workspaces/").text
    archive_run(level="l3")
    assert "2 sessions on; new sessions: off" in owner.get("/workspaces/").text
    owner.post(f"/workspaces/{key}/levels", {"l2": "on", "l3": "on"})
    assert "2 sessions on; new sessions: L2+L3" in owner.get("/workspaces/").text


@pytest.mark.parametrize(("level", "default"), [("l2", (True, False)), ("l3", (False, True))])
def test_the_first_visit_has_a_choice_for_all(owner, agent_home, level, default):
    write_log(agent_home, 1)
    write_log(agent_home, 2, cwd="/home/dev/other")
    text = owner.get("/").text
    assert f'value="{level}"' in text
    assert "the 2 folders below" in text
    answer = owner.post("/workspaces/levels", {"level": level}, follow=True).text
    assert f"{level.upper()} is on for 2 folders" in answer
    assert {workspace_default(key) for key in workspace_keys()} == {default}
    assert "<h1>Workspaces</h1>" in answer
    assert 'id="all-l3"' not in answer
    work(Job.objects.get())
    assert Record.objects.count() == 4


@pytest.mark.parametrize("level", ["", "l1", "off"])
def test_another_level_for_all_is_refused(owner, agent_home, level):
    write_log(agent_home, 1)
    owner.get("/")
    assert "Nothing was changed" in owner.post("/workspaces/levels", {"level": level}, follow=True).text
    assert {workspace_default(key) for key in workspace_keys()} == {None}


def test_a_sub_agent_without_its_parent_stands_for_itself(owner, agent_home):
    source("orphan", relation="subagent", parent_id="gone")
    source("below", relation="subagent", parent_id="orphan")
    (row,) = workspaces_found()
    assert (row.sessions, row.on) == (1, 0)
    text = owner.get("/sessions/?show=off").text
    assert ">orphan</bdi>" in text
    assert "sub-agent" in text
    assert "below" not in text
    page = owner.post("/sessions/orphan/level", {"level": "l3"}, follow=True).text
    assert "L3 is on and stays on" in page
    assert "sub-agent" in page
    assert str(levels_of("gone", row.key)) == "L3"
    (row,) = workspaces_found()
    assert row.on == 1


def test_a_sub_agent_whose_parent_was_read_is_counted_with_it(owner, archived):
    Source.objects.all().delete()
    source("child", relation="subagent", parent_id=SESSION)
    assert workspaces_found() == []
    assert "child" not in owner.get("/sessions/?show=off").text


def test_sub_agents_are_marked(owner, archived):
    AgentSession.objects.create(
        session_id="orphan", agent="codex", workspace_key="k", title="Alone", parent_id="gone",
        relation="subagent", pool_session_id="gone",
    )  # fmt: skip
    assert owner.get("/sessions/").text.count(">sub-agent<") == 1
    assert ">sub-agent<" in owner.get("/sessions/orphan/").text


def test_what_a_run_did_is_said_when_it_has_ended(owner, agent_home):
    write_log(agent_home, 1)
    archive_run(level="l3")
    owner.post("/workspaces/archive")
    job = Job.objects.get()
    assert 'class="toast"' not in owner.get(f"/jobs/{job.pk}/", headers=HTMX).text
    work(job)
    answer = owner.get(f"/jobs/{job.pk}/", headers=HTMX).text
    assert "Archive run done: 0 compactions archived, 2 there before; 0 new events in 1 files." in answer
    assert 'hx-swap-oob="innerHTML:#messages"' in answer
    text = owner.get("/health/").text
    assert "0 compactions archived, 2 there before" in text
    assert f"{session_id(1)}.jsonl" not in text.split("<h2>Archive runs")[1].split("<h2>")[0]


def test_only_the_words_for_each_count_are_used(owner, archived):
    text = owner.get("/sessions/").text
    assert "in context now (our estimate)" in text
    assert "in the window" not in text
    AgentSession.objects.update(used_tokens=63_000, context_window=200_000)
    text = owner.get(PAGE).text
    assert "In context now (our estimate)" in text
    assert "Prompt size, as the agent reported" in text
    assert SessionSettings.objects.count() == 1
