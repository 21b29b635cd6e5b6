"""The routes that read, as an agent calls them."""

import pytest

from records.models import Record
from sessions_app.archiving import archive_run
from sessions_app.levels import level_enable
from sessions_app.models import AgentSession
from tests.sessions.stories import session_id, write_log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def claude(caller, agents):
    """Claude Code with a session of two compactions, archived at L3."""
    write_log(agents / "claude-code", 1)
    archive_run(level="l3")
    return caller("claude-code", agent="claude-code")


def ok(response):
    assert response.status_code == 200, response.content
    answer = response.json()
    assert answer["ok"] is True
    return answer


def refused(response, status, code):
    answer = response.json()
    assert (response.status_code, answer["ok"], answer["code"]) == (status, False, code), answer
    assert answer["message"]
    return answer


def test_the_index_says_how_full_the_pools_are(claude):
    answer = ok(claude.get("memory.index", sessionId=session_id()))
    assert answer["levels"] == {"l2": False, "l3": True}
    assert answer["captureScope"] == "workspace"
    assert answer["l3"]["enabled"] and not answer["l2"]["enabled"]
    assert answer["l3"]["hotTokens"] == answer["hotTokens"] == sum(r["tokens"] for r in answer["records"])
    assert answer["capacityTokens"] == 100_000_000
    assert answer["count"] == len(answer["records"]) == 2
    assert answer["l1Evicted"] == {"count": 0, "tokens": 0}


def test_the_cursor_brings_only_what_changed(claude):
    first = ok(claude.get("memory.index", sessionId=session_id()))
    again = ok(claude.get("memory.index", sessionId=session_id(), cursor=first["cursor"]))
    assert again["records"] == [] and again["count"] == 2
    record = Record.objects.first()
    from records.services import record_pin

    record_pin(record.id, pinned=True, actor="owner")
    changed = ok(claude.get("memory.index", sessionId=session_id(), cursor=first["cursor"]))
    assert [each["id"] for each in changed["records"]] == [record.id]
    refused(claude.get("memory.index", sessionId=session_id(), cursor="x"), 400, "MEMORY_INVALID_QUERY")


def test_a_record_is_read_in_windows_to_its_end(claude):
    record = Record.objects.first()
    whole = ok(claude.get("memory.record", sessionId=session_id(), id=record.id))
    text, offset = "", 0
    while True:
        answer = ok(
            claude.get("memory.record", sessionId=session_id(), id=record.id, offset=offset, limit=700)
        )
        text += answer["body"]
        offset += len(answer["body"])
        if not answer["bodyTruncated"]:
            break
    assert text == whole["body"] and len(text) == whole["bodyTotalChars"] > 700
    assert not whole["path"].startswith("/")
    assert Record.objects.get(pk=record.id).read_count > 0


def test_searching_gives_places_and_reasons(claude):
    answer = ok(claude.get("memory.search", sessionId=session_id(), q="harbour of step 0.1"))
    hit = answer["records"][0]
    assert "harbour" in hit["snippet"] and hit["reason"]
    body = ok(claude.get("memory.record", sessionId=session_id(), id=hit["id"]))["body"]
    assert hit["seqStart"] is not None
    assert "0.1" in body[hit["offset"] :]
    nothing = ok(claude.get("memory.search", sessionId=session_id(), q="zanzibarite"))
    assert nothing["records"] == [] and nothing["hint"]


@pytest.mark.parametrize("how", ["get", "post"])
def test_grep_nav_and_assemble_by_either_method(claude, how):
    call = getattr(claude, how)
    lines = ok(call("memory.grep", sessionId=session_id(), pattern=r"src/harbour_\d\.py", limit=5))
    assert lines["hits"] and "harbour_" in lines["hits"][0]["text"]
    places = ok(call("memory.nav", sessionId=session_id(), path="kind"))
    assert {entry["id"] for entry in places["entries"]} == {"episode"}
    pack = ok(call("memory.assemble", sessionId=session_id(), task="the harbour of step 1.2", budget=400))
    assert 0 < pack["usedTokens"] <= 400 and pack["sources"]
    refused(call("memory.grep", sessionId=session_id(), pattern="("), 400, "MEMORY_INVALID_QUERY")
    refused(call("memory.nav", sessionId=session_id(), path="nowhere"), 400, "MEMORY_INVALID_QUERY")


def test_filters_are_repeated_in_an_address_and_listed_in_a_body(claude):
    both = ok(claude.client.get(
        f"/api/memory.search?sessionId={session_id()}&q=harbour&kind=episode&kind=note", headers=claude.headers()
    ))  # fmt: skip
    assert both["records"]
    none = ok(claude.get("memory.search", sessionId=session_id(), q="harbour", kind="note"))
    assert none["records"] == []
    posted = ok(claude.post("memory.grep", sessionId=session_id(), pattern="harbour", kind=["note"]))
    assert posted["hits"] == []


