"""What the first rows of a DSH log tell. Pure."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .dsh_values import as_count, as_dict, as_name, as_text
from .events import Head
from .rows import Row, decode
from .text import milliseconds

AGENT_NAME = "dsh"
_FAMILIES = frozenset(
    {"turn", "step", "user", "assistant", "tool", "request", "session", "compaction", "agent", "permission"}
)
_GENERATION = re.compile(r"session(\.v[1-9]\d*)?\.jsonl(\.zstd)?")
_ESCAPED = re.compile(r"((?:~[0-9A-F]{4})+)")


def head_read(rows: Iterable[Row], path: str) -> Head | None:
    """From the header; where that is damaged, from the events and the name of the folder."""
    headless = None
    for row in rows:
        for value in map(as_dict, decode(row.raw).values):
            if _is_header(value):
                return head_of(value, path)
            if headless is None and _is_event(value):
                headless = Head(AGENT_NAME, _id_from_path(path), started_at=milliseconds(value["time"]))
    return headless


def head_of(header: dict[str, Any], path: str = "") -> Head:
    parent_id = as_name(header.get("parentSession"))
    is_subagent = header.get("origin") == "subagent" or bool(as_count(header.get("delegationDepth")))
    return Head(
        agent=AGENT_NAME,
        session_id=as_name(header.get("id")) or _id_from_path(path),
        cwd=as_name(header.get("cwd")),
        started_at=as_count(header.get("createdAt")) or None,
        parent_id=parent_id,
        relation="subagent" if is_subagent else "fork" if parent_id else "",
        version=str(header.get("version", "")),
    )


def _is_header(value: dict[str, Any]) -> bool:
    # Other agents' logs start with a row of type "session" too, but date it with a string.
    is_dated = as_count(value.get("createdAt")) is not None
    return value.get("type") == "session" and is_dated and as_count(value.get("version")) is not None


def _is_event(value: dict[str, Any]) -> bool:
    family, slash, _ = as_text(value.get("type")).partition("/")
    is_numbered = as_count(value.get("seq")) is not None and as_count(value.get("time")) is not None
    return bool(slash) and family in _FAMILIES and is_numbered and isinstance(value.get("data"), dict)


def _id_from_path(path: str) -> str:
    """A session's folder is named by its id, with odd characters as `~` and a UTF-16 unit in hex."""
    file = Path(path)
    name = file.parent.name if _GENERATION.fullmatch(file.name) else file.name.split(".jsonl")[0]
    return _ESCAPED.sub(_unescape, name)


def _unescape(match: re.Match[str]) -> str:
    return bytes.fromhex(match[1].replace("~", "")).decode("utf-16-be", "replace")
