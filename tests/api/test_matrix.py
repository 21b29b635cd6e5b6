"""Every route, tool, hook and page for everybody who may knock: exactly what it should be."""

import json
import re
from dataclasses import dataclass, field
from http.cookies import SimpleCookie

import pytest
from django.urls import URLPattern, get_resolver

from tests.servers import environment_of, serving
from tests.sessions.stories import session_id, write_log

ME = session_id(1)
CWD = "/home/dev/demo"
NAMED = {"sessionId": ME}
# Whom nobody lets in, and how they are told.
REFUSED = {
    "other session": (404, "MEMORY_UNKNOWN_SESSION"),
    "other workspace": (404, "MEMORY_UNKNOWN_SESSION"),
    "revoked": (401, "MEMORY_UNAUTHENTICATED"),
    "none": (401, "MEMORY_UNAUTHENTICATED"),
    "foreign origin": (403, "MEMORY_FORBIDDEN"),
    "foreign host": (400, "MEMORY_FORBIDDEN"),
}
CALLERS = ("owner", "right", "reader", *REFUSED)


@dataclass(frozen=True)
class Route:
    """`fields`: what makes it a good request; `allowed`: the answer to who may ask it."""

    method: str
    path: str
    right: str
    fields: dict = field(default_factory=dict)
    allowed: tuple[int, str] = (200, "")


READ = [
    Route("GET", "memory.index", "read"), Route("GET", "memory.record", "read", {"id": "RECORD"}),
    Route("GET", "memory.search", "read", {"q": "harbour"}), Route("GET", "memory.grep", "read", {"pattern": "harbour"}),
    Route("POST", "memory.grep", "read", {"pattern": "harbour"}), Route("GET", "memory.nav", "read"),
    Route("POST", "memory.nav", "read"), Route("GET", "memory.assemble", "read", {"task": "harbour"}),
    Route("POST", "memory.assemble", "read", {"task": "harbour"}), Route("GET", "memory.metrics", "read"),
    Route("GET", "session.surface", "read"), Route("GET", "session.read", "read"),
]  # fmt: skip
CHANGE = [
    Route("POST", "memory.write", "write", {"kind": "note", "text": "The tide turns at nine."}),
    Route("POST", "memory.status", "write", {"id": "RECORD", "status": "active"}),
    Route("POST", "memory.level", "levels", {"level": "l3"}),
    Route("POST", "memory.compress", "capacity"),
    Route("POST", "memory.restore", "capacity", {"id": "RECORD"}, (400, "MEMORY_NOT_COLD")),
    Route("POST", "memory.gc", "capacity", {"keepTokens": 10**9}),
    Route("POST", "memory.forget", "capacity", {"session": True, "dryRun": True}),
    Route("POST", "session.events", "write", {"events": []}, (409, "MEMORY_CONFLICT")),
    Route("POST", "session.compaction", "write", {"compactionId": "c", "removedIds": []}, (409, "MEMORY_CONFLICT")),
    Route("POST", "session.prestep", "write"),
    Route("POST", "session.evict", "capacity", {"mode": "plan"}, (409, "MEMORY_CONFLICT")),
]  # fmt: skip
# Opening somebody's session is a conflict, and says no more than that it can't be had.
OPEN = Route("POST", "session.open", "write", {"agent": "claude-code", "cwd": CWD})
ROUTES = [*READ, *CHANGE, OPEN]


@dataclass
class Doors:
    server: object
    tokens: dict
    cookies: str
    csrf: str
    record: str

    def knock(self, caller, method, path, fields=None):
        """(status, code) of a request."""
        headers = {}
        token = self.tokens.get(caller, "")
        if caller == "owner":
            headers = {"Cookie": self.cookies, "X-CSRFToken": self.csrf}
        elif caller in ("foreign origin", "foreign host"):
            token = self.tokens["right"]
            headers = (
                {"Origin": "https://evil.example"} if caller == "foreign origin" else {"Host": "evil.example"}
            )
        query, body = "", None
        if method == "GET":
            query = (
                "?" + "&".join(f"{name}={value}" for name, value in (fields or {}).items()) if fields else ""
            )
        else:
            body = fields
        response, answer = self.server.request(method, path + query, body, token=token, **headers)
        kind = response.headers.get("Content-Type", "")
        code = json.loads(answer).get("code", "") if kind.startswith("application/json") and answer else ""
        return response.status, code, response.headers.get("Location", "")


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrix")
    write_log(folder / "claude-code", 1)
    with serving(environment_of(folder)) as server:
        server.manage("archive", "--level", "l3")
        every = ("--scope", "read,write,capacity,levels")
        tokens = {
            "right": server.token("claude-code", *every),
            "reader": server.token("reader", "--scope", "read", "--agent", "claude-code"),
            "other session": server.token("botty", *every),
            "other workspace": server.token(
                "limited", *every, "--agent", "claude-code", "--workspace", "/elsewhere"
            ),
            "revoked": server.token("gone", *every, "--agent", "claude-code"),
        }
        server.manage("agent_token", "revoke", "gone")
        server.request(
            "POST",
            "/api/session.open",
            {"sessionId": "its-own", "agent": "botty"},
            token=tokens["other session"],
        )
        record = json.loads(server.manage("memory", "list", "--json"))["records"][0]["id"]
        yield Doors(server, tokens, *sign_in(server), record)


