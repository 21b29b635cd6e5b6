"""The tools that look around: nav, index, assemble."""

from typing import Any

from django.conf import settings

from records.queries import ORDERS, BadPath
from records.search.packing import BUDGET, BUDGET_MIN
from sessions_app.access import Access
from sessions_app.injection.messages import amount
from sessions_app.operations import reading
from sessions_app.principals import READ

from .filters import FILTERS, card_head, filters_of, page_of
from .parameters import BadCall, Parameter
from .rendering import DATA, day, fenced_parts, line
from .tool import PAGE, Arguments, Tool, reach

_SUMMARY = 160
# A summary that begins with the title says all that it does.
_ALIKE = 60
_CARDS = 20
# The step of a path that takes a workspace's key, which is for people.
_ELSEWHERE = "workspace"
_BUDGET_MAX = 20_000


def nav(access: Access, given: Arguments) -> str:
    if _ELSEWHERE in given["path"].strip("/").split("/")[::2]:
        raise BadCall(
            "What memory_nav shows is of this workspace, and joined ones: leave workspace out of the path."
        )
    try:
        found = reading.nav(
            access, given["path"], limit=given["limit"], offset=given["offset"], sort=given["sort"]
        )
    except BadPath as error:
        raise BadCall(line(str(error), 400)) from None
    entries = found["entries"]
    if not entries:
        start = "" if not given["path"] else ' path="" begins at the top.'
        return " ".join(filter(None, (f"Nothing is here.{start}", reach(access))))
    foot = [f"{found['offset'] + 1}–{found['offset'] + len(entries)} of {found['total']:,}."]
    if found["hasMore"]:
        foot.append(f"The rest: offset={found['offset'] + len(entries)}.")
    if found["isPartial"]:
        foot.append("Only the newest records were counted.")
    if steps := [step for step in found["steps"] if step != _ELSEWHERE]:
        prefix = f"{given['path'].strip('/')}/" if given["path"].strip("/") else ""
        foot.append(f"Further: {', '.join(prefix + step for step in steps)}.")
    return page_of(given, DATA, [_entry(entry) for entry in entries], " ".join(foot))


def _entry(entry: dict[str, Any]) -> str:
    place = entry["path"] if entry["path"] == entry["id"] else f"path={entry['path']}"
    title, summary = line(entry["title"]), line(entry["summary"], _SUMMARY)
    if summary[:_ALIKE] == title[:_ALIKE]:
        title = ""
    parts = (place, entry["type"], title, summary, day(entry["time"]))
    return "- " + " · ".join(filter(None, parts))


def index(access: Access, given: Arguments) -> str:
    answer = reading.index(access, limit=_CARDS)
    levels = " ".join(f"{name.upper()} {'on' if on else 'off'}" for name, on in answer["levels"].items())
    head = [f"Levels: {levels}. New records are kept for: {answer['captureScope'] or 'nobody'}."]
    for name, meaning in (("l2", "private to this session"), ("l3", "shared in this workspace")):
        pool = answer[name]
        if pool["enabled"]:
            head.append(
                f"{name.upper()} ({meaning}): {amount(pool['hotTokens'])} of {amount(pool['capacityTokens'])} "
                f"tokens hot in {pool['hotCount']:,} records, {pool['coldCount']:,} cold "
                f"({amount(pool['coldTokens'])} tokens; memory_open and memory_search reach them)."
            )
    left = answer["l1Evicted"]
    if left["count"]:
        head.append(
            f"Evicted from the window: {left['count']:,} times, {amount(left['tokens'])} tokens, all archived."
        )
    head.append(_compression(answer["compression"]))
    if answer["byKind"]:
        head.append(
            "Kinds: " + ", ".join(f"{kind} {count:,}" for kind, count in answer["byKind"].items()) + "."
        )
    cards = answer["records"]
    if not cards:
        return "\n".join(filter(None, (*head, "No records.", reach(access))))
    head.append(f"The newest of {answer['count']:,} records. {DATA}")
    foot = "memory_open ID reads one; memory_search finds by words; memory_nav lists all."
    return page_of(given, "\n".join(head), [_index_card(card) for card in cards], foot)


def _index_card(card: dict[str, Any]) -> str:
    use_when = line(card["useWhen"], 120)
    return f"- {card_head(card)} · {amount(card['tokens'])} tokens" + (f" · {use_when}" if use_when else "")


def _compression(history: dict[str, Any]) -> str:
    if not history["count"]:
        return "Compressions: none so far."
    runs = [
        "; ".join(f"{name}: {line(str(value), 60)}" for name, value in run.items() if value not in (None, ""))
        for run in history["recent"][:3]
    ]
    return "\n".join((f"Compressions: {history['count']:,}. The latest:", *(f"- {run}" for run in runs)))


def assemble(access: Access, given: Arguments) -> str:
    pack = reading.assemble(access, given["task"], budget=given["budget"], **filters_of(given))
    if not pack["sources"]:
        hint = pack["hint"] or "Nothing fits the budget."
        more = "A larger budget may help." if pack["omitted"] else "memory_nav shows what there is."
        return "\n".join(filter(None, (line(hint, 800), more, reach(access))))
    foot = [f"{pack['usedTokens']:,} of {pack['budget']:,} tokens."]
    for left in pack["omitted"][:10]:
        foot.append(f"- left out: {left['id']} · {line(left['title'])} ({line(left['why'], 80)})")
    sources = ", ".join(dict.fromkeys(source["id"] for source in pack["sources"]))
    foot.append(f"memory_open reads the whole of: {sources}.")
    parts = fenced_parts(pack["context"], settings.MEMEX_MAX_INLINE_CHARS // 3)
    return page_of(given, DATA, parts, "\n".join(foot))


NAV = Tool(
    "memory_nav",
    "Browse memory",
    "Browse what is kept, by kind, topic and place. Use it when you don't know what to search for.",
    READ,
    nav,
    (
        Parameter(
            "path",
            "string",
            'Where: "" the newest records; "kind" or "topic" what there is of these; "kind/decision" the records of '
            "one; a record's id that record.",
            default="",
            high=2_000,
        ),
        Parameter("limit", "integer", "Entries at most.", default=30, low=1, high=200),
        Parameter("offset", "integer", "Entries to pass over.", default=0, low=0, high=1_000_000),
        Parameter("sort", "string", "Order of records.", default="updated", choices=tuple(ORDERS)),
        PAGE,
    ),
)
INDEX = Tool(
    "memory_index",
    "State of memory",
    "What is kept for this session: levels, how full the pools are, evictions, compressions, the newest records. Use "
    "it to see whether memory is on, or before you ask your user about capacity.",
    READ,
    index,
    (PAGE,),
)
ASSEMBLE = Tool(
    "memory_assemble",
    "Assemble a reading pack",
    "Put together the passages to read for a task, whole, within a budget of tokens. Use it at the start of a task "
    "that continues earlier work.",
    READ,
    assemble,
    (
        Parameter("task", "string", "What you are about to do.", required=True, low=1, high=5_000),
        Parameter(
            "budget",
            "integer",
            "Tokens of the pack at most.",
            default=BUDGET,
            low=BUDGET_MIN,
            high=_BUDGET_MAX,
        ),
        *FILTERS,
        PAGE,
    ),
)
