"""The Connect page, on real files."""

import json
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memex_site.connect.services import token_path
from memex_site.models import AgentToken
from memex_site.tokens import token_create, token_verify
from records.clock import now_ms
from sessions_app.models import OpenedSession
from tests.queries import assert_flat_queries

from .test_connect import CONFIG, SETTINGS, agents, contents, run

__all__ = ["agents"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("memex_home")]
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def owner(client, agents) -> Client:
    client.force_login(User.objects.create_superuser("owner"))
    return client


def card(owner: Client, agent: str) -> str:
    text = owner.get("/connect/").text
    start = text.index(f'id="agent-{agent}"')
    return text[start : text.index("</section>", start)]


def digest(owner: Client, agent: str, *, undo: bool = False) -> str:
    button = f'id="{"undo" if undo else "connect"}-{agent}"'
    before = card(owner, agent).split(button)[0]
    return re.findall(r'name="digest" value="(\w+)"', before)[-1]


def change(owner: Client, agent: str, *, undo: bool = False) -> str:
    given = {"digest": digest(owner, agent, undo=undo)} | ({"undo": "1"} if undo else {})
    return owner.post(f"/connect/agents/{agent}", given, follow=True).text


def test_it_says_what_is_and_what_connecting_would_change(owner, agents, settings):
    settings.AGENT_HOMES["dsh"] = agents / "nowhere"
    before = contents(agents)
    text = card(owner, "claude-code")
    assert "not connected" in text
    assert text.count("not wired") == 2
    assert "hook_client.py" in text
    assert 'class="added"' in text
    assert "manage.py connect claude-code" in text
    assert "not on this machine" in card(owner, "dsh")
    assert contents(agents) == before
    assert not AgentToken.objects.exists()


def test_connecting_and_undoing_do_what_the_command_does(owner, agents):
    before = contents(agents)
    assert "Made the token" in change(owner, "claude-code")
    assert token_verify(token_path("claude-code").read_text().strip()).agent == "claude-code"
    text = card(owner, "claude-code")
    assert ">connected<" in text
    assert 'id="connect-claude-code"' not in text
    assert "already connected" in run("claude-code", "--yes")
    assert "Revoked the token" in change(owner, "claude-code", undo=True)
    assert {name: data for name, data in contents(agents).items() if "backups" not in name} == before
    assert "not connected" in card(owner, "claude-code")


def test_only_what_was_shown_is_done(owner, agents):
    shown = digest(owner, "codex")
    (agents / "codex" / "config.toml").write_text("newer = 1\n")
    text = owner.post("/connect/agents/codex", {"digest": shown}, follow=True).text
    assert "not what was shown" in text
    assert (agents / "codex" / "config.toml").read_text() == "newer = 1\n"
    owner.post("/connect/agents/codex", follow=True)
    assert (agents / "codex" / "config.toml").read_text() == "newer = 1\n"
    assert not AgentToken.objects.exists()


def test_what_is_wired_in_part_can_be_mended(owner, agents):
    change(owner, "codex")
    config = agents / "codex" / "config.toml"
    config.write_text(config.read_text().replace("hook_client.py codex Stop ", "hook_client.py codex Stopp "))
    text = card(owner, "codex")
    assert "connected in part" in text
    assert "wired otherwise" in text
    change(owner, "codex")
    assert ">connected<" in card(owner, "codex")
    change(owner, "codex", undo=True)
    assert config.read_bytes() == CONFIG


def test_connected_over_http_is_connected(owner, agents):
    # The port that the page is asked on in tests.
    change(owner, "claude-code")
    data = json.loads((agents / ".claude.json").read_text())
    data["mcpServers"]["memex"] = {
        "type": "http",
        "url": "http://127.0.0.1:80/mcp",
        "headers": {"Authorization": "Bearer ${MX_TOKEN}"},
    }
    (agents / ".claude.json").write_text(json.dumps(data))
    assert ">connected<" in card(owner, "claude-code")


def test_settings_that_cannot_be_read_are_named(owner, agents):
    (agents / "codex" / "config.toml").write_text("a = \n")
    text = card(owner, "codex")
    assert "can&#x27;t be connected" in text or "can't be connected" in text
    assert "config.toml: " in text
    assert "line 1" in text
    assert "not connected" in card(owner, "claude-code")
    assert "Not done: " in owner.post("/connect/agents/codex", {"digest": "x"}, follow=True).text


