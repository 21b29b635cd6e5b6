"""Where the values of a JSON text begin and end, so that they can be kept as the bytes that came. Pure.

A parser that gives objects loses what it was given: spacing, escapes, big integers, deep nesting. Here
nothing is built and nothing recurses.
"""

import re
from collections.abc import Iterator
from typing import Any

from .rows import decode

# How far `loads_deep` looks into what is nested too deeply for a parser.
LEVELS = 6
_STRING = rb'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"'
# The lone quotation mark is a string that isn't closed.
_BRACKET = re.compile(_STRING + rb'|[{}\[\]]|"')
_SCALAR = re.compile(rb'[^\s,:{}\[\]"]+')
_SPACE = re.compile(rb"[ \t\n\r]*")
_TOKEN = re.compile(_STRING + rb'|[{}\[\]:,]|[^\s,:{}\[\]"]+')
_OPENING = {ord("{"): ord("}"), ord("["): ord("]")}
_CLOSING = frozenset(_OPENING.values())


def space_end(data: bytes, at: int) -> int:
    space = _SPACE.match(data, at)
    return space.end() if space else at


def value_end(data: bytes, at: int) -> int:
    """The end of the value that begins at `at`; what is between its brackets is not checked. Raises
    ValueError."""
    first = data[at : at + 1]
    if first not in (b"{", b"[", b'"'):
        scalar = _SCALAR.match(data, at)
        if not scalar:
            raise ValueError(f"no JSON value at byte {at}")
        return scalar.end()
    depth = 0
    for found in _BRACKET.finditer(data, at):
        sign = found[0]
        if sign == b'"':
            break
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
        if depth <= 0:
            return found.end()
    raise ValueError(f"the JSON value at byte {at} isn't closed")


def members(data: bytes, at: int = 0) -> Iterator[tuple[str, int, int]]:
    """Key, start and end of each member of the object at `at`. Raises ValueError."""
    at = _opened(data, at, b"{")
    while data[at : at + 1] != b"}":
        key, start = _key(data, at)
        end = value_end(data, start)
        yield key, start, end
        at = _next(data, end, b"}")


def elements(data: bytes, at: int = 0) -> tuple[list[tuple[int, int]], int]:
    """Start and end of each value of the array at `at`, and where the array ends. Raises ValueError."""
    found: list[tuple[int, int]] = []
    at = _opened(data, at, b"[")
    while data[at : at + 1] != b"]":
        end = value_end(data, at)
        found.append((at, end))
        at = _next(data, end, b"]")
    return found, at + 1


def members_and_elements(
    data: bytes, name: str
) -> tuple[dict[str, tuple[int, int]], list[tuple[int, int]] | None]:
    """Of the object that `data` is: where its members stand, and the elements of the array `name`, None
    without one. In one pass, for it may be many megabytes. Raises ValueError."""
    spans: dict[str, tuple[int, int]] = {}
    found: list[tuple[int, int]] | None = None
    at = _opened(data, space_end(data, 0), b"{")
    while data[at : at + 1] != b"}":
        key, start = _key(data, at)
        if key == name:
            found, end = elements(data, start)
        else:
            end = value_end(data, start)
        spans[key] = (start, end)
        at = _next(data, end, b"}")
    if space_end(data, at + 1) != len(data):
        raise ValueError(f"something follows the object that ends at byte {at + 1}")
    return spans, found


def _opened(data: bytes, at: int, opening: bytes) -> int:
    """Where the first part of an object or array begins, or its closing bracket stands."""
    if data[at : at + 1] != opening:
        raise ValueError(f"{opening.decode()} expected at byte {at}")
    return space_end(data, at + 1)


def _key(data: bytes, at: int) -> tuple[str, int]:
    """The key at `at`, and where its value begins."""
    end = value_end(data, at)
    key = decode(data[at:end]).values
    colon = space_end(data, end)
    if not key or not isinstance(key[0], str) or data[colon : colon + 1] != b":":
        raise ValueError(f"a key expected at byte {at}")
    return key[0], space_end(data, colon + 1)


def _next(data: bytes, at: int, closing: bytes) -> int:
    """Where the part that follows begins, or the closing bracket stands."""
    at = space_end(data, at)
    sign = data[at : at + 1]
    if sign == closing:
        return at
    at = space_end(data, at + 1)
    if sign != b"," or data[at : at + 1] == closing:
        raise ValueError(f"a further value or {closing.decode()} expected at byte {at}")
    return at


def is_json(data: bytes) -> bool:
    """Whether `data` is one JSON value, however deeply nested. For what parsers give up on: it is slow."""
    stack: list[int] = []
    state, at = "value", space_end(data, 0)
    while at < len(data):
        token = _TOKEN.match(data, at)
        if not token or not (state := _after(state, token[0], stack)):
            return False
        at = space_end(data, token.end())
    return state == "end" and not stack


def _after(state: str, token: bytes, stack: list[int]) -> str:
    """What may follow `token` where `state` was expected; "" when it may not stand there."""
    sign = token[0]
    if sign in _CLOSING and state in ("value or close", "key or close", "end"):
        return "end" if stack and stack.pop() == sign else ""
    if state == "end":
        if token != b"," or not stack:
            return ""
        return "key" if stack[-1] == ord("}") else "value"
    if state in ("key", "key or close"):
        return "colon" if sign == ord('"') and decode(token).values else ""
    if state == "colon":
        return "value" if token == b":" else ""
    if sign in _OPENING:
        stack.append(_OPENING[sign])
        return "key or close" if sign == ord("{") else "value or close"
    found = decode(token)
    return "end" if found.values and not found.damage else ""


def loads(data: bytes) -> Any:
    """The value of `data`. Of one that is nested too deeply for a parser the inner parts are their own
    text. Raises ValueError."""
    found = decode(data)
    if len(found.values) == 1 and not found.damage:
        return found.values[0]
    if found.damage != "damaged" or not is_json(data):
        raise ValueError("no valid JSON")
    return _loads_deep(data, LEVELS)


def _loads_deep(data: bytes, levels: int) -> Any:
    found = decode(data)
    if len(found.values) == 1 and not found.damage:
        return found.values[0]
    if not levels:
        return data.decode("utf-8", "surrogateescape")
    if data.startswith(b"{"):
        return {key: _loads_deep(data[start:end], levels - 1) for key, start, end in members(data)}
    if not data.startswith(b"["):
        raise ValueError("no valid JSON")
    return [_loads_deep(data[start:end], levels - 1) for start, end in elements(data)[0]]
