"""Reader of Claude Code's session files. Pure."""

from collections.abc import Iterable
from typing import Any, ClassVar

from records.tokens import estimate

from .claude_blocks import as_dict, as_list, as_text, compact_json, entry_blocks, short_id
from .claude_entries import SYNTHETIC, Entry, describe, spilled_files
from .claude_fold import Lane, Slot, fact_of, kept_seqs, lanes_of, metadata
from .claude_head import AGENT_NAME, read_head
from .events import (
    LOG_ONLY,
    SUMMARY,
    Block,
    Effect,
    FileRef,
    Head,
    Known,
    NewEvent,
    RowWarning,
    SessionFact,
)
from .rows import Row, clean, decode
from .text import digest, milliseconds, preview

BOUNDARY, MICRO_BOUNDARY = "system:compact_boundary", "system:microcompact_boundary"
# What a person chose outranks what was made up for her; of equals the later wins.
_TITLES = {"custom-title": 4, "ai-title": 3, "summary": 2, "agent-name": 1}
_DAMAGE = {
    "nul": "NUL bytes, left by a crash, were passed over",
    "glued": "several objects on one line; all are read",
    "damaged": "part of the line is not JSON",
    "too-long": "the line is too long to be parsed",
}
_INLINE_LANE = "side-"
_MAX_COUNT = 2**53


