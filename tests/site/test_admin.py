import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User

from records.models import Record
from sessions_app.admin import SessionSettingsAdmin
from sessions_app.models import AgentSession, Job, SessionSettings
from tests.records.drafts import write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]
OURS = [
    model
    for app in ("records", "sessions_app", "memex_site")
    for model in apps.get_app_config(app).get_models()
]
# What a person may change; everything else follows from files.
CHANGEABLE = {SessionSettings}
SETTINGS = "/admin/sessions_app/sessionsettings/"


@pytest.fixture
def owner(client):
    client.force_login(User.objects.create_superuser("owner"))
    return client


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_every_model_is_listed_and_can_be_searched(owner, model):
    site = admin.site.get_model_admin(model)
    assert len(site.list_display) > 1
    address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    assert owner.get(address).status_code == 200
    assert owner.get(address, {"q": "x"}).status_code == 200


@pytest.mark.parametrize(
    "model", [model for model in OURS if model not in CHANGEABLE], ids=lambda m: m.__name__
)
def test_derived_rows_are_read_only(owner, model):
    address = f"/admin/{model._meta.app_label}/{model._meta.model_name}"
    assert owner.get(f"{address}/add/").status_code == 403
    assert owner.post(f"{address}/add/", {}).status_code == 403


def test_a_row_cannot_be_edited_or_deleted(owner):
    session = AgentSession.objects.create(
        session_id="s1", agent="codex", workspace_key="k", pool_session_id="s1"
    )
    job = Job.objects.create(kind="archive", created_at=1, updated_at=1)
    for address in (f"/admin/sessions_app/agentsession/{session.pk}", f"/admin/sessions_app/job/{job.pk}"):
        assert owner.get(f"{address}/change/").status_code == 200
        assert owner.post(f"{address}/change/", {"title": "x"}).status_code == 403
        assert owner.post(f"{address}/delete/", {"post": "yes"}).status_code == 403
    assert AgentSession.objects.get().title == ""


def action(owner, name, *ids):
    return owner.post("/admin/records/record/", {"action": name, "_selected_action": ids}, follow=True)


def test_pinning_rewrites_the_files(owner, memex_home):
    ids = [write("c1"), write("c2")]
    assert "Pinned: 2 records" in action(owner, "pin", *ids).text
    assert all('status: "pinned"' in path.read_text() for path in (memex_home / "records").rglob("*.md"))
    assert "Unpinned: 1 records" in action(owner, "unpin", ids[0]).text
    assert list(Record.objects.filter(status="pinned").values_list("pk", flat=True)) == ids[1:]


def test_forgetting_shows_first_what_would_go(owner):
    ids = [write("c1", title="One"), write("c2", title="Two")]
    preview = action(owner, "forget", *ids)
    assert preview.request["PATH_INFO"] == "/records/forget"
    assert "Forget “<bdi>2 records</bdi>”" in preview.text
    assert Record.objects.count() == 2


def test_the_admin_finds_what_only_a_body_says(owner):
    found = write("c1", title="One", body="Deep below: the quokka is in the harbour.\n")
    write("c2", title="Two", body="Nothing of it.\n")
    for question in ("quokka", "Quokkas"):
        shown = owner.get("/admin/records/record/", {"q": question}).context["cl"].queryset
        assert [record.id for record in shown] == [found], question
    assert not owner.get("/admin/records/record/", {"q": "wombat"}).context["cl"].queryset.exists()


def test_rows_are_not_deleted_behind_the_services(owner):
    record_id = write()
    action(owner, "delete_selected", record_id)
    assert Record.objects.filter(pk=record_id).exists()


@pytest.fixture
def session():
    return AgentSession.objects.create(
        session_id="s1", agent="codex", workspace_key="k", pool_session_id="s1"
    )


@pytest.mark.usefixtures("session")
def test_a_level_can_be_switched_on(owner, memex_home):
    answer = owner.post(f"{SETTINGS}add/", {"session_id": "s1", "l3": "on"})
    assert answer.status_code == 302
    row = SessionSettings.objects.get()
    assert (row.session_id, row.l2, row.l3) == ("s1", 0, 1)
    # The file that survives the loss of the database says the same.
    assert any('"l3": true' in path.read_text() for path in (memex_home / "sessions").rglob("session.json"))
    owner.post(f"{SETTINGS}s1/change/", {"l2": "on", "l3": "on"})
    row.refresh_from_db()
    assert (row.l2, row.l3) == (1, 1)


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("given", [{}, {"l2": "on"}])
def test_a_level_cannot_be_switched_off(owner, given):
    owner.post(f"{SETTINGS}add/", {"session_id": "s1", "l3": "on"})
    answer = owner.post(f"{SETTINGS}s1/change/", given)
    assert answer.status_code == 200
    assert "A level that is on stays on." in answer.text
    assert owner.post(f"{SETTINGS}s1/delete/", {"post": "yes"}).status_code == 403
    row = SessionSettings.objects.get()
    assert (row.l2, row.l3) == (0, 1)


@pytest.mark.usefixtures("session")
def test_a_row_without_a_level_is_refused(owner):
    assert owner.post(f"{SETTINGS}add/", {"session_id": "s1"}).status_code == 200
    assert not SessionSettings.objects.exists()


def test_only_switches_can_be_changed():
    assert not any(admin.site.get_model_admin(model).list_editable for model in OURS), (
        "an editable list would save past the services"
    )
    assert SessionSettingsAdmin in [type(admin.site.get_model_admin(model)) for model in CHANGEABLE]


@pytest.mark.parametrize("name", ["auth/user", "auth/group"])
def test_nobody_can_take_their_own_rights_away(owner, name):
    assert owner.get(f"/admin/{name}/").status_code == 404
    assert owner.get("/admin/").status_code == 200


def test_a_session_that_does_not_exist_has_no_switches(owner):
    answer = owner.post(f"{SETTINGS}add/", {"session_id": "nothing", "l3": "on"})
    assert "There is no session of this id." in answer.text
    assert not SessionSettings.objects.exists()
