"""MCP over this process's stdin and stdout, until stdin closes."""

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memex_site.tokens import token_verify
from records.home import agents_dir
from sessions_app.principals import Principal

from .callers import Door, NotLetIn

TOKEN_VARIABLE = "MEMEX_TOKEN"  # noqa: S105  # the name of a variable
_FOLDER_VARIABLE = "CLAUDE_PROJECT_DIR"


def token_source(agent: str, path: str) -> Callable[[], str]:
    """Reads the token anew each time: a new one is used without a restart. It raises NotLetIn."""
    file = Path(path).expanduser() if path else agents_dir() / f"{agent}.token" if agent else None
    if file is None:
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
        if not token:
            raise NotLetIn(
                f"No token: name the agent (--agent claude-code), a file that holds one (--token-file), or set "
                f"{TOKEN_VARIABLE}. manage.py agent_token create NAME makes one."
            )
        return lambda: token
    return lambda: _token_in(file)


def _token_in(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NotLetIn(
            f"The token in {file} can't be read ({reason}). manage.py connect writes one, and manage.py agent_token "
            "create makes one to be put there."
        ) from None


def stdio_door(token: Callable[[], str]) -> Door:
    def principal(_request: Any = None) -> Principal:
        found = token_verify(token())
        if found is None:
            raise NotLetIn(
                "This token is not known, or was revoked. Its owner can make another: manage.py connect, or manage.py "
                "agent_token create."
            )
        return found

    folder = os.environ.get(_FOLDER_VARIABLE, "")
    return Door(principal, folder=folder, fallback=str(Path.cwd()), by_process=True)


def serve(door: Door) -> None:
    """Returns when stdin closes. Nothing but the protocol goes to stdout: while it is served, what prints goes
    to stderr."""
    # A second of importing, a tenth less without collections over what stays anyway.
    gc.disable()
    from mcp.server.stdio import stdio_server

    from .server import build_server

    gc.freeze()
    gc.enable()
    server = build_server(door)

    async def run() -> None:
        # The SDK holds on to the real stdout; what something prints must not get there when it is given back.
        async with stdio_server() as (incoming, outgoing):
            with contextlib.redirect_stdout(sys.stderr):
                await server.run(incoming, outgoing, server.create_initialization_options())

    asyncio.run(run())
