"""What a Codex compaction kept of the window, and what it put in the place of the rest. Pure."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import orjson

from .codex_items import compact_json, content_text, identifier, item_text, kind_of
from .text import digest

# How every readable summary of Codex begins.
_SUMMARY_OPENING = "Another language model started to solve this problem"
_SEALED_KINDS = frozenset({"compaction", "compaction_summary", "context_compaction"})
# In the history for undo; the model never sees them.
_ID_KEYS = ("compaction_response_id", "window_id")
_UNSEEN_KINDS = frozenset({"ghost_snapshot"})


def digest_seed(kind: str, role: str = "") -> int:
    """Where the checksum of an item starts, so that equal text in another role is another item."""
    return crc32(f"{kind}:{role}".encode("utf-8", "surrogatepass"))


def item_digest(item: dict[str, Any]) -> int:
    kind, role = kind_of(item), item.get("role")
    return digest(
        item_text(item), digest_seed(kind, role if kind == "message" and isinstance(role, str) else "")
    )


@dataclass(slots=True)
class Replacement:
    """The window that a `compacted` row sets. `history` None: it doesn't say, as old versions didn't."""

    compaction_id: str
    # The log gives it no id: a checksum of what it says, which another may say again word for word.
    is_nameless: bool
    summary: str
    history: list[dict[str, Any]] | None
    opaque: bool


def replacement_read(payload: dict[str, Any]) -> Replacement | None:
    """None for a row that carries other things than a window."""
    message = payload.get("message")
    message = message if isinstance(message, str) else ""
    history = _history(payload)
    if history is None and not message and payload.get("guardian_history") is not None:
        return None
    summary = message or _readable_summary(history or [])
    sealed = any(kind_of(item) in _SEALED_KINDS for item in history or [])
    named = next(filter(None, (identifier(payload.get(key)) for key in _ID_KEYS)), "")
    compaction_id = named or hashlib.sha256(_canonical_json(payload)).hexdigest()
    return Replacement(compaction_id, not named, summary, history, not message and (sealed or not summary))


def summary_text(payload: dict[str, Any]) -> str:
    """The summary in words; "" when there is none that can be read."""
    message = payload.get("message")
    return message if isinstance(message, str) and message else _readable_summary(_history(payload) or [])


def keep(
    window: dict[int, tuple[str, int]], history: Iterable[dict[str, Any]]
) -> tuple[set[int], list[dict[str, Any]]]:
    """The events (seq -> uid, digest) that the new history holds, and its items that are none of them.
    Of several equal events the latest stay: Codex cuts from the beginning."""
    by_uid = {uid: seq for seq, (uid, _) in window.items() if uid}
    kept: set[int] = set()
    unnamed: list[dict[str, Any]] = []
    for item in history:
        item_id = item.get("id")
        seq = by_uid.get(item_id) if isinstance(item_id, str) else None
        if seq is None or seq in kept:
            unnamed.append(item)
        else:
            kept.add(seq)
    by_digest: dict[int, list[int]] = {}
    for seq, (_, checksum) in window.items():
        if seq not in kept:
            by_digest.setdefault(checksum, []).append(seq)
    fresh: list[dict[str, Any]] = []
    for item in reversed(unnamed):
        if equal := by_digest.get(item_digest(item)):
            kept.add(equal.pop())
        elif kind_of(item) not in _UNSEEN_KINDS and kind_of(item) != "reference":
            fresh.append(item)
    fresh.reverse()
    return kept, fresh


def _history(payload: dict[str, Any]) -> list[dict[str, Any]] | None:
    history = payload.get("replacement_history")
    if isinstance(history, list):
        return [item for item in history if isinstance(item, dict)]
    entries = payload.get("replacement_history_entries")
    if isinstance(entries, list):
        return [_entry(entry) for entry in entries if isinstance(entry, dict)]
    return None


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    """Entries hold an item, or name one that stands elsewhere."""
    item = entry.get("item")
    return item if isinstance(item, dict) else {"type": "reference", "id": entry.get("item_id")}


def _readable_summary(history: list[dict[str, Any]]) -> str:
    for item in reversed(history):
        if kind_of(item) == "message":
            text = content_text(item.get("content"))
            if text.startswith(_SUMMARY_OPENING):
                return text
    return ""


def _canonical_json(value: dict[str, Any]) -> bytes:
    # orjson makes the bytes at once, without a str between: these payloads can be a hundred megabytes.
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # lone surrogates, deep nesting
        return compact_json(value, sort_keys=True).encode("utf-8", "surrogatepass")
