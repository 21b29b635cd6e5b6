"""The abstract of a cold record: what a search still finds of its text. Pure."""

from collections.abc import Mapping
from typing import Any

ABSTRACT_MAX = 1000
_CATEGORIES = ("paths", "commands", "errors", "numbers", "decisions")


def abstract_of(provenance: Mapping[str, Any], body: str) -> str:
    """At most ABSTRACT_MAX characters: what the summary lost, since the card has the summary already; of a
    record that says nothing of that, the start of its text."""
    return _lost_text(provenance.get("lost")) or first_text(body)


def _lost_text(lost: Any) -> str:
    """A line for each category. They take turns, so that none crowds out the others. A file edited by hand
    may hold anything."""
    if not isinstance(lost, dict):
        return ""
    given = {name: values for name in _CATEGORIES if isinstance(values := lost.get(name), list)}
    chosen: dict[str, list[str]] = {}
    left = ABSTRACT_MAX
    for turn in range(max(map(len, given.values()), default=0)):
        for name, values in given.items():
            value = " ".join(str(values[turn]).split()) if turn < len(values) else ""
            # With what stands before it: the name of its line, or a comma; and the end of a line.
            cost = len(value) + (2 if name in chosen else len(name) + 3)
            if value and cost <= left:
                chosen.setdefault(name, []).append(value)
                left -= cost
    return "\n".join(f"{name}: {', '.join(chosen[name])}" for name in _CATEGORIES if name in chosen)


def first_text(body: str, limit: int = ABSTRACT_MAX) -> str:
    """The start of `body` after its preface, which is quoted with '>'."""
    lines = body[: limit * 4].lstrip().split("\n")
    first = next((n for n, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return "\n".join(lines[first:]).strip()[:limit]
