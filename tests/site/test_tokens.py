import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from memex_site.models import AgentToken
from memex_site.tokens import LAST_USED_EVERY_MS, TokenRefused, token_create, token_revoke, token_verify
from records.clock import now_ms
from records.ids import workspace_key
from sessions_app.principals import Principal

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def store(memex_home) -> None:
    """A store of its own."""


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("agent_token", *arguments, stdout=out)
    return out.getvalue()


def test_a_token_stands_for_what_it_was_made_for() -> None:
    new = token_create("one", rights=["write", "read"], folders=["/w/a"], agent="codex")
    assert new.token.startswith("mx_")
    principal = token_verify(new.token)
    assert principal == Principal(
        "one", new.row.pk, "codex", frozenset({"read", "write"}), frozenset({workspace_key("/w/a", "")})
    )
    assert token_verify(new.token + "x") is None
    assert token_verify("") is None


def test_the_token_itself_is_nowhere_in_the_store() -> None:
    new = token_create("one")
    assert new.token not in json.dumps(list(AgentToken.objects.values()))


def test_a_revoked_token_is_let_in_no_more_and_its_name_is_free() -> None:
    new = token_create("one")
    assert token_revoke("one")
    assert token_verify(new.token) is None
    assert not token_revoke("one")
    assert token_verify(token_create("one").token) is not None


def test_last_use_is_written_every_five_minutes_at_most() -> None:
    new = token_create("one")
    token_verify(new.token)
    first = AgentToken.objects.get().last_used_at
    assert first is not None
    AgentToken.objects.update(last_used_at=now_ms() - LAST_USED_EVERY_MS // 2)
    before = AgentToken.objects.get().last_used_at
    token_verify(new.token)
    assert AgentToken.objects.get().last_used_at == before
    AgentToken.objects.update(last_used_at=now_ms() - LAST_USED_EVERY_MS - 1)
    token_verify(new.token)
    assert (AgentToken.objects.get().last_used_at or 0) > before


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": ""},
        {"name": "../x"},
        {"name": "a", "rights": ["root"]},
        {"name": "a", "rights": []},
        {"name": "a", "agent": "A!"},
    ],
)
def test_what_makes_no_token(arguments) -> None:
    with pytest.raises(TokenRefused):
        token_create(**arguments)
    assert not AgentToken.objects.exists()


def test_two_tokens_of_one_name_would_be_taken_for_one_another() -> None:
    token_create("one")
    with pytest.raises(TokenRefused, match="already"):
        token_create("one")


def test_the_command_prints_the_token_once() -> None:
    said = json.loads(run("create", "one", "--scope", "read,capacity", "--workspace", "/w/a", "--json"))
    assert said["scopes"] == ["read", "capacity"]
    assert said["workspaces"] == ["/w/a"]
    assert token_verify(said["token"]) is not None
    assert said["token"] not in run("list") + run("list", "--json")
    run("revoke", "one")
    assert token_verify(said["token"]) is None
    with pytest.raises(CommandError, match="No token"):
        run("revoke", "one")
    with pytest.raises(CommandError, match="no right"):
        run("create", "two", "--scope", "everything")


def test_a_token_called_after_an_agent_is_that_agents() -> None:
    assert json.loads(run("create", "codex", "--json"))["agent"] == "codex"
    assert json.loads(run("create", "other", "--json"))["agent"] == ""
    assert json.loads(run("create", "third", "--agent", "dsh", "--json"))["agent"] == "dsh"
