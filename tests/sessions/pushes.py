"""Sessions that are pushed, for end-to-end tests."""

import json
from typing import Any

from sessions_app.levels import level_enable
from sessions_app.push import Pushed, session_events_push, session_open

SESSION = "push-0001"
CWD = "/home/dev/pushed"


def opened(session_id: str = SESSION, *levels: str, **how: Any) -> str:
    session_open(session_id, "my-agent", cwd=CWD, **how)
    if levels:
        level_enable(session_id, *levels)
        session_open(session_id, "my-agent", cwd=CWD, **how)
    return session_id


def turn(number: int, *, size: int = 20, word: str = "harbour") -> list[dict[str, Any]]:
    """A person asks, the model calls a tool, reads what it gave, and answers."""
    call = f"call-{number}"
    return [
        {"id": f"u{number}", "role": "user", "text": f"Look at the {word} of step {number}, please",
         "time": 1_770_000_000_000 + number * 60_000},
        {"id": f"a{number}", "role": "assistant", "content": [
            {"type": "text", "text": f"I will read src/{word}_{number}.py."},
            {"type": "tool_use", "id": call, "name": "Read", "input": {"path": f"src/{word}_{number}.py"}}]},
        {"id": f"r{number}", "role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call, "content": f"{word} {number}: " + "row; " * size}]},
        {"id": f"b{number}", "role": "assistant", "content": f"Step {number} of the {word} is done."},
    ]  # fmt: skip


def turns(count: int, first: int = 0, **how: Any) -> list[dict[str, Any]]:
    return [event for number in range(first, first + count) for event in turn(number, **how)]


def body(events: list[Any], session_id: str = SESSION) -> bytes:
    return json.dumps({"sessionId": session_id, "events": events}).encode()


def push(events: list[Any], session_id: str = SESSION) -> Pushed:
    return session_events_push(session_id, body(events, session_id))


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["id"] for event in events]
