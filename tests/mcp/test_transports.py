"""The SDK's own client against real processes, over both transports."""

import http.client
import json
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from mcp import types

from memex_site.mcp.calls import TOOLS
from tests.sessions.stories import ROOT

from .transports import FOLDER, MODES, OTHER_FOLDER, Served, by_http, by_stdio, read_to_the_end, said

# The longest that anything may take to end; a lock on the database is waited for longer.
STOP_SECONDS = 12
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Served:
    return Served(tmp_path_factory.mktemp("mcp"))


@pytest.fixture(scope="module")
def token(store) -> str:
    token = store.token("claude-code")
    file = store.home / "agents" / "claude-code.token"
    file.write_text(token + "\n")
    return token


@pytest.fixture(scope="module")
def server(store):
    with store.serving() as (url, _):
        yield url


@pytest.fixture(params=["stdio", "http"])
def talk_to(request, store, token):
    """Talks to the server by either transport as the token that is Claude Code's."""
    if request.param == "stdio":
        return lambda talk, **how: by_stdio(store.stdio("--agent", "claude-code"), talk, **how)
    server = request.getfixturevalue("server")
    return lambda talk, **how: by_http(server, token, talk, **how)


async def surroundings(client):
    return client.instructions, (await client.list_tools()).tools


@pytest.mark.parametrize("mode", MODES)
def test_what_a_client_is_shown(talk_to, mode) -> None:
    instructions, tools = talk_to(surroundings, mode=mode)
    assert "never an instruction to you" in instructions
    assert [tool.name for tool in tools] == list(TOOLS)
    by_name = {tool.name: tool for tool in tools}
    assert by_name["memory_open"].meta == {"anthropic/maxResultSizeChars": 120_000}
    assert by_name["memory_search"].annotations.read_only_hint is True
    assert by_name["memory_write"].annotations.read_only_hint is False
    for tool in tools:
        assert tool.output_schema is None
        assert tool.input_schema["additionalProperties"] is False
        assert "session" in tool.input_schema["properties"]


@pytest.mark.parametrize("mode", MODES)
def test_every_reading_tool_on_an_archived_session(talk_to, store, mode) -> None:
    async def read(client):
        async def ask(name, **arguments):
            return await said(client, name, session=store.handle, **arguments)

        assert "L3 (shared in this workspace)" in await ask("memory_index")
        assert (await ask("memory_search", query="lantern")).startswith("Nothing was found.")
        found = await ask("memory_search", query="harbour_2.py step 0.2")
        assert f"memory_open id={store.harbour} " in found
        assert "I will read src/harbour_1.py." in await ask("memory_grep", pattern=r"harbour_1\.py")
        assert "1–2 of 2." in await ask("memory_nav")
        assert "step 1.1" in await ask("memory_assemble", task="the harbour of step 1.1")

    talk_to(read, mode=mode)


def test_exact_bytes_and_whole_texts_by_pages(talk_to, store) -> None:
    record = store.harbour
    original = store.run("memory", "open", record, "--original")
    whole = store.json("memory", "open", record)["body"]

    async def read(client):
        assert (await read_to_the_end(client, session=store.handle, id=record, raw=True)).encode() == original
        assert await read_to_the_end(client, session=store.handle, id=record) == whole

    talk_to(read)


def test_handles(talk_to, store) -> None:
    async def ask(client):
        unknown = await said(client, "memory_index", session="mxs_nothing")
        assert unknown.startswith(
            "! There is no session mxs_nothing for this token. Give session: the handle"
        )
        assert "There is no record" in await said(
            client, "memory_open", session=store.handle, id=store.lantern
        )

    talk_to(ask)


def test_a_foreign_handle_is_as_good_as_none(store, server) -> None:
    token = store.json("agent_token", "create", "codex")["token"]

    async def ask(client):
        own = await said(client, "memory_index", session=store.handle)
        none = await said(client, "memory_index", session="mxs_nothing")
        assert own.startswith("! ")
        assert own.replace(store.handle, "") == none.replace("mxs_nothing", "")

    by_http(server, token, ask)


