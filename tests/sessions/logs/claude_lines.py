"""Lines in the shape Claude Code writes them, and what a reader makes of them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from sessions_app.logs.claude_code import FORMAT
from sessions_app.logs.events import (
    SHADOWED,
    CompactionFact,
    Effect,
    FileRef,
    Head,
    Known,
    NewEvent,
    RowWarning,
    SessionFact,
    Shadowed,
)
from sessions_app.logs.rows import Row

Line = dict[str, Any]
SESSION = "11111111-2222-4333-8444-555555555555"
OTHER_SESSION = "99999999-2222-4333-8444-555555555555"
SUMMARY_TEXT = "This session is being continued from a previous conversation that ran out of context."


def line(kind: str, uid: str, **fields: Any) -> Line:
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/dev/项目",
        "sessionId": SESSION,
        "version": "2.1.20",
        "gitBranch": "main",
        "type": kind,
        "uuid": uid,
        "timestamp": "2026-01-30T10:00:00.000Z",
        **fields,
    }


def user(uid: str, content: Any, **fields: Any) -> Line:
    return line("user", uid, message={"role": "user", "content": content}, **fields)


def assistant(uid: str, *content: Any, message: Line | None = None, **fields: Any) -> Line:
    blocks = [{"type": "text", "text": item} if isinstance(item, str) else item for item in content]
    body = {"id": f"msg_{uid}", "role": "assistant", "model": "claude-test", "content": blocks}
    return line("assistant", uid, message={**body, **(message or {})}, **fields)


def call(uid: str, tool_id: str, **fields: Any) -> Line:
    use = {"type": "tool_use", "id": tool_id, "name": "Bash", "input": {"command": f"ls {tool_id}"}}
    return assistant(uid, use, **fields)


def result(uid: str, tool_id: str, content: Any = "done", **fields: Any) -> Line:
    return user(uid, [{"type": "tool_result", "tool_use_id": tool_id, "content": content}], **fields)


def attachment(uid: str, kind: str, **values: Any) -> Line:
    return line("attachment", uid, attachment={"type": kind, **values})


def boundary(uid: str, metadata: Line | None = None, **fields: Any) -> Line:
    values = {"trigger": "auto", "preTokens": 150_000, **(metadata or {})}
    extra = {"content": "Conversation compacted", "compactMetadata": values, **fields}
    return line("system", uid, subtype="compact_boundary", **extra)


def summary(uid: str, parent: str | None, text: str = SUMMARY_TEXT, **fields: Any) -> Line:
    flags = {"parentUuid": parent, "isCompactSummary": True, "isVisibleInTranscriptOnly": True, **fields}
    return user(uid, text, **flags)


def micro(uid: str, tools: Sequence[str], attachments: Sequence[str] = ()) -> Line:
    values = {
        "trigger": "auto",
        "preTokens": 78_000,
        "tokensSaved": 38_000,
        "compactedToolIds": list(tools),
        "clearedAttachmentUUIDs": list(attachments),
    }
    return line(
        "system",
        uid,
        subtype="microcompact_boundary",
        content="Context microcompacted",
        microcompactMetadata=values,
    )


def rows_of(*items: Line | bytes) -> list[Row]:
    rows, offset = [], 0
    for number, item in enumerate(items):
        raw = item if isinstance(item, bytes) else json.dumps(item, ensure_ascii=False).encode()
        rows.append(Row(number, offset, raw))
        offset += len(raw) + 1
    return rows


class Run:
    """The effects of a log, sorted by what they are."""

    def __init__(self, effects: Iterable[Effect]) -> None:
        self.effects = list(effects)
        self.events = [e for e in self.effects if isinstance(e, NewEvent)]
        self.shadowed = [e for e in self.effects if isinstance(e, Shadowed)]
        self.facts = [e for e in self.effects if isinstance(e, CompactionFact)]
        self.files = [e.path for e in self.effects if isinstance(e, FileRef)]
        self.warnings = [(e.row, e.code) for e in self.effects if isinstance(e, RowWarning)]
        self.session: dict[str, Any] = {}
        for effect in self.effects:
            if isinstance(effect, SessionFact) and not effect.lane:
                self.session.update(effect.values)

    def event(self, uid: str) -> NewEvent:
        (found,) = [event for event in self.events if event.uid == uid]
        return found

    def uids(self, seqs: Iterable[int], lane: str = "") -> list[str]:
        by_seq = {event.seq: event.uid for event in self.events if event.lane == lane}
        return [by_seq[seq] for seq in seqs]

    def dropped(self, fact: CompactionFact) -> list[str]:
        return self.uids(fact.dropped, fact.lane)


HEAD = Head("claude-code", SESSION)


def run(*items: Line | bytes, head: Head = HEAD) -> Run:
    reader = FORMAT.reader(head, None, [])
    return Run(effect for row in rows_of(*items) for effect in reader.feed(row))


def run_in_parts(rows: Sequence[Row], cuts: Iterable[int], head: Head = HEAD) -> list[Effect]:
    """Feeds `rows` in runs that end at `cuts`, each with a new reader."""
    effects: list[Effect] = []
    known: list[Known] = []
    state: dict[str, Any] | None = None
    edges = [0, *sorted(cuts), len(rows)]
    for start, end in pairwise(edges):
        reader = FORMAT.reader(head, state, [Known(**asdict(event)) for event in known])
        found = [effect for row in rows[start:end] for effect in reader.feed(row)]
        effects += found
        _remember(known, found)
        state = json.loads(json.dumps(reader.state()))
    return effects


def _remember(known: list[Known], effects: Iterable[Effect]) -> None:
    for effect in effects:
        if isinstance(effect, NewEvent):
            values = asdict(effect)
            known.append(Known(**{name: values[name] for name in Known.__slots__}))
        elif isinstance(effect, Shadowed):
            for event in known:
                if event.lane == effect.lane and event.seq in effect.seqs:
                    event.surface = SHADOWED
