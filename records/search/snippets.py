"""The part of a passage to show, with what was asked for marked in it. Pure."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator

from .folding import fold, fold_case_kept
from .results import Snippet
from .scoring import Spotter

SNIPPET_MAX = 300
_BEFORE = 60


def snippet(text: str, spotter: Spotter, spans: Collection[str] = ()) -> Snippet:
    """`spans`: folded text that is marked where it stands as it is."""
    found = marks(text, spotter, spans)
    start, end = _window(text, _whole(text, spans) or found)
    inside = (
        (max(first, start) - start, min(last, end) - start)
        for first, last in found
        if first < end and last > start
    )
    return Snippet(text[start:end], tuple(inside), start > 0, end < len(text))


def marks(text: str, spotter: Spotter, spans: Collection[str] = ()) -> list[tuple[int, int]]:
    """(start, end) of what was asked for, in order and apart from each other."""
    return _merged(_marks(text, spotter, spans))


def _marks(text: str, spotter: Spotter, spans: Collection[str]) -> Iterator[tuple[int, int]]:
    folded = fold_case_kept(text)
    if len(folded) != len(text):
        # Folding has moved the characters, so that marks would stand in the wrong places.
        return
    yield from spotter.marks(folded)
    yield from _whole(text, spans)


def _whole(text: str, spans: Collection[str]) -> list[tuple[int, int]]:
    """Where the spans stand as they are, but for case and white space."""
    lowered = fold(text)
    if len(lowered) != len(text):
        return []
    patterns = (re.compile(r"\s+".join(map(re.escape, span.split()))) for span in spans if span.strip())
    return [found.span() for pattern in patterns for found in pattern.finditer(lowered)]


def _merged(marks: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(marks):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _window(text: str, marks: list[tuple[int, int]]) -> tuple[int, int]:
    """Where most marks lie within SNIPPET_MAX characters, beginning with a line or a word."""
    if len(text) <= SNIPPET_MAX:
        return 0, len(text)
    starts = [start for start, _ in marks]
    room = SNIPPET_MAX - _BEFORE
    best = max(
        range(len(starts)), key=lambda n: (bisect_right(starts, starts[n] + room) - n, -n), default=None
    )
    first = starts[best] if best is not None else 0
    start = max(0, min(first - _BEFORE, len(text) - SNIPPET_MAX))
    if start:
        gap = re.search(r"\n|\s", text[start : max(start, first)])
        start += gap.end() if gap else 0
    return start, min(len(text), start + SNIPPET_MAX)
