"""The rows of a pushed session's log: events as the agent sent them, and what Memex noted itself. Pure.

An event is an object with a text under `id` at the top. A note is `{"memex": {"kind": …}}` and nothing
else: it has no id, so that neither can be taken for the other, whatever an agent puts into its events.
"""

import json
from typing import Any

from .json_slices import loads
from .rows import clean

NOTE = "memex"
SESSION, COMPACTION, EVICTION, UNEVICTION = "session", "compaction", "eviction", "uneviction"
ID_CHARACTERS = 120
_TEXTS = ("role", "type", "text", "toolCallId")


def note_row(kind: str, values: dict[str, Any]) -> bytes:
    """A row of Memex's own, without its b"\\n"."""
    note = {NOTE: {"kind": kind, "version": 1, **values}}
    try:
        return json.dumps(note, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate: escaped it survives
        return json.dumps(note, separators=(",", ":")).encode()


def row_value(raw: bytes) -> dict[str, Any] | None:
    """None when the row is damaged or no object."""
    try:
        value = loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def note_of(value: dict[str, Any]) -> dict[str, Any] | None:
    """What a note says; None for an event."""
    note = value.get(NOTE)
    return note if len(value) == 1 and isinstance(note, dict) else None


def event_problem(value: Any) -> str:
    """Why this is no event; "" when it is one."""
    if not isinstance(value, dict):
        return "not an object"
    if problem := id_problem(value.get("id")):
        return problem
    for name in _TEXTS:
        if value.get(name) is not None and not isinstance(value[name], str):
            return f"'{name}' is not a text"
    if not isinstance(value.get("content"), str | list | None):
        return "'content' is neither a text nor a list of blocks"
    if not isinstance(value.get("source"), str | dict | None):
        return "'source' is neither a text nor an object"
    if not isinstance(value.get("usage"), dict | None):
        return "'usage' is not an object"
    time = value.get("time")
    if isinstance(time, bool) or not isinstance(time, str | int | float | None):
        return "'time' is neither milliseconds nor an ISO 8601 text"
    return ""


def id_problem(name: Any) -> str:
    if not isinstance(name, str) or not name:
        return "'id' is missing or not a text"
    if len(name) > ID_CHARACTERS:
        return f"'id' is longer than {ID_CHARACTERS} characters"
    return "" if clean(name) == name else "'id' holds a NUL or half a character"
