"""An agent that really manages its window through the API, for 300 turns, and never loses a byte."""

import json
import re

import pytest

from tests.servers import environment_of, serving

from .loop import Agent

TURNS, WINDOW = 300, 16_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(environment_of(tmp_path_factory.mktemp("loop"))) as running:
        running.manage("memory", "level", "--workspace", "/w/reference", "l2", "l3")
        yield running


def scripted(window):
    """Answers the last question: each fourth with a tool first, whose output is long."""
    last = window[-1]
    if last.get("source", {}).get("kind") == "memory-recall":
        last = next(message for message in reversed(window) if "recall" not in str(message.get("source")))
    content = last["content"]
    said = content if isinstance(content, str) else content[0].get("content", "")
    number = int(re.search(r"step (\d+)", said)[1])
    is_result = not isinstance(content, str)
    if number % 4 == 0 and not is_result:
        output = f"step {number} secret-{number * 7919}: " + f"line of output {number}\n" * 60
        call = {
            "type": "tool_use",
            "id": f"call-{number}",
            "name": "read",
            "input": {"path": f"src/part_{number}.py", "result": output},
        }
        return {"content": [{"type": "text", "text": f"Looking at step {number}."}, call]}
    return {"content": [{"type": "text", "text": f"Done with step {number}. " + f"detail {number} " * 40}]}


def test_three_hundred_turns(server):
    token = server.token("reference", "--scope", "read,write,capacity")
    agent = Agent(server, token, "loop", WINDOW, scripted)
    agent.open()
    for number in range(TURNS):
        agent.turn(f"Please do step {number}: 请处理第 {number} 步。")
    assert agent.peak < WINDOW, "it stays under its window"
    assert len(agent.evictions) > 10

    (window,) = agent.surface()
    assert [message["id"] for message in window] == [message["id"] for message in agent.window]
    assert window[0]["id"] == "m1", "the first turn is never evicted"
    calls = {block["id"] for m in agent.window for block in blocks(m) if block["type"] == "tool_use"}
    results = {
        block["tool_use_id"] for m in agent.window for block in blocks(m) if block["type"] == "tool_result"
    }
    assert calls == results, "no call stands there without its result"

    kept = read_all(server, token)
    assert kept == list(agent.pushed.values()), "every event is there as it was sent, in order"

    # What left long ago is found, and opened to the letter.
    answer = get(server, token, "memory.grep", pattern=f"secret-{8 * 7919}\\b")
    assert answer["hits"][0]["recordId"] in {record for _, record in agent.evictions}
    found = get(server, token, "memory.search", q="output of step 8 secret-63352")
    assert found["records"][0]["id"] == answer["hits"][0]["recordId"]


def blocks(message):
    return message["content"] if isinstance(message["content"], list) else []


def get(server, token, route, **query):
    from urllib.parse import urlencode

    response, body = server.request(
        "GET", f"/api/{route}?{urlencode({'sessionId': 'loop', **query})}", token=token
    )
    assert response.status == 200, body
    return json.loads(body)


def read_all(server, token):
    """Every pushed event from Memex's copy, as it came."""
    events, first = [], 0
    while True:
        answer = get(server, token, "session.read", **{"from": first, "raw": "true"})
        for event in answer["events"]:
            value = json.loads(event["text"])
            if "memex" not in value:
                events.append(value)
        if not answer["more"]:
            return events
        first = answer["events"][-1]["seq"] + 1


def test_the_agent_goes_on_without_memex(server, tmp_path):
    with serving(environment_of(tmp_path)) as other:
        other.manage("memory", "level", "--workspace", "/w/reference", "l2")
        agent = Agent(
            other, other.token("reference", "--scope", "read,write,capacity"), "gone", WINDOW, scripted
        )
        agent.open()
        agent.turn("Please do step 1.")
    agent.turn("Please do step 4.")
    assert [message["role"] for message in agent.window] == ["user", "assistant"] + ["user", "assistant"] * 2
