"""The tools that change something: write, restore, compress."""

from records.fields import SUMMARY_MAX, TITLE_MAX, USE_WHEN_MAX
from records.written import KINDS
from sessions_app.access import Access
from sessions_app.injection.messages import amount
from sessions_app.levels import LevelsOff
from sessions_app.operations import changing
from sessions_app.principals import CAPACITY, WRITE

from .parameters import BadCall, Parameter
from .rendering import line
from .tool import RECORD_ID_MAX, Arguments, Tool, reach

_KINDS = tuple(sorted(KINDS))
_FIELDS = (
    "kind",
    "text",
    "title",
    "summary",
    "use_when",
    "tags",
    "entities",
    "slot",
    "confidence",
    "scope",
    "links",
)
_HOUR_MS = 3_600_000


def write(access: Access, given: Arguments) -> str:
    fields = {name: given[name] for name in _FIELDS if given[name] is not None}
    try:
        answer = changing.write(access, **fields)
    except LevelsOff:
        raise BadCall(f"Nothing was written. {reach(access) or 'That level is off.'}") from None
    except ValueError as error:
        raise BadCall(f"Nothing was written: {line(str(error), 400)}") from None
    told = [f"Written as {answer['id']} ({answer['status']})."]
    if answer.get("dedupe"):
        told = [
            f"Already there as {answer['id']} ({answer['status']}); it has this session as one more source."
        ]
    if other := answer.get("conflictsWith"):
        others = other if isinstance(other, str) else ", ".join(other)
        told.append(f"It contradicts {others}: both are marked as a conflict. Tell your user, who decides.")
    if found := answer.get("sensitive"):
        told.append(
            f"It holds what looks like a secret ({', '.join(found)}); it is listed for your user to decide."
        )
    if answer["status"] == "suggested":
        told.append("It is used once a person has confirmed it.")
    return " ".join(told)


def restore(access: Access, given: Arguments) -> str:
    try:
        record = changing.restore(access, given["id"])["record"]
    except changing.NotCold:
        return f"{given['id']} is hot already: memory_open reads it."
    return f"{record['id']} is hot: “{line(record['title'])}”, {amount(record['tokens'])} tokens."


def compress(access: Access, given: Arguments) -> str:
    asked = {
        name: given[name]
        for name in ("level", "strategy", "target_ratio", "min_age_ms")
        if given[name] is not None
    }
    try:
        answer = changing.compress(access, **asked)
    except LevelsOff:
        raise BadCall(f"Nothing was compressed. {reach(access) or 'That level is off.'}") from None
    reports = [
        f"{report['level'].upper()}: {amount(report['beforeHot'])} tokens were hot; {report['coldMoved']:,} records "
        f"went cold, {amount(report['freedTokens'])} tokens (target {amount(report['targetTokens'])})."
        for report in answer["reports"]
    ]
    return "\n".join(
        (
            *(reports or ["There was nothing to compress."]),
            "Cold records are still searched, and memory_open reads them.",
        )
    )


WRITE_TOOL = Tool(
    "memory_write",
    "Write memory",
    "Keep something for later work: a decision and its reason, a constraint, a fact that was hard to find, an open "
    "thread. Use it when your user states one or asks to remember; not for what the log holds anyway.",
    WRITE,
    write,
    (
        Parameter("kind", "string", "What it is.", required=True, choices=_KINDS),
        Parameter("text", "string", "The whole of it, to be understood on its own.", required=True, low=1, high=1_000_000),
        Parameter("title", "string", "One line.", low=1, high=TITLE_MAX),
        Parameter("summary", "string", "In short.", high=SUMMARY_MAX),
        Parameter("use_when", "string", "In which situation it helps.", high=USE_WHEN_MAX),
        Parameter("tags", "texts", 'By name, such as {"topic": ["deploy"]}.'),
        Parameter("entities", "strings", "Names, paths and ids that it is about."),
        Parameter("slot", "string", 'What it is a claim about, such as "package manager": two that differ conflict.', high=200),
        Parameter("confidence", "number", "From 0 to 1.", low=0, high=1),
        Parameter("scope", "string", "Who sees it: this session, or all of the workspace. By default the deepest level that is on.", choices=("session", "workspace")),
        Parameter("links", "texts", 'Other records, such as {"supersedes": ["mem_…"]}; also previous, parent.'),
    ),
    is_read_only=False,
)  # fmt: skip
RESTORE = Tool(
    "memory_restore",
    "Restore a cold record",
    "Make a cold record hot again. Use it for one that is needed over and over; reading it works without.",
    CAPACITY,
    restore,
    (Parameter("id", "string", "The record.", required=True, low=1, high=RECORD_ID_MAX),),
    is_read_only=False,
)
COMPRESS = Tool(
    "memory_compress",
    "Compress memory",
    "Move old records to cold storage until a pool is below its target; nothing is lost. Ask your user first, and "
    "call it only after a yes.",
    CAPACITY,
    compress,
    (
        Parameter("level", "string", "Which pool; auto: those that are on.", default="auto", choices=("l2", "l3", "auto")),
        Parameter("strategy", "string", "How.", choices=("cold", "digest")),
        Parameter("target_ratio", "number", "Down to which share of the capacity.", low=0.1, high=0.95),
        Parameter("min_age_ms", "integer", "How old a record must be, in milliseconds.", low=0, high=100_000 * _HOUR_MS),
    ),
    is_read_only=False,
    is_idempotent=False,
)  # fmt: skip
