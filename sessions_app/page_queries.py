"""Reads that only the pages need: lists of sessions, and windows of one session's events."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from records.models import Record

from .counts import session_events
from .levels import Levels, default_levels
from .logs.events import AGENT, PERSON
from .models import AgentSession, Compaction, Event, Job, SessionSettings, Source, Surface
from .overview import forgotten_sessions, topmost_sources
from .workspaces import workspaces_read

SESSIONS_A_PAGE = 40
EVENTS_A_WINDOW = 100
# Events may be megabytes long: a window ends earlier when those in it are large.
WINDOW_BYTES = 4 * 1024 * 1024
COMPACTIONS_LISTED = 300

SHOWN = {
    "conversation": Q(surface=None) | ~Q(surface=Surface.LOG_ONLY),
    "dropped": Q(surface=Surface.SHADOWED),
    "current": Q(surface=Surface.CURRENT),
    "all": Q(),
}


def is_first_visit() -> bool:
    """Nothing is switched on, and nothing is kept."""
    if Record.objects.exists() or AgentSession.objects.exists():
        return False
    if SessionSettings.objects.filter(Q(l2=1) | Q(l3=1)).exists():
        return False
    return not any(entry["l2"] or entry["l3"] for entry in workspaces_read()["workspaces"].values())


@dataclass(frozen=True)
class SessionList:
    """Topmost sessions, the latest first, and below each pool's id its sub-agents."""

    sessions: list[AgentSession]
    children: dict[str, list[AgentSession]]
    compactions: dict[str, int]
    levels: dict[str, Levels]
    paused: set[str]
    next_cursor: str


def session_list(*, workspace: str = "", agent: str = "", after_cursor: str = "") -> SessionList:
    """ValueError for a cursor that is none."""
    pools = AgentSession.objects.filter(session_id=OuterRef("pool_session_id"))
    found: QuerySet[Any] = _named(AgentSession.objects.all()).filter(
        Q(pool_session_id=F("session_id")) | ~Exists(pools)
    )
    if workspace:
        found = found.filter(workspace_key=workspace)
    if agent:
        found = found.filter(agent=agent)
    if after_cursor:
        time, _, session_id = after_cursor.partition(":")
        found = found.filter(Q(active_at__lt=int(time)) | Q(active_at=int(time), session_id__gt=session_id))
    page = list(found.order_by("-active_at", "session_id")[: SESSIONS_A_PAGE + 1])
    more, page = len(page) > SESSIONS_A_PAGE, page[:SESSIONS_A_PAGE]
    below = sub_agents([session.session_id for session in page])
    every = [*page, *below]
    children: dict[str, list[AgentSession]] = {}
    for child in below:
        children.setdefault(child.pool_session_id, []).append(child)
    last = page[-1] if page else None
    return SessionList(
        sessions=page,
        children=children,
        compactions=_compaction_counts(every),
        levels=levels_of_pools(every),
        paused=_paused(every),
        next_cursor=f"{getattr(last, 'active_at', 0)}:{last.session_id}" if more and last else "",
    )


def sub_agents(pool_ids: Iterable[str]) -> list[AgentSession]:
    """The sub-agents of these pools, at any depth, in the order they began."""
    found = AgentSession.objects.filter(pool_session_id__in=list(pool_ids))
    return list(_named(found.exclude(session_id=F("pool_session_id"))).order_by("started_at", "session_id"))


def _named(sessions: QuerySet[AgentSession]) -> QuerySet[AgentSession]:
    """With `active_at`, and for a session without a title what a person said first, what they said first
    that is no markup, and what this session itself was told first, by whomever."""
    events = Event.objects.filter(session=OuterRef("pk")).exclude(preview="").order_by("generation", "seq")
    said = events.filter(source=PERSON)
    told = events.filter(source__in=(PERSON, AGENT), inherited=False)
    return sessions.annotate(
        active_at=Coalesce("last_event_at", "started_at", Value(0)),
        first_words=Subquery(said.values("preview")[:1]),
        plain_words=Subquery(said.exclude(preview__startswith="<").values("preview")[:1]),
        told_words=Subquery(told.values("preview")[:1]),
    )


def _compaction_counts(sessions: list[AgentSession]) -> dict[str, int]:
    found = Compaction.objects.filter(session__in=sessions, kind="compaction").order_by()
    return dict(found.values_list("session_id").annotate(Count("pk")))


