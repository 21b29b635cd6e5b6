"""The card of an archive: how an agent recognises that it needs the record, without reading it. Pure.

Made in one pass over the archived events, without any model.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .facts import ArchivedEvent, Facts
from .logs.events import AGENT, MODEL, PERSON
from .logs.rows import clean
from .machine_text import person_text

TITLE_CHARACTERS = 160
SUMMARY_CHARACTERS = 1_000
USE_WHEN_CHARACTERS = 400
_SAYINGS = 3
_SAYING_CHARACTERS = 330
_SAYING_REACH = 2_000
_PATHS_NAMED = 3
_WHERE, _TOOLS, _ISSUES, _COMMANDS = 12, 12, 5, 12
_NAME_CHARACTERS = 80


@dataclass(slots=True)
class Card:
    title: str
    summary: str
    use_when: str
    tags: dict[str, list[str]]
    open_thread: bool


def build_card(
    events: Iterable[ArchivedEvent],
    *,
    summary: str,
    seq_start: int,
    seq_end: int,
    source: str = "compaction-archive",
) -> Card:
    """`summary`: the agent's own, "" when there is none or it can't be read. `source`: the provenance."""
    builder = CardBuilder()
    for event in events:
        builder.add(event)
    return builder.card(summary=summary, seq_start=seq_start, seq_end=seq_end, source=source)


class CardBuilder:
    """For a caller that does more with the events than make a card; `facts` serves lost.lost_facts too."""

    def __init__(self) -> None:
        self.facts = Facts()
        self._sayings: list[str] = []
        self._context: list[str] = []
        self._order = ""
        self._answer = ""
        self._unanswered = False

    def add(self, event: ArchivedEvent) -> None:
        self.facts.add(event)
        if event.source == PERSON:
            self._add_person(event)
        elif event.source == MODEL:
            if text := _first_text(event):
                self._answer = self._answer or clean(text[:_SAYING_REACH])
                self._unanswered = False
        elif event.source == AGENT and not self._order:
            self._order = clean(person_text(_first_text(event))[:_SAYING_REACH])

    def add_context(self, event: ArchivedEvent) -> None:
        """What a person said that stayed in the window: it names the work when all that left is the
        agent's (Codex keeps every message of its user)."""
        self._context.extend(_said(event)[: _SAYINGS - len(self._context)])

    def _add_person(self, event: ArchivedEvent) -> None:
        texts = [person_text(block.text) for block in event.blocks if block.kind == "text"]
        texts = [clean(text[:_SAYING_REACH]) for text in texts if text]
        if texts or any(block.kind in ("image", "file") for block in event.blocks):
            self._unanswered = True
        room = _SAYINGS - len(self._sayings)
        self._sayings.extend(texts[:room])

    def card(self, *, summary: str, seq_start: int, seq_end: int, source: str) -> Card:
        gist = clean(summary_gist(summary))
        # A sub-agent is spoken to by an agent only.
        first = next(
            (text for text in (*self._sayings, *self._context, self._order, self._answer, gist) if text), ""
        )
        title = one_line(_heading(first) or first, TITLE_CHARACTERS) or f"Events #{seq_start}–#{seq_end}"
        sayings = self._sayings or self._context or [text for text in (self._order, self._answer) if text]
        return Card(
            title=title,
            summary=_cut(gist, SUMMARY_CHARACTERS)
            or "\n".join(one_line(text, _SAYING_CHARACTERS) for text in sayings),
            use_when=self._use_when(seq_start, seq_end),
            tags=self._tags(source),
            open_thread=self._unanswered or has_pending_steps(summary),
        )

    def _use_when(self, seq_start: int, seq_end: int) -> str:
        span = f"#{seq_start}–#{seq_end}"
        opening = f"Read when continuing the work archived at seq {span}; it covers "
        room = USE_WHEN_CHARACTERS - len(opening) - 1
        names = _as_many(_distinct_paths(self.facts.paths.ranked(), _PATHS_NAMED), room)
        names = names or _as_many([_name(tool) for tool in self.facts.tools.ranked()[:_TOOLS]], room)
        return f"{opening}{', '.join(names) or span}."

    def _tags(self, source: str) -> dict[str, list[str]]:
        facts = self.facts
        tags = {
            "source": [source],
            "where": _distinct_paths(facts.paths.ranked(), _WHERE),
            "tools": [_name(tool) for tool in facts.tools.ranked()[:_TOOLS]],
            "issue": list(facts.errors)[:_ISSUES],
            "commands": facts.commands.ranked()[:_COMMANDS],
        }
        return {name: values for name, values in tags.items() if values}


