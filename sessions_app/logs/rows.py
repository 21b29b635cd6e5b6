"""Bytes of a log to rows and to the JSON objects in them. Pure, streaming, never fails.

A row is what stands between two b"\\n": never str.splitlines, which also splits at U+2028 and U+0085.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

# A row above this is kept in the mirror like any other, but not parsed: one such row would otherwise
# decide how much memory an import needs.
MAX_PARSED_ROW = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_decoder = json.JSONDecoder()


@dataclass(slots=True)
class Row:
    """One line of a stream, without its b"\\n". `offset` counts bytes of the decompressed stream."""

    number: int
    offset: int
    raw: bytes


class RowSplitter:
    """Cuts chunks into rows; keeps what has no b"\\n" yet."""

    def __init__(self, offset: int = 0, number: int = 0) -> None:
        self.offset = offset
        self.number = number
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[Row]:
        if b"\n" not in chunk:
            if chunk:
                self._parts.append(chunk)
            return
        if self._parts:
            chunk = b"".join((*self._parts, chunk))
            self._parts.clear()
        lines = chunk.split(b"\n")
        rest = lines.pop()
        for raw in lines:
            yield Row(self.number, self.offset, raw)
            self.number += 1
            self.offset += len(raw) + 1
        if rest:
            self._parts.append(rest)

    @property
    def tail(self) -> bytes:
        """The unterminated last line so far."""
        return b"".join(self._parts)


@dataclass(slots=True)
class Decoded:
    """The JSON values of a row. `damage` says in a word what was wrong, though the rest is there:
    `nul` (NUL bytes stripped), `glued` (several objects on one line), `damaged` (part of the row is
    no JSON), `too-long` (not parsed)."""

    values: list[Any]
    damage: str = ""


def decode(raw: bytes) -> Decoded:
    """Blank rows give no value and no damage."""
    try:
        return Decoded([orjson.loads(raw)])
    except ValueError:
        return _decode_odd(raw)


def _decode_odd(raw: bytes) -> Decoded:
    # What orjson refuses and real logs hold: BOM, CR, NUL blocks after a crash, two objects on a line,
    # lone surrogates, NaN, nesting over 1,024.
    if len(raw) > MAX_PARSED_ROW:
        return Decoded([], "too-long")
    damage = ""
    text = raw.removeprefix(_BOM).strip()
    if not text:
        return Decoded([])
    if b"\0" in text:
        text, damage = text.replace(b"\0", b"").strip(), "nul"
        if not text:
            return Decoded([], damage)
    characters = text.decode("utf-8", "surrogateescape")
    values: list[Any] = []
    at = 0
    while at < len(characters):
        try:
            value, at = _decoder.raw_decode(characters, at)
        except (ValueError, RecursionError):
            return Decoded(values, "damaged")
        values.append(value)
        while at < len(characters) and characters[at].isspace():
            at += 1
    if len(values) > 1:
        damage = damage or "glued"
    return Decoded(values, damage)


def clean(text: str) -> str:
    """`text` fit for SQLite and UTF-8: lone surrogates replaced, NULs dropped."""
    if text.isascii():
        return text.replace("\0", "") if "\0" in text else text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
