"""Reading JSON that may hold anything. Pure."""

from typing import Any

from .rows import clean

# Above this a number from a log is no event number but damage: it would not fit the database either.
_MAX_INTEGER = 1 << 53


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_name(value: Any) -> str:
    """A text that is kept in the database as it is."""
    return clean(value) if isinstance(value, str) else ""


def as_count(value: Any) -> int | None:
    """A number that can count or number something."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_INTEGER:
        return value
    return None
