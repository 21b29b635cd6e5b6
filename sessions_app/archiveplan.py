"""What is to be archived: for each compaction the events it removed and who owns them, for an ended
session what is left."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from django.conf import settings
from django.db.models import QuerySet

from records import ids
from records.models import Record
from records.tombstones import is_forgotten, tombstones

from .batch import unranged
from .counts import generation_events, session_counts_save, session_events
from .eventrefs import EventRef, event_refs, refs_by_seq
from .levels import levels_of
from .logs.events import INJECTED
from .models import AgentSession, ArchivedCompaction, Compaction, Event, Surface

# A boundary that no summary follows is archived all the same after this long.
UNCONFIRMED_AFTER_MS = 10 * 60 * 1000
# Ids that agents draw at random and a copied log keeps; others may be a session's own counting.
RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# How an eviction of ours is known: by its first and last seq behind PRUNE, and by its trigger.
PRUNE, EVICT = "prune:", "evict"
_HOUR_MS = 3600 * 1000


@dataclass(slots=True)
class Plan:
    """One archive about to be written."""

    session: AgentSession
    origin_id: str  # the session it happened in
    source: str  # provenance.source
    compaction_id: str
    make_id: Callable[..., str]  # (length=…): the record's id, longer on a collision
    dropped: list[EventRef]  # all that left the window, by seq
    owned: list[EventRef]  # those that no earlier record owns
    compaction: Compaction | None = None
    known: ArchivedCompaction | None = None  # it has its record already
    linked: list[str] = field(default_factory=list)  # earlier records that own what it replaced

    @property
    def is_forgotten(self) -> bool:
        return is_forgotten("record", self.make_id(length=10))


def compactions_ready(session: AgentSession, now: int, *, link_only: bool) -> list[Compaction]:
    """Those that may be archived, in order; also those that no summary followed for long, which are taken
    for compactions without one."""
    states = (Compaction.State.READY, Compaction.State.PENDING)
    waiting = list(Compaction.objects.filter(session=session, state__in=states).order_by("at_seq"))
    for compaction in waiting:
        if compaction.state == Compaction.State.PENDING and _is_overdue(compaction, now, link_only=link_only):
            _confirm(compaction, session)
    return [compaction for compaction in waiting if compaction.state == Compaction.State.READY]


def _is_overdue(compaction: Compaction, now: int, *, link_only: bool) -> bool:
    if compaction.summary_seq is not None or compaction.kind != "compaction":
        return False
    if link_only:
        origin = compaction.origin_session_id or compaction.session_id
        return Record.objects.filter(id=ids.archive_id(origin, compaction.compaction_id)).exists()
    return compaction.time is not None and compaction.time <= now - UNCONFIRMED_AFTER_MS


def _confirm(compaction: Compaction, session: AgentSession) -> None:
    compaction.state = Compaction.State.READY if compaction.dropped else Compaction.State.EMPTY
    compaction.confirmed = False
    compaction.save()
    events = generation_events(session, compaction.generation)
    events.filter(seq__in=unranged(compaction.dropped), surface=Surface.CURRENT).update(
        surface=Surface.SHADOWED, shadowed_by=compaction.at_seq
    )
    session_counts_save(session)


def has_ended(session: AgentSession, now: int, idle_since: int | None) -> bool:
    if session.ended_at is not None:
        return True
    hours = settings.MEMEX_IDLE_ARCHIVE_HOURS
    latest = max(idle_since or 0, session.last_event_at or 0)
    return bool(hours and latest and now - latest >= hours * _HOUR_MS)


def compaction_plan(compaction: Compaction, session: AgentSession) -> Plan:
    origin = compaction.origin_session_id or session.session_id
    if is_forgotten("session", origin):
        origin = session.session_id  # the inherited part belongs to whom it is left with
    known = _record_of(session.session_id, origin, compaction)
    dropped, linked = _dropped_events(compaction, session)
    if compaction.kind == "compaction":
        source, make_id = "compaction-archive", partial(ids.archive_id, origin, compaction.compaction_id)
    else:
        source = compaction.kind
        make_id = partial(ids.eviction_id, origin, *_eviction_parts(compaction))
    owned = [event for event in dropped if not event.record_id]
    return Plan(
        session, origin, source, compaction.compaction_id, make_id, dropped, owned, compaction, known, linked
    )


def _eviction_parts(compaction: Compaction) -> list[str]:
    name = compaction.compaction_id.removeprefix(PRUNE)
    return name.split("-") if compaction.trigger == EVICT else [name]


def eviction_plan(session: AgentSession, dropped: list[EventRef], edges: tuple[int, int]) -> Plan:
    """The archive of a span that is about to leave the window. `edges`: the seqs at its two ends there, by which
    it is known. What stands for an earlier span may be among it: its record is linked."""
    start, end = edges
    compaction = Compaction(
        session=session, compaction_id=f"{PRUNE}{start}-{end}", kind="prune", trigger=EVICT, at_seq=end
    )
    make_id = partial(ids.eviction_id, session.session_id, *_eviction_parts(compaction))
    owned = [event for event in dropped if not event.record_id]
    before = Compaction.objects.filter(session=session, kind="prune", at_seq__in=[ref.seq for ref in dropped])
    linked = list(before.exclude(record_id="").order_by("at_seq").values_list("record_id", flat=True))
    return Plan(
        session, session.session_id, "prune", compaction.compaction_id, make_id, dropped, owned, compaction,
        linked=linked,
    )  # fmt: skip


def _record_of(session_id: str, origin: str, compaction: Compaction) -> ArchivedCompaction | None:
    rows = ArchivedCompaction.objects.filter(compaction_id=compaction.compaction_id)
    found = {row.session_id: row for row in rows.order_by("session_id")}
    if own := found.get(session_id) or found.get(origin):
        return own
    if not found or not RANDOM_ID.fullmatch(compaction.compaction_id):
        return None
    agent = compaction.session.agent
    same_agent = AgentSession.objects.filter(agent=agent, session_id__in=found).order_by("session_id").first()
    return found[same_agent.session_id] if same_agent else None


def _dropped_events(compaction: Compaction, session: AgentSession) -> tuple[list[EventRef], list[str]]:
    """The transitive closure: an event that left may itself have replaced others, which left with it, up
    to what an earlier archive owns; that one's id is in the second list. What a prune or microcompact
    had cut out of an event belongs to the event, whoever owns it."""
    events = generation_events(session, compaction.generation)
    found = {ref.seq: ref for ref in refs_by_seq(events, unranged(compaction.dropped))}
    # By their replacements events are found through an index that doesn't know generations: were they asked
    # for, the database would rather read the whole session, for each of its archives.
    versions = Event.objects.filter(session_id=session.session_id)
    linked: dict[str, None] = {}
    frontier = _replacing(versions, compaction.generation, found.keys())
    cutting = _cutting(compaction) if frontier else set()
    while frontier:
        replaced = versions.filter(shadowed_by__in=frontier).exclude(seq=compaction.at_seq).order_by("seq")
        below: set[int] = set()
        for ref in event_refs(replaced):
            if ref.seq in found or ref.generation != compaction.generation:
                continue
            if ref.record_id and ref.shadowed_by not in cutting:
                linked[ref.record_id] = None
                continue
            found[ref.seq] = ref
            below.add(ref.seq)
        frontier = _replacing(versions, compaction.generation, below)
    return [found[seq] for seq in sorted(found)], list(linked)


def _replacing(versions: QuerySet[Event], generation: int, seqs: Collection[int]) -> set[int]:
    """Those of these events that have replaced others: a handful a compaction."""
    if not seqs:
        return set()
    within = versions.filter(shadowed_by__gte=min(seqs), shadowed_by__lte=max(seqs))
    pairs = within.values_list("generation", "shadowed_by").distinct()
    return {by for number, by in pairs if number == generation and by is not None}.intersection(seqs)


def _cutting(compaction: Compaction) -> set[int]:
    """The events that cut something out of others: prunes and microcompacts. An eviction takes whole ones."""
    cuts = Compaction.objects.filter(session=compaction.session_id, generation=compaction.generation)
    cuts = cuts.exclude(kind="compaction").exclude(trigger=EVICT)
    return set(cuts.values_list("at_seq", flat=True))


def closing_plan(session: AgentSession) -> Plan | None:
    left = (
        session_events(session)
        .filter(record_id="", surface__in=(Surface.CURRENT, Surface.SHADOWED))
        .exclude(source=INJECTED)
        .order_by("generation", "seq")
    )
    if _is_kept(session.parent_id):
        left = left.filter(inherited=False)
    events = _behind_forgotten(session.session_id, list(event_refs(left)))
    if not any(event.role in ("user", "assistant", "tool") for event in events):
        return None
    last = events[-1]
    last_id = last.uid or str(last.seq)
    make_id = partial(ids.closing_id, session.session_id, last_id)
    return Plan(session, session.session_id, "session-end", f"end:{last_id}", make_id, events, events)


def _behind_forgotten(session_id: str, events: list[EventRef]) -> list[EventRef]:
    """What came after the last closing archive that was forgotten: a rebuild can't tell what that owned."""
    if not any(tombstone.kind == "record" for tombstone in tombstones()):
        return events
    for index in range(len(events) - 1, -1, -1):
        last_id = events[index].uid or str(events[index].seq)
        if is_forgotten("record", ids.closing_id(session_id, last_id)):
            return events[index + 1 :]
    return events


def _is_kept(session_id: str) -> bool:
    """Whether a session's own archives hold what others inherit from it."""
    parent = AgentSession.objects.filter(session_id=session_id).first() if session_id else None
    return parent is not None and levels_of(parent.pool_session_id, parent.workspace_key).any
