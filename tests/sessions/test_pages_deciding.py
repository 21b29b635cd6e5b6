"""What the pages do with records: one or several at once, undone, written and edited."""

import html
import re

import pytest
from django.contrib.auth.models import User

from records.home import record_path
from records.models import Record
from records.writing import Writer, memory_write
from records.written import Written
from sessions_app.models import AgentSession
from tests.records.drafts import write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]
HTMX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/?kind=note"}
HOSTILE = "<script>alert(1)</script>\"'"


@pytest.fixture
def owner(client):
    client.force_login(User.objects.create_superuser("owner"))
    return client


def act(owner, action, *ids, **more):
    return owner.post("/records/act", {"action": action, "id": ids, **more}, headers=HTMX).text


def undo(owner, answer):
    """Sends the form that the answer offers."""
    form = answer.split('class="undo"')[1].split("</form>")[0]
    given = dict(re.findall(r'name="(steps|bundle)" value="([^"]*)"', form))
    return owner.post(
        "/records/undo", {name: html.unescape(value) for name, value in given.items()}, headers=HTMX
    )


def test_a_row_is_put_in_its_place_as_it_is_now(owner):
    record_id = write("c1", title="Pin me")
    answer = act(owner, "pin", record_id)
    assert "Pinned: “<bdi>Pin me</bdi>”" in answer
    assert f'id="marks-{record_id}" hx-swap-oob="true"' in answer
    form = answer.split(f'<form id="actions-{record_id}"')[1].split("</form>")[0]
    assert 'hx-swap-oob="true"' in form
    assert 'value="unpin"' in form
    assert 'name="next" value="/?kind=note"' in form
    assert 'hx-swap-oob="innerHTML:#messages"' in answer
    assert b'status: "pinned"' in record_path("0123456789abcdef", record_id, cold=False).read_bytes()
    assert "it is pinned already" in act(owner, "pin", record_id)
    back = undo(owner, answer)
    assert back["HX-Trigger"] == "memory-changed"
    assert Record.objects.get().status == "active"


def test_several_at_once(owner):
    ids = [write(f"c{number}", status="pinned" if number == 1 else "active") for number in range(5)]
    answer = act(owner, "cool", *ids)
    assert "Moved to the cold tier: 4 records" in answer
    assert "Left as it is: “<bdi>" in answer
    assert "it is pinned" in answer
    assert Record.objects.filter(cold=1).count() == 4
    undo(owner, answer)
    assert Record.objects.filter(cold=1).count() == 0


def test_what_is_forgotten_leaves_the_list_and_comes_back(owner):
    ids = [write("c1", title="alpha"), write("c2", title="beta")]
    answer = act(owner, "forget", *ids)
    for record_id in ids:
        assert f'<li id="record-{record_id}" hx-swap-oob="delete">' in answer
    assert "in the <a" in answer
    assert not Record.objects.exists()
    assert "forgotten already" in act(owner, "forget", *ids)
    assert "Brought back" in undo(owner, answer).text
    assert Record.objects.count() == 2


def test_without_javascript_one_is_led_back(owner):
    record_id = write("c1")
    response = owner.post("/records/act", {"action": "resolve", "id": record_id, "next": "/?kind=episode"})
    assert response["Location"] == "/?kind=episode"
    for elsewhere in ("https://example.org/", "//example.org/", "javascript:alert(1)", ""):
        response = owner.post("/records/act", {"action": "reopen", "id": record_id, "next": elsewhere})
        assert response["Location"] == "/"


def test_nothing_to_do_is_said(owner):
    assert "no record was chosen" in act(owner, "pin")
    assert "500 records at most" in act(owner, "pin", *(f"mem_{n:010}" for n in range(501)))
    assert owner.post("/records/act", {"action": "explode", "id": "x"}).status_code == 400
    forged = owner.post("/records/undo", {"steps": "forged"}, headers=HTMX).text
    assert "undone from here any more" in forged
    assert "Nothing was restored" in owner.post("/records/undo", {"bundle": "../x"}, headers=HTMX).text


