"""Events as light tuples, for passes over thousands of them: an ORM object each would cost more than
reading its text. The one place that knows how a session's events and their mirror belong together."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from django.db import connection
from django.db.models import QuerySet

from .models import AgentSession, Event, Surface


class EventRef(NamedTuple):
    pk: int
    seq: int
    mirror_id: str
    generation: int
    row: int
    offset: int
    length: int
    part: int
    type: str
    role: str
    source: str
    time: int | None
    tokens: int
    uid: str
    surface: str | None
    shadowed_by: int | None
    record_id: str


def event_refs(events: QuerySet[Event]) -> Iterator[EventRef]:
    # Straight from the cursor: the ORM's own iteration costs more than the rest of the pass.
    sql, parameters = events.values_list(*EventRef._fields).query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        while rows := cursor.fetchmany(5_000):
            yield from map(EventRef._make, rows)


def refs_by_seq(events: QuerySet[Event], seqs: Sequence[int]) -> list[EventRef]:
    """Those with one of these seqs that the model has seen, in order; `events` are of one session and
    generation."""
    if not seqs:
        return []
    wanted = set(seqs)
    within = events.filter(seq__range=(min(wanted), max(wanted))).exclude(surface=Surface.LOG_ONLY)
    within = within.order_by("seq")
    return [ref for ref in event_refs(within) if ref.seq in wanted]


def mirror_session_id(session_id: str, mirror_id: str) -> str:
    """Whose mirror an event stands in."""
    return mirror_id or session_id


def events_of_mirror(session_id: str, generation: int) -> QuerySet[Event]:
    """All events that stand in a session's mirror: its own and its inline sub-agents'."""
    return Event.objects.filter(session_id__in=with_lanes([session_id]), generation=generation)


def lanes_of(session_id: str) -> list[AgentSession]:
    """The inline sub-agents in a session's log."""
    prefix = f"{session_id}."
    children = AgentSession.objects.filter(parent_id=session_id, relation="subagent").order_by("session_id")
    return [child for child in children if child.session_id.startswith(prefix)]


def with_lanes(session_ids: Iterable[str]) -> list[str]:
    """These sessions and their inline sub-agents."""
    wanted = set(session_ids)
    children = AgentSession.objects.filter(relation="subagent", parent_id__in=wanted)
    lanes = (
        child
        for child, parent in children.values_list("session_id", "parent_id")
        if child.startswith(f"{parent}.")
    )
    return sorted(wanted.union(lanes))
