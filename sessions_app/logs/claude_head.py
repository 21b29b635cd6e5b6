"""Which session a Claude Code file holds, from its first rows. Pure."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from .claude_blocks import as_dict, as_text
from .events import Head
from .rows import Row, clean, decode
from .text import milliseconds

AGENT_NAME = "claude-code"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SUBAGENT = re.compile(r"agent-[A-Za-z0-9_-]+")
_MESSAGE_KEYS = frozenset({"uuid", "parentUuid", "version", "cwd", "userType", "isSidechain"})
_LINE_KEYS = frozenset({"parentUuid", "logicalParentUuid", "userType", "isSidechain"})


def read_head(rows: Iterable[Row], path: str) -> Head | None:
    head = Head(AGENT_NAME)
    said_session, fork_of, recognised = "", "", False
    for row in rows:
        for fields in decode(row.raw).values:
            if not isinstance(fields, dict):
                continue
            if _is_relative(fields):
                return None
            is_message = _is_message(fields)
            recognised = recognised or is_message or _is_threaded(fields)
            said_session = said_session or clean(as_text(fields.get("sessionId")))
            fork_of = fork_of or clean(as_text(as_dict(fields.get("forkedFrom")).get("sessionId")))
            head.cwd = head.cwd or clean(as_text(fields.get("cwd")))
            head.version = head.version or clean(as_text(fields.get("version")))
            if head.started_at is None:
                head.started_at = milliseconds(fields.get("timestamp"))
            if is_message and head.cwd and head.started_at is not None:
                return _identify(head, path, said_session, fork_of)
    return _identify(head, path, said_session, fork_of) if recognised else None


def _is_message(fields: dict[str, Any]) -> bool:
    """Any chat log has a type and a message; these also name the session and how they hang in it."""
    return (
        fields.get("type") in ("user", "assistant")
        and isinstance(fields.get("sessionId"), str)
        and "content" in as_dict(fields.get("message"))
        and not _MESSAGE_KEYS.isdisjoint(fields)
    )


def _is_threaded(fields: dict[str, Any]) -> bool:
    return (
        fields.get("type") in ("system", "attachment", "progress")
        and isinstance(fields.get("sessionId"), str)
        and isinstance(fields.get("uuid"), str)
        and not _LINE_KEYS.isdisjoint(fields)
    )


def _is_relative(fields: dict[str, Any]) -> bool:
    """Agents that took over the line format keep a message's content under another name."""
    message = as_dict(fields.get("message"))
    return isinstance(message.get("parts"), list) and "content" not in message


def _identify(head: Head, path: str, said_session: str, fork_of: str) -> Head:
    *folders, name = re.split(r"[/\\]", path)
    stem = name.partition(".jsonl")[0]
    if _SUBAGENT.fullmatch(stem):
        head.session_id, head.relation = stem, "subagent"
        head.parent_id = _folder_parent(folders) or (said_session if said_session != stem else "")
        return head
    head.session_id = stem if _UUID.fullmatch(stem) else said_session
    if fork_of and fork_of != head.session_id:
        head.parent_id, head.relation = fork_of, "fork"
    return head


def _folder_parent(folders: list[str]) -> str:
    """The session whose folder holds the `subagents` folder."""
    for above, folder in pairwise(folders):
        if folder == "subagents" and _UUID.fullmatch(above):
            return above
    return ""