def one_line(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, cut at a word where there is one."""
    return _cut(" ".join(text[: limit * 4].split()), limit)


_HEADING = re.compile(r"\s*#{1,6} +(\S.*)")


def _heading(text: str) -> str:
    """Of a message that is a document of its own; "" for any other."""
    found = _HEADING.match(text)
    return found[1] if found else ""


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    at_word = re.sub(r"\s+\S*\Z", "", head)
    # Scripts without spaces, and one very long word, are cut where they are.
    return (at_word if len(at_word) > limit // 2 else head).rstrip() + "…"


def _said(event: ArchivedEvent) -> list[str]:
    return [said for block in event.blocks if block.kind == "text" and (said := person_text(block.text))]


def _first_text(event: ArchivedEvent) -> str:
    return next((block.text for block in event.blocks if block.kind == "text" and block.text.strip()), "")


def _name(tool: str) -> str:
    return one_line(tool, _NAME_CHARACTERS)


def _distinct_paths(paths: list[str], limit: int) -> list[str]:
    """The first `limit` of `paths`, without those that write the same file with more or fewer folders."""
    taken: list[str] = []
    for path in paths:
        short = path.removeprefix("./").rstrip("/")
        if any(f"/{short}".endswith(f"/{other}") or f"/{other}".endswith(f"/{short}") for other in taken):
            continue
        taken.append(short)
        if len(taken) == limit:
            break
    return taken


def _as_many(names: list[str], room: int) -> list[str]:
    """The first of `names` that fit into `room` characters, written with commas."""
    taken: list[str] = []
    for name in names:
        if len(", ".join((*taken, name))) > room:
            break
        taken.append(name)
    return taken


_GIST_START = re.compile(r"^(?:Summary:|<summary>)[ \t]*$", re.MULTILINE)
_CONTINUED = "This session is being continued"
_AFTERWORD = re.compile(
    r"\n[ \t]*(?:</summary>|If you need specific details from before compaction"
    r"|(?:Please )?[Cc]ontinue (?:the conversation|with the last task)).*\Z",
    re.DOTALL,
)


def summary_gist(summary: str) -> str:
    """An agent's summary without the harness's words before and after it."""
    text = summary.strip()
    start = _GIST_START.search(text)
    if start:
        text = text[start.end() :]
    elif text.startswith(_CONTINUED):
        text = text.partition("\n\n")[2] or text
    return _AFTERWORD.sub("", text).strip()


_PENDING_HEADING = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|[-*][ \t]+)?(?:\d{1,2}[.)、][ \t]*)?(?:#{1,6}[ \t]+)?\*{0,2}"
    r"(?:(?:All )?Pending (?:Tasks?|Jobs?|Work|Items?|Steps?)|(?:Optional |Suggested )?Next Steps?"
    r"|Remaining (?:Tasks?|Work|Steps?|Items?)|Open (?:Questions?|Threads?|Issues?|Items?)|Outstanding (?:Tasks?|Work)"
    r"|To-?Do(?: List| Items)?|待办(?:事项|任务)?|下一步(?:计划|工作)?|未完成(?:的?任务|工作|事项)?|待处理(?:事项)?|剩余(?:工作|任务|步骤)|待解决(?:的?问题)?)"
    r"\*{0,2}[ \t]*(?:[:：]\*{0,2}[ \t]*(?P<inline>\S.*)?|[ \t]*)$",
    re.MULTILINE | re.IGNORECASE,
)
_SECTION_END = r"^#{1,6}[ \t]|^\*\*[^*\n]+\*\*:?[ \t]*$|^</|^If you need "
_SECTION = re.compile(_SECTION_END, re.MULTILINE)
# Under a heading with a number the next such heading ends the section; elsewhere it would be an item of a list.
_NUMBERED_SECTION = re.compile(
    rf"{_SECTION_END}|^\d{{1,2}}[.)、][ \t]*(?:\*\*|[^\n]{{1,60}}[:：][ \t]*$)", re.MULTILINE
)
_NOTHING = re.compile(
    r"(?:none\b|n/?a\b|nothing\b|not applicable|not specified|no (?:\w+ )*(?:tasks?|steps?|work|items?|issues?|questions?)\b"
    r"|(?:all|everything|the)\b[^.\n]*\b(?:is|are|was|were|been|appears?|now|tasks|work)\b[^.\n]{0,20}\b(?:complete|completed|done|addressed|finished|resolved)\b|done\b|无|没有|暂无|全部(?:已)?完成|已(?:全部)?完成)",
    re.IGNORECASE,
)


def has_pending_steps(summary: str) -> bool:
    """Whether a section of open work in a summary lists any."""
    for heading in _PENDING_HEADING.finditer(summary):
        numbered = heading[0].lstrip()[:1].isdigit()
        following = (_NUMBERED_SECTION if numbered else _SECTION).search(summary, heading.end())
        section = summary[heading.end() : following.start() if following else len(summary)]
        content = f"{heading['inline'] or ''}\n{section}".strip(" \t\r\n-*•>`_[]().（）")
        if content and not _NOTHING.match(content):
            return True
    return False
