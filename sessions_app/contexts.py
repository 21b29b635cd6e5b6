"""What the pages of sessions show, made from queries. What the store's pages show is in store_contexts."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from records.contexts import LostCategory, lost_categories

from .levels import Levels
from .logs.events import Block
from .mirror import MirrorDamaged
from .models import AgentSession, Compaction, Event, Surface
from .page_queries import EventWindow, SessionList
from .queries import SessionNotFound, event_texts
from .titles import session_title

# How much of an event's text a window shows; the rest is opened by itself.
FOLDED_CHARACTERS = 2_400
FOLDED_LINES = 24
PART_CHARACTERS = 200_000

_WORDS = {
    Surface.CURRENT: "in context",
    Surface.SHADOWED: "compacted away",
    Surface.LOG_ONLY: "never shown",
}
_MISSING = "The original can't be read: it is missing from the kept log."
_UNREADABLE = (OSError, SessionNotFound, MirrorDamaged, ValueError, KeyError)


@dataclass(frozen=True)
class SessionRow:
    session: AgentSession
    title: str
    levels: Levels
    compactions: int
    is_paused: bool
    children: list["SessionRow"]


def session_rows(found: SessionList) -> list[SessionRow]:
    def row(session: AgentSession, children: list[AgentSession]) -> SessionRow:
        return SessionRow(
            session=session,
            title=session_title(session),
            levels=found.levels[session.pool_session_id],
            compactions=found.compactions.get(session.session_id, 0),
            is_paused=session.session_id in found.paused,
            children=[row(child, []) for child in children],
        )

    return [row(session, found.children.get(session.session_id, [])) for session in found.sessions]


@dataclass(frozen=True)
class BlockText:
    """A piece of an event as text; `hidden`: characters that are left out here."""

    label: str
    text: str
    is_code: bool
    is_error: bool = False
    hidden: int = 0


@dataclass(frozen=True)
class EventRow:
    event: Event
    blocks: list[BlockText]
    problem: str = ""

    @property
    def state(self) -> str:
        """The surface as a word for CSS."""
        return self.event.surface or "unknown"

    @property
    def state_words(self) -> str:
        return _WORDS.get(Surface(self.event.surface), "") if self.event.surface else "unknown"

    @property
    def speaker(self) -> str:
        return self.event.source or self.event.role or self.event.type

    @property
    def is_empty(self) -> bool:
        return not self.blocks and not self.problem

    @property
    def is_cut(self) -> bool:
        return any(block.hidden for block in self.blocks)


def event_rows(session: AgentSession, events: list[Event], *, folded: bool = True) -> list[EventRow]:
    """With their text from the mirror; one that can't be read says why and stops none of the others."""
    cut = _fold if folded else _whole
    rows: list[EventRow] = []
    while len(rows) < len(events):
        try:
            for text in event_texts(session, iter(events[len(rows) :])):
                event = events[len(rows)]
                blocks = [_block_text(block, cut) for block in text.blocks if _has_content(block)]
                rows.append(EventRow(event, blocks, "" if len(text.raw) == event.length else _MISSING))
        except _UNREADABLE as error:
            rows.append(EventRow(events[len(rows)], [], f"The original can't be read: {error}"))
    return rows


def _has_content(block: Block) -> bool:
    return bool(block.text.strip() or block.kind not in ("text", "other"))


def _block_text(block: Block, cut: Callable[[str], str]) -> BlockText:
    text = _arguments(block.text) if block.kind == "tool-call" else block.text.strip("\n")
    shown = cut(text)
    return BlockText(
        label=""
        if block.kind == "text"
        else " · ".join(filter(None, (block.kind.replace("-", " "), block.name))),
        text=shown,
        is_code=block.kind not in ("text", "reasoning"),
        is_error=block.is_error,
        hidden=len(text) - len(shown),
    )


def _arguments(text: str) -> str:
    """A tool call's JSON as a line or more for each argument, with line breaks as such."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(given, dict):
        return text
    values = (
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in given.items()
    )
    return "\n".join(f"{name}: {value}" for name, value in values)


def _fold(text: str) -> str:
    """The beginning, when there is clearly more of it."""
    end = len(text)
    if end > FOLDED_CHARACTERS * 1.25:
        end = FOLDED_CHARACTERS
    lines = text[:end].split("\n", FOLDED_LINES)
    if len(lines) > FOLDED_LINES and lines[-1].count("\n") > FOLDED_LINES // 4:
        end = min(end, len("\n".join(lines[:FOLDED_LINES])))
    return text[:end]


def _whole(text: str) -> str:
    return text[:PART_CHARACTERS]


@dataclass(frozen=True)
class CompactionRow:
    compaction: Compaction
    lost: list[LostCategory]

    @property
    def anchor(self) -> str:
        """Its id on a page: made of its own id, for the database's changes with a rebuild."""
        return "c" + hashlib.sha256(self.compaction.compaction_id.encode()).hexdigest()[:12]

    @property
    def lost_total(self) -> int:
        return sum(category.lost for category in self.lost)

    @property
    def events(self) -> int:
        return sum(last - first + 1 for first, last in self.compaction.dropped)

    @property
    def name(self) -> str:
        return {"prune": "Pruned", "microcompact": "Cleared"}.get(self.compaction.kind, "Compacted")


def compaction_row(compaction: Compaction) -> CompactionRow:
    return CompactionRow(compaction, lost_categories(compaction.lost))


@dataclass(frozen=True)
class Step:
    """A line of the reader: an event or a compaction."""

    event: EventRow | None = None
    compaction: CompactionRow | None = None


def steps(session: AgentSession, window: EventWindow) -> Iterator[Step]:
    """Compactions stand before the first event that came after them."""
    waiting = [compaction_row(compaction) for compaction in window.compactions]
    for row in event_rows(session, window.events):
        while waiting and waiting[0].compaction.at_seq <= row.event.seq:
            yield Step(compaction=waiting.pop(0))
        yield Step(event=row)
    yield from (Step(compaction=row) for row in waiting)


def summary_text(session: AgentSession, compaction: Compaction) -> str:
    """The agent's own summary; "" when there is none or it can't be read."""
    if compaction.summary_seq is None:
        return ""
    event = session.events.filter(generation=compaction.generation, seq=compaction.summary_seq).first()
    if event is None:
        return ""
    row = event_rows(session, [event], folded=False)[0]
    return "\n\n".join(block.text for block in row.blocks if not block.is_code)
