"""The content of DSH's events, whatever format version wrote them. Pure."""

import json
import re
from typing import Any

import orjson

from .dsh_packed import CHUNK, PACKED, chunk_block, packed_block, part_count
from .dsh_values import as_dict, as_list, as_text
from .events import Block
from .rows import decode

# Events that the model may see, and whose part in the conversation they are. (Up to format 3 a tool
# result is a message of the role `user`.)
ROLES = {
    "user/message": "user",
    "steering/message": "user",
    "assistant/message": "assistant",
    "tool/result": "tool",
    "system/message": "system",
    "developer/message": "developer",
}
SUMMARIES = frozenset({"compaction/summary", "compact/summary"})
# Calls that a program of the model made: their results stand nowhere else.
DISPATCHES = frozenset({"tool/ptc-dispatch", "tool/code-dispatch"})
_ATTACHMENT = re.compile(r"\bsha256:([0-9a-f]{64})\b")


def message_of(data: dict[str, Any]) -> dict[str, Any]:
    """The message of a surface event: `data.message`, or (user messages, oldest logs) `data` itself."""
    message = data.get("message")
    return message if isinstance(message, dict) else data


def blocks_of_row(raw: bytes, part: int) -> list[Block]:
    for value in decode(raw).values:
        count = part_count(value)
        if part < count:
            return _value_blocks(value, part)
        part -= count
    return []


def _value_blocks(value: Any, part: int) -> list[Block]:
    if not isinstance(value, dict):
        return []
    if value.get("type") in PACKED:
        return [packed_block(value, part)]
    kind, data = as_text(value.get("type")), as_dict(value.get("data"))
    if kind == CHUNK and (block := chunk_block(data)):
        return [block]
    return content(kind, data) or [Block("other", _json(data), kind)]


def content(kind: str, data: dict[str, Any]) -> list[Block]:
    """The blocks of an event of type `kind`; [] when it holds facts and no content."""
    if kind == "tool/result":
        return _tool_message(message_of(data), failed=bool(data.get("error")))
    if kind in ROLES:
        return _blocks(message_of(data).get("content"))
    if kind in SUMMARIES:
        return _blocks(data.get("summary"))
    if kind in DISPATCHES:
        return [_call(data), *_tool_result(data.get("content"), is_error=data.get("isError") is True)]
    if kind == "tool/call":
        return [_call(data)]
    message = data.get("message")
    return _blocks(message.get("content")) if isinstance(message, dict) else []


def attachment_path(block: Block) -> str:
    """Where the bytes of an image or file block lie, relative to DSH's home; "" if that cannot be told."""
    match = _ATTACHMENT.search(block.text)
    return f"attachments/v1/objects/{match[1][:2]}/{match[1]}" if match else ""


def _blocks(items: Any, *, in_result: bool = False) -> list[Block]:
    if isinstance(items, str):
        return [Block("text", items)]
    blocks: list[Block] = []
    for item in as_list(items):
        _block_add(blocks, item, in_result=in_result)
    return blocks


def _block_add(blocks: list[Block], item: Any, *, in_result: bool) -> None:
    fields = as_dict(item)
    kind, text = fields.get("type"), fields.get("text")
    if kind in ("text", "reasoning") and isinstance(text, str):
        blocks.append(Block(kind, text))
    elif kind == "tool-call":
        blocks.append(_call(fields))
    elif kind == "tool-result" and not in_result:
        blocks += _tool_result(fields.get("content"), is_error=fields.get("isError") is True)
    elif kind in ("image", "file"):
        blocks.append(_attachment(kind, as_dict(fields.get("attachment"))))
    elif kind == "compaction":
        blocks.append(Block("opaque", name="compaction"))
    else:
        blocks.append(Block("other", _json(item), as_text(kind)))


def _call(fields: dict[str, Any]) -> Block:
    arguments = fields.get("arguments", "")
    text = arguments if isinstance(arguments, str) else _json(arguments)
    return Block("tool-call", text, as_text(fields.get("name")))


def _tool_message(message: dict[str, Any], *, failed: bool) -> list[Block]:
    blocks = _blocks(message.get("content"))
    if any([block.kind == "tool-result" for block in blocks]):  # noqa: C419  (a list is faster here)
        return blocks
    return _joined_result(blocks, is_error=failed or message.get("isError") is True)


def _tool_result(items: Any, *, is_error: bool) -> list[Block]:
    return _joined_result(_blocks(items, in_result=True), is_error=is_error)


def _joined_result(blocks: list[Block], *, is_error: bool) -> list[Block]:
    """One block of all the text, then what is no text."""
    text = "\n".join([block.text for block in blocks if block.kind == "text"])
    return [Block("tool-result", text, "", is_error), *[block for block in blocks if block.kind != "text"]]


def _attachment(kind: str, fields: dict[str, Any]) -> Block:
    name, media = as_text(fields.get("name")), as_text(fields.get("mediaType"))
    words = (name, media, as_text(fields.get("attachmentId")))
    return Block(kind, " ".join(word for word in words if word), name if kind == "file" else media)


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, an integer above 64 bits, deep nesting
        pass
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return ""
