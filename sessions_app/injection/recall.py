"""Which earlier records bear on what a person has just typed: few, and rather none than unrelated ones."""

import hashlib

from records.models import Kind, Record, Status
from records.search.relevance import may_be_relevant, relevant
from records.search.results import SearchHit
from records.search.search import search
from records.secrets.policy import is_sensitive
from sessions_app.access import Access
from sessions_app.machine_text import person_text
from sessions_app.models import Event, Surface

from .state import State
from .texts import CardLine

RECALLED_MAX = 3
TEXT_MIN, SECOND_TRY_CHARS = 3, 120
# Enough that those shown already don't hide the next ones.
_LOOKED_AT = 10
_NEVER = (Kind.CHECKPOINT,)
_COMMANDS = ("/", "!", "#")


def recall_query(text: str, state: State) -> str:
    """What to look for; "" when nothing should be: too short, no person's words, a command, or the same as
    last time."""
    typed = person_text(text).strip()
    if len(typed) < TEXT_MIN or typed.startswith(_COMMANDS) or digest(typed) == state.last_recall:
        return ""
    return typed


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def recalled(access: Access, query: str, state: State) -> list[CardLine]:
    """Hits that this window has not been shown, hot and cold."""
    if not may_be_relevant(query):
        return []
    found = _hits(access, query)
    if not found and len(query) > SECOND_TRY_CHARS:
        found = _hits(access, query[:SECOND_TRY_CHARS])
    fresh = [hit for hit in found if hit.card.id not in state.shown]
    present = still_in_window(access, [hit.card.id for hit in fresh])
    return [
        CardLine(hit.card.id, hit.card.kind, hit.card.title, hit.card.use_when)
        for hit in fresh
        if hit.card.id not in present
    ][:RECALLED_MAX]


def _hits(access: Access, query: str) -> list[SearchHit]:
    answer = search(access.scope, query, limit=_LOOKED_AT)
    return [
        hit
        for hit in relevant(answer.hits, most=_LOOKED_AT)
        if hit.card.kind not in _NEVER
        and hit.card.status != Status.CONFLICT
        and not is_sensitive(hit.card.tags)
    ]


def still_in_window(access: Access, record_ids: list[str]) -> set[str]:
    """Those of them whose events this session still has before it: a closing archive of a session that was
    resumed, say."""
    if access.session is None or not record_ids:
        return set()
    own = Record.objects.filter(pk__in=record_ids, provenance__sessionId=access.session.session_id)
    candidates = set(own.values_list("pk", flat=True))
    if not candidates:
        return set()
    events = Event.objects.filter(session_id=access.session.session_id, record_id__in=candidates)
    seen = set(events.order_by().values_list("record_id", flat=True).distinct())
    gone = set(
        events.exclude(surface=Surface.CURRENT).order_by().values_list("record_id", flat=True).distinct()
    )
    return seen - gone
