"""A session that its agent pushes: from opening it to what it is told."""

import json

import pytest

from records.models import Record
from records.models import Scope as Pool
from sessions_app.levels import level_enable
from sessions_app.models import AgentSession, Event, OpenedSession
from tests.sessions.stories import session_id, write_log

pytestmark = pytest.mark.django_db(transaction=True)
CWD = "/w/demo"


@pytest.fixture
def botty(caller):
    agent = caller(rights=("read", "write", "capacity"))
    opened = ok(agent.post("session.open", sessionId="s1", agent="botty", cwd=CWD, contextWindow=100_000))
    assert opened["levels"] == {"l2": False, "l3": False} and opened["handle"].startswith("mxs_")
    return agent


@pytest.fixture
def on(botty):
    level_enable("s1", "l2", "l3")
    return botty


def ok(response):
    assert response.status_code == 200, response.content
    return response.json()


def refused(response, status, code):
    answer = response.json()
    assert (response.status_code, answer["ok"], answer["code"]) == (status, False, code), answer
    return answer


def events(first, count, size=400, word="harbour"):
    found = []
    for number in range(first, first + count, 2):
        found.append(
            {"id": f"e{number}", "role": "user", "content": f"Look at the {word} of step {number}, please."}
        )
        found.append(
            {"id": f"e{number + 1}", "role": "assistant", "content": f"{word} {number}: " + "words " * size}
        )
    return found


def push(agent, pushed, session="s1"):
    return agent.post("session.events", {"sessionId": session, "events": pushed})


def test_off_stores_nothing(botty):
    for route, fields in (
        ("session.compaction", {"compactionId": "c1", "summary": "s", "removedIds": ["e0"]}),
        ("session.evict", {"mode": "plan"}),
    ):
        refused(botty.post(route, sessionId="s1", **fields), 400, "MEMORY_LEVELS_OFF")
    refused(push(botty, events(0, 2)), 400, "MEMORY_LEVELS_OFF")
    refused(botty.get("session.surface", sessionId="s1"), 400, "MEMORY_LEVELS_OFF")
    refused(botty.get("session.read", sessionId="s1"), 400, "MEMORY_LEVELS_OFF")
    assert ok(botty.post("session.prestep", sessionId="s1"))["evict"] == {
        "due": False,
        "usedTokens": 0,
        "threshold": 0,
    }
    assert not Event.objects.exists() and not AgentSession.objects.exists()


def test_events_are_counted_read_back_and_kept_as_they_came(on):
    answer = ok(push(on, events(0, 4)))
    assert (answer["stored"], answer["duplicates"], answer["nextSeq"]) == (4, 0, answer["nextSeq"])
    again = ok(push(on, events(0, 6)))
    assert (again["stored"], again["duplicates"]) == (2, 4)
    page = ok(on.get("session.surface", sessionId="s1"))
    assert [message["id"] for message in page["messages"]] == [f"e{number}" for number in range(6)]
    assert not page["more"] and page["usedTokens"] > 0
    more = ok(on.get("session.surface", sessionId="s1", after=page["cursor"]))
    assert more["messages"] == []
    raw = b'{"sessionId":"s1","events":[{"id":"odd","role":"user","content":"\\ud83d lone","big":123456789012345678901234567890}]}'
    ok(on.post("session.events", raw))
    last = ok(on.get("session.read", sessionId="s1", raw="true", **{"from": 0}))["events"][-1]
    assert (
        last["text"].strip()
        == '{"id":"odd","role":"user","content":"\\ud83d lone","big":123456789012345678901234567890}'
    )


def test_a_compaction_is_archived_told_of_and_found(on):
    ok(push(on, events(0, 8)))
    fields = {
        "compactionId": "c1",
        "summary": "Looked at the harbour.",
        "removedIds": [f"e{n}" for n in range(6)],
    }
    done = ok(on.post("session.compaction", sessionId="s1", **fields))
    assert done["state"] == "archived" and done["missing"] == []
    assert ok(on.post("session.compaction", sessionId="s1", **fields))["state"] == "already"
    record = Record.objects.get(pk=done["recordId"])
    assert record.provenance["agent"] == "botty" and record.scope == Pool.WORKSPACE
    messages = ok(on.post("session.prestep", sessionId="s1"))["messages"]
    assert [message["source"]["form"] for message in messages] == ["checkpoint", "catalog"]
    assert messages[0]["source"]["recordIds"] == [record.id]
    found = ok(on.get("memory.search", sessionId="s1", q="harbour of step 2"))
    assert found["records"][0]["id"] == record.id


