"""A small agent that lets Memex manage its window: the reference for whoever writes one.

It keeps its own messages. Before each step it asks what to add and whether to make room; what it is told to take
out it replaces by the one message it is given. When Memex doesn't answer it goes on with what it has.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from records.tokens import estimate
from tests.servers import Server

Message = dict[str, Any]
# What a model answers to a window: a text, or a call of a tool with its arguments.
Model = Callable[[list[Message]], Message]


@dataclass
class Agent:
    """`window`: messages as the model sees them, by id in order. `pushed`: every event, as it was sent."""

    server: Server
    token: str
    session_id: str
    context_window: int
    model: Model
    window: list[Message] = field(default_factory=list)
    pushed: dict[str, Message] = field(default_factory=dict)
    # The largest window before a step, and what was evicted: (plan id, record id).
    peak: int = 0
    evictions: list[tuple[str, str]] = field(default_factory=list)
    _last: int = 0

    def open(self) -> None:
        opened = {"sessionId": self.session_id, "agent": "reference", "cwd": "/w/reference"}
        assert self.ask("session.open", {**opened, "contextWindow": self.context_window})

    def ask(self, route: str, body: Message) -> Message | None:
        """None when Memex doesn't answer, or says no: the agent goes on."""
        try:
            response, answer = self.server.request("POST", f"/api/{route}", body, token=self.token)
        except (OSError, HTTPException):
            return None
        return json.loads(answer) if response.status == 200 else None

    def turn(self, words: str) -> None:
        """One turn: what a person says, and the model's steps until it has answered."""
        self._say({"role": "user", "content": words, "source": {"kind": "user"}})
        text: str | None = words
        while True:
            added = self._before_step(text)
            text = None
            self.peak = max(self.peak, self._size())
            answer = self.model([*self.window, *added])
            self._say({"role": "assistant", **answer})
            call = next((block for block in answer["content"] if block["type"] == "tool_use"), None)
            if call is None:
                return
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": call["input"]["result"]}
            self._say({"role": "user", "content": [result], "toolCallId": call["id"]})

    def _say(self, message: Message) -> None:
        self._last += 1
        event = {"id": f"m{self._last}", **message}
        self.window.append(event)
        self.pushed[event["id"]] = event
        # What could not be sent is sent with the next.
        self.ask("session.events", {"sessionId": self.session_id, "events": [event]})

    def _before_step(self, text: str | None) -> list[Message]:
        answer = self.ask(
            "session.prestep", {"sessionId": self.session_id, **({"text": text} if text else {})}
        )
        if answer is None:
            return []
        if answer["evict"]["due"]:
            self._make_room()
        return list(answer["messages"])

    def _make_room(self) -> None:
        plan = self.ask("session.evict", {"sessionId": self.session_id, "mode": "plan"})
        if not plan or not plan["planId"]:
            return
        done = self.ask(
            "session.evict", {"sessionId": self.session_id, "mode": "apply", "planId": plan["planId"]}
        )
        if not done or not done["recordId"]:
            return
        page = next(self.surface())
        ids = [message["id"] for message in page]
        stands = {message["id"]: message for message in self.window}
        placeholder = {"id": done["messageId"], "role": "user", "content": done["message"]}
        self.window = [stands.get(name) or placeholder for name in ids]
        self.evictions.append((plan["planId"], done["recordId"]))

    def surface(self) -> Iterator[list[Message]]:
        """What Memex says is in the window: one page, for windows of this size."""
        path = f"/api/session.surface?sessionId={self.session_id}"
        _, answer = self.server.request("GET", path, token=self.token)
        found = json.loads(answer)
        assert not found["more"]
        yield found["messages"]

    def _size(self) -> int:
        """Tokens, as a model would count them, roughly."""
        return sum(estimate(json.dumps(each["content"], ensure_ascii=False)) for each in self.window)