def test_hostile_titles_are_inert(owner):
    record_id = write("c1", title=HOSTILE)
    for action in ("pin", "unpin", "forget"):
        assert "<script>alert" not in act(owner, action, record_id)


def test_what_waits_and_what_contradicts_is_decided_in_the_row(owner, settings):
    settings.MEMEX_REQUIRE_CONFIRMATION = True
    agent = Writer(actor="a", by_person=False, scope="workspace", workspace_key="k", workspace="/w")
    waiting = memory_write(Written(kind="decision", text="We use npm.", slot="tool"), agent).id
    page = owner.get("/").text
    assert "1 waiting for you" in page
    row = owner.get("/?status=suggested").text.split(f'id="record-{waiting}"')[1].split("</li>")[0]
    assert "Confirm</button>" in row
    assert "Drop</button>" in row
    act(owner, "confirm", waiting)
    person = Writer(actor="owner", by_person=True, scope="workspace", workspace_key="k", workspace="/w")
    memory_write(Written(kind="decision", text="We use pip, always.", slot="tool"), person)
    page = owner.get("/").text
    assert "2 disputed" in page
    assert page.count("Keep this</button>") == 2
    act(owner, "keep", waiting)
    assert sorted(Record.objects.values_list("status", flat=True)) == ["active", "superseded"]


def test_pinned_ones_and_open_threads_are_on_top(owner):
    write("c1", title="Release checklist", status="pinned")
    write("c2", title="Flaky on arm", kind="open-thread")
    write("c3", title="Old")
    tops = owner.get("/").text.split('class="tops"')[1].split("</div>")[0]
    assert "Release checklist" in tops
    assert "Flaky on arm" in tops
    assert "Old" not in tops
    assert 'class="tops"' not in owner.get("/?kind=episode").text
    assert 'class="tops"' not in owner.get("/?q=flaky").text


def test_a_record_opens_beside_the_list(owner):
    record_id = write("c1", title="Beside")
    text = owner.get(f"/records/{record_id}/?pane=1", headers=HTMX).text
    assert "<html" not in text
    assert "<bdi>Beside</bdi></h2>" in text
    assert "The text of c1." in text
    assert "<html" in owner.get(f"/records/{record_id}/?pane=1").text


# Writing and editing


def new(owner, **given):
    return owner.post("/records/new", {"kind": "note", "where": "workspace:k", **given}, follow=True)


def test_a_memory_of_ones_own(owner):
    write("c1", workspace="/home/dev/demo", workspace_key="k")
    text = owner.get("/records/new").text
    assert "/home/dev/demo" in text
    answer = new(
        owner, text="Deploy with care.\n\nAlways.", tags="area: deploy\ncareful", use_when="Read before it."
    )
    record = Record.objects.get(kind="note")
    assert answer.redirect_chain == [(f"/records/{record.id}/", 302)]
    assert (record.title, record.trust, record.workspace) == (
        "Deploy with care.",
        "trusted",
        "/home/dev/demo",
    )
    assert record.tags == {"area": ["deploy"], "topic": ["careful"]}
    assert "remembered already" in new(owner, text="Deploy with care.\n\nAlways.").text
    assert Record.objects.filter(kind="note").count() == 1


def test_a_private_memory(owner):
    AgentSession.objects.create(
        session_id="s1", agent="codex", workspace_key="k", cwd="/w", pool_session_id="s1", last_event_at=1
    )
    new(owner, text="Only here.", where="session:s1")
    record = Record.objects.get()
    assert (record.scope, record.session_id) == ("session", "s1")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": " "}, "This field is required"),
        ({"text": "x", "where": "workspace:other"}, "Select a valid choice"),
        ({"text": "x", "kind": "episode"}, "Select a valid choice"),
        ({"text": "x", "title": "t" * 161}, "at most 160 characters"),
    ],
)
def test_what_is_refused_stays_in_the_form(owner, given, said):
    write("c1", workspace="/w", workspace_key="k")
    answer = new(owner, use_when="Kept as typed", **given).text
    assert said in answer
    assert "Kept as typed" in answer
    assert Record.objects.count() == 1