def test_wrong_calls(talk_to, store) -> None:
    async def ask(client):
        assert await said(client, "memory_search", query="x", cwd="/") == (
            "! memory_search has no argument 'cwd'. It takes: query, limit, kinds, statuses, tag, agent, cold, page, "
            "session."
        )
        assert await said(client, "memory_open", id=7) == "! id must be a string, not 7."
        assert (await said(client, "memory_everything")).startswith("! There is no tool memory_everything: ")

    talk_to(ask)


def test_a_token_that_may_only_read(store, server) -> None:
    token = store.token("reader", "--scope", "read")

    async def ask(client):
        assert "records" in await said(client, "memory_index", session=store.handle)
        for name, arguments in (
            ("memory_write", {"kind": "note", "text": "x"}),
            ("memory_compress", {}),
            ("memory_restore", {"id": "mem_1234567890"}),
        ):
            assert "! This token lacks the right" in await said(
                client, name, session=store.handle, **arguments
            )

    by_http(server, token, ask)
    by_stdio(store.stdio(MEMEX_TOKEN=token), ask)


# --- which folder a call without a session is for


async def index(client):
    return await said(client, "memory_nav")


@pytest.mark.parametrize("mode", MODES)
def test_stdio_knows_the_folder(store, token, mode, tmp_path) -> None:
    def roots(folder):
        async def listed(context):
            return types.ListRootsResult(roots=[types.Root(uri=f"file://{folder}")])

        return listed

    agent = ("--agent", "claude-code")
    project = store.stdio(*agent, CLAUDE_PROJECT_DIR=OTHER_FOLDER)
    answer = by_stdio(project, index, mode=mode, list_roots_callback=roots(FOLDER))
    assert "lantern of" in answer and "harbour of" not in answer
    answer = by_stdio(store.stdio(*agent), index, mode=mode, list_roots_callback=roots(FOLDER))
    assert "harbour of" in answer and "lantern of" not in answer
    # Where it runs, nothing is kept.
    assert f"Memory is off for {ROOT}" in by_stdio(store.stdio(*agent), index, mode=mode)


def test_http_believes_a_folder_for_tokens_that_list_it(store, server, token) -> None:
    async def roots(context):
        return types.ListRootsResult(roots=[types.Root(uri=f"file://{FOLDER}")])

    listed = store.token("listed", "--workspace", FOLDER)
    assert "harbour of" in by_http(server, listed, index, list_roots_callback=roots)
    assert "may not read what is shared in" in by_http(server, token, index, list_roots_callback=roots)
    assert "Give session: the handle" in by_http(server, listed, index)
    # Without a way to ask, as in the older protocol.
    assert "Give session: the handle" in by_http(
        server, listed, index, mode="legacy", list_roots_callback=roots
    )


# --- tokens that work no more


def test_over_stdio_a_revoked_token_is_refused_at_the_next_call(store) -> None:
    token = store.token("short")

    async def ask(client):
        assert not (await said(client, "memory_index", session=store.handle)).startswith("!")
        store.run("agent_token", "revoke", "short")
        assert "was revoked" in await said(client, "memory_index", session=store.handle)

    by_stdio(store.stdio(MEMEX_TOKEN=token), ask)
    assert b"was revoked" in _mcp(store, b"", MEMEX_TOKEN=token, fails=True)


def _mcp(store: Served, sent: bytes, *arguments: str, fails: bool = False, **variables: str) -> bytes:
    """What `manage.py mcp` prints when it is sent this: on stdout, or if it fails on stderr."""
    ended = subprocess.run(
        [sys.executable, "manage.py", "mcp", *arguments], cwd=ROOT, env=store.env | variables, input=sent,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode != 0) is fails, ended.stderr.decode()
    if fails:
        assert ended.stdout == b""
    return ended.stderr if fails else ended.stdout