class ClaudeCodeReader:
    agent: ClassVar[str] = AGENT_NAME

    def __init__(self, head: Head, state: dict[str, Any] | None, known: Iterable[Known]) -> None:
        state = state or {}
        known = list(known)
        self._head = head
        self._is_subagent = head.relation == "subagent"
        self._lanes = lanes_of(known, state.get("lanes", {}))
        self._last_inline: str = state.get("last_inline", "")
        self._title_rank: int = state.get("title_rank", 0)
        # The first lane of each uid, and every content seen under it: what is written again is no news.
        self._lane_of_uid: dict[str, str] = {}
        self._copies: set[tuple[str, int, str]] = set()
        self._results: set[str] = set()
        self._boundaries: set[str] = set()
        for event in known:
            self._remember(event.uid, event.digest, event.lane, event.type, event.role, event.ref)

    def state(self) -> dict[str, Any]:
        return {
            "lanes": {name: lane.state() for name, lane in self._lanes.items()},
            "last_inline": self._last_inline,
            "title_rank": self._title_rank,
        }

    def feed(self, row: Row) -> list[Effect]:
        decoded = decode(row.raw)
        effects: list[Effect] = []
        damage = decoded.damage
        for part, value in enumerate(decoded.values):
            if isinstance(value, dict):
                self._read(row, part, value, effects)
            else:
                damage = damage or "damaged"
        if damage:
            effects.append(RowWarning(row.number, damage, _DAMAGE.get(damage, damage)))
        return effects

    def _read(self, row: Row, part: int, fields: dict[str, Any], effects: list[Effect]) -> None:
        inline = fields.get("isSidechain") is True and not self._is_subagent
        entry = describe(fields, inline or self._is_subagent)
        uid = short_id(fields.get("uuid"))
        checksum = digest(entry.text)
        if uid and (uid, checksum, entry.type) in self._copies:
            return
        is_first = uid not in self._lane_of_uid
        lane = self._lane(self._inline_lane(fields, uid)) if inline else self._lanes[""]
        if entry.is_summary and is_first:
            lane = self._waiting_lane(lane)
        # By position: with 17 keywords the call costs three times as much, for every line of every log.
        event = NewEvent(
            lane.next_seq,
            row.number,
            row.offset,
            len(row.raw),
            entry.type,
            part,
            lane.name,
            entry.role,
            entry.source,
            milliseconds(fields.get("timestamp")),
            estimate(entry.text),
            uid,
            entry.ref,
            checksum,
            entry.surface,
            isinstance(fields.get("forkedFrom"), dict),
            preview(entry.glance),
        )
        lane.next_seq += 1
        effects.append(event)
        self._tell(lane, entry, fields, effects)
        if entry.role == "tool":
            effects += [FileRef(path, row.number) for path in spilled_files(fields, entry.text)]
        self._fold(lane, entry, event, fields, is_first, effects)
        self._remember(uid, checksum, lane.name, entry.type, entry.role, entry.ref)

    def _remember(self, uid: str, checksum: int, lane: str, kind: str, role: str, ref: str) -> None:
        if uid:
            self._lane_of_uid.setdefault(uid, lane)
            self._copies.add((uid, checksum, kind))
            if kind == BOUNDARY:
                self._boundaries.add(uid)
        if ref and role == "tool":
            self._results.add(ref)

    # Lanes

    def _lane(self, name: str) -> Lane:
        if name not in self._lanes:
            self._lanes[name] = Lane(name)
        return self._lanes[name]

    def _inline_lane(self, fields: dict[str, Any], uid: str) -> str:
        """The lane of a sub-agent's line in its parent's file: that of the line it hangs on."""
        parent = short_id(fields.get("parentUuid")) or short_id(fields.get("logicalParentUuid"))
        name = self._lane_of_uid.get(parent or uid)
        if name is None and parent:
            name = self._last_inline
        self._last_inline = name or self._new_lane(uid)
        return self._last_inline

    def _new_lane(self, uid: str) -> str:
        name = _INLINE_LANE + uid[:8]
        return name if name not in self._lanes else _INLINE_LANE + uid

    def _waiting_lane(self, lane: Lane) -> Lane:
        """A summary belongs where one is awaited, whatever it says of its chain."""
        if lane.pending:
            return lane
        return next((other for other in self._lanes.values() if other.pending), lane)

    # Window and compactions

    def _fold(
        self,
        lane: Lane,
        entry: Entry,
        event: NewEvent,
        fields: dict[str, Any],
        is_first: bool,
        effects: list[Effect],
    ) -> None:
        if entry.source == SUMMARY:
            effects += self._summary(lane, entry, event, fields, is_first)
        elif entry.type == BOUNDARY:
            effects += self._boundary(lane, event, fields, is_first)
        elif entry.type == MICRO_BOUNDARY:
            effects += self._micro_boundary(lane, event, fields, is_first)
        if entry.surface != LOG_ONLY:
            lane.window.append(Slot(event.seq, event.uid, event.ref if entry.role == "tool" else ""))
        if entry.is_turn:
            effects += lane.turn()

    def _boundary(self, lane: Lane, event: NewEvent, fields: dict[str, Any], is_first: bool) -> list[Effect]:
        if not event.uid or not is_first:
            return []
        values = as_dict(metadata(fields, "compactMetadata", "compact_metadata"))
        fact = fact_of(event.uid, "compaction", event.seq, values, event.time, lane)
        fact.origin_session_id = _origin(fields)
        return lane.begin(fact, kept_seqs(values, lane.window))

    def _summary(
        self, lane: Lane, entry: Entry, event: NewEvent, fields: dict[str, Any], is_first: bool
    ) -> list[Effect]:
        if not is_first and event.uid:
            return []
        if lane.pending:
            return lane.finish(event.seq, event.seq)
        if short_id(fields.get("parentUuid")) in self._boundaries or not lane.window:
            return []
        if not entry.is_summary and self._boundaries:
            return []  # a version that writes boundaries marks its summaries: this one was pasted
        name = event.uid or f"{event.digest:08x}"
        fact = fact_of(f"sum:{name}", "compaction", event.seq, {}, event.time, lane)
        fact.origin_session_id = _origin(fields)
        lane.begin(fact, set())
        return lane.finish(event.seq, event.seq)

    def _micro_boundary(
        self, lane: Lane, event: NewEvent, fields: dict[str, Any], is_first: bool
    ) -> list[Effect]:
        if not event.uid or not is_first:
            return []
        values = as_dict(metadata(fields, "microcompactMetadata", "microcompact_metadata"))
        tools = _ids(metadata(values, "compactedToolIds", "compacted_tool_ids"))
        uids = _ids(metadata(values, "clearedAttachmentUUIDs", "cleared_attachment_uuids"))
        fact = fact_of(event.uid, "microcompact", event.seq, values, event.time, lane)
        fact.origin_session_id = _origin(fields)
        fact.missing = [name for name in tools if name not in self._results]
        fact.missing += [name for name in uids if name not in self._lane_of_uid]
        return lane.clear(fact, set(tools), set(uids))

    # Facts of the session

    def _tell(self, lane: Lane, entry: Entry, fields: dict[str, Any], effects: list[Effect]) -> None:
        said = lane.said
        news: dict[str, Any] = {}
        if "cwd" not in said and (cwd := as_text(fields.get("cwd"))):
            news["cwd"] = clean(cwd)
        version = fields.get("version")
        if version != said.get("version") and isinstance(version, str):
            news["version"] = clean(version)
        if entry.type == "assistant":
            _add_model_and_usage(fields, news)
        elif entry.type in _TITLES:
            news.update(self._title(entry, fields))
        if (lane.name or "forkedFrom" in fields) and "relation" not in said:
            news.update(self._relation(lane, fields))
        if news and (news := {key: value for key, value in news.items() if said.get(key) != value}):
            said.update(news)
            effects.append(SessionFact(news, lane.name))

    def _title(self, entry: Entry, fields: dict[str, Any]) -> dict[str, Any]:
        if entry.type == "summary" and short_id(fields.get("leafUuid")) not in self._lane_of_uid:
            return {}  # names another session, whose end it points to
        title, rank = preview(entry.text), _TITLES[entry.type]
        if not title or rank < self._title_rank:
            return {}
        self._title_rank = rank
        return {"title": title}

    def _relation(self, lane: Lane, fields: dict[str, Any]) -> dict[str, Any]:
        if lane.name:
            return {"relation": "subagent", "parent_id": self._head.session_id}
        origin = _origin(fields)
        if not origin or self._is_subagent or origin == self._head.session_id:
            return {}
        return {"relation": "fork", "parent_id": origin}