def test_a_contradiction_is_said_at_once(owner):
    write("c1", workspace="/w", workspace_key="k")
    new(owner, text="We use npm.", slot="tool")
    assert "It contradicts" in new(owner, text="We use pip, always.", slot="tool").text


def edit(owner, record_id, **changes):
    """Sends the form as it was shown, but for `changes`."""
    page = owner.get(f"/records/{record_id}/edit").text
    shown = re.search(r'name="content_hash" value="([^"]*)"', page)[1]
    # As a browser takes it: without the first line break.
    tags = html.unescape(re.search(r'name="tags"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL)[1])
    record = Record.objects.get(pk=record_id)
    fields = {name: getattr(record, name) for name in ("title", "use_when", "summary", "status")}
    given = {**fields, "tags": tags.replace("\n", "\r\n"), "content_hash": shown, **changes}
    return owner.post(f"/records/{record_id}/edit", given, follow=True).text


def test_a_card_is_edited(owner):
    record_id = write("c1", title="Old", tags={"where": ["a.py"]})
    answer = edit(owner, record_id, title="New", tags="where: b.py\nx", status="resolved")
    assert "Saved: title, tags, status" in answer
    record = Record.objects.get()
    assert (record.title, record.tags, record.status) == (
        "New",
        {"where": ["b.py"], "topic": ["x"]},
        "resolved",
    )
    assert 'title: "New"' in record_path("0123456789abcdef", record_id, cold=False).read_text()
    assert "Nothing was changed" in edit(owner, record_id, tags="where: b.py\nx")


def test_an_edit_of_what_was_not_shown_is_refused_and_kept(owner):
    record_id = write("c1", title="Old")
    page = owner.get(f"/records/{record_id}/edit").text
    shown = re.search(r'name="content_hash" value="([^"]*)"', page)[1]
    edit(owner, record_id, title="Somebody else's")
    given = {"title": "Mine", "status": "active", "content_hash": shown}
    answer = owner.post(f"/records/{record_id}/edit", given).text
    assert "nothing was saved" in answer
    assert 'value="Mine"' in answer
    assert Record.objects.get().title == "Somebody else's"
    given["content_hash"] = re.search(r'name="content_hash" value="([^"]*)"', answer)[1]
    owner.post(f"/records/{record_id}/edit", given)
    assert Record.objects.get().title == "Mine"


ODD_TAGS = {
    "commands": ['git commit -m "a, b"', "for x in a:\n  do: x, y", "  two  blanks  "],
    "topic": ["plain", "with: colon", "#[test]"],
    "where": ["C:\\\\src\\\\a,b.py", "https://example.org/a:b"],
    "sensitive": ["some-rule"],
}


def test_tags_that_are_not_touched_stay_what_they_are(owner):
    record_id = write("c1", title="Old", tags=ODD_TAGS)
    assert "Saved: title." in edit(owner, record_id, title="New")
    assert Record.objects.get().tags == ODD_TAGS
    edit(owner, record_id, tags="topic: plain\r\nfor x in a: do: x, y\r\nadded")
    assert Record.objects.get().tags == {
        "topic": ["plain", "added"],
        "for x in a": ["do: x, y"],
        "sensitive": ["some-rule"],
    }


def test_a_card_is_no_place_for_a_secret(owner):
    record_id = write("c1", title="Old")
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    answer = edit(owner, record_id, title=f"Deploy with {secret}")
    assert "This looks like a secret" in answer
    assert Record.objects.get().title == "Old"


def test_what_changed_since_is_not_undone(owner):
    record_id = write("c1")
    answer = act(owner, "pin", record_id)
    act(owner, "resolve", record_id)
    assert "it has changed since" in undo(owner, answer).text
    assert Record.objects.get().status == "resolved"
