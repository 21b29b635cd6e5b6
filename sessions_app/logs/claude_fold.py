"""The window of one Claude Code conversation and what its compactions take out of it. Pure.

The order of the file is the order of the conversation: the parent chain breaks too often (processes
that write at once, nodes never written, continuations hung before an earlier compaction).
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .claude_blocks import as_dict, as_list, as_text, short_id
from .events import CURRENT, CompactionFact, Effect, Known, Shadowed
from .rows import clean

# A boundary without a summary counts as a compaction after so many later turns.
_TURNS_WITHOUT_SUMMARY = 3
_MAX_TRIGGER = 16
_MAX_COUNT = 2**53
Metadata = dict[str, Any]


@dataclass(slots=True)
class Slot:
    """An event in the window. `tool_id`: the call whose result it holds."""

    seq: int
    uid: str
    tool_id: str = ""


@dataclass(slots=True)
class Lane:
    """The session itself, or a sub-agent whose lines stand in the same file."""

    name: str
    next_seq: int = 0
    window: list[Slot] = field(default_factory=list)
    # In the window as a placeholder: a microcompact took the content.
    cleared: set[int] = field(default_factory=set)
    pending: CompactionFact | None = None
    turns: int = 0
    # The facts of the session as last told.
    said: dict[str, Any] = field(default_factory=dict)

    def begin(self, fact: CompactionFact, kept: set[int]) -> list[Effect]:
        """A boundary: what is not kept leaves, and a summary is to follow."""
        effects = self.give_up_waiting()
        fact.state = "pending"
        fact.dropped = [slot.seq for slot in self.window if slot.seq not in kept]
        self.window = [slot for slot in self.window if slot.seq in kept]
        self.pending, self.turns = fact, 0
        return [*effects, replace(fact)]

    def finish(self, by: int, summary_seq: int | None) -> list[Effect]:
        """Ends the pending compaction. Without a summary it stays unconfirmed."""
        if self.pending is None:
            return []
        fact = replace(
            self.pending, state="ready", summary_seq=summary_seq, confirmed=summary_seq is not None
        )
        self.pending = None
        seen = [seq for seq in fact.dropped if seq not in self.cleared]
        self.cleared.difference_update(fact.dropped)
        shadowed: list[Effect] = [Shadowed(seen, by, self.name)] if seen else []
        return [*shadowed, fact]

    def give_up_waiting(self) -> list[Effect]:
        return self.finish(self.pending.at_seq, None) if self.pending else []

    def turn(self) -> list[Effect]:
        """A turn begins; enough of them end the wait for a summary."""
        if self.pending is None:
            return []
        self.turns += 1
        return self.give_up_waiting() if self.turns >= _TURNS_WITHOUT_SUMMARY else []

    def clear(self, fact: CompactionFact, tool_ids: set[str], uids: set[str]) -> list[Effect]:
        """A microcompact: these lose their content, but keep their place."""
        fact.dropped = [
            slot.seq
            for slot in self.window
            if slot.seq not in self.cleared and (slot.tool_id in tool_ids or slot.uid in uids)
        ]
        self.cleared.update(fact.dropped)
        shadowed: list[Effect] = (
            [Shadowed(list(fact.dropped), fact.at_seq, self.name)] if fact.dropped else []
        )
        return [*shadowed, fact]

    def state(self) -> dict[str, Any]:
        values: dict[str, Any] = {"said": self.said}
        if self.cleared:
            values["cleared"] = _ranges(sorted(self.cleared))
        if self.pending:
            fact = asdict(replace(self.pending, dropped=[]))
            values["pending"] = {**fact, "dropped": _ranges(self.pending.dropped)}
            values["turns"] = self.turns
        return values

    def restore(self, values: dict[str, Any], known: Iterable[Known]) -> None:
        """Goes on from `state()`; `known` are this lane's events in order."""
        self.said = dict(values.get("said", {}))
        self.cleared = set(_members(values.get("cleared", [])))
        self.turns = values.get("turns", 0)
        if pending := values.get("pending"):
            # Only what was known when the state was taken can be in the ranges.
            self.pending = CompactionFact(**{**pending, "dropped": []})
        gone = set(_members((values.get("pending") or {}).get("dropped", [])))
        for event in known:
            self.next_seq = max(self.next_seq, event.seq + 1)
            if event.seq in gone and self.pending:
                self.pending.dropped.append(event.seq)
            elif event.surface in (CURRENT, None) or event.seq in self.cleared:
                self.window.append(Slot(event.seq, event.uid, event.ref if event.role == "tool" else ""))


def metadata(fields: Metadata, camel: str, snake: str) -> Any:
    """Files say it in camelCase, the agent's output stream in snake_case."""
    return fields.get(camel, fields.get(snake))


def fact_of(
    uid: str, kind: str, at_seq: int, fields: Metadata, time: int | None, lane: Lane
) -> CompactionFact:
    """What a boundary says of itself; `fields` is its compactMetadata or microcompactMetadata."""
    before = _count(metadata(fields, "preTokens", "pre_tokens"))
    after = _count(metadata(fields, "postTokens", "post_tokens"))
    saved = _count(metadata(fields, "tokensSaved", "tokens_saved"))
    if after is None and before is not None and saved is not None:
        after = max(0, before - saved)
    return CompactionFact(
        compaction_id=uid,
        kind=kind,
        state="ready",
        at_seq=at_seq,
        trigger=clean(as_text(fields.get("trigger")))[:_MAX_TRIGGER],
        tokens_before=before,
        tokens_after=after,
        model=lane.said.get("model", ""),
        time=time,
        lane=lane.name,
    )


def kept_seqs(fields: Metadata, window: list[Slot]) -> set[int]:
    """What a compaction left standing word for word. The list of messages is more exact than the
    segment, whose ends may not be in the file."""
    messages = as_dict(metadata(fields, "preservedMessages", "preserved_messages"))
    uids = as_list(metadata(messages, "allUuids", "all_uuids")) or as_list(messages.get("uuids"))
    if uids:
        names = {short_id(uid) for uid in uids}
        return {slot.seq for slot in window if slot.uid and slot.uid in names}
    segment = as_dict(metadata(fields, "preservedSegment", "preserved_segment"))
    order = [slot.uid for slot in window]
    head = short_id(metadata(segment, "headUuid", "head_uuid"))
    tail = short_id(metadata(segment, "tailUuid", "tail_uuid"))
    if not head or head not in order:
        return set()
    start = order.index(head)
    # A tail that is nowhere yet was written again behind the boundary: all up to there is kept.
    end = max((i for i, uid in enumerate(order) if uid == tail), default=len(order) - 1) if tail else start
    return {slot.seq for slot in window[start : end + 1]}


def lanes_of(known: Iterable[Known], states: dict[str, Any]) -> dict[str, Lane]:
    events: dict[str, list[Known]] = {"": []}
    for event in known:
        events.setdefault(event.lane, []).append(event)
    lanes = {}
    for name in {**events, **states}:
        lanes[name] = Lane(name)
        lanes[name].restore(states.get(name, {}), events.get(name, ()))
    return lanes


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _MAX_COUNT else None


def _ranges(seqs: list[int]) -> list[list[int]]:
    ranges: list[list[int]] = []
    for seq in seqs:
        if ranges and seq == ranges[-1][1] + 1:
            ranges[-1][1] = seq
        else:
            ranges.append([seq, seq])
    return ranges


def _members(ranges: list[list[int]]) -> Iterable[int]:
    for first, last in ranges:
        yield from range(first, last + 1)