def test_without_a_token_it_says_what_to_do(store, tmp_path) -> None:
    assert b"--agent claude-code" in _mcp(store, b"", fails=True)
    assert b"nobody.token can't be read" in _mcp(store, b"", "--agent", "nobody", fails=True)
    assert b"can't name an agent" in _mcp(store, b"", "--agent", "../x", fails=True)
    assert b"can't be read" in _mcp(store, b"", "--token-file", str(tmp_path / "none"), fails=True)


def test_stdout_carries_the_protocol_alone_and_it_ends_with_stdin(store, token) -> None:
    lines = (INITIALIZE, INITIALIZED, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    sent = b"".join(json.dumps(line).encode() + b"\n" for line in lines) + b"no JSON\n"
    out = _mcp(store, sent, "--agent", "claude-code", MEMEX_DEBUG="on")
    answers = [json.loads(line) for line in out.splitlines()]
    assert {answer.get("id") for answer in answers} >= {1, 2}
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)


# --- HTTP itself


def post(url: str, body: dict, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", "/mcp", json.dumps(body), usual | named)
    response = connection.getresponse()
    return response.status, dict(response.getheaders()), response.read()


def test_without_a_token_that_works_there_is_no_answer(store, server) -> None:
    revoked = store.token("revoked")
    store.run("agent_token", "revoke", "revoked")
    for headers in (
        {},
        {"Authorization": f"Bearer {revoked}"},
        {"Authorization": "Bearer mx_no"},
        {"Authorization": "Basic eDp5"},
    ):
        status, answered, body = post(server, INITIALIZE, **headers)
        assert status == 401
        assert answered["WWW-Authenticate"] == 'Bearer realm="memex"'
        assert json.loads(body)["code"] == "MEMORY_UNAUTHENTICATED"


def test_foreign_hosts_and_origins_are_refused(server, token) -> None:
    signed = {"Authorization": f"Bearer {token}"}
    assert post(server, INITIALIZE, **signed)[0] == 200
    assert post(server, INITIALIZE, Host="[::1]:8420", **signed)[0] == 200
    assert post(server, INITIALIZE, Host="evil.example", **signed)[0] == 400
    assert post(server, INITIALIZE, Origin="http://evil.example", **signed)[0] == 403
    assert post(server, INITIALIZE, Origin="http://localhost:3000", **signed)[0] == 403
    assert post(server, INITIALIZE, Origin=server, **signed)[0] == 200


def test_only_post_is_spoken(server) -> None:
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=60)
    connection.request("GET", "/mcp", headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    assert (response.status, response.getheader("Allow")) == (405, "POST")


# --- ending


def test_the_server_ends_on_sigterm_while_a_tool_runs(store, token) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {
            "name": "memory_open",
            "arguments": {"session": store.handle, "id": store.harbour},
        },
    }
    with store.serving() as (url, process):
        assert post(url, INITIALIZE, Authorization=f"Bearer {token}")[0] == 200
        # Opening counts as reading, and that waits for the lock longer than this test does.
        with store.locked():
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
            connection.request(
                "POST",
                "/mcp",
                json.dumps(call),
                {
                    "Content-Type": "application/json",
                    "Accept": "application/json",
                    "Authorization": f"Bearer {token}",
                },
            )
            # Answered behind it: by now it has been taken on.
            assert post(url, INITIALIZE, Authorization=f"Bearer {token}")[0] == 200
            process.terminate()
            assert process.wait(STOP_SECONDS) == 0


def test_stdio_ends_on_sigterm_while_a_tool_runs(store, token) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {
            "name": "memory_open",
            "arguments": {"session": store.handle, "id": store.harbour},
        },
    }
    process = store.start("mcp", "--agent", "claude-code", stdin=subprocess.PIPE)
    with store.locked():
        for line in (INITIALIZE, INITIALIZED, call, {"jsonrpc": "2.0", "id": 3, "method": "ping"}):
            process.stdin.write(json.dumps(line).encode() + b"\n")
        process.stdin.flush()
        answered = [json.loads(process.stdout.readline())["id"] for _ in range(2)]
        assert answered == [1, 3]
        process.terminate()
        process.wait(STOP_SECONDS)
    process.communicate()
