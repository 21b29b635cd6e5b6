"""Streamed pieces of an answer (formats 0 and 1): events of their own, or packed, many to a row. Pure.

Packed and unpacked pieces give the same events; their text stands in the finished message again.
"""

from itertools import accumulate
from typing import Any

from .dsh_values import as_dict, as_list, as_text
from .events import Block
from .text import milliseconds

CHUNK = "assistant/chunk"
# Row type: where its texts are, the kind of block that they are pieces of.
PACKED = {
    "text-chunks": ("texts", "text"),
    "reasoning-chunks": ("texts", "reasoning"),
    "tool-call-chunks": ("args", "tool-call"),
}
_DELTAS = {"text-delta": "text", "reasoning-delta": "reasoning", "tool-call-delta": "tool-call"}


def packed_texts(value: dict[str, Any]) -> list[str]:
    data = as_dict(value.get("data"))
    return [as_text(text) for text in as_list(data.get(PACKED[value["type"]][0]))]


def packed_times(value: dict[str, Any], count: int) -> list[int] | list[None]:
    """Each member's time: `dt` holds the steps from one to the next."""
    first = milliseconds(value.get("time0"))
    if first is None:
        return [None] * count
    steps = [milliseconds(step) or 0 for step in as_list(as_dict(value.get("data")).get("dt"))]
    steps += [0] * count
    return list(accumulate(steps[: count - 1], initial=first)) if count else []


def packed_block(value: dict[str, Any], index: int) -> Block:
    name = as_text(as_dict(value.get("data")).get("name"))
    return Block(PACKED[value["type"]][1], packed_texts(value)[index], name)


def chunk_text(data: dict[str, Any]) -> str:
    chunk = as_dict(data.get("chunk"))
    if as_text(chunk.get("type")) not in _DELTAS:
        return ""
    return as_text(chunk.get("argumentsDelta")) or as_text(chunk.get("text"))


def chunk_block(data: dict[str, Any]) -> Block | None:
    """None for the pieces that hold no text of their own: starts, ends, usage."""
    chunk = as_dict(data.get("chunk"))
    kind = _DELTAS.get(as_text(chunk.get("type")))
    return Block(kind, chunk_text(data), as_text(chunk.get("name"))) if kind else None


def part_count(value: Any) -> int:
    """How many events a value of a row stands for."""
    return len(packed_texts(value)) if isinstance(value, dict) and value.get("type") in PACKED else 1