def test_when_an_agent_was_last_heard(owner):
    now = now_ms()
    for number, age in enumerate((3 * 3_600_000, 2 * 86_400_000)):
        OpenedSession.objects.create(
            session_id=f"s{number}",
            handle=f"h{number}",
            agent="codex",
            opened_at=now - age,
            heard_at=now - age,
        )
    assert "3 hours ago" in card(owner, "codex")
    assert "<dd>never</dd>" in card(owner, "claude-code")


def test_dsh_is_given_what_to_paste(owner):
    text = change(owner, "dsh")
    assert "Made the token" in text
    assert "session.prestep" in card(owner, "dsh")


def test_foreign_text_in_a_diff_stays_text(owner, agents):
    (agents / "claude-code" / "settings.json").write_text(json.dumps({"model": HOSTILE}, indent=1))
    text = card(owner, "claude-code")
    assert "&lt;script&gt;" in text
    assert HOSTILE not in text


def create(owner: Client, **given):
    return owner.post("/connect/tokens", {"name": "ci", "right": ["read"]} | given)


def test_a_token_is_shown_once(owner, agents):
    answer = create(owner, right=["read", "levels"], folders=f"{agents}\n\n ~/x \n", agent="codex")
    assert "no-store" in answer["Cache-Control"]
    token = re.search(r"mx_[\w-]+", answer.text)[0]
    principal = token_verify(token)
    assert principal.rights == {"read", "levels"}
    assert principal.agent == "codex"
    row = AgentToken.objects.get()
    assert row.workspaces[0][1] == str(agents)
    assert row.workspaces[1][1].endswith("/x")
    assert "~" not in row.workspaces[1][1]
    shown = owner.get("/connect/")
    assert "no-store" in shown["Cache-Control"]
    assert token not in shown.text
    assert str(agents) in shown.text
    assert token not in owner.get("/admin/memex_site/agenttoken/").text
    assert row.token_hash not in owner.get(f"/admin/memex_site/agenttoken/{row.pk}/change/").text


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"name": HOSTILE}, "name a token"),
        ({"name": ""}, "name a token"),
        ({"right": []}, "at least one right"),
        ({"right": ["root"]}, "no right root"),
        ({"folders": "relative/x"}, "no whole path"),
        ({"agent": "Bad!"}, "name an agent"),
    ],
)
def test_what_makes_no_token_is_said_and_kept_in_the_form(owner, given, why):
    answer = create(owner, **({"folders": "/kept"} | given))
    assert why in answer.text
    assert 'role="alert"' in answer.text
    assert HOSTILE not in answer.text
    assert "/kept" in answer.text or "folders" in given
    assert not AgentToken.objects.exists()


def test_revoking(owner):
    new = token_create("ci")
    address = f"/connect/tokens/{new.row.pk}/revoke"
    assert owner.get(address).status_code == 405
    assert "let in no more" in owner.post(address, follow=True).text
    assert token_verify(new.token) is None
    # The name is free again; the old row must not take the new token with it.
    newer = token_create("ci")
    assert "revoked before" in owner.post(address, follow=True).text
    assert token_verify(newer.token) is not None
    assert owner.post("/connect/tokens/99/revoke").status_code == 404


def test_the_admin_revokes(owner):
    new, kept = token_create("one"), token_create("two")
    owner.post("/admin/memex_site/agenttoken/", {"action": "revoke", "_selected_action": [new.row.pk]})
    assert token_verify(new.token) is None
    assert token_verify(kept.token) is not None


def test_it_takes_the_owner_and_a_form_of_ours(agents):
    stranger = Client(enforce_csrf_checks=True)
    for address in ("/connect/agents/codex", "/connect/tokens", "/connect/tokens/1/revoke"):
        assert stranger.post(address, {"name": "x", "right": "read"}).status_code in (302, 403)
    signed_in = Client(enforce_csrf_checks=True)
    signed_in.force_login(User.objects.create_superuser("owner"))
    assert signed_in.post("/connect/tokens", {"name": "x", "right": "read"}).status_code == 403
    assert signed_in.post("/connect/agents/codex", {}).status_code == 403
    assert not AgentToken.objects.exists()
    assert (agents / "claude-code" / "settings.json").read_bytes() == SETTINGS


def test_an_agent_that_nobody_knows(owner):
    assert owner.post("/connect/agents/other", {"digest": "x"}).status_code == 404


def test_many_tokens_cost_no_more_queries(owner):
    def make(count: int) -> None:
        for _ in range(count):
            token_create(f"t{AgentToken.objects.count()}", folders=["/a", "/b"])

    assert_flat_queries(make, lambda: owner.get("/connect/"))
