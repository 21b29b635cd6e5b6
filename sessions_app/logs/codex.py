"""OpenAI Codex: `rollout-<time>-<thread id>.jsonl`, one row an envelope {timestamp, type, payload}. Pure.

What the model sees are the `response_item` rows. `event_msg` rows repeat most of it for the user
interface and are read for titles, token counts and rollbacks; as content only where nothing else has it.
"""

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import PurePath
from typing import Any

from .codex_compaction import summary_text
from .codex_items import as_text, event_blocks, item_blocks, kind_of
from .codex_lineage import meta_id, parent_of
from .codex_reader import CodexReader
from .codex_shapes import ENVELOPES, envelope, is_bare_header
from .events import Block, Head, Known
from .rows import Row, clean, decode
from .text import milliseconds

_HEAD_ROWS = 200
_FILE_NAME = re.compile(r"rollout-[\dT-]{19}-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_LOG_SUFFIX = re.compile(r"\.jsonl(\.zstd?)?$")


class CodexFormat:
    agent = "codex"

    def head(self, rows: Iterable[Row], path: str) -> Head | None:
        first: Head | None = None
        for row in islice(rows, _HEAD_ROWS):
            for value in decode(row.raw).values:
                if not _is_codex(value):
                    continue
                kind, payload = envelope(value)
                if kind == "session_meta":
                    return _meta_head(value, payload, path)
                first = first or Head(
                    self.agent, _id_of_file(path), started_at=milliseconds(value.get("timestamp"))
                )
        return first

    def reader(self, head: Head, state: dict[str, Any] | None, known: Iterable[Known]) -> CodexReader:
        return CodexReader(head, state, known)

    def blocks(self, raw: bytes, part: int) -> list[Block]:
        values = decode(raw).values
        value = values[part] if part < len(values) else None
        if not isinstance(value, dict):
            return []
        kind, payload = envelope(value)
        if kind == "response_item":
            return item_blocks(payload)
        if kind == "event_msg":
            return event_blocks(payload)
        if kind == "compacted":
            summary = summary_text(payload)
            sealed = "The summary is encrypted or left out: only the provider can read it."
            return [Block("text", summary) if summary else Block("opaque", sealed)]
        return [Block("other", as_text(payload))]


FORMAT = CodexFormat()


def _is_codex(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(payload, dict) and isinstance(kind, str):
        return kind in ENVELOPES and (kind not in ("response_item", "event_msg") or kind_of(payload) != "")
    return _is_bare(value)


def _is_bare(value: dict[str, Any]) -> bool:
    """A row of before the envelope (2025): an API item as it is, or a state marker."""
    kind, content = value.get("type"), value.get("content")
    if value.get("record_type") == "state" or is_bare_header(value):
        return True
    if kind == "message" and isinstance(content, list) and content:
        return isinstance(content[0], dict) and content[0].get("type") in (
            "input_text",
            "output_text",
            "input_image",
        )
    if kind == "reasoning":
        return isinstance(value.get("summary"), list)
    return kind in ("function_call", "function_call_output", "local_shell_call") and "call_id" in value


def _meta_head(value: dict[str, Any], payload: dict[str, Any], path: str) -> Head:
    parent_id, relation = parent_of(payload)
    started = milliseconds(payload.get("timestamp"))
    return Head(
        agent=CodexFormat.agent,
        session_id=meta_id(payload) or _id_of_file(path),
        cwd=clean(as_text(payload.get("cwd"))),
        started_at=milliseconds(value.get("timestamp")) if started is None else started,
        parent_id=parent_id,
        relation=relation,
        version=clean(as_text(payload.get("cli_version"))),
    )


def _id_of_file(path: str) -> str:
    name = PurePath(path).name
    found = _FILE_NAME.match(name)
    return found[1] if found else _LOG_SUFFIX.sub("", name)
