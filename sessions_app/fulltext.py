"""What archive bodies leave out, read again from the mirror: the provider of records.fulltext."""

from collections.abc import Iterator
from typing import Any

from records.fulltext import OverflowText, Warn
from records.models import Record

from .archivetext import archived_events
from .eventrefs import EventRef, event_refs, events_of_mirror
from .facts import ArchivedEvent
from .logs.rows import clean
from .markdown import is_named_only
from .mirror import MirrorDamaged
from .models import AgentSession
from .queries import SessionNotFound

# Events whose addresses are in memory at once.
_CHUNK = 1_000
# Unreadable events after which the rest of a record is given up.
_TROUBLES = 20


def overflow_read(record: Record, warn: Warn, seq: int | None = None) -> Iterator[OverflowText]:
    """What is damaged or missing costs its own text and one warning a record."""
    given = record.provenance
    shown = dict(_pairs(given.get("cutShown")))
    troubles: list[str] = []
    found = False
    for first, last in _pairs(given.get("cut")):
        if seq is not None:
            if not first <= seq <= last:
                continue
            first = last = seq
        for session, refs in _owned(record, first, last):
            found = True
            yield from _texts(session, refs, shown, troubles)
    if not found:
        troubles.append("its session is no longer here")
    if troubles:
        more = f" (and {len(troubles) - 1:,} more)" if len(troubles) > 1 else ""
        warn(f"{record.id}: of what was cut out of its text not all can be read: {troubles[0]}{more}")


def event_session(record: Record) -> str:
    """The session whose events the record's seqs name; "" when it is no longer here."""
    mirror_id, generation = _mirror_of(record)
    owned = events_of_mirror(mirror_id, generation).filter(record_id=record.id)
    return owned.values_list("session_id", flat=True).first() or ""


def _mirror_of(record: Record) -> tuple[str, int]:
    given = record.provenance
    mirror_id, generation = given.get("mirrorSessionId") or given.get("sessionId"), given.get("generation")
    # People may edit a record's head.
    return str(mirror_id or ""), generation if isinstance(generation, int) else 0


def _pairs(value: Any) -> list[tuple[int, int]]:
    if not isinstance(value, list):
        return []
    pairs = (item for item in value if isinstance(item, list) and len(item) == 2)
    return [(a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]


def _owned(record: Record, first: int, last: int) -> Iterator[tuple[AgentSession, list[EventRef]]]:
    mirror_id, generation = _mirror_of(record)
    owned = events_of_mirror(mirror_id, generation).filter(record_id=record.id)
    session = AgentSession.objects.filter(session_id=event_session(record)).first()
    while session is not None:
        chunk = owned.filter(session_id=session.session_id, seq__range=(first, last)).order_by("seq")
        refs = list(event_refs(chunk[:_CHUNK]))
        if not refs:
            return
        yield session, refs
        first = refs[-1].seq + 1


def _texts(
    session: AgentSession, refs: list[EventRef], shown: dict[int, int], troubles: list[str]
) -> Iterator[OverflowText]:
    while refs and len(troubles) < _TROUBLES:
        done = 0
        try:
            for event in archived_events(session, refs):
                done += 1
                text, length = _readable(event, shown.get(event.seq, 0))
                if length < len(text):
                    yield OverflowText(event.seq, text, length)
            return
        except (MirrorDamaged, SessionNotFound, OSError) as error:
            troubles.append(f"event #{refs[done].seq}: {error}")
            refs = refs[done + 1 :]


def _readable(event: ArchivedEvent, shown: int) -> tuple[str, int]:
    """The event's text, and how much of it the body has when that shows `shown` characters of its blocks."""
    pieces: list[str] = []
    length = position = 0
    for block in event.blocks:
        if is_named_only(block):
            continue
        name = f"{block.name}\n" if block.kind == "tool-call" and block.name else ""
        if shown > 0:
            length = position + len(name) + len(clean(block.text[:shown]))
            shown -= len(block.text)
        piece = f"{name}{clean(block.text)}\n"
        pieces.append(piece)
        position += len(piece)
    return "".join(pieces).removesuffix("\n"), length
