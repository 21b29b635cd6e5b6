"""What the reading tools have in common: filters, cards, pages."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from records.models import Kind, Status
from records.queries import Filters

from .parameters import Parameter
from .rendering import day, line, paged
from .tool import Arguments

FILTERS = (
    Parameter("kinds", "strings", "Only records of these kinds.", choices=Kind.values),
    Parameter(
        "statuses",
        "strings",
        "Only with these statuses; by default all but superseded and suggested ones.",
        choices=Status.values,
    ),
    Parameter(
        "tag", "string", 'Only with this tag: a value, or name:value such as "topic:deploy".', low=1, high=200
    ),
    Parameter("agent", "string", "Only of this agent: claude-code, codex, dsh.", low=1, high=32),
    Parameter("cold", "boolean", "true: only cold records; false: only hot ones."),
)


def filters_of(given: Arguments) -> Filters:
    return {
        "kinds": given.get("kinds") or (),
        "statuses": given.get("statuses") or (),
        "tag": given.get("tag"),
        "agent": given.get("agent"),
        "cold": given.get("cold"),
    }


def page_of(given: Arguments, head: str, blocks: Sequence[str], foot: str = "") -> str:
    return paged(head, blocks, foot, page=given["page"], max_chars=settings.MEMEX_MAX_INLINE_CHARS)


def _marks(card: dict[str, Any]) -> str:
    marks = [card["status"]] if card["status"] != "active" else []
    if card["cold"]:
        marks.append("cold")
    return f" [{', '.join(marks)}]" if marks else ""


def card_head(card: dict[str, Any]) -> str:
    return f"{card['id']} · {card['kind']} · {day(card['createdAt'])} · {line(card['title'])}{_marks(card)}"
