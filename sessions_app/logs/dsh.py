"""DeepSeek Harness session logs, formats 0 to 5 and, as far as it goes, later ones. Pure.

What a row looks like decides how it is read, never the version in the header: development builds and
migrations mix the shapes.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from records.tokens import estimate

from .dsh_blocks import DISPATCHES, ROLES, SUMMARIES, attachment_path, blocks_of_row, content, message_of
from .dsh_compaction import Compactions, Named
from .dsh_fold import Numbering, Window, ranges_pack, ranges_unpack
from .dsh_head import AGENT_NAME, head_of, head_read
from .dsh_meaning import call_id, default_source, gist, is_checkpoint, message_source, note, role_of
from .dsh_packed import CHUNK, PACKED, chunk_text, packed_texts, packed_times, part_count
from .dsh_values import as_count, as_dict, as_name
from .events import (
    CURRENT,
    HARNESS,
    LOG_ONLY,
    MODEL,
    Block,
    Effect,
    FileRef,
    Head,
    Known,
    NewEvent,
    RowWarning,
    SessionFact,
    Shadowed,
)
from .rows import Row, clean, decode
from .text import digest, milliseconds, preview

NEWEST_VERSION = 5
_SEED_END = "session/end-seed"
# Half of all rows: they say that a turn goes on, and nothing else.
_QUIET = frozenset({"turn/start", "step/start", "step/end"})
_MISSING_CHARACTERS = 64
_DAMAGE = {
    "nul": "NUL bytes in the row were left out",
    "glued": "the row holds several events",
    "damaged": "part of the row is no JSON",
    "too-long": "the row is too long to be read",
}


class DshFormat:
    agent = AGENT_NAME

    def head(self, rows: Iterable[Row], path: str) -> Head | None:
        return head_read(rows, path)

    def reader(self, head: Head, state: dict[str, Any] | None, known: Iterable[Known]) -> "DshReader":
        return DshReader(head, state)

    def blocks(self, raw: bytes, part: int) -> list[Block]:
        return blocks_of_row(raw, part)


class DshReader:
    """Needs none of the known events: the numbers in its state say all about them."""

    agent: ClassVar[str] = AGENT_NAME

    def __init__(self, head: Head, state: dict[str, Any] | None) -> None:
        state = state or {}
        self._has_header = bool(state.get("header"))
        # The header's word, as soon as it is read, counts more than what the caller knows.
        self._parent_id = str(state.get("parent_id", head.parent_id))
        self._started_at = int(state.get("started_at", head.started_at or 0))
        self._is_subagent = bool(state.get("subagent", head.relation == "subagent"))
        # How the inherited events at the start end: by count (formats 0 and 1) or by a row.
        self._seed_length = int(state.get("seed_length", 0))
        self._is_seeded = bool(state.get("seeded"))
        self._in_seed = bool(state.get("in_seed"))
        self._numbers = Numbering(state.get("next", 0), state.get("gaps", ()))
        self._window = Window(ranges_unpack(state.get("nodes", ())))
        self._compactions = Compactions(state)
        self._effects: list[Effect] = []

    def state(self) -> dict[str, Any]:
        return {
            "header": self._has_header,
            "parent_id": self._parent_id,
            "started_at": self._started_at,
            "subagent": self._is_subagent,
            "seed_length": self._seed_length,
            "seeded": self._is_seeded,
            "in_seed": self._in_seed,
            "next": self._numbers.following,
            "gaps": self._numbers.gaps,
            "nodes": ranges_pack(self._window.nodes),
            **self._compactions.state(),
        }

    def feed(self, row: Row) -> list[Effect]:
        effects: list[Effect] = []
        self._effects = effects
        decoded = decode(row.raw)
        if decoded.damage:
            self._warn(row, decoded.damage, _DAMAGE.get(decoded.damage, decoded.damage))
        part = 0
        for value in decoded.values:
            kind = value.get("type") if isinstance(value, dict) else None
            if not isinstance(kind, str):
                self._warn(row, "damaged", "not an event of DSH")
            elif kind in PACKED:
                self._packed(row, value, part)
            elif kind == "session":
                self._header(row, value)
            else:
                self._event(row, kind, value, part)
            if len(decoded.values) > 1:
                part += part_count(value)
        return effects

    def _warn(self, row: Row, code: str, message: str) -> None:
        self._effects.append(RowWarning(row.number, code, message))

    def _header(self, row: Row, value: dict[str, Any]) -> None:
        if self._has_header:
            self._warn(row, "header", "a second header in one log; the first one counts")
            return
        self._has_header = True
        version = value.get("version")
        if isinstance(version, int) and version > NEWEST_VERSION:
            self._warn(
                row, "newer-version", f"format {version} is newer than {NEWEST_VERSION}: read as far as known"
            )
        if "isSeeded" in value:
            self._is_seeded = self._in_seed = value["isSeeded"] is True
        else:
            self._seed_length = as_count(value.get("seedLength")) or 0
        head = head_of(value)
        self._parent_id, self._started_at = head.parent_id, head.started_at or 0
        self._is_subagent = head.relation == "subagent"
        self._fact(cwd=head.cwd, version=head.version, parent_id=head.parent_id, relation=head.relation)

    def _fact(self, **values: str | int | None) -> None:
        said = {key: value for key, value in values.items() if value}
        if said:
            self._effects.append(SessionFact(said))

    def _packed(self, row: Row, value: dict[str, Any], part: int) -> None:
        texts = packed_texts(value)
        if not texts:
            self._warn(row, "damaged", "a packed row without members")
        given = as_count(value.get("seq0"))
        for index, time in enumerate(packed_times(value, len(texts))):
            seq = self._take(row, None if given is None else given + index)
            if seq is not None:
                self._chunk(row, seq, part + index, time, texts[index])

    def _chunk(self, row: Row, seq: int, part: int, time: int | None, text: str) -> None:
        # By position, for it is done for every few characters an old log holds.
        self._effects.append(
            NewEvent(
                seq, row.number, row.offset, len(row.raw), CHUNK, part, "", "assistant", MODEL, time, 0, "", "",
                digest(text), LOG_ONLY, self._is_inherited(seq, time), preview(text),
            )
        )  # fmt: skip

    def _take(self, row: Row, given: Any) -> int | None:
        seq = self._numbers.take(given)
        if seq is None:
            self._warn(row, "duplicate", f"event {given} was there before; the first one counts")
        return seq

    def _event(self, row: Row, kind: str, value: dict[str, Any], part: int) -> None:
        seq = self._take(row, value.get("seq"))
        if seq is None:
            return
        data, time = as_dict(value.get("data")), milliseconds(value.get("time"))
        if kind == CHUNK:
            self._chunk(row, seq, part, time, chunk_text(data))
            return
        if kind == _SEED_END and data.get("inherited") is True:
            self._in_seed = False
        event = NewEvent(seq, row.number, row.offset, len(row.raw), clean(kind), part, "", "", HARNESS, time)
        event.inherited = self._is_inherited(seq, time)
        self._effects.append(event)
        operation = value.get("surfaceOp")
        if kind in ROLES or operation is not None:
            self._message(row, event, operation, data)
        elif kind not in _QUIET:
            self._log_only(row, event, data)

    def _is_inherited(self, seq: int, time: int | None) -> bool:
        if seq < self._seed_length or self._in_seed:
            return True
        # A fork of a fork: the parent's own seed ends before what the parent said itself, and that is
        # older than this session.
        return self._is_seeded and time is not None and time < self._started_at

    def _log_only(self, row: Row, event: NewEvent, data: dict[str, Any]) -> None:
        kind = event.type
        event.role, event.source = role_of(kind), default_source(kind)
        event.ref = as_name(data.get("callId") or data.get("subCallId"))
        if kind in DISPATCHES or kind in SUMMARIES:
            self._describe(event, content(kind, data))
        else:
            event.preview = note(kind, data)
        family, _, step = kind.partition("/")
        if family in ("compaction", "compact"):
            self._compaction(row, event, step, data)
        elif family in ("session", "request"):
            self._session_fact(kind, data)

    def _session_fact(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "session/title":
            self._fact(title=as_name(data.get("title")))
        elif kind == "request/header":
            self._fact(model=as_name(as_dict(as_dict(data.get("header")).get("config")).get("model")))
        elif kind == "request/context":
            self._fact(model=as_name(data.get("model")), context_window=as_count(data.get("contextWindow")))

    def _describe(self, event: NewEvent, blocks: list[Block]) -> None:
        for block in blocks:
            event.tokens += estimate(block.text)
            event.digest = digest(block.text, event.digest)
            if block.kind == "tool-call":
                event.tokens += estimate(block.name)
            elif block.kind in ("image", "file") and (path := attachment_path(block)):
                self._effects.append(FileRef(path, event.row))
        event.preview = gist(blocks)

    def _message(self, row: Row, event: NewEvent, operation: Any, data: dict[str, Any]) -> None:
        message = message_of(data)
        blocks = content(event.type, data)
        event.role = role_of(event.type)
        event.uid = as_name(message.get("id"))
        if event.role == "tool":
            event.ref = call_id(message)
        by_agent = self._is_subagent and not event.inherited
        event.source = message_source(event.type, message, blocks, asked_by_agent=by_agent)
        self._describe(event, blocks)
        if event.type == "assistant/message":
            self._usage(as_dict(data.get("usage")))
        if operation is None:
            self._warn(row, "surface", "a message that does not say what it does to the window")
            return
        event.surface = CURRENT
        fields = as_dict(operation)
        if operation == "append" or fields.get("op") == "append":
            self._window.append(event.seq)
            self._compactions.prune_over()
        else:
            start, end = (as_count(fields.get(f"{edge}Seq", fields.get(edge))) for edge in ("start", "end"))
            gone = self._window.span(start, end) if fields.get("op") == "replace" else []
            self._replace(row, event, message, gone)

    def _usage(self, usage: dict[str, Any]) -> None:
        sizes = [as_count(usage.get(key)) for key in ("inputTokens", "cacheReadTokens", "cacheWriteTokens")]
        self._fact(used_tokens=sum(size or 0 for size in sizes))

    def _replace(self, row: Row, event: NewEvent, message: dict[str, Any], gone: list[int]) -> None:
        fact = self._compactions.cause(
            event,
            message,
            is_checkpoint=is_checkpoint(message),
            origin=self._parent_id if event.inherited else "",
        )
        named = fact.dropped
        if not gone:
            self._warn(row, "surface", "replaces events that are not in the window")
            # Of a damaged log the ends of the span may be lost, but what left was named as well.
            nodes = set(self._window.nodes)
            gone = [seq for seq in named if seq in nodes]
        if not gone:
            self._window.append(event.seq)
            return
        self._window.replace(gone, event.seq)
        self._effects.append(Shadowed(gone, event.seq))
        left = set(self._window.nodes)
        if any(seq in left for seq in named):
            self._warn(row, "surface", "names events as dropped that it leaves in the window")
        # A system message over the one before it drops nothing of the conversation.
        if event.type != "system/message":
            dropped = dict.fromkeys([*gone, *(seq for seq in named if seq not in left)])
            self._missing(row, fact.missing if fact.kind == "prune" else [])
            self._effects.append(self._compactions.done(fact, list(dropped)))

    def _compaction(self, row: Row, event: NewEvent, step: str, data: dict[str, Any]) -> None:
        event.uid = as_name(data.get("compactionId"))
        origin = self._parent_id if event.inherited else ""
        if event.type in SUMMARIES:
            named = self._named(data)
            self._missing(row, named.missing)
            self._effects.append(self._compactions.summary(event, data, named, origin=origin))
        elif step == "prune":
            self._compactions.prune(event, data, self._named(data))
        elif step == "end" and (failed := self._compactions.end(event, data, origin=origin)):
            self._effects.append(failed)

    def _named(self, data: dict[str, Any]) -> Named:
        """The events that a summary or prune says it drops."""
        if not isinstance(data.get("shadowedSeqs"), list):
            shadowed = as_dict(data.get("shadowedRange"))
            return Named(self._window.span(as_count(shadowed.get("start")), as_count(shadowed.get("end"))))
        seqs, missing = [], []
        for item in data["shadowedSeqs"]:
            seq = as_count(item)
            if seq is not None and self._numbers.has(seq):
                seqs.append(seq)
            else:
                missing.append(str(item)[:_MISSING_CHARACTERS] if isinstance(item, int | str) else "?")
        return Named(self._window.ordered(seqs), missing)

    def _missing(self, row: Row, missing: list[str]) -> None:
        if missing:
            self._warn(row, "missing-events", f"drops {len(missing)} events that the log does not hold")


FORMAT = DshFormat()