def sign_in(server):
    """The owner's cookies, as a browser gets them by the link and the click."""
    link = json.loads(server.manage("signin_link", "--json"))["url"]
    path = link.split(str(server.port), 1)[1]
    response, page = server.request("GET", path)
    jar = SimpleCookie(response.headers["Set-Cookie"])
    form = {
        name: re.search(rf'name="{name}" value="([^"]+)"', page.decode())[1]
        for name in ("csrfmiddlewaretoken", "token")
    }
    body = "&".join(f"{name}={value}" for name, value in form.items()).encode()
    response, _ = server.request(
        "POST", "/signin/", body, Cookie=f"memex_csrf={jar['memex_csrf'].value}",
        Content_Type="application/x-www-form-urlencoded", Origin=f"http://127.0.0.1:{server.port}",
    )  # fmt: skip
    assert response.status == 302
    cookies = SimpleCookie()
    for header in response.headers.get_all("Set-Cookie"):
        cookies.load(header)
    both = {name: cookies[name].value for name in ("memex_session", "memex_csrf")}
    return "; ".join(f"{name}={value}" for name, value in both.items()), both["memex_csrf"]


def test_the_matrix_holds_every_route(doors):
    _, body = doors.server.request("GET", "/api/openapi.json")
    there = {
        (method.upper(), path.removeprefix("/api/"))
        for path, methods in json.loads(body)["paths"].items()
        for method in methods
    }
    assert there == {(route.method, route.path) for route in ROUTES} | {("GET", "status")}


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method}-{route.path}")
def test_routes(doors, route, caller):
    fields = NAMED | {
        name: doors.record if value == "RECORD" else value for name, value in route.fields.items()
    }
    status, code, _ = doors.knock(caller, route.method, f"/api/{route.path}", fields)
    if caller in ("owner", "right") or (caller == "reader" and route.right == "read"):
        wanted = route.allowed
    elif caller == "reader":
        wanted = (403, "MEMORY_FORBIDDEN")
    elif route is OPEN and caller in ("other session", "other workspace"):
        wanted = (409, "MEMORY_CONFLICT")
    else:
        wanted = REFUSED[caller]
    assert (status, code) == wanted


@pytest.mark.parametrize("caller", [*CALLERS])
def test_status_says_more_to_the_owner_only(doors, caller):
    status, code, _ = doors.knock(caller, "GET", "/api/status")
    if caller.startswith("foreign"):
        assert (status, code) == REFUSED[caller]
    else:
        assert status == 200


HOOKS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreCompact",
    "PostCompact",
    "Stop",
    "SubagentStop",
    "SessionEnd",
)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("event", HOOKS)
def test_hooks(doors, event, caller):
    payload = {"session_id": ME, "cwd": CWD, "hook_event_name": event, "source": "startup", "prompt": "go on"}
    status, code, _ = doors.knock(caller, "POST", f"/hooks/claude-code/{event}", payload)
    if caller in ("owner", "right"):
        assert status in (200, 204)
    elif caller in ("reader", "other session"):
        assert (status, code) == (403, "MEMORY_FORBIDDEN")
    elif caller == "other workspace":
        assert (status, code) == (409, "MEMORY_CONFLICT")
    else:
        assert (status, code) == REFUSED[caller]