class ClaudeCodeFormat:
    agent = AGENT_NAME

    def head(self, rows: Iterable[Row], path: str) -> Head | None:
        return read_head(rows, path)

    def reader(self, head: Head, state: dict[str, Any] | None, known: Iterable[Known]) -> ClaudeCodeReader:
        return ClaudeCodeReader(head, state, known)

    def blocks(self, raw: bytes, part: int) -> list[Block]:
        values = decode(raw).values
        if not 0 <= part < len(values) or not isinstance(values[part], dict):
            return []
        blocks = entry_blocks(values[part])
        if not blocks:
            alone = len(values) == 1
            text = raw.decode("utf-8", "replace").strip() if alone else compact_json(values[part])
            return [Block("other", clean(text))]
        return [Block(b.kind, clean(b.text), clean(b.name), b.is_error) for b in blocks]


FORMAT = ClaudeCodeFormat()


def _origin(fields: dict[str, Any]) -> str:
    return clean(as_text(as_dict(fields.get("forkedFrom")).get("sessionId")))


def _ids(value: Any) -> list[str]:
    return [name for item in as_list(value) if (name := short_id(item))]


def _add_model_and_usage(fields: dict[str, Any], news: dict[str, Any]) -> None:
    """All lines of one answer repeat its usage; the latest counts, never a sum."""
    message = as_dict(fields.get("message"))
    model = message.get("model")
    if not isinstance(model, str) or model == SYNTHETIC:
        return
    news["model"] = clean(model)
    usage = as_dict(message.get("usage"))
    used = (
        _count(usage.get("input_tokens"))
        + _count(usage.get("cache_read_input_tokens"))
        + _count(usage.get("cache_creation_input_tokens"))
    )
    if used:
        news["used_tokens"] = used


def _count(value: Any) -> int:
    return value if type(value) is int and 0 < value < _MAX_COUNT else 0
