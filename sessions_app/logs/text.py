"""Small helpers that every reader uses. Pure."""

import zlib
from datetime import datetime
from typing import Any

from .events import PREVIEW_CHARACTERS
from .rows import clean

_YEAR_10000 = 253_402_300_800_000


def preview(text: str) -> str:
    """The first characters of `text` on one line."""
    return clean(" ".join(text[: PREVIEW_CHARACTERS * 2].split()))[:PREVIEW_CHARACTERS]


def digest(text: str, seed: int = 0) -> int:
    """CRC-32: tells a re-written copy of an event from another event under the same id."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), seed)


def milliseconds(value: Any) -> int | None:
    """An ISO 8601 string or a number of ms as integer milliseconds UTC; None if it is neither, or lies
    before 1970 or behind the year 9999."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value).timestamp() * 1000
        except (ValueError, OverflowError):
            return None
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value) if 0 <= value < _YEAR_10000 else None
