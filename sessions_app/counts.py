"""How many events a session has, and how much of it is in the window."""

from django.db import connection
from django.db.models import QuerySet

from .models import AgentSession, Event, Surface


def session_events(session: AgentSession) -> QuerySet[Event]:
    """The events that count now: other versions of a rewritten log are left out."""
    return generation_events(session, session.view_generation)


def generation_events(session: AgentSession, generation: int) -> QuerySet[Event]:
    return Event.objects.filter(session_id=session.session_id, generation=generation)


# Written out: at every log that is read the ORM would take longer to say it than the database to answer.
_COUNTS = """
    SELECT COUNT(*), COUNT(*) FILTER (WHERE surface = %s), SUM(tokens) FILTER (WHERE surface = %s)
    FROM events WHERE session_id = %s AND generation = %s
"""


def session_counts(session: AgentSession) -> tuple[int, int, int]:
    """Events, events in the window, their tokens."""
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNTS, [Surface.CURRENT, Surface.CURRENT, session.session_id, session.view_generation]
        )
        events, current, tokens = cursor.fetchone()
    return events, current, tokens or 0


def session_counts_take(session: AgentSession) -> None:
    """Brings the counts up to date; whoever calls it saves the session."""
    session.event_count, session.current_count, session.current_tokens = session_counts(session)


def session_counts_save(session: AgentSession) -> None:
    session_counts_take(session)
    session.save(update_fields=["event_count", "current_count", "current_tokens"])
