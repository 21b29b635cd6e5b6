"""Rows as Codex writes them, and what a reader says of them."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sessions_app.logs.codex import FORMAT
from sessions_app.logs.events import (
    SHADOWED,
    CompactionFact,
    Effect,
    Head,
    Known,
    NewEvent,
    RowWarning,
    SessionFact,
    Shadowed,
)
from sessions_app.logs.rows import RowSplitter

PARENT = "019d7d08-46c9-7f73-affe-4e6ca9852d56"
CHILD = "019d7e48-96e2-77a0-b4ce-607c7aba4b96"
PARENT_TURN = "019d7d08-f1d2-78a1-ae52-df8e21f9b394"
CHILD_TURN = "019d7e48-9707-74f1-a6d0-0978874cf657"
START = "2026-04-11T20:42:59.706Z"

Json = dict[str, Any]


def row(kind: str, payload: Json, time: str = START, **more: Any) -> Json:
    return {"timestamp": time, "type": kind, "payload": payload, **more}


def meta(session_id: str = CHILD, /, **more: Any) -> Json:
    payload = {
        "id": session_id,
        "timestamp": START,
        "cwd": "/home/dev/project",
        "originator": "codex-tui",
        "cli_version": "0.118.0",
        "source": "cli",
        "model_provider": "openai",
    }
    return row("session_meta", payload | more)


def item(kind: str, **fields: Any) -> Json:
    return row("response_item", {"type": kind, **fields})


def message(role: str, text: str, **fields: Any) -> Json:
    return item("message", role=role, content=[part(role, text)], **fields)


def part(role: str, text: str) -> Json:
    return {"type": "output_text" if role == "assistant" else "input_text", "text": text}


def call(call_id: str, arguments: str = '{"command":["ls"]}', name: str = "shell") -> Json:
    return item("function_call", name=name, arguments=arguments, call_id=call_id)


def output(call_id: str, text: Any) -> Json:
    return item("function_call_output", call_id=call_id, output=text)


def event(kind: str, time: str = START, **fields: Any) -> Json:
    return row("event_msg", {"type": kind, **fields}, time)


def turn(turn_id: str, time: str = START) -> list[Json]:
    return [
        event("task_started", time, turn_id=turn_id),
        row("turn_context", {"turn_id": turn_id, "cwd": "/home/dev/project", "model": "gpt-5.4"}, time),
    ]


def tokens(used: int) -> Json:
    usage = {"input_tokens": used, "total_tokens": used + 5}
    return event("token_count", info={"last_token_usage": usage, "model_context_window": 258_400})


def compacted(*history: Json, text: str = "", **fields: Any) -> Json:
    """A `compacted` row; `history` are rows of the items that stay."""
    return row(
        "compacted", {"message": text, "replacement_history": [each["payload"] for each in history], **fields}
    )


SEALED = item("compaction", encrypted_content="gAAAA")


def raw(rows: Iterable[Json | bytes]) -> bytes:
    return b"".join(
        (
            each
            if isinstance(each, bytes)
            else json.dumps(each, ensure_ascii=False).encode("utf-8", "surrogatepass")
        )
        + b"\n"
        for each in rows
    )


def read(rows: Iterable[Json | bytes], path: str = "rollout.jsonl") -> "Story":
    return Story.of(raw(rows), path)


class Story:
    """Everything a reader says of a log, in one run or several."""

    def __init__(self, head: Head | None) -> None:
        self.head = head
        self.effects: list[Effect] = []
        self.known: list[Known] = []

    @classmethod
    def of(cls, data: bytes, path: str = "rollout.jsonl", cuts: Iterable[int] = ()) -> "Story":
        lines = list(RowSplitter().feed(data))
        story = cls(FORMAT.head(iter(lines), path))
        head = story.head or Head("codex", "unknown")
        ends = [*sorted({cut for cut in cuts if 0 < cut < len(lines)}), len(lines)]
        state, start = None, 0
        for end in ends:
            reader = FORMAT.reader(head, state, story.known)
            for line in lines[start:end]:
                story._take(reader.feed(line))
            state, start = json.loads(json.dumps(reader.state())), end
        return story

    def _take(self, effects: list[Effect]) -> None:
        self.effects += effects
        by_seq = {event.seq: event for event in self.known}
        for effect in effects:
            if isinstance(effect, NewEvent):
                known = Known(
                    effect.seq, effect.uid, effect.ref, effect.digest, effect.lane, effect.surface, effect.type,
                    effect.role,
                )  # fmt: skip
                self.known.append(known)
                by_seq[known.seq] = known
            elif isinstance(effect, Shadowed):
                for seq in effect.seqs:
                    by_seq[seq].surface = SHADOWED

    def _all(self, kind: type) -> Iterator[Any]:
        return (effect for effect in self.effects if isinstance(effect, kind))

    @property
    def events(self) -> list[NewEvent]:
        return list(self._all(NewEvent))

    @property
    def compactions(self) -> list[CompactionFact]:
        return list(self._all(CompactionFact))

    @property
    def warnings(self) -> list[RowWarning]:
        return list(self._all(RowWarning))

    @property
    def facts(self) -> Json:
        return {key: value for fact in self._all(SessionFact) for key, value in fact.values.items()}

    def previews(self, seqs: Iterable[int]) -> list[str]:
        by_seq = {event.seq: event for event in self.events}
        return [by_seq[seq].preview for seq in seqs]

    def window(self) -> list[str]:
        return self.previews(event.seq for event in self.known if event.surface in ("current", None))