def test_an_eviction_is_planned_applied_and_undone(on):
    ok(push(on, events(0, 60, size=1_500)))
    due = ok(on.post("session.prestep", sessionId="s1"))["evict"]
    assert due["due"] and due["threshold"] == 60_000 and due["usedTokens"] >= 60_000
    plan = ok(on.post("session.evict", sessionId="s1", mode="plan"))
    assert plan["planId"] and plan["tokens"] > 0 and plan["recordId"] is None
    assert not Record.objects.exists()
    done = ok(on.post("session.evict", sessionId="s1", mode="apply", planId=plan["planId"]))
    assert done["recordId"] and "[MEMORY CHECKPOINT]" in done["message"]
    assert ok(on.get("memory.index", sessionId="s1"))["l1Evicted"]["count"] == 1
    window = [m["id"] for m in ok(on.get("session.surface", sessionId="s1"))["messages"]]
    assert window[0] == "e0" and done["messageId"] in window and len(window) < 60
    undone = ok(on.post("session.evict", sessionId="s1", mode="undo", planId=plan["planId"]))
    assert undone["recordId"] == done["recordId"]
    assert len(ok(on.get("session.surface", sessionId="s1"))["messages"]) == 60
    refused(
        on.post("session.evict", sessionId="s1", mode="apply", planId="1-2-000000000000"),
        409,
        "MEMORY_CONFLICT",
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "no JSON"), (b"[]", "sessionId"), (b"{}", "sessionId"), (b'{"sessionId": 7}', "sessionId"),
        (b'{"sessionId": "s1"}', "events"), (b'{"sessionId": "s1", "events": {}}', "events"),
        (b'{"sessionId": "s1", "events": [], "colour": 1}', "colour"), (b'{"sessionId": "s1", "events": [7]}', "0"),
        (b'{"sessionId": "s1", "events": [{"id": "a", "content": "x"}, {"content": "x"}]}', "1"),
    ],
)  # fmt: skip
def test_a_push_that_is_wrong_is_refused_whole(on, body, said):
    answer = refused(on.post("session.events", body), 400, "MEMORY_INVALID_BODY")
    assert said in answer["message"]
    assert not Event.objects.exists()


def test_a_session_is_its_tokens_alone(on, caller):
    ok(push(on, events(0, 2)))
    other = caller("other", rights=("read", "write", "capacity"))
    refused(other.post("session.open", sessionId="s1", agent="botty", cwd=CWD), 409, "MEMORY_CONFLICT")
    refused(push(other, events(2, 2)), 404, "MEMORY_UNKNOWN_SESSION")
    for route, fields in (
        ("session.prestep", {}), ("session.compaction", {"compactionId": "c", "removedIds": []}),
        ("session.evict", {"mode": "plan"}),
    ):  # fmt: skip
        refused(other.post(route, sessionId="s1", **fields), 404, "MEMORY_UNKNOWN_SESSION")
    for route in ("session.surface", "session.read", "memory.index"):
        refused(other.get(route, sessionId="s1"), 404, "MEMORY_UNKNOWN_SESSION")


def test_opening_again_is_the_same_and_of_another_agent_a_conflict(on):
    again = ok(on.post("session.open", sessionId="s1", agent="botty", cwd=CWD))
    assert again["handle"] == OpenedSession.objects.get().handle
    assert again["levels"] == {"l2": True, "l3": True}
    refused(on.post("session.open", sessionId="s1", agent="notty", cwd=CWD), 409, "MEMORY_CONFLICT")
    refused(on.post("session.open", sessionId="s2", agent="Bad Name"), 400, "MEMORY_INVALID_BODY")


def test_a_session_that_is_read_from_a_log_cannot_be_pushed_to(caller, agents):
    write_log(agents / "claude-code", 1)
    from sessions_app.archiving import archive_run

    archive_run(level="l3")
    claude = caller("claude-code", agent="claude-code")
    ok(claude.post("session.open", sessionId=session_id(), agent="claude-code", cwd=CWD))
    refused(push(claude, events(0, 2), session_id()), 409, "MEMORY_CONFLICT")
    page = ok(claude.get("session.surface", sessionId=session_id()))
    assert page["messages"]
    read = ok(claude.get("session.read", sessionId=session_id(), to=3))
    assert [event["seq"] for event in read["events"]] == [0, 1, 2, 3]


def test_a_sub_agents_session_uses_its_parents_pool(on):
    opened = ok(on.post("session.open", sessionId="s1-sub", agent="botty", cwd=CWD, parentSessionId="s1"))
    assert opened["levels"] == {"l2": True, "l3": True}
    ok(push(on, events(0, 8), "s1-sub"))
    done = ok(
        on.post(
            "session.compaction", sessionId="s1-sub", compactionId="c", summary="x", removedIds=["e0", "e1"]
        )
    )
    assert Record.objects.get(pk=done["recordId"]).session_id == "s1"


def test_a_stranger_cannot_name_another_tokens_session_as_its_parent(on, caller):
    other = caller("other")
    response = other.post("session.open", sessionId="evil", agent="botty", cwd=CWD, parentSessionId="s1")
    refused(response, 404, "MEMORY_UNKNOWN_SESSION")
    assert not OpenedSession.objects.filter(pk="evil").exists()


def test_an_eviction_that_is_repeated_under_its_key_is_done_once(on):
    ok(push(on, events(0, 60, size=1_500)))
    body = {"sessionId": "s1", "mode": "apply"}
    first = ok(on.post("session.evict", body, headers={"Idempotency-Key": "e"}))
    again = ok(on.post("session.evict", body, headers={"Idempotency-Key": "e"}))
    assert json.dumps(again) == json.dumps(first)
