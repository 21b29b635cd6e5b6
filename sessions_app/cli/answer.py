"""What a `memory` subcommand says: as JSON, as lines for people, or as bytes."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

# What SQLite holds in a column.
_LARGEST = 2**63 - 1
# Archived text must not steer the terminal, nor turn its lines around.
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CONTROL_BUT_LINES = re.compile(_CONTROL.pattern.replace(r"\x0a", r"\x0b"))


@dataclass(slots=True)
class Answer:
    data: dict[str, Any] = field(default_factory=dict)
    lines: Iterable[str] = ()
    raw: Iterable[bytes] | None = None


class Refused(Exception):
    """The message says what to do instead."""


def visible(text: str, *, keep_lines: bool = False) -> str:
    """`text` with every control character shown as one sign."""
    return (_CONTROL_BUT_LINES if keep_lines else _CONTROL).sub("\ufffd", text)


def when(milliseconds: int | None) -> str:
    """Local time to the minute."""
    if milliseconds is None:
        return "-"
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%Y-%m-%d %H:%M")


def size(number: int) -> str:
    """12,300 -> 12.3k."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.1f}k"
    return f"{number / 1_000_000:.1f}M"


def span(text: str) -> tuple[int, int]:
    """`12-40` or `12`. Raises Refused."""
    first, dash, last = text.partition("-")
    try:
        pair = int(first), int(last if dash else first)
    except ValueError:
        raise Refused(f"{text!r} is no range: write A-B, or A alone.") from None
    if pair[0] < 0 or pair[1] < pair[0] or pair[1] > _LARGEST:
        raise Refused(
            f"{text!r} is no range: the first must not lie behind the last, nor the last beyond reach."
        )
    return pair
