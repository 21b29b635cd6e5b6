"""Small helpers that every reader uses. Pure."""

import zlib
from datetime import datetime
from typing import Any

from .events import PREVIEW_CHARACTERS
from .rows import clean


def preview(text: str) -> str:
    """The first characters of `text` on one line."""
    return clean(" ".join(text[: PREVIEW_CHARACTERS * 2].split()))[:PREVIEW_CHARACTERS]


def digest(text: str, seed: int = 0) -> int:
    """CRC-32: tells a re-written copy of an event from another event under the same id."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), seed)


def milliseconds(value: Any) -> int | None:
    """An ISO 8601 string or a number of ms as integer milliseconds UTC; None if it is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if abs(value) < 1e15 else None
    if not isinstance(value, str):
        return None
    try:
        return round(datetime.fromisoformat(value).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
