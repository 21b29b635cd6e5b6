"""The content of a Claude Code line, as blocks. Pure.

Lines follow no contract: any field may be missing or of another type, and none of that may cost the
rest of its line.
"""

import json
from typing import Any

import orjson

from .events import Block
from .rows import clean

_MAX_ID = 120

# Keys that say what a value is or where it came from, not something anybody wrote.
_ENVELOPE = frozenset(
    ("type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "session_id", "timestamp",
     "cwd", "gitBranch", "version", "userType", "entrypoint", "slug", "requestId", "promptId", "agentId",
     "toolUseID", "messageId", "leafUuid", "signature", "base64", "hookName", "hookEvent")
)  # fmt: skip


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def short_id(value: Any) -> str:
    return clean(value)[:_MAX_ID] if isinstance(value, str) else ""


def compact_json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        pass  # orjson takes neither lone surrogates, nor integers over 64 bits, nor 255 levels
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return leaves(value)


def leaves(value: Any) -> str:
    """Every string in `value` that somebody may have written, one a line, in order."""
    found: list[str] = []
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            if item.strip():
                found.append(item)
        elif isinstance(item, dict):
            binary = "media_type" in item
            rest += [
                v for k, v in reversed(item.items()) if k not in _ENVELOPE and not (binary and k == "data")
            ]
        elif isinstance(item, list):
            rest += reversed(item)
    return "\n".join(found)


def entry_blocks(entry: dict[str, Any]) -> list[Block]:
    """What a line says, to the model or to the person; [] for lines that only keep books."""
    kind = entry.get("type")
    if kind in ("user", "assistant"):
        return content_blocks(message_content(entry))
    if kind == "attachment":
        return _attachment_blocks(as_dict(entry.get("attachment")))
    if kind == "system":
        text = as_text(entry.get("content"))
        return [Block("text", text)] if text else []
    return []


def message_content(entry: dict[str, Any]) -> Any:
    message = entry.get("message")
    return message.get("content") if isinstance(message, dict) else message


def content_blocks(content: Any) -> list[Block]:
    blocks: list[Block] = []
    if isinstance(content, list):
        for item in content:
            _add_block(item, blocks)
    elif content is not None and content != "":
        _add_block(content, blocks)
    return blocks


def _add_block(item: Any, blocks: list[Block]) -> None:
    if isinstance(item, str):
        blocks.append(Block("text", item))
        return
    fields = item if isinstance(item, dict) else {}
    kind = fields.get("type")
    if kind == "text" and isinstance(fields.get("text"), str):
        blocks.append(Block("text", fields["text"]))
    elif kind == "tool_result" or "tool_use_id" in fields:
        _add_result(fields, blocks)
    elif "input" in fields and isinstance(fields.get("name"), str):
        blocks.append(Block("tool-call", compact_json(fields["input"]), fields["name"]))
    elif kind == "thinking":
        blocks.append(Block("reasoning", as_text(fields.get("thinking"))))
    elif kind == "redacted_thinking":
        blocks.append(Block("reasoning"))
    elif kind == "image":
        blocks.append(Block("image", name=_media_type(fields) or "image"))
    elif kind == "document":
        blocks.append(_document(fields))
    else:
        blocks.append(Block("other", compact_json(item)))


def _add_result(fields: dict[str, Any], blocks: list[Block]) -> None:
    content = fields.get("content", fields.get("text"))
    result = Block("tool-result", is_error=fields.get("is_error") is True)
    blocks.append(result)
    if isinstance(content, str):
        result.text = content
        return
    parts: list[Block] = []
    for item in content if isinstance(content, list) else [content]:
        if item is not None:
            _add_block(item, parts)
    result.text = "\n".join([block.text for block in parts if block.kind not in ("image", "file")])
    blocks += [block for block in parts if block.kind in ("image", "file")]


def _document(fields: dict[str, Any]) -> Block:
    source = as_dict(fields.get("source"))
    text = as_text(source.get("data")) if source.get("type") == "text" else ""
    return Block("file", text, as_text(fields.get("title")) or _media_type(fields) or "document")


def _media_type(fields: dict[str, Any]) -> str:
    source = as_dict(fields.get("source"))
    return as_text(source.get("media_type")) or as_text(source.get("type"))


def _attachment_blocks(attachment: dict[str, Any]) -> list[Block]:
    kind = attachment.get("type")
    if kind == "queued_command":
        return content_blocks(attachment.get("prompt"))
    if kind == "file":
        return [_attached_file(attachment)]
    if as_text(kind).startswith("hook_") and "content" in attachment:
        text = leaves(attachment["content"])
    else:
        text = leaves(attachment)
    return [Block("text", text)] if text else []


def _attached_file(attachment: dict[str, Any]) -> Block:
    name = as_text(attachment.get("filename")) or as_text(attachment.get("displayPath"))
    content = attachment.get("content")
    text = as_dict(as_dict(content).get("file")).get("content", content)
    return Block("file", text if isinstance(text, str) else leaves(text), name)
