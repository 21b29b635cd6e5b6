"""A store of its own, real processes that serve it, and the SDK's client to talk to them."""

import asyncio
import re
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.sessions.stories import ROOT, Store, session_id, write_log

FOLDER, OTHER_FOLDER = "/home/dev/demo", "/home/dev/other"
# Of the protocol: the one in use since 2024, and that of 2026.
MODES = ("legacy", "auto")
Talk = Callable[[Client], Awaitable[Any]]


class Served(Store):
    """A session in each of FOLDER and OTHER_FOLDER, of two compactions, archived at L3. `harbour`, `lantern`:
    their first records."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.env["PYTHONUNBUFFERED"] = "1"
        self.env.pop("CLAUDE_PROJECT_DIR", None)
        self.run("migrate", "-v0")
        self.log = write_log(self.agent, 1, cwd=FOLDER)
        write_log(self.agent, 2, cwd=OTHER_FOLDER, word="lantern")
        self.run("archive", "--level", "l3")
        self.handle = self._handle(1)
        titles = {row["title"]: row["id"] for row in self.json("memory", "list")["records"]}
        self.harbour = titles["Please look at the harbour of step 0.0"]
        self.lantern = titles["Please look at the lantern of step 0.0"]

    def _handle(self, number: int) -> str:
        code = f"""
from sessions_app.opening import session_handle, session_known
print(session_handle(session_known("{session_id(number)}")))
"""
        return self.run("shell", "-c", code).decode().split()[-1]

    def token(self, name: str, *more: str) -> str:
        return self.json("agent_token", "create", name, "--agent", "claude-code", *more)["token"]

    def stdio(self, *arguments: str, **variables: str) -> StdioServerParameters:
        return StdioServerParameters(
            command=sys.executable,
            args=["manage.py", "mcp", *arguments],
            env=self.env | variables,
            cwd=ROOT,
        )

    @contextmanager
    def serving(self) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
        """The server's address, and its process."""
        process = self.start("serve", "--port", "0")
        try:
            assert process.stdout is not None
            found = re.search(rb"Memex serves (\S+)", process.stdout.readline())
            assert found, process.communicate(timeout=20)
            yield found[1].decode().rstrip("/"), process
        finally:
            if process.poll() is None:
                process.terminate()
            process.communicate(timeout=30)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else can write to the database meanwhile."""
        connection = sqlite3.connect(self.home / "index.db", isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield
        finally:
            connection.close()


def by_stdio(parameters: StdioServerParameters, talk: Talk, **how: Any) -> Any:
    async def run() -> Any:
        async with Client(parameters, **how) as client:
            return await talk(client)

    return asyncio.run(asyncio.wait_for(run(), 60))


def by_http(url: str, token: str, talk: Talk, **how: Any) -> Any:
    async def run() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport, **how) as client:
                return await talk(client)

    return asyncio.run(asyncio.wait_for(run(), 60))


async def said(client: Client, name: str, **arguments: Any) -> str:
    """A tool's answer, "! " before it when it is an error."""
    result = await client.call_tool(name, arguments)
    assert [block.type for block in result.content] == ["text"]
    assert result.structured_content is None
    return ("! " if result.is_error else "") + result.content[0].text


async def read_to_the_end(client: Client, **arguments: Any) -> str:
    """The text in the fences of all pages of memory_open."""
    from .conftest import in_fence

    read, offset = "", 0
    while True:
        answer = await said(client, "memory_open", offset=offset, max_chars=2_000, **arguments)
        read += in_fence(answer)
        following = re.search(r"offset=(\d+) for the rest", answer)
        if not following:
            return read
        offset = int(following[1])
