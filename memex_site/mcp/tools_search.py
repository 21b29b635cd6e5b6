"""The tools that find: search and grep."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from django.conf import settings

from records.search.grep import CONTEXT_MAX, MAX_HITS, BadPattern
from sessions_app.access import Access
from sessions_app.operations import reading
from sessions_app.principals import READ

from .filters import FILTERS, card_head, filters_of, page_of
from .parameters import BadCall, Parameter
from .rendering import DATA, events, fenced_parts, line
from .tool import PAGE, Arguments, Tool, reach

_SNIPPET, _REASON = 320, 200


def search(access: Access, given: Arguments) -> str:
    answer = reading.search(access, given["query"], limit=given["limit"], **filters_of(given))
    hits = answer["records"]
    if not hits:
        return "\n".join(filter(None, (*_next_steps(answer, given["query"]), reach(access))))
    foot = "Open a place with its memory_open line, and read before you rely on it."
    if answer["pending"]:
        foot += f" The text of {answer['pending']:,} new records is not searched yet: only their cards were."
    return page_of(given, DATA, [_hit(rank, hit) for rank, hit in enumerate(hits, 1)], foot)


def _hit(rank: int, hit: dict[str, Any]) -> str:
    return "\n".join(
        filter(
            None,
            (
                f"{rank}. {card_head(hit)}",
                f"   why: {line(hit['reason'], _REASON)}",
                f"   {events(hit['seqStart'], hit['seqEnd'])}".rstrip(),
                f"   “{line(hit['snippet'], _SNIPPET)}”" if hit["snippet"].strip() else "",
                f"   memory_open {_place(hit)}",
            ),
        )
    )


def _place(hit: dict[str, Any]) -> str:
    if hit["offset"] is not None:
        return f"id={hit['id']} around={hit['offset']} max_chars=4000"
    if hit["seqStart"] is not None:
        last = f" seq_end={hit['seqEnd']}" if hit["seqEnd"] not in (None, hit["seqStart"]) else ""
        return f"id={hit['id']} seq={hit['seqStart']}{last}"
    return f"id={hit['id']}"


def _next_steps(answer: dict[str, Any], query: str) -> Iterator[str]:
    yield answer["hint"].split(". ")[0].removesuffix(".") + "."
    if answer["pending"]:
        yield f"The text of {answer['pending']:,} new records is not searched yet: ask again in a moment."
    for each in answer["suggestions"]:
        asked = line(each["query"], 200)
        call = {
            "words": f": memory_search query={asked!r}",
            "tag": f": memory_search tag={asked!r} query={line(query, 200)!r}, or memory_search query={asked!r}",
            "grep": f": memory_grep pattern={asked!r} literal=true",
            "filter": ": the same search without it",
        }.get(each["kind"])
        # No tool looks into another workspace.
        if call is not None:
            yield f"- {line(each['text'], 300)}{call}"
    yield "- memory_nav shows what there is, by kind and topic."


def grep(access: Access, given: Arguments) -> str:
    try:
        answer = reading.grep(
            access, given["pattern"], ignore_case=not given["case_sensitive"], literal=given["literal"],
            context=given["context"], limit=given["limit"], **filters_of(given),
        )  # fmt: skip
    except BadPattern as error:
        raise BadCall(f"{line(str(error), 400)} With literal=true the pattern is plain text.") from None
    hits = answer["hits"]
    searched = f"{len(hits):,} lines; {answer['recordsSearched']:,} records were searched."
    if not hits:
        advice = (
            "Try a part of it. The pattern is a regular expression (RE2), taken line by line; literal=true takes it "
            "as plain text. memory_search finds records by what they say."
        )
        return "\n".join(filter(None, (f"Nothing was found. {searched}", advice, reach(access))))
    blocks = [
        block
        for _, found in groupby(hits, key=lambda hit: hit["recordId"])
        for block in _blocks_of(list(found))
    ]
    return page_of(given, DATA, blocks, " ".join(filter(None, (searched, _why_cut(answer["why"])))))


def _why_cut(why: str) -> str:
    return {
        "hits": "There are more: a higher limit shows them, a narrower pattern or kinds look at fewer.",
        "time": "It was stopped after its time, the newest records first: narrow it with kinds, tag or agent.",
        "record": "Some records have more: open them, or make the pattern narrower.",
    }.get(why, "")


def _blocks_of(hits: list[dict[str, Any]]) -> list[str]:
    """One record's lines."""
    first = hits[0]
    event = next((hit["seq"] for hit in hits if hit["seq"] is not None), None)
    where = f"seq={event}" if event is not None else f"line={first['line']}"
    head = f"{first['recordId']} · {line(first['title'])}{' [cold]' if first['cold'] else ''}"
    head += f" · memory_open id={first['recordId']} {where}"
    parts = fenced_parts("\n".join(_lines_of(hits)), settings.MEMEX_MAX_INLINE_CHARS // 3)
    return [f"{head}\n{parts[0]}", *parts[1:]]


def _lines_of(hits: list[dict[str, Any]]) -> list[str]:
    """As grep writes them: `12:` a hit, `13-` context. A hit in an event says which."""
    shown: dict[tuple[int, int], str] = {}
    for hit in hits:
        number, place = hit["line"], -1 if hit["seq"] is None else hit["seq"]
        for at, text in enumerate(hit["before"], number - len(hit["before"])):
            shown.setdefault((place, at), f"{at}-{text}")
        for at, text in enumerate(hit["after"], number + 1):
            shown.setdefault((place, at), f"{at}-{text}")
    for hit in hits:
        place = -1 if hit["seq"] is None else hit["seq"]
        event = f"#{hit['seq']} " if hit["seq"] is not None else ""
        shown[place, hit["line"]] = f"{event}{hit['line']}:{hit['text']}"
    return [shown[key] for key in sorted(shown)]


SEARCH = Tool(
    "memory_search",
    "Search memory",
    "Find what earlier work said or decided, by any words, a name, a path or an error message, in English or "
    "Chinese. Use it when something was discussed before, or your context was compacted and a detail is gone. "
    "Each hit has its best passage and the memory_open call that reads it.",
    READ,
    search,
    (
        Parameter("query", "string", "What to look for, in any words.", required=True, low=1, high=5_000),
        Parameter("limit", "integer", "Hits at most.", default=10, low=1, high=50),
        *FILTERS,
        PAGE,
    ),
)
GREP = Tool(
    "memory_grep",
    "Grep memory",
    "Find exact lines in the full text of all records, also cold ones: an identifier, a command, a line of output. "
    "Use it when you know how it is spelt; memory_search when you know what it was about.",
    READ,
    grep,
    (
        Parameter(
            "pattern", "string", "A regular expression (RE2), line by line.", required=True, low=1, high=2_000
        ),
        Parameter("literal", "boolean", "Take the pattern as plain text.", default=False),
        Parameter("case_sensitive", "boolean", "Tell upper and lower case apart.", default=False),
        Parameter("context", "integer", "Lines before and after.", default=0, low=0, high=CONTEXT_MAX),
        Parameter("limit", "integer", "Lines at most.", default=50, low=1, high=MAX_HITS),
        *FILTERS,
        PAGE,
    ),
)
