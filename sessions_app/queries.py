"""Reads of sessions, their events and compactions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .counts import generation_events, session_events
from .eventrefs import EventRef, mirror_session_id
from .levels import Levels, levels_of
from .logs.events import Block
from .mirror import Mirror, MirrorDamaged
from .models import AgentSession, Event, Generation, Source
from .pushsource import format_for
from .sessionfile import session_folder


class SessionNotFound(LookupError):
    """No session, or more than one, under the given id, id prefix or log path."""


@dataclass(slots=True)
class EventText:
    """An event with its whole content, read from the mirror."""

    event: Event | EventRef
    raw: bytes
    blocks: list[Block]


def session_get(name: str) -> AgentSession:
    """By id, by the path of its log, or by the beginning of an id if only one begins so."""
    exact = AgentSession.objects.filter(session_id=name).first()
    if exact:
        return exact
    by_path = Source.objects.filter(path=name).values_list("session_id", flat=True).first()
    found = list(
        AgentSession.objects.filter(session_id=by_path)
        if by_path
        else AgentSession.objects.filter(session_id__startswith=name).order_by("session_id")[:6]
    )
    if len(found) == 1:
        return found[0]
    if not found:
        raise SessionNotFound(f"No session {name!r} has been read. `manage.py memory sessions` lists them.")
    raise SessionNotFound(f"{name!r} may be any of {', '.join(row.session_id for row in found)}.")


def session_generation(session: AgentSession, name: str, generation: int | None) -> int:
    """Which version of a session's log is meant: the one asked for, else that of the log file `name`, else
    the one that counts now. Raises SessionNotFound."""
    if generation is None:
        of_file = Source.objects.filter(path=name).values_list("generation", flat=True).first()
        return session.view_generation if of_file is None else of_file
    if not Generation.objects.filter(session_id=_mirror_owner(session), number=generation).exists():
        raise SessionNotFound(f"Session {session.session_id} has no generation {generation}.")
    return generation


def _mirror_owner(session: AgentSession) -> str:
    """Whose mirror a session's rows stand in: its parent's for an inline sub-agent."""
    elsewhere = session_events(session).exclude(mirror_id="").values_list("mirror_id", flat=True).first()
    return elsewhere or session.session_id


def session_levels(session: AgentSession) -> Levels:
    return levels_of(session.pool_session_id, session.workspace_key)


def mirror_of(session_id: str, generation: int) -> Mirror:
    """Raises SessionNotFound."""
    key = AgentSession.objects.filter(session_id=session_id).values_list("workspace_key", flat=True).first()
    if key is None:
        raise SessionNotFound(f"No session {session_id!r}.")
    return Mirror(session_folder(key, session_id), generation)


def rows_read(session: AgentSession, first: int, last: int, generation: int | None = None) -> Iterator[bytes]:
    """The original bytes of these rows, each once and with its line end. Of an inline sub-agent: rows of
    the log that it stands in."""
    owner = _mirror_owner(session)
    number = session.view_generation if generation is None else generation
    mirror = mirror_of(owner, number)
    read = Generation.objects.filter(session_id=owner, number=number).values_list("parsed_rows", flat=True)
    known = min(last, (read.first() or 0) - 1)
    if first <= known:
        yield from rows_exactly(mirror, first, known)
    yield from mirror.rows(max(first, known + 1), last)


def rows_exactly(mirror: Mirror, first: int, last: int) -> Iterator[bytes]:
    """Rows that were read once. Raises MirrorDamaged when the mirror has lost one of them."""
    number = first
    for row in mirror.rows(first, last):
        yield row
        number += 1
    if number <= last:
        raise MirrorDamaged(
            f"{mirror.folder}: row {number} of generation {mirror.generation} is gone. `manage.py doctor` "
            "looks at the whole store; restore the folder from a backup."
        )


def events_read(
    session: AgentSession, first: int, last: int, generation: int | None = None
) -> Iterator[EventText]:
    """Events by seq, with their content."""
    number = session.view_generation if generation is None else generation
    events = generation_events(session, number).filter(seq__range=(first, last)).order_by("seq")
    yield from event_texts(session, events.iterator(2_000))


Mirrors = dict[tuple[str, int], Mirror]


def event_texts(
    session: AgentSession, events: Iterable[Event | EventRef], mirrors: Mirrors | None = None
) -> Iterator[EventText]:
    """`mirrors`: those that are open already, for a caller that asks more than once."""
    blocks_of = format_for(session.session_id, session.agent).blocks
    mirrors = {} if mirrors is None else mirrors
    mirror, place = None, ("", -1)
    for event in events:
        if mirror is None or (event.mirror_id, event.generation) != place:
            place = (event.mirror_id, event.generation)
            mirror = mirrors.get(place)
        if mirror is None:
            mirror = mirrors[place] = _mirror_of_event(session, event)
        raw = mirror.read(event.offset, event.length)
        if len(raw) < event.length:
            raise MirrorDamaged(
                f"{mirror.folder}: event #{event.seq} is gone from generation {event.generation}."
            )
        yield EventText(event, raw, blocks_of(raw, event.part))


def _mirror_of_event(session: AgentSession, event: Event | EventRef) -> Mirror:
    owner = mirror_session_id(session.session_id, event.mirror_id)
    if owner == session.session_id:
        return Mirror(session_folder(session.workspace_key, owner), event.generation)
    return mirror_of(owner, event.generation)