def test_with_both_levels_off_lists_are_empty_and_records_are_not_there(claude, agents, caller):
    write_log(agents / "claude-code", 2, word="lantern")
    archive_run()  # only its head is read
    record = Record.objects.first()
    for path, query in (("memory.index", {}), ("memory.search", {"q": "harbour"}), ("memory.metrics", {})):
        answer = ok(claude.get(path, sessionId=session_id(2), **query))
        assert answer.get("records", []) == [] and answer.get("hotTokens", 0) == 0
        assert answer["levels"] == {"l2": False, "l3": False}
    refused(claude.get("memory.record", sessionId=session_id(2), id=record.id), 404, "MEMORY_NOT_FOUND")


def test_private_records_are_their_sessions_alone(agents, caller):
    write_log(agents / "claude-code", 1)
    archive_run(level="l2")
    write_log(agents / "claude-code", 2, word="lantern")
    archive_run(level="l2")
    claude = caller("claude-code", agent="claude-code")
    mine = ok(claude.get("memory.index", sessionId=session_id(1)))["records"]
    assert {each["sessionId"] for each in mine} == {session_id(1)}
    refused(claude.get("memory.record", sessionId=session_id(2), id=mine[0]["id"]), 404, "MEMORY_NOT_FOUND")
    assert ok(claude.get("memory.search", sessionId=session_id(2), q="harbour"))["records"] == []


def test_another_token_knows_nothing_of_the_session(claude, caller):
    other = caller("other")
    refused(other.get("memory.index", sessionId=session_id()), 404, "MEMORY_UNKNOWN_SESSION")
    refused(other.get("memory.index"), 404, "MEMORY_UNKNOWN_SESSION")
    refused(other.get("memory.index", cwd="/home/dev/demo"), 404, "MEMORY_UNKNOWN_SESSION")
    listed = caller("listed", folders=["/home/dev/demo"])
    assert ok(listed.get("memory.index", cwd="/home/dev/demo"))["count"] == 2


def test_the_owner_sees_everything_unless_narrowed(claude, owner):
    assert ok(owner.get("memory.index"))["count"] == 2
    level_enable(session_id(), "l2")
    assert ok(owner.get("memory.index", sessionId=session_id()))["levels"] == {"l2": True, "l3": True}
    AgentSession.objects.get()


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("memory.index", {"limit": 0}, "MEMORY_INVALID_QUERY"),
        ("memory.index", {"limit": 301}, "MEMORY_INVALID_QUERY"),
        ("memory.index", {"workspaceKey": "k"}, "MEMORY_INVALID_QUERY"),
        ("memory.search", {}, "MEMORY_INVALID_QUERY"),
        ("memory.search", {"q": "x", "kind": "nope"}, "MEMORY_INVALID_QUERY"),
        ("memory.record", {"id": "../etc"}, "MEMORY_INVALID_ID"),
        ("memory.record", {"id": "mem_0123456789", "offset": -1}, "MEMORY_INVALID_QUERY"),
        ("memory.assemble", {"task": "x", "budget": 10}, "MEMORY_INVALID_QUERY"),
    ],
)
def test_what_is_wrong_is_named(claude, path, query, code):
    answer = refused(claude.get(path, sessionId=session_id(), **query), 400, code)
    assert (list(query) or ["q"])[-1] in answer["message"] or path == "memory.search"


def test_no_token_no_answer(claude, client):
    response = client.get("/api/memory.index")
    refused(response, 401, "MEMORY_UNAUTHENTICATED")
    assert response["WWW-Authenticate"] == "Bearer"
    assert client.get("/api/status").json() == {"ok": True, "version": "0.1.0", "store": None}


def test_addresses_and_methods_that_are_not_there_answer_in_json(claude):
    refused(claude.get("memory.nope"), 404, "MEMORY_NOT_FOUND")
    refused(claude.post("memory.index"), 405, "MEMORY_METHOD_NOT_ALLOWED")
    refused(claude.post("memory.grep", b"{"), 400, "MEMORY_INVALID_BODY")
    refused(claude.post("memory.grep", b"[1]"), 400, "MEMORY_INVALID_BODY")
    assert "colour" in refused(
        claude.post("memory.grep", sessionId="s", pattern="x", colour=1), 400, "MEMORY_INVALID_BODY"
    )["message"]  # fmt: skip
    refused(claude.post("memory.grep", sessionId="s", pattern="x", limit="5"), 400, "MEMORY_INVALID_BODY")
