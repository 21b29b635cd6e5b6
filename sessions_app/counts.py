"""How many events a session has, and how much of it is in the window."""

from django.db.models import Count, Q, QuerySet, Sum

from .models import AgentSession, Event, Surface


def session_events(session: AgentSession) -> QuerySet[Event]:
    """The events that count now: other versions of a rewritten log are left out."""
    return generation_events(session, session.view_generation)


def generation_events(session: AgentSession, generation: int) -> QuerySet[Event]:
    return Event.objects.filter(session_id=session.session_id, generation=generation)


def session_counts(session: AgentSession) -> tuple[int, int, int]:
    """Events, events in the window, their tokens."""
    found = session_events(session).aggregate(
        events=Count("pk"),
        current=Count("pk", filter=Q(surface=Surface.CURRENT)),
        tokens=Sum("tokens", filter=Q(surface=Surface.CURRENT), default=0),
    )
    return found["events"], found["current"], found["tokens"]


def session_counts_save(session: AgentSession) -> None:
    session.event_count, session.current_count, session.current_tokens = session_counts(session)
    session.save(update_fields=["event_count", "current_count", "current_tokens"])
