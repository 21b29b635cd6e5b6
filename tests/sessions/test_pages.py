from urllib.parse import unquote, urlsplit

import pytest
from django.urls import resolve, reverse

from records.models import Record
from sessions_app.levels import level_enable
from sessions_app.models import AgentSession, Job, SessionSettings, Source
from sessions_app.page_queries import SESSIONS_A_PAGE
from sessions_app.workspaces import is_paused
from tests.queries import assert_flat_queries

from .pages import HTMX, PAGE, SESSION, work, workspace_keys
from .stories import write_log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "name",
    ["a", "a/b", "../..", "..", ".", "a b?c#d", "{{x}}", "会话", "100%", "%2F", '"><script>', "a\\b", "-\n-"],
)
def test_any_session_id_fits_into_an_address(name):
    address = reverse("sessions:detail", args=[name])
    path = urlsplit(address).path
    assert path == address
    # A browser leaves out segments of dots, also when they are quoted once.
    assert not {unquote(segment) for segment in path.split("/")} & {".", ".."}
    assert resolve(unquote(path)).kwargs == {"session_id": name}


def test_the_list_of_sessions(owner, archived):
    text = owner.get("/sessions/").text
    for piece in (
        "Please look at the harbour",
        "dev/demo",
        "claude-code",
        "2 compactions",
        ">L3<",
        f'href="{PAGE}"',
    ):
        assert piece in text, piece
    assert "Nothing matches" in owner.get("/sessions/?agent=codex").text
    part = owner.get(f"/sessions/?workspace={archived.workspace_key}", headers=HTMX).text
    assert "harbour" in part
    assert "<html" not in part


def test_sub_agents_stand_below_their_parent(owner, archived):
    AgentSession.objects.create(
        session_id="child", agent="claude-code", workspace_key=archived.workspace_key, title="A helper's task",
        parent_id=SESSION, relation="subagent", pool_session_id=SESSION, last_event_at=9_999_999_999_999,
    )  # fmt: skip
    AgentSession.objects.create(
        session_id="orphan", agent="claude-code", workspace_key="k", title="Parent unknown", parent_id="gone",
        relation="subagent", pool_session_id="gone",
    )  # fmt: skip
    text = owner.get("/sessions/").text
    assert text.index("Please look at") < text.index("A helper's task".replace("'", "&#x27;"))
    assert "1 sub-agent" in text
    assert "Parent unknown" in text
    assert "Sub-agents" in owner.get(PAGE).text
    assert "Please look at" in owner.get("/sessions/child/").text


def test_the_list_is_loaded_in_pages(owner, agent_home):
    AgentSession.objects.bulk_create(
        AgentSession(
            session_id=f"s{number:03}", agent="codex", workspace_key="k", title=f"number {number:03}.",
            pool_session_id=f"s{number:03}", last_event_at=number or None,
        )
        for number in range(SESSIONS_A_PAGE + 5)
    )  # fmt: skip
    first = owner.get("/sessions/").text
    assert "number 044." in first
    assert "number 000." not in first
    address = first.split('hx-get="?')[1].split('"')[0].replace("&amp;", "&")
    rest = owner.get(f"/sessions/?{address}", headers=HTMX).text
    assert [name for name in ("number 000.", "number 004.", "number 005.") if name in rest] == [
        "number 000.",
        "number 004.",
    ]
    assert owner.get("/sessions/?after=x").status_code == 404


def test_the_number_of_queries_does_not_grow(owner, agent_home):
    made = iter(range(1_000))

    def make(count):
        for number, _ in zip(made, range(count), strict=False):
            key = f"key{number}"
            AgentSession.objects.create(
                session_id=f"s{number}", agent="codex", workspace_key=key, cwd=f"/w/{number}",
                pool_session_id=f"s{number}", last_event_at=number,
            )  # fmt: skip
            AgentSession.objects.create(
                session_id=f"c{number}", agent="codex", workspace_key=key, parent_id=f"s{number}",
                relation="subagent", pool_session_id=f"s{number}",
            )  # fmt: skip
            Source.objects.create(
                path=f"/l/{number}",
                agent="codex",
                session_id=f"s{number}",
                cwd=f"/w/{number}",
                size=1,
                mtime_ns=1,
            )

    for address in ("/sessions/", "/sessions/?show=off", "/workspaces/", "/health/"):
        assert_flat_queries(make, lambda address=address: owner.get(address), rows=5)


def test_a_level_goes_on_and_stays(owner, archived):
    text = owner.get(PAGE).text
    assert 'id="level-l2"' in text
    assert 'id="level-l3"' not in text
    answer = owner.post(f"{PAGE}level", {"level": "l2"}, follow=True).text
    assert "L2 is on and stays on" in answer
    assert 'id="level-l2"' not in answer
    assert "Nothing to do" in owner.post(f"{PAGE}level", {"level": "l2"}, follow=True).text
    for wrong in ("off", "", "l1"):
        assert "Nothing was changed" in owner.post(f"{PAGE}level", {"level": wrong}, follow=True).text
    row = SessionSettings.objects.get()
    assert (row.l2, row.l3) == (1, 1)


def test_a_session_that_is_off_can_be_switched_on(owner, agent_home):
    write_log(agent_home, 1)
    owner.get("/workspaces/")
    assert SESSION in owner.get("/sessions/?show=off").text
    text = owner.get(PAGE).text
    assert "This session is off" in text
    assert "harbour" not in text
    owner.post(f"{PAGE}level", {"level": "l3"})
    assert "Not read yet" in owner.get(PAGE).text
    work(Job.objects.get())
    assert "harbour" in owner.get(PAGE).text
    assert Record.objects.count() == 2


def test_pausing_and_resuming(owner, archived):
    key = archived.workspace_key
    assert "Paused: nothing more" in owner.post(f"{PAGE}pause", {"paused": "1"}, follow=True).text
    assert is_paused((SESSION,), key)
    assert "Resumed" in owner.post(f"{PAGE}pause", {"paused": "0"}, follow=True).text
    assert not is_paused((SESSION,), key)


def test_a_level_from_the_folders_default_is_not_yet_the_sessions_own(owner, agent_home):
    write_log(agent_home, 1)
    owner.get("/workspaces/")
    owner.post(f"/workspaces/{workspace_keys().pop()}/levels", {"l3": "on"})
    text = owner.get(PAGE).text
    assert "On by the folder's default" in text
    assert "Keep on" in text
    level_enable(SESSION, "l3")
    assert "Keep on" not in owner.get(PAGE).text
