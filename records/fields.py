"""The fields of a record file: their names, values, limits, and how what stands in a file is read. Pure."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from .clock import iso_to_ms
from .header import Plain, clean, from_json

SCHEMA = 1
# The same as the choices of records.models, which this module can't import.
KINDS = frozenset(
    {
        "episode",
        "open-thread",
        "decision",
        "constraint",
        "fact",
        "preference",
        "procedure",
        "note",
        "checkpoint",
        "digest",
    }
)
SCOPES = frozenset({"session", "workspace"})
STATUSES = frozenset({"active", "pinned", "suggested", "conflict", "resolved", "superseded", "trashed"})
TRUSTS = frozenset({"trusted", "agent", "derived"})

# Characters that still fit where a card is shown or injected.
TITLE_MAX = 160
USE_WHEN_MAX = 400
SUMMARY_MAX = 1000
# SQLite's integers end there.
INTEGER_MAX = 2**63 - 1

# In the order of the file.
FIELDS = (
    "schema",
    "id",
    "kind",
    "scope",
    "workspace",
    "workspace_key",
    "session_id",
    "title",
    "summary",
    "use_when",
    "status",
    "trust",
    "confidence",
    "slot",
    "tokens",
    "tags",
    "entities",
    "sources",
    "links",
    "provenance",
    "created_at",
    "updated_at",
)
TEXTS = ("workspace", "workspace_key", "session_id", "title", "summary", "use_when", "slot")


def coerce(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Fields as RecordDraft has them, keys that are not ours in `extra`; and what made no sense."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in values.items():
        read = READERS.get(name)
        if read is None:
            extra[name] = _typed(value)
            continue
        try:
            fields[name] = read(value)
        except (ValueError, TypeError):
            problems.append(f"{name} makes no sense: {str(value)[:80]!r}")
    if fields.get("schema", SCHEMA) > SCHEMA:
        problems.append(f"schema {fields['schema']} is newer than {SCHEMA}")
    return {**fields, "extra": extra}, problems


def _typed(value: Any) -> Any:
    """A value of a key that is not ours, with the type its plain spelling has in JSON."""
    if not isinstance(value, Plain):
        return value
    try:
        return from_json(value)
    except ValueError:
        return str(value)


def _text(value: Any) -> str:
    if isinstance(value, list | dict):
        raise TypeError
    return "" if value is None else clean(str(value))


def _line(value: Any) -> str:
    text = _text(value)
    return text if len(text.splitlines()) < 2 else " ".join(text.split())


def _one_of(allowed: frozenset[str]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in allowed:
            raise ValueError
        return str(value)

    return read


def _moment(value: Any) -> int:
    text = _text(value)
    return _integer(text) if text.isdecimal() else iso_to_ms(text)


def _count(value: Any) -> int:
    number = _integer(_text(value))
    if number < 1:
        raise ValueError
    return number


def _integer(text: str) -> int:
    number = int(text)
    if number > INTEGER_MAX:
        raise ValueError
    return number


def _fraction(value: Any) -> float | None:
    if value is None:
        return None
    number = float(_text(value))
    if not math.isfinite(number):
        raise ValueError
    return number


def _tags(value: Any) -> dict[str, list[str]]:
    """An object of lists of text; a bare list, or words between commas, is `topic`."""
    if isinstance(value, dict):
        return {str(name): _texts(texts) for name, texts in value.items()}
    topic = _texts(value)
    return {"topic": topic} if topic else {}


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        raise TypeError
    if isinstance(value, list):
        return [str(text) for text in value]
    return [text.strip() for text in _text(value).split(",") if text.strip()]


def _list(value: Any) -> list[Any]:
    if isinstance(value, dict):
        raise TypeError
    return value if isinstance(value, list) else _texts(value)


def _objects(value: Any) -> list[dict[str, Any]]:
    objects = _list(value)
    if not all(isinstance(entry, dict) for entry in objects):
        raise TypeError
    return objects


def _object(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError
    return value


READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(TEXTS, _text),
    "schema": _count,
    "id": _text,
    "title": _line,
    "kind": _one_of(KINDS),
    "scope": _one_of(SCOPES),
    "status": _one_of(STATUSES),
    "trust": _one_of(TRUSTS),
    "confidence": _fraction,
    "tokens": _count,
    "tags": _tags,
    "entities": _list,
    "sources": _objects,
    "links": _object,
    "provenance": _object,
    "created_at": _moment,
    "updated_at": _moment,
}