def pages():
    """An address of each page, with something in the place of each name."""
    samples = {"session_id": ME, "record_id": "mem_0123456789", "key": "k", "seq": "1", "pk": "1", "bundle_id": "b",
               "compaction_id": "c", "token": "t", "object_id": "1", "app_label": "records", "url": "x",
               "content_type_id": "1", "model_name": "record", "path": "x"}  # fmt: skip
    open_to_all = ("signin/", "favicon.ico", "admin/login/", "api/", "hooks/", "mcp")
    found = []

    def walk(patterns, prefix):
        for pattern in patterns:
            route = prefix + str(pattern.pattern).replace("^", "").replace("$", "").replace("\\Z", "")
            if isinstance(pattern, URLPattern):
                address = re.sub(r"<(?:\w+:)?(\w+)>", lambda match: samples.get(match[1], "x"), route)
                if (address == "api/docs" or not address.startswith(open_to_all)) and "(" not in address:
                    found.append("/" + address)
            else:
                walk(pattern.url_patterns, route)

    walk(get_resolver().url_patterns, "")
    return sorted(set(found))


@pytest.mark.parametrize("caller", ["owner", "right", "none"])
def test_pages_are_the_owners_alone(doors, caller):
    assert len(pages()) > 40
    for page in pages():
        status, _, location = doors.knock(caller, "GET", page)
        if caller == "owner":
            assert status in (200, 301, 302, 400, 403, 404, 405), page
            assert not location.startswith("/signin/"), page
        else:
            sign_in_pages = ("/signin/", "/admin/login/")
            assert status == 302 and location.split("?")[0] in sign_in_pages, (page, status, location)


def test_pages_turn_foreign_hosts_away_and_foreign_forms(doors):
    for page in ("/", "/sessions/", "/health/", "/admin/"):
        assert doors.knock("foreign host", "GET", page)[0] == 400
    response, _ = doors.server.request(
        "POST", "/pause", b"paused=1", Cookie=doors.cookies, Origin="https://evil.example",
        Content_Type="application/x-www-form-urlencoded", X_CSRFToken=doors.csrf,
    )  # fmt: skip
    assert response.status == 403


TOOLS = {
    "memory_search": ("read", {"query": "harbour"}), "memory_open": ("read", {"id": "RECORD"}),
    "memory_grep": ("read", {"pattern": "harbour"}), "memory_nav": ("read", {}), "memory_index": ("read", {}),
    "memory_assemble": ("read", {"task": "harbour"}),
    "memory_write": ("write", {"kind": "note", "text": "The tide turns at nine."}),
    "memory_restore": ("capacity", {"id": "RECORD"}), "memory_compress": ("capacity", {}),
}  # fmt: skip


@pytest.fixture(scope="module")
def handle(doors):
    _, body = doors.server.request(
        "POST",
        "/api/session.open",
        {"sessionId": ME, "agent": "claude-code", "cwd": CWD},
        token=doors.tokens["right"],
    )
    return json.loads(body)["handle"]


def call_tool(doors, caller, name, arguments):
    """(status, whether the tool refused, what it said)"""
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    token = doors.tokens.get(caller, doors.tokens["right"] if caller.startswith("foreign") else "")
    if caller == "owner":
        headers |= {"Cookie": doors.cookies, "X-CSRFToken": doors.csrf}
    if caller == "foreign origin":
        headers["Origin"] = "https://evil.example"
    if caller == "foreign host":
        headers["Host"] = "evil.example"
    response, body = doors.server.request("POST", "/mcp", call, token=token, **headers)
    if response.status != 200:
        return response.status, True, json.loads(body)["code"]
    result = json.loads(body)["result"]
    return 200, bool(result.get("isError")), result["content"][0]["text"]


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("name", TOOLS)
def test_tools(doors, handle, name, caller):
    right, fields = TOOLS[name]
    arguments = {field: doors.record if value == "RECORD" else value for field, value in fields.items()}
    status, is_refused, said = call_tool(doors, caller, name, arguments | {"session": handle})
    if caller == "right" or (caller == "reader" and right == "read"):
        assert (status, is_refused) == (200, False), said
    elif caller == "reader":
        assert (status, is_refused) == (200, True) and "right" in said
    elif caller in ("other session", "other workspace"):
        assert (status, is_refused) == (200, True) and "harbour" not in said
    elif caller == "owner":
        # A browser's session is no way in here: agents alone speak MCP.
        assert (status, said) == (401, "MEMORY_UNAUTHENTICATED")
    else:
        assert (status, said) == REFUSED[caller]


def test_the_matrix_holds_every_tool(doors):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    _, body = doors.server.request("POST", "/mcp", call, token=doors.tokens["right"], **headers)
    assert {tool["name"] for tool in json.loads(body)["result"]["tools"]} == set(TOOLS)
