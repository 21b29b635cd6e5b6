"""What stands in a session's window now, and its events as they were: pages that an agent can take.

An answer holds at most `max_bytes`; whoever wants more asks on from its cursor or its last seq.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .counts import session_events
from .eventrefs import event_refs
from .ingest import session_ensure
from .logs.dsh_fold import ranges_unpack
from .logs.events import Block
from .logs.pushed_rows import note_of, row_value
from .logs.rows import clean
from .models import AgentSession, Generation, Source, Surface
from .pushlog import refuse_forgotten, refuse_off
from .pushsource import is_pushed, push_path
from .queries import EventText, SessionNotFound, event_texts
from .sourcepass import pool_of

ANSWER_BYTES = 4 * 1024 * 1024
# Events of which an answer says nothing but their line still take room.
_OVERHEAD = 200
_CHUNK = 500


class CursorInvalid(ValueError):
    """MEMORY_INVALID_QUERY: a cursor that was never given."""


@dataclass(frozen=True, slots=True)
class Message:
    """`content`: of a pushed event as it was pushed (a text or blocks), else its text; `id`: the agent's
    own, for a summary the compaction's."""

    seq: int
    id: str
    role: str
    content: Any
    tokens: int


@dataclass(frozen=True, slots=True)
class SurfacePage:
    """`restarted`: the window was rewritten since the cursor was given, so that these messages are its
    first ones again. `more`: there are more behind `cursor` already."""

    messages: list[Message]
    used_tokens: int
    cursor: str
    restarted: bool = False
    more: bool = False


@dataclass(frozen=True, slots=True)
class ReadEvent:
    """`text`: the event's text, or its row as it stood."""

    seq: int
    row: int
    role: str
    type: str
    surface: str | None
    shadowed_by: int | None
    time: int | None
    text: str


def session_of(session_id: str) -> AgentSession:
    """Raises SessionForgotten, LevelsOff, SessionPaused, SessionNotFound."""
    refuse_forgotten(session_id)
    session = AgentSession.objects.filter(session_id=session_id).first()
    if session:
        refuse_off(session_id, session.pool_session_id, session.cwd)
        return session
    source = Source.objects.filter(session_id=session_id).first()
    if source:
        refuse_off(session_id, pool_of(source), source.cwd)
        if source.path == push_path(session_id):
            return session_ensure(source)  # opened, and nothing was pushed yet
    raise SessionNotFound(f"No session {session_id!r} has been read.")


def session_surface(session_id: str, after: str = "", *, max_bytes: int = ANSWER_BYTES) -> SurfacePage:
    """The window from where `after` (a cursor, "" = from its beginning) left off. Raises CursorInvalid,
    SessionForgotten, LevelsOff, SessionPaused, SessionNotFound, MirrorDamaged."""
    session = session_of(session_id)
    epoch, nodes = window_of(session)
    known_epoch, at = _cursor_read(after)
    restarted = bool(after) and (known_epoch != epoch or at > len(nodes))
    first = at = 0 if restarted else at
    pushed = is_pushed(session_id)
    messages: list[Message] = []
    left = max_bytes
    for text in texts_by_seq(session, nodes[first:]):
        size = len(text.raw) + _OVERHEAD
        if size > left and messages:
            break
        message = _message(text, pushed=pushed)
        if size > max_bytes:
            message = replace(message, content=_cut(blocks_text(text.blocks), max_bytes))
        messages.append(message)
        left -= size
        at += 1
    used = session.used_tokens if session.used_tokens is not None else session.current_tokens
    return SurfacePage(messages, used, f"{epoch}-{at}", restarted, at < len(nodes))


def window_of(session: AgentSession) -> tuple[int, list[int]]:
    """How often the window was rewritten, and the seqs in it, in the model's order where the reader of the
    log knows it."""
    state = (
        Generation.objects.filter(session=session, number=session.view_generation)
        .values_list("reader_state", flat=True)
        .first()
    ) or {}
    if "epoch" in state and "nodes" in state:
        return int(state["epoch"]), ranges_unpack(state["nodes"])
    current = session_events(session).filter(surface=Surface.CURRENT).order_by("seq")
    rewritten = session.compactions.filter(generation=session.view_generation).count()
    return rewritten, list(current.values_list("seq", flat=True))


def _cursor_read(cursor: str) -> tuple[int, int]:
    epoch, _, at = cursor.partition("-")
    if not cursor:
        return 0, 0
    if not (epoch.isdecimal() and at.isdecimal() and len(cursor) < 40):
        raise CursorInvalid(f"{cursor!r} is no cursor of a surface.")
    return int(epoch), int(at)


def texts_by_seq(session: AgentSession, seqs: list[int]) -> Iterator[EventText]:
    """Events in the order of `seqs`, a few at a time."""
    events = session_events(session)
    for start in range(0, len(seqs), _CHUNK):
        chunk = seqs[start : start + _CHUNK]
        found = {ref.seq: ref for ref in event_refs(events.filter(seq__in=chunk))}
        yield from event_texts(session, (found[seq] for seq in chunk if seq in found))


def _message(text: EventText, *, pushed: bool) -> Message:
    event = text.event
    content: Any = None
    if pushed and (value := row_value(text.raw)) is not None and note_of(value) is None:
        content = value.get("text") if value.get("content") is None else value["content"]
    return Message(event.seq, event.uid, event.role, blocks_text(text.blocks) if content is None else content,
                   event.tokens)  # fmt: skip


def session_read(
    session_id: str, first: int, last: int, *, raw: bool = False, max_bytes: int = ANSWER_BYTES
) -> tuple[list[ReadEvent], bool]:
    """Events `first` to `last` (seqs, inclusive) as far as an answer holds them, and whether there are more
    of them. Raises as session_surface."""
    session = session_of(session_id)
    within = session_events(session).filter(seq__range=(first, last)).order_by("seq")
    found: list[ReadEvent] = []
    left = max_bytes
    for text in event_texts(session, within.iterator(_CHUNK)):
        event = text.event
        shown = text.raw.decode("utf-8", "replace") if raw else clean(blocks_text(text.blocks))
        size = len(shown.encode()) + _OVERHEAD
        if size > left and found:
            return found, True
        left -= size
        if size > max_bytes:
            shown = _cut(shown, max_bytes)
        found.append(
            ReadEvent(event.seq, event.row, event.role, event.type, event.surface, event.shadowed_by,
                      event.time, shown)
        )  # fmt: skip
    return found, False


def _cut(text: str, max_bytes: int) -> str:
    """The beginning of a text that no answer holds. Its row can be had whole by `memory read --raw`."""
    shown = max_bytes // 4
    return f"{text[:shown]}\n[… {len(text) - shown:,} more characters]" if len(text) > shown else text


def blocks_text(blocks: list[Block]) -> str:
    """The words of an event; of what has none, what it is."""
    pieces = []
    for block in blocks:
        if block.kind in ("image", "file", "opaque") and not block.text:
            pieces.append(f"[{block.kind}: {block.name}]")
        elif block.kind == "tool-call":
            pieces.append(f"{block.name} {block.text}".strip())
        elif block.text:
            pieces.append(block.text)
    return "\n".join(pieces)
