"""Finds the lines of a text that a pattern matches, and cuts them for showing. Pure.

Works on bytes, as files hold them: bytes that are no UTF-8 are shown as U+FFFD and hide nothing else of
their line. A line ends with b"\\n"; a CR before it is not shown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

from records import header
from records.recordfile import body_of

LINE_CHARACTERS = 300
# Shown before the first match of a line that is cut.
LEAD_CHARACTERS = 100
SPANS = 50
# Searched at once: the time is looked at in between.
WINDOW_BYTES = 1024 * 1024
# No character of UTF-8 takes more bytes.
_WIDEST = 4

_EVENT = b"### [#"
_EVENT_SEQ = re.compile(rb"### \[#(\d{1,18})\]")


class TimeUp(Exception):
    """The deadline has passed."""


@dataclass(frozen=True, slots=True)
class LineHit:
    """A line that matches. `number` from 1, `offset` in bytes, both counted from where the text begins;
    `seq`: of the event whose block it stands in. `spans`: (start, end) of matches in characters of `line`."""

    number: int
    offset: int
    seq: int | None
    line: str
    spans: tuple[tuple[int, int], ...]
    cut_before: bool
    cut_after: bool
    before: tuple[str, ...]
    after: tuple[str, ...]


def body_start(data: bytes) -> int:
    """Where the body of a record file begins."""
    parts = header.split(data)
    if parts is None:
        return 0
    first = data[parts.start : parts.end].partition(b"\n")[0]
    if header.LINE.match(first.decode("utf-8", "replace")):
        return parts.body
    return len(data) - len(body_of(data))


def lines_matching(
    data: bytes, expression: Any, *, start: int = 0, beyond: int = 0, context: int = 0, deadline: float
) -> Iterator[LineHit]:
    """`expression`: a compiled RE2 that matches no line end. `start`: where the text begins in `data`.
    `beyond`: matches that end before this offset in `data` don't count. `deadline`: of time.monotonic.
    Raises TimeUp."""
    position = start if beyond <= start else _near(data, start, beyond)
    counted, number, seq = start, 1, None
    while match := _next_match(data, expression, position, beyond, deadline):
        line_start = max(start, data.rfind(b"\n", start, match[0]) + 1)
        line_end = _line_end(data, match[1])
        number += data.count(b"\n", counted, line_start)
        seq = _last_seq(data, counted, line_end, seq)
        counted, position = line_start, line_end + 1
        visible_end = _without_cr(data, line_start, line_end)
        spans = [(first, min(last, visible_end)) for first, last in _spans(data, expression, match, line_end)]
        spans = [span for span in spans if span[0] < span[1]]
        if not spans:
            continue
        line, shown, cut_before, cut_after = _excerpt(data, line_start, visible_end, spans)
        yield LineHit(
            number,
            line_start - start,
            seq,
            line,
            shown,
            cut_before,
            cut_after,
            tuple(_lines_before(data, start, line_start, context)),
            tuple(_lines_after(data, line_end, context)),
        )


def _near(data: bytes, start: int, beyond: int) -> int:
    """Where to begin, so that a match across `beyond` is found: at the start of its line, if that is near."""
    reach = max(start, beyond - LINE_CHARACTERS * _WIDEST)
    return max(reach, data.rfind(b"\n", reach, beyond) + 1)


def _next_match(
    data: bytes, expression: Any, position: int, beyond: int, deadline: float
) -> tuple[int, int] | None:
    """The next that is not empty."""
    end = position
    while position < len(data):
        if monotonic() > deadline:
            raise TimeUp
        if end <= position:
            end = _line_end(data, position + WINDOW_BYTES)
        found = expression.search(data, position, end)
        if found is None:
            position = end + 1
            continue
        first, last = found.span()
        if first < last and last > beyond:
            return first, last
        position = max(last, first + 1)
    return None


def _line_end(data: bytes, position: int) -> int:
    end = data.find(b"\n", position)
    return len(data) if end < 0 else end


def _without_cr(data: bytes, line_start: int, line_end: int) -> int:
    return line_end - 1 if line_start < line_end and data[line_end - 1 : line_end] == b"\r" else line_end


def _spans(data: bytes, expression: Any, first: tuple[int, int], line_end: int) -> Iterator[tuple[int, int]]:
    """The match and those after it in the same line, as far as they can be shown."""
    yield first
    reach = min(line_end, first[0] + LINE_CHARACTERS * _WIDEST)
    position = first[1]
    for _ in range(SPANS):
        found = expression.search(data, position, line_end) if position < reach else None
        if found is None or found.start() >= reach:
            return
        if found.start() < found.end():
            yield found.span()
        position = max(found.end(), found.start() + 1)


def _last_seq(data: bytes, start: int, end: int, seq: int | None) -> int | None:
    while (at := data.rfind(_EVENT, start, end)) >= 0:
        if (at == start or data[at - 1 : at] == b"\n") and (found := _EVENT_SEQ.match(data, at)):
            return int(found[1])
        end = at
    return seq


def _excerpt(
    data: bytes, line_start: int, line_end: int, spans: list[tuple[int, int]]
) -> tuple[str, tuple[tuple[int, int], ...], bool, bool]:
    """At most LINE_CHARACTERS around the first match, and the spans in them."""
    start, end = line_start, line_end
    if end - start > LINE_CHARACTERS:
        at = spans[0][0]
        before = _characters(data[max(line_start, at - LINE_CHARACTERS * _WIDEST) : at])
        following = _characters(data[at : min(line_end, at + LINE_CHARACTERS * _WIDEST)])
        lead = max(LEAD_CHARACTERS, LINE_CHARACTERS - len(following))
        before = before[-lead:]
        following = following[: LINE_CHARACTERS - len(before)]
        start, end = at - _size(before), at + _size(following)
    # Piece by piece, so that the spans fit whatever becomes of bytes that are no UTF-8.
    text, shown, position = "", [], start
    for first, last in spans:
        if first >= end:
            break
        text += data[position:first].decode("utf-8", "replace")
        at = len(text)
        position = min(last, end)
        text += data[first:position].decode("utf-8", "replace")
        shown.append((at, len(text)))
    text += data[position:end].decode("utf-8", "replace")
    return text, tuple(shown), start > line_start, end < line_end


def _characters(data: bytes) -> str:
    # Each byte that is no part of a character counts as one.
    return data.decode("utf-8", "surrogateescape")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _lines_before(data: bytes, start: int, line_start: int, count: int) -> list[str]:
    lines: list[str] = []
    end = line_start - 1
    while len(lines) < count and end >= start:
        begin = max(start, data.rfind(b"\n", start, end) + 1)
        lines.append(_line(data, begin, end))
        end = begin - 1
    return lines[::-1]


def _lines_after(data: bytes, line_end: int, count: int) -> list[str]:
    lines: list[str] = []
    begin = line_end + 1
    while len(lines) < count and begin < len(data):
        end = _line_end(data, begin)
        lines.append(_line(data, begin, end))
        begin = end + 1
    return lines


def _line(data: bytes, start: int, end: int) -> str:
    end = min(_without_cr(data, start, end), start + LINE_CHARACTERS * _WIDEST)
    return data[start:end].decode("utf-8", "replace")[:LINE_CHARACTERS]
