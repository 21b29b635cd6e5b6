from collections.abc import Callable
from typing import Any

import pytest

from memex_site.mcp.callers import Door
from memex_site.mcp.calls import arguments_of, call, tool_named
from memex_site.tokens import NewToken, token_create, token_verify
from sessions_app.archiving import archive_run
from sessions_app.models import AgentSession
from sessions_app.opening import session_handle, session_known
from tests.sessions.conftest import agent_home  # noqa: F401  # a fixture
from tests.sessions.stories import session_id, write_log

FOLDER = "/home/dev/demo"
Ask = Callable[..., str]


@pytest.fixture
def archived(agent_home) -> AgentSession:  # noqa: F811
    """One session with two compactions, archived at L3."""
    write_log(agent_home, 1)
    archive_run(level="l3")
    return AgentSession.objects.get()


def token_of(name: str = "claude-code", **how: Any) -> NewToken:
    return token_create(name, **({"agent": "claude-code"} | how))


def handle_of(number: int = 1) -> str:
    known = session_known(session_id(number))
    assert known is not None
    return session_handle(known)


def ask_with(token: str, *, by_process: bool = True, folder: str = FOLDER) -> Ask:
    """Calls a tool as a transport does."""

    def principal(_request: Any) -> Any:
        found = token_verify(token)
        assert found is not None
        return found

    door = Door(principal, by_process=by_process)

    def ask(name: str, **arguments: Any) -> str:
        tool = tool_named(name)
        return call(tool, arguments_of(tool, arguments), door, None, folder)

    return ask


@pytest.fixture
def ask(archived) -> Ask:
    """As Claude Code's token, in the session's folder."""
    return ask_with(token_of().token)


def in_fence(answer: str) -> str:
    """What stands in an answer's fence."""
    lines = answer.split("\n")
    first = next(number for number, text in enumerate(lines) if text.startswith("```"))
    fence = lines[first].removesuffix("text")
    last = lines.index(fence, first + 1)
    return "\n".join(lines[first + 1 : last])
