"""Sessions that agents without logs push, event by event: the format of their mirror. Pure.

One row is one event or one note of Memex (see pushed_rows). What is in the window follows from the rows
alone: an event with content joins it; a compaction or eviction says which seqs left, an un-eviction which
came back.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from records.tokens import estimate
from sessions_app.machine_text import classify

from . import pushed_rows
from .claude_blocks import as_dict, as_text
from .dsh_fold import Window, ranges_pack, ranges_unpack
from .dsh_values import as_count, as_name
from .events import (
    AGENT,
    CURRENT,
    HARNESS,
    INJECTED,
    MODEL,
    PERSON,
    SUMMARY,
    TOOL,
    Block,
    CompactionFact,
    Effect,
    Head,
    Known,
    NewEvent,
    Restored,
    RowWarning,
    SessionFact,
    Shadowed,
)
from .pushed_blocks import CALLS, event_blocks, has_content, is_result, tool_ids
from .pushed_rows import note_of, row_value
from .rows import Row, clean
from .text import digest, milliseconds, preview

AGENT_NAME = "pushed"
COMPACTED, EVICTED, UNEVICTED = "memex/compaction", "memex/eviction", "memex/uneviction"
_MAX_TYPE = 80
_ROLES = {
    **dict.fromkeys(("user", "human", "person"), "user"),
    **dict.fromkeys(("assistant", "model", "ai"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
    "system": "system",
    "developer": "developer",
}
_SOURCES = {
    **dict.fromkeys(("model", "assistant"), MODEL),
    "tool": TOOL,
    "memory-recall": INJECTED,
    **dict.fromkeys(("compact-checkpoint", "summary"), SUMMARY),
    **dict.fromkeys(("agent", "agent-message", "subagent-settled"), AGENT),
}
_PERSONS = frozenset(("user", "user-rpc", "person", "human"))
_BY_ROLE = {"assistant": MODEL, "tool": TOOL, "system": HARNESS, "developer": HARNESS}
_READ_AS = {"": PERSON, "injected": INJECTED, "summary": SUMMARY, "agent-report": AGENT}
_USED = (
    ("inputTokens", "cacheReadTokens", "cacheWriteTokens"),
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    ("prompt_tokens",),
)


class PushedFormat:
    agent = AGENT_NAME

    def head(self, rows: Iterable[Row], path: str) -> Head | None:
        """Never: there is no file to be found."""
        return None

    def reader(self, head: Head, state: dict[str, Any] | None, known: Iterable[Known]) -> "PushedReader":
        return PushedReader(head, state)

    def blocks(self, raw: bytes, part: int) -> list[Block]:
        value = row_value(raw)
        if value is None:
            return []
        note = note_of(value)
        if note is None:
            return event_blocks(value) or [Block("other", raw.decode("utf-8", "replace"))]
        kind, text = note.get("kind"), as_text(note.get("text"))
        if kind == pushed_rows.EVICTION:
            return [Block("injected", text)]
        return [Block("text", text)] if kind == pushed_rows.COMPACTION and text else []


class PushedReader:
    """`nodes` of its state: the seqs in the window, in the model's order; `epoch`: how often it was
    rewritten; `used`: tokens in it, as last reported and with what has come since, 0 when nobody said."""

    agent: ClassVar[str] = AGENT_NAME

    def __init__(self, head: Head, state: dict[str, Any] | None) -> None:
        state = state or {}
        self._asked_by_agent = head.relation == "subagent"
        self._next = int(state.get("next", 0))
        self._epoch = int(state.get("epoch", 0))
        self._used = int(state.get("used", 0))
        self._window = Window(ranges_unpack(state.get("nodes", ())))

    def state(self) -> dict[str, Any]:
        return {
            "next": self._next,
            "epoch": self._epoch,
            "used": self._used,
            "nodes": ranges_pack(self._window.nodes),
        }

    def feed(self, row: Row) -> list[Effect]:
        if not row.raw.strip():
            return []
        value = row_value(row.raw)
        if value is None:
            return [RowWarning(row.number, "damaged", "part of a row, or no JSON")]
        note = note_of(value)
        if note is None:
            return self._event(row, value)
        match note.get("kind"):
            case pushed_rows.SESSION:
                return _session_facts(note)
            case pushed_rows.COMPACTION:
                return self._compaction(row, note)
            case pushed_rows.EVICTION:
                return self._eviction(row, note)
            case pushed_rows.UNEVICTION:
                return self._uneviction(row, note)
        return [RowWarning(row.number, "newer-version", "a note of a kind that isn't known")]

    def _new(self, row: Row, kind: str, role: str, source: str, time: int | None) -> NewEvent:
        event = NewEvent(self._next, row.number, row.offset, len(row.raw), kind, role=role, source=source)
        event.time = time
        self._next += 1
        return event

    def _event(self, row: Row, value: dict[str, Any]) -> list[Effect]:
        blocks = event_blocks(value)
        role = _role(value, blocks)
        kind = clean(as_text(value.get("type")))[:_MAX_TYPE] or "message"
        event = self._new(row, kind, role, self._source(value, role, blocks), milliseconds(value.get("time")))
        event.uid = as_name(value.get("id"))
        ids = tool_ids(value)
        event.ref = clean(as_text(value.get("toolCallId")) or min(ids.answers or ids.calls, default=""))
        _describe(event, blocks)
        if has_content(value) or role in ("user", "assistant", "tool"):
            event.surface = CURRENT
            self._window.append(event.seq)
        added = event.tokens if event.surface == CURRENT else 0
        # What is reported with an answer was in the window before it.
        reported = _used(as_dict(value.get("usage")))
        if reported or self._used:
            self._used = (reported or self._used) + added
        facts = {"model": as_name(value.get("model")), "used_tokens": self._used}
        said = {name: given for name, given in facts.items() if given}
        return [event, SessionFact(said)] if said else [event]

    def _source(self, value: dict[str, Any], role: str, blocks: list[Block]) -> str:
        given = value.get("source")
        named = as_text(as_dict(given).get("kind")) if isinstance(given, dict) else as_text(given)
        if named in _SOURCES:
            return _SOURCES[named]
        if blocks and all(block.kind == "injected" for block in blocks):
            return INJECTED
        if role in _BY_ROLE:
            return _BY_ROLE[role]
        if role != "user" or (named and named not in _PERSONS):
            return HARNESS
        read_as = classify("\n".join(block.text for block in blocks if block.kind in ("text", "injected")))
        if not read_as and self._asked_by_agent and named not in _PERSONS:
            return AGENT
        return _READ_AS.get(read_as, HARNESS)

    def _leave(self, note: dict[str, Any]) -> list[int]:
        """Those of the seqs that a note names which are in the window, in its order."""
        named = set(_seqs(note))
        return [seq for seq in self._window.nodes if seq in named]

    def _compaction(self, row: Row, note: dict[str, Any]) -> list[Effect]:
        text, gone = as_text(note.get("text")), self._leave(note)
        event = self._new(row, COMPACTED, "user", SUMMARY, milliseconds(note.get("time")))
        event.uid = as_name(note.get("id"))
        _describe(event, [Block("text", text)] if text else [])
        effects: list[Effect] = [event]
        if text:
            event.surface = CURRENT
        self._replace(gone, event, effects)
        missing = [as_text(name) for name in note.get("missing") or () if as_text(name)]
        if missing:
            message = f"drops {len(missing)} events that were never pushed"
            effects.append(RowWarning(row.number, "missing-events", message))
        effects.append(
            CompactionFact(
                event.uid, "compaction", "ready", event.seq, dropped=sorted(gone), missing=missing,
                summary_seq=event.seq if text else None, trigger=as_name(note.get("trigger"))[:16],
                tokens_before=as_count(note.get("tokensBefore")),
                tokens_after=as_count(note.get("tokensAfter")), confirmed=bool(text), time=event.time,
            )
        )  # fmt: skip
        return effects + self._used_now(note)

    def _eviction(self, row: Row, note: dict[str, Any]) -> list[Effect]:
        gone = self._leave(note)
        event = self._new(row, EVICTED, "user", INJECTED, milliseconds(note.get("time")))
        event.uid = as_name(note.get("messageId"))
        _describe(event, [Block("injected", as_text(note.get("text")))])
        if not gone:
            return [event, RowWarning(row.number, "surface", "evicts events that are not in the window")]
        event.surface = CURRENT
        effects: list[Effect] = [event]
        self._replace(gone, event, effects)
        effects.append(
            CompactionFact(
                as_name(note.get("id")), "prune", "ready", event.seq, dropped=sorted(gone), trigger="evict",
                tokens_before=as_count(note.get("tokens")), tokens_after=event.tokens, time=event.time,
            )
        )  # fmt: skip
        return effects + self._used_now(note)

    def _replace(self, gone: list[int], event: NewEvent, effects: list[Effect]) -> None:
        """`event` takes the place of the first of `gone`, unless it has nothing to say."""
        if gone:
            self._window.replace(gone, event.seq)
            effects.append(Shadowed(gone, event.seq))
            self._epoch += 1
        elif event.surface == CURRENT:
            self._window.append(event.seq)
        if event.surface != CURRENT:
            self._window.nodes = [seq for seq in self._window.nodes if seq != event.seq]

    def _uneviction(self, row: Row, note: dict[str, Any]) -> list[Effect]:
        event = self._new(row, UNEVICTED, "", HARNESS, milliseconds(note.get("time")))
        by, nodes = as_count(note.get("by")), self._window.nodes
        if by not in nodes:
            return [event, RowWarning(row.number, "surface", "undoes an eviction that is not in the window")]
        # In the order that the window had.
        back = [seq for seq in dict.fromkeys(_seqs(note)) if seq < event.seq and seq not in nodes]
        place = nodes.index(by)
        self._window.nodes = [*nodes[:place], *back, *nodes[place + 1 :]]
        self._epoch += 1
        return [event, Restored(back), Shadowed([by], event.seq), *self._used_now(note)]

    def _used_now(self, note: dict[str, Any]) -> list[Effect]:
        self._used = as_count(note.get("usedAfter")) or self._used
        return [SessionFact({"used_tokens": self._used})] if self._used else []


def _session_facts(note: dict[str, Any]) -> list[Effect]:
    facts = {"title": as_name(note.get("title")), "context_window": as_count(note.get("contextWindow"))}
    said = {name: value for name, value in facts.items() if value}
    return [SessionFact(said)] if said else []


def _seqs(note: dict[str, Any]) -> list[int]:
    return ranges_unpack([pair for pair in note.get("seqs") or () if isinstance(pair, int | list)])


def _role(value: dict[str, Any], blocks: list[Block]) -> str:
    role = _ROLES.get(as_text(value.get("role")), "")
    kind = as_text(value.get("type"))
    kinds = {block.kind for block in blocks}
    if is_result(value) or (role in ("", "user") and "tool-result" in kinds and kinds.isdisjoint({"text"})):
        return "tool"
    if role:
        return role
    if kind in CALLS or kind == "reasoning":
        return "assistant"
    return _ROLES.get(kind.partition("/")[0], "")


def _describe(event: NewEvent, blocks: list[Block]) -> None:
    for block in blocks:
        event.tokens += estimate(block.text)
        event.digest = digest(block.text, event.digest)
        if block.kind == "tool-call":
            event.tokens += estimate(block.name)
    order = {"text": 0, "injected": 1, "tool-call": 2, "tool-result": 3, "reasoning": 4}
    best = min(blocks, key=lambda block: order.get(block.kind, 9), default=None)
    if best:
        event.preview = preview(
            f"{best.name} {best.text[:400]}" if best.kind == "tool-call" else best.text[:400]
        )


def _used(usage: dict[str, Any]) -> int:
    for names in _USED:
        if found := sum(as_count(usage.get(name)) or 0 for name in names):
            return found
    return 0


FORMAT = PushedFormat()
