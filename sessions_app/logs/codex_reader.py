"""Reads a Codex log row by row. Pure."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar

import orjson

from records.tokens import estimate
from sessions_app.machine_text import classify, person_text

from . import codex_shapes as shapes
from .codex_compaction import digest_seed, keep, replacement_read
from .codex_items import as_text, content_text, identifier, item_text, kind_of
from .codex_lineage import Lineage, meta_id, parent_of
from .codex_shapes import Shape
from .events import (
    AGENT,
    CURRENT,
    HARNESS,
    LOG_ONLY,
    MODEL,
    PERSON,
    PREVIEW_CHARACTERS,
    SUMMARY,
    CompactionFact,
    Effect,
    Head,
    Known,
    NewEvent,
    RowWarning,
    SessionFact,
    Shadowed,
)
from .rows import Row, clean, decode
from .text import digest, milliseconds, preview

_DAMAGE = {
    "glued": "several objects on one line; all are read",
    "nul": "NUL bytes, left out",
    "damaged": "part of the row is no JSON",
    "too-long": "too long to be parsed; kept in the mirror",
}
# Of what only stands beside the conversation less is shown.
_GLIMPSE = 100
# What is above is no count but damage.
_MOST_TOKENS = 10**12


class CodexReader:
    agent: ClassVar[str] = "codex"

    def __init__(self, head: Head, state: dict[str, Any] | None, known: Iterable[Known]) -> None:
        state = state or {}
        self._session_id = head.session_id
        self._seq: int = state.get("seq", 0)
        self._facts: dict[str, Any] = dict(state.get("facts", {}))
        self._provider: str = state.get("provider", "")
        self._subagent = self._facts.get("relation", head.relation) == "subagent"
        self._paginated: bool = state.get("paginated", False)
        # What kinds of response_item the log holds: their mirrors are not content.
        self._families: set[str] = set(state.get("families", ()))
        # Where the turns that are in the window begin.
        self._turns: list[int] = list(state.get("turns", ()))
        self._lineage = Lineage(head.session_id, head.parent_id, state.get("lineage"))
        self._seen: set[tuple[str, int, str]] = set()
        self._window: dict[int, tuple[str, int]] = {}
        for event in known:
            if event.uid:
                self._seen.add((event.uid, event.digest, event.type))
            if event.surface == CURRENT or event.surface is None:
                self._window[event.seq] = (event.uid, event.digest)

    def state(self) -> dict[str, Any]:
        return {
            "seq": self._seq,
            "facts": dict(self._facts),
            "provider": self._provider,
            "paginated": self._paginated,
            "families": sorted(self._families),
            "turns": list(self._turns),
            "lineage": self._lineage.state(),
        }

    def feed(self, row: Row) -> list[Effect]:
        effects: list[Effect] = []
        try:
            value = orjson.loads(row.raw)  # nearly every row: no detour over a list of values
        except ValueError:
            decoded = decode(row.raw)
            if decoded.damage:
                effects.append(RowWarning(row.number, decoded.damage, _DAMAGE[decoded.damage]))
            for part, value in enumerate(decoded.values):
                self._read(row, part, value, effects)
        else:
            self._read(row, 0, value, effects)
        return effects

    def _read(self, row: Row, part: int, value: Any, effects: list[Effect]) -> None:
        if not isinstance(value, dict):
            effects.append(RowWarning(row.number, "damaged", "no JSON object"))
            return
        kind, payload = value.get("type"), value.get("payload")
        if type(kind) is not str or type(payload) is not dict:
            kind, payload = shapes.envelope(value)
        event = NewEvent(self._seq, row.number, row.offset, len(row.raw), kind, part)
        event.time = _time(value.get("timestamp"))
        if not self._lineage.settled:
            self._lineage.observe(kind, payload, time=event.time, ordinal=value.get("ordinal"))
            event.inherited = self._lineage.owner != self._session_id
        if kind == "response_item":
            opens_turn = self._read_item(event, payload)
        elif kind == "event_msg":
            opens_turn = self._read_message(event, payload, effects)
        elif kind == "compacted":
            self._read_compaction(event, payload, effects)
            return
        else:
            opens_turn = False
            self._read_bookkeeping(event, payload, effects)
        if event.uid and not self._is_new(event):
            return
        self._add(event, effects)
        if opens_turn:
            self._turns.append(event.seq)
        elif event.type == "event_msg:thread_rolled_back":
            self._roll_back(event, payload.get("num_turns"), effects)

    def _is_new(self, event: NewEvent) -> bool:
        """False for a row that was written again: an id alone does not tell."""
        key = (event.uid, event.digest, event.type)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _add(self, event: NewEvent, effects: list[Effect]) -> None:
        effects.append(event)
        self._seq += 1
        if event.surface != LOG_ONLY:
            self._window[event.seq] = (event.uid, event.digest)

    def _read_item(self, event: NewEvent, item: dict[str, Any]) -> bool:
        """True if it opens a turn."""
        shape = shapes.item_shape(item)
        event.type, event.surface = shape.type, shape.surface
        self._families.add(shape.family)
        event.uid, event.ref = identifier(item.get("id")), identifier(item.get("call_id"))
        if not event.uid and shape.source == MODEL:
            event.uid = event.ref
        return self._fill(event, shape, item_text(item), item.get("name"))

    def _fill(self, event: NewEvent, shape: Shape, text: str, name: Any = None) -> bool:
        """Puts in what `text` decides. True if it opens a turn."""
        event.role, event.source = shape.role, shape.source
        event.digest = digest(text, shape.seed)
        event.tokens = estimate(text)
        if shape.source == PERSON or shape.source == HARNESS:
            typed = person_text(text) if shape.source == PERSON else ""
            reason = "" if typed else classify(text)
            if typed or (shape.source == PERSON and not reason):
                # Whoever spawned a sub-agent speaks to it in the user's role.
                event.source = AGENT if self._subagent and not event.inherited else PERSON
                event.preview = preview(typed)
                return True
            event.source = shapes.SOURCE_OF_REASON.get(reason, HARNESS)
        if shape.family == "tool" or shape.family == "reasoning":
            event.preview = _glimpse(f"{name} {text[:_GLIMPSE]}" if name and isinstance(name, str) else text)
        else:
            event.preview = preview(text[:PREVIEW_CHARACTERS])
        return shape.source == AGENT

    def _read_message(self, event: NewEvent, payload: dict[str, Any], effects: list[Effect]) -> bool:
        """True if it opens a turn. Most of these repeat an item: their text is not looked at."""
        kind = kind_of(payload)
        event.type, event.source = shapes.event_type("event_msg", kind), HARNESS
        if kind == "token_count":
            self._count_tokens(payload, effects)
            return False
        if (self._paginated or not self._families) and kind in shapes.MIRRORS:
            opens_turn = self._read_unmirrored(event, kind, payload)
            if event.surface != LOG_ONLY:
                return opens_turn
        event.ref = identifier(payload.get("call_id"))
        text = payload.get(shapes.PREVIEWED.get(kind, ""))
        if isinstance(text, str):
            event.preview = _glimpse(text)
            if kind == "thread_name_updated" and not event.inherited:
                self._learn(effects, "title", preview(text))
        return False

    def _read_unmirrored(self, event: NewEvent, kind: str, payload: dict[str, Any]) -> bool:
        """An event that repeats an item is content while the log holds no such items: in a paginated log
        for certain, in others it can't be told. True if it opens a turn."""
        item = payload.get("item")
        if kind == "item_completed" and isinstance(item, dict):
            shape = shapes.completed_shape(item)
        else:
            item, shape = None, None if self._paginated else shapes.SPOKEN.get(kind)
        if shape is None or shape.family in self._families:
            return False
        event.surface = CURRENT if self._paginated else None
        if item is None:
            return self._fill(event, shape, as_text(payload.get("message")))
        event.uid = identifier(item.get("id"))
        return self._fill(event, shape, content_text(item.get("content")) or item_text(item))

    def _count_tokens(self, payload: dict[str, Any], effects: list[Effect]) -> None:
        info = payload.get("info")
        if not isinstance(info, dict):
            return
        usage = info.get("last_token_usage")
        if isinstance(usage, dict):
            self._learn(effects, "used_tokens", _count(usage.get("input_tokens")))
        self._learn(effects, "context_window", _count(info.get("model_context_window")))

    def _learn(self, effects: list[Effect], key: str, value: Any) -> None:
        if value and self._facts.get(key) != value:
            self._facts[key] = value
            effects.append(SessionFact({key: value}))

    def _read_bookkeeping(self, event: NewEvent, payload: dict[str, Any], effects: list[Effect]) -> None:
        event.source = HARNESS
        if event.type == "session_meta":
            self._read_meta(payload, effects)
        elif event.type == "turn_context":
            self._learn(effects, "model", identifier(payload.get("model")))
        elif event.type not in shapes.BOOKKEEPING:
            text = as_text(payload)
            event.source, event.surface = "", None
            event.type = clean(event.type)
            event.digest, event.tokens, event.preview = digest(text), estimate(text), preview(text)

    def _read_meta(self, payload: dict[str, Any], effects: list[Effect]) -> None:
        if meta_id(payload) not in ("", self._session_id):
            return
        self._paginated = payload.get("history_mode") == "paginated"
        self._provider = identifier(payload.get("model_provider"))
        self._learn(effects, "version", identifier(payload.get("cli_version")))
        if "cwd" in self._facts:  # the session was resumed, perhaps elsewhere
            return
        parent_id, relation = parent_of(payload)
        self._subagent = relation == "subagent"
        for key, fact in (
            ("cwd", clean(as_text(payload.get("cwd")))),
            ("parent_id", parent_id),
            ("relation", relation),
        ):
            self._learn(effects, key, fact)

    def _read_compaction(self, event: NewEvent, payload: dict[str, Any], effects: list[Effect]) -> None:
        replacement = replacement_read(payload)
        if replacement is None:
            self._add(event, effects)
            return
        # Versions without a history rebuilt it from what fitted a budget that the log doesn't tell.
        kept, fresh = keep(self._window, replacement.history or ())
        event.source = SUMMARY
        event.surface = CURRENT if replacement.summary or fresh else LOG_ONLY
        event.uid = replacement.compaction_id
        event.digest = digest(replacement.summary, digest_seed(event.type))
        event.preview = preview(replacement.summary)
        event.tokens = estimate(replacement.summary) + sum(
            estimate(text) for text in map(item_text, fresh) if text != replacement.summary
        )
        dropped = [seq for seq in self._window if seq not in kept]
        copies = 1
        while not self._is_new(event):
            # Its id says it, or nothing left the window but its own first copy: the same row again.
            own = replacement.compaction_id
            if not replacement.is_nameless or all(self._window[seq][0] == own for seq in dropped):
                return
            copies += 1
            event.uid = f"{replacement.compaction_id}-{copies}"
        self._drop(dropped)
        self._add(event, effects)
        if dropped:
            effects.append(Shadowed(dropped, event.seq))
        effects.append(
            CompactionFact(
                compaction_id=event.uid,
                kind="compaction",
                state="ready",
                at_seq=event.seq,
                dropped=dropped,
                summary_seq=event.seq,
                origin_session_id=self._lineage.owner if event.inherited else "",
                tokens_before=self._facts.get("used_tokens"),
                provider=self._provider,
                model=self._facts.get("model", ""),
                opaque=replacement.opaque,
                time=event.time,
            )
        )

    def _roll_back(self, event: NewEvent, turns: Any, effects: list[Effect]) -> None:
        """The person took back their last turns."""
        if not isinstance(turns, int) or turns <= 0 or not self._turns:
            return
        first = self._turns[max(0, len(self._turns) - turns)]
        dropped = [seq for seq in self._window if seq >= first]
        self._drop(dropped)
        effects.append(Shadowed(dropped, event.seq))

    def _drop(self, seqs: list[int]) -> None:
        for seq in seqs:
            del self._window[seq]
        self._turns = [seq for seq in self._turns if seq in self._window]


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value <= _MOST_TOKENS else 0


def _glimpse(text: str) -> str:
    """A preview at a tenth of the cost of a good one."""
    return clean(text[:_GLIMPSE].replace("\n", " "))


def _time(stamp: Any) -> int | None:
    """As `milliseconds`; in the form that Codex writes, most rows share their second with the one before."""
    if isinstance(stamp, str) and len(stamp) == 24 and stamp[19] == "." and stamp[23] == "Z":
        second, fraction = _second(stamp[:19]), stamp[20:23]
        if second is not None and fraction.isascii() and fraction.isdecimal():
            return second + int(fraction)
    return milliseconds(stamp)


@lru_cache(maxsize=8)
def _second(stamp: str) -> int | None:
    return milliseconds(f"{stamp}Z")
