import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from records.models import Record
from records.trash import bundle_list
from sessions_app.archiving import archive_run
from sessions_app.levels import levels_of
from sessions_app.models import AgentSession, Event, ImportWarning, Job, Source
from sessions_app.workspaces import workspace_default

from .pages import HOSTILE, HTMX, PAGE, SESSION, work, workspace_keys
from .stories import write_log

pytestmark = pytest.mark.django_db(transaction=True)


def test_without_logs_samples_are_offered(owner):
    text = owner.get("/").text
    assert "No agent logs on this machine" in text
    assert "Load the sample sessions" in text
    assert "Sample data" not in text


def test_samples_are_loaded_and_removed(owner):
    answer = owner.post("/samples/load")
    job = Job.objects.get()
    assert answer.url == f"/jobs/{job.pk}/"
    work(job)
    assert Record.objects.exists()
    for address in ("/", "/sessions/", "/workspaces/", "/health/"):
        assert "Remove the samples" in owner.get(address).text
    assert "The samples are gone" in owner.post("/samples/remove", follow=True).text
    assert not Record.objects.exists()
    assert "Sample data" not in owner.get("/").text
    assert "Nothing to do" in owner.post("/samples/remove", follow=True).text


def test_the_first_visit_offers_the_folders_and_reads_nothing(owner, agent_home):
    write_log(agent_home, 1)
    text = owner.get("/").text
    assert "<h1>Welcome to Memex</h1>" in text
    assert "/home/dev/demo" in text
    assert "1 session" in text
    assert "harbour" not in text
    assert not AgentSession.objects.exists()
    assert not Event.objects.exists()
    assert 'name="l3"' in text
    assert "checked" not in text


def test_discovery_is_not_repeated_at_every_look(owner, agent_home):
    owner.get("/workspaces/")
    write_log(agent_home, 1)
    assert "/home/dev/demo" not in owner.get("/workspaces/").text
    cache.clear()
    assert "/home/dev/demo" in owner.get("/workspaces/").text


def test_switching_on_archiving_and_taking_back(owner, agent_home):
    write_log(agent_home, 1)
    owner.get("/workspaces/")
    (key,) = workspace_keys()
    levels = f"/workspaces/{key}/levels"
    assert "L3 on for its sessions" in owner.post(levels, {"l3": "on"}, follow=True).text
    assert workspace_default(key) == (False, True)
    assert "Nothing to do" in owner.post(levels, {"l3": "on"}, follow=True).text

    job_page = owner.post("/workspaces/archive", follow=True)
    assert "Waiting for the worker" in job_page.text
    work(Job.objects.get())
    assert "2 compactions archived" in owner.get(f"/jobs/{Job.objects.get().pk}/").text
    assert Record.objects.count() == 2
    assert "<h1>Memory</h1>" in owner.get("/").text

    row = owner.post(levels, {}, headers=HTMX).text
    assert "off for new sessions" in row
    assert row.lstrip().startswith(f'<li id="workspace-{key}"')
    assert str(levels_of(SESSION, key)) == "L3"


def test_an_unknown_workspace_is_not_found(owner):
    assert owner.post("/workspaces/x/levels", {"l3": "on"}).status_code == 404


def test_progress_of_a_job(owner):
    owner.post("/workspaces/archive")
    job = Job.objects.get()
    Job.objects.update(state="running", done=3, total=8)
    answer = owner.get(f"/jobs/{job.pk}/", headers=HTMX)
    assert "3 of 8 files" in answer.text
    assert 'hx-trigger="every 1s"' in answer.text
    assert "<html" not in answer.text
    assert "HX-Trigger" not in answer
    assert "Stopping" in owner.post(f"/jobs/{job.pk}/cancel", headers=HTMX).text
    Job.objects.update(state="failed", message=HOSTILE)
    answer = owner.get(f"/jobs/{job.pk}/", headers=HTMX)
    assert "every 1s" not in answer.text
    assert "<script>alert" not in answer.text
    assert answer["HX-Trigger"] == "job-ended"
    assert owner.get("/jobs/999/").status_code == 404


def test_asking_twice_queues_one_job(owner):
    owner.post("/workspaces/archive")
    owner.post("/workspaces/archive", headers=HTMX)
    assert Job.objects.count() == 1


def test_forgetting_a_record_and_undoing_it(owner, archived):
    record = Record.objects.first()
    preview = owner.get(f"/records/forget?id={record.pk}")
    assert record.title in preview.text
    assert Record.objects.count() == 2
    answer = owner.post("/records/forget", {"id": record.pk}, follow=True)
    bundle = bundle_list()[0]
    assert f'href="/trash/#{bundle.id}"' in answer.text
    assert Record.objects.count() == 1
    assert owner.get(f"/records/{record.pk}/").status_code == 404
    trash = owner.get("/trash/").text
    assert f'id="{bundle.id}"' in trash
    assert record.title in trash
    assert "Restored" in owner.post(f"/trash/{bundle.id}/restore", follow=True).text
    assert Record.objects.count() == 2
    assert "The trash is empty" in owner.get("/trash/").text


def test_forgetting_a_session_and_purging_it(owner, archived):
    preview = owner.get(f"{PAGE}forget").text
    assert "Forget “<bdi>Please look at the harbour" in preview
    assert "2, " in preview
    assert AgentSession.objects.exists()
    assert "trash" in owner.post(f"{PAGE}forget", follow=True).text
    assert not AgentSession.objects.exists()
    assert not Record.objects.exists()
    bundle = bundle_list()[0]
    assert "can't be undone" in owner.get(f"/trash/{bundle.id}/purge").text
    assert bundle_list()
    assert "Purged for good" in owner.post(f"/trash/{bundle.id}/purge", follow=True).text
    assert not bundle_list()
    assert owner.post(f"/trash/{bundle.id}/restore").status_code == 404
    archive_run()
    assert not Record.objects.exists()


def test_several_records_are_forgotten_as_one(owner, archived):
    ids = list(Record.objects.values_list("pk", flat=True))
    assert "Forget “<bdi>2 records</bdi>”" in owner.get("/records/forget", {"id": ids}).text
    owner.post("/records/forget", {"id": ids})
    assert len(bundle_list()) == 1
    assert not Record.objects.exists()


def test_health_names_what_went_wrong(owner, archived):
    ImportWarning.objects.create(path="/logs/a.jsonl", row=17, code="torn", message="cut off", created_at=1)
    Source.objects.update(missing_since=1_700_000_000_000)
    text = owner.get("/health/").text
    for piece in ("/logs/a.jsonl", "17", "cut off", "2 archived", Source.objects.get().path):
        assert piece in text


@pytest.mark.parametrize(
    "address",
    [
        f"{PAGE}level", f"{PAGE}pause", "/workspaces/archive", "/workspaces/x/levels", "/samples/load", "/samples/remove",
        "/jobs/1/cancel", "/trash/x/restore",
    ],
)  # fmt: skip
def test_nothing_is_changed_by_looking(owner, archived, address):
    assert owner.get(address).status_code == 405


def test_every_change_needs_the_csrf_token(archived):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get())
    record = Record.objects.first().pk
    for address in (
        f"{PAGE}level",
        f"{PAGE}forget",
        "/records/forget",
        "/records/act",
        "/records/undo",
        "/records/new",
        f"/records/{record}/edit",
        "/samples/load",
    ):
        assert strict.post(address, {"level": "l2", "id": record, "action": "pin"}).status_code == 403
    assert Record.objects.count() == 2
    assert not Record.objects.filter(status="pinned").exists()
    assert levels_of(SESSION, archived.workspace_key).l2 is False
