"""Some events of one session, chosen by seq: their full text and their original rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import QuerySet

from records.models import Record

from .archivetext import archived_events
from .counts import session_events
from .eventrefs import event_refs, events_of_mirror
from .facts import ArchivedEvent
from .fulltext import event_session
from .logs.rows import clean
from .markdown import is_named_only
from .models import AgentSession, Event
from .queries import rows_read

# A longer run of events is read in several calls.
SPAN_MAX = 200


@dataclass(frozen=True)
class EventSpan:
    session: AgentSession
    events: QuerySet[Event]
    generation: int


def record_span(record: Record, first: int, last: int) -> EventSpan | None:
    """Events that the record owns; None when its session is no longer here."""
    session = AgentSession.objects.filter(session_id=event_session(record)).first()
    if session is None:
        return None
    given = record.provenance
    generation = given.get("generation")
    generation = generation if isinstance(generation, int) else 0
    mirror_id = str(given.get("mirrorSessionId") or given.get("sessionId") or "")
    owned = events_of_mirror(mirror_id, generation).filter(
        record_id=record.id, session_id=session.session_id, seq__range=(first, last)
    )
    return EventSpan(session, owned.order_by("seq")[:SPAN_MAX], generation)


def session_span(session_id: str, first: int, last: int) -> EventSpan | None:
    """Events of a session as it is now; None when it has not been read."""
    session = AgentSession.objects.filter(session_id=session_id).first()
    if session is None:
        return None
    events = session_events(session).filter(seq__range=(first, last)).order_by("seq")[:SPAN_MAX]
    return EventSpan(session, events, session.view_generation)


def span_text(span: EventSpan) -> Iterator[str]:
    """Each event with a heading and all its text, as archives show it but never cut. MirrorDamaged,
    FileNotFoundError."""
    refs = list(event_refs(span.events))
    for number, event in enumerate(archived_events(span.session, refs)):
        yield "\n\n" if number else ""
        yield from _pieces(event)


def span_rows(span: EventSpan) -> Iterator[bytes]:
    """The rows of the log that these events stand in, each once, byte for byte. MirrorDamaged."""
    last = -1
    for ref in event_refs(span.events):
        if ref.row > last:
            yield from rows_read(span.session, ref.row, ref.row, span.generation)
            last = ref.row


def _pieces(event: ArchivedEvent) -> Iterator[str]:
    time = (
        datetime.fromtimestamp(event.time / 1000, UTC).strftime(" · %Y-%m-%d %H:%M UTC") if event.time else ""
    )
    yield f"### [#{event.seq}] {event.role or event.source or 'event'}{time}"
    for block in event.blocks:
        if is_named_only(block):
            size = f" · {len(block.text):,} characters" if block.text else ""
            yield f"\n[{block.kind}{f' · {clean(block.name)}' if block.name else ''}{size}]"
            continue
        if block.kind != "text":
            yield f"\n[{block.kind}{f' · {clean(block.name)}' if block.name else ''}]"
        yield "\n"
        yield clean(block.text)