def levels_of_pools(sessions: list[AgentSession]) -> dict[str, Levels]:
    """By pool session id, what `levels.levels_of` says of each, in one query for all of them."""
    pools = {session.pool_session_id: session.workspace_key for session in sessions}
    rows = SessionSettings.objects.filter(session_id__in=pools).values_list("session_id", "l2", "l3")
    own = {session_id: Levels(bool(l2), bool(l3)) for session_id, l2, l3 in rows}
    return {pool: own.get(pool) or default_levels(key) for pool, key in pools.items()}


def _paused(sessions: list[AgentSession]) -> set[str]:
    """Which of these are paused: by themselves, with their workspace or with everything."""
    paused = workspaces_read()["paused"]
    return {
        session.session_id
        for session in sessions
        if paused["all"]
        or session.workspace_key in paused["workspaces"]
        or {session.session_id, session.pool_session_id} & set(paused["sessions"])
    }


def sessions_named(session_ids: Iterable[str]) -> list[AgentSession]:
    return list(_named(AgentSession.objects.filter(session_id__in=list(session_ids))))


def session_named(session_id: str) -> AgentSession | None:
    return next(iter(sessions_named([session_id])), None)


def off_sources() -> QuerySet[Source]:
    """The logs of sessions that nothing was read of, the latest first; of forgotten ones there is nothing
    to be read."""
    read = AgentSession.objects.filter(session_id=OuterRef("session_id"))
    gone = forgotten_sessions()
    forgotten = Q(session_id__in=gone) | Q(relation="subagent", parent_id__in=gone)
    return topmost_sources().filter(~Exists(read)).exclude(forgotten).order_by("-mtime_ns", "path")


def archive_job(*, live: bool = False) -> Job | None:
    """The latest archive run that was asked for here; `live`: only if it has not ended."""
    found = Job.objects.filter(kind="archive").order_by("-pk")
    return (found.filter(state__in=(Job.State.QUEUED, Job.State.RUNNING)) if live else found).first()


@dataclass(frozen=True)
class EventWindow:
    """`earlier`, `later`: the seq to ask for next in that direction; None at the end of the session."""

    events: list[Event]
    compactions: list[Compaction]
    earlier: int | None
    later: int | None


def event_window(
    session: AgentSession,
    *,
    show: str = "conversation",
    start: int | None = None,
    before: int | None = None,
    size: int = EVENTS_A_WINDOW,
) -> EventWindow:
    """Events from seq `start` on, or the ones before `before`; `show`: a key of SHOWN. Compactions come
    with the window in which they happened."""
    events = session_events(session).filter(SHOWN[show])
    earlier: int | None
    later: int | None
    if before is not None:
        found = list(events.filter(seq__lt=before).order_by("-seq", "-generation")[: size + 1])
        kept = _within_bytes(found[:size])
        earlier = kept[-1].seq if len(found) > len(kept) else None
        kept.reverse()
        later = before
    else:
        found = list(events.filter(seq__gte=start or 0).order_by("seq", "generation")[: size + 1])
        kept = _within_bytes(found[:size])
        later = found[len(kept)].seq if len(found) > len(kept) else None
        earlier = start if start is not None and events.filter(seq__lt=start).exists() else None
    return EventWindow(kept, _compactions_between(session, earlier, later), earlier, later)


def _within_bytes(events: list[Event]) -> list[Event]:
    total = 0
    for number, event in enumerate(events):
        total += event.length
        if total > WINDOW_BYTES and number:
            return events[:number]
    return events


def _compactions_between(session: AgentSession, first: int | None, end: int | None) -> list[Compaction]:
    found = session_compactions(session)
    if first is not None:
        found = found.filter(at_seq__gte=first)
    if end is not None:
        found = found.filter(at_seq__lt=end)
    return list(found[:COMPACTIONS_LISTED])


def session_compactions(session: AgentSession) -> QuerySet[Compaction]:
    """Those of the numbering that counts now, in order."""
    return Compaction.objects.filter(
        session_id=session.session_id, generation__gte=session.view_generation
    ).order_by("at_seq", "pk")


def event_get(session: AgentSession, seq: int) -> Event | None:
    return session_events(session).filter(seq=seq).order_by("generation").first()
