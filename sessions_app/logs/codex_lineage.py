"""Tells a Codex session's own rows from the history of its parents that its log opens with. Pure.

The log of a fork or a sub-agent starts with its own session_meta, then repeats its parent's log from the
parent's session_meta on (which may open with the grandparent's), every timestamp re-stamped. What stays
true are the ids: sessions and turns carry UUIDv7s, which sort by time, so a turn that is older than the
session belongs to the youngest ancestor that is older than the turn.
"""

import re
from typing import Any

from .codex_items import identifier, kind_of

_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_TURN_EVENTS = frozenset({"task_started", "turn_started"})
# Ids that are no UUIDv7s leave only time: a parent's history is written in one burst.
_BURST_GAP_MS = 2_000


def meta_id(meta: dict[str, Any]) -> str:
    """The session that a session_meta is of. (A `session_id` beside the `id` is that of the whole tree.)"""
    return identifier(meta.get("id")) or identifier(meta.get("session_id"))


def parent_of(meta: dict[str, Any]) -> tuple[str, str]:
    """Parent and relation that a session_meta names."""
    source = meta.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    spawn = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
    forked_from = identifier(meta.get("forked_from_id"))
    parent = identifier(meta.get("parent_thread_id"))
    if isinstance(spawn, dict):
        parent = parent or identifier(spawn.get("parent_thread_id"))
    if parent or spawned:
        return parent or forked_from, "subagent"
    return forked_from, "fork" if forked_from else ""


class Lineage:
    """`owner` is the session that the row observed last happened in; once `settled`, the session itself
    for good, and nothing need be observed any more."""

    def __init__(self, session_id: str, parent_id: str, state: dict[str, Any] | None) -> None:
        state = state or {}
        self.session_id = session_id
        self.owner: str = state.get("owner", session_id)
        self.settled: bool = state.get("settled", False)
        self._ids: list[str] = list(state.get("ids", [session_id, parent_id] if parent_id else [session_id]))
        self._first_own_ordinal: int | None = state.get("first_own_ordinal")
        self._turns_tell: bool = state.get("turns_tell", False)
        self._started: int | None = state.get("started")
        self._last: int | None = state.get("last")

    def state(self) -> dict[str, Any]:
        if self.settled:
            return {"owner": self.owner, "settled": True}
        return {
            "owner": self.owner,
            "settled": False,
            "ids": list(self._ids),
            "first_own_ordinal": self._first_own_ordinal,
            "turns_tell": self._turns_tell,
            "started": self._started,
            "last": self._last,
        }

    def observe(self, kind: str, payload: dict[str, Any], *, time: int | None, ordinal: Any) -> None:
        """To be told every row, in order, until settled."""
        if kind == "session_meta":
            self._observe_meta(payload)
            self._started = time if self._started is None else self._started
        elif len(self._ids) == 1:
            self._settle()
        else:
            self._observe_ordinal(ordinal)
            if kind == "turn_context" or kind_of(payload) in _TURN_EVENTS:
                self._observe_turn(payload.get("turn_id"))
            self._observe_gap(time)
        self._last = time or self._last

    def _settle(self) -> None:
        self.owner, self.settled = self.session_id, True

    def _observe_meta(self, payload: dict[str, Any]) -> None:
        session_id = meta_id(payload)
        if session_id == self.session_id:
            if self.owner != session_id:
                self._settle()
            start = payload.get("subagent_history_start_ordinal")
            self._first_own_ordinal = start if isinstance(start, int) else None
        elif session_id:
            if session_id not in self._ids:
                self._ids.append(session_id)
            self.owner = session_id

    def _observe_ordinal(self, ordinal: Any) -> None:
        if self._first_own_ordinal is None or not isinstance(ordinal, int):
            return
        if ordinal >= self._first_own_ordinal:
            self._settle()
        elif self.owner == self.session_id:
            self.owner = self._ids[1]

    def _observe_turn(self, turn_id: Any) -> None:
        if not (_is_uuid7(turn_id) and _is_uuid7(self.session_id)) or self.settled:
            return
        self._turns_tell = True
        if turn_id >= self.session_id:
            self._settle()
            return
        ancestors = [each for each in self._ids if each != self.session_id]
        self.owner = max(
            (each for each in ancestors if _is_uuid7(each) and each <= turn_id), default=min(ancestors)
        )

    def _observe_gap(self, time: int | None) -> None:
        if self._turns_tell or self.owner == self.session_id or time is None or self._last is None:
            return
        if time - self._last > _BURST_GAP_MS and time >= (self._started or 0):
            self._settle()


def _is_uuid7(value: Any) -> bool:
    return isinstance(value, str) and _UUID7.fullmatch(value) is not None
