"""What an agent is told of without asking: which records, in which order; not yet how they are worded."""

from dataclasses import dataclass, field
from typing import NamedTuple

from django.db import connection
from django.db.models import Sum

from .listing import Sql, first_sql, join, pools_sql
from .models import Kind, PoolTotal
from .scope import Scope

STANDING_MAX, PINNED_MAX, THREADS_MAX, RECENT_MAX = 8, 6, 4, 8
# Rules that hold at every step, if a person vouches for them.
STANDING_KINDS = (Kind.CONSTRAINT, Kind.DECISION, Kind.PREFERENCE, Kind.PROCEDURE)


class CatalogCard(NamedTuple):
    """A record without its text. Times in milliseconds UTC."""

    id: str
    kind: str
    scope: str
    status: str
    trust: str
    title: str
    summary: str
    use_when: str
    tokens: int
    workspace_key: str
    session_id: str
    created_at: int
    updated_at: int


_COLUMNS = ", ".join(CatalogCard._fields)
_ORDER = "updated_at DESC, id DESC"
# The conditions of the partial indexes, word for word.
_HOT = "cold = 0 AND (status = 'active' OR status = 'pinned')"
_PINNED = "cold = 0 AND status = 'pinned' AND kind <> 'checkpoint'"
_STANDING = f"{_PINNED} AND trust = 'trusted' AND kind IN ({', '.join(repr(str(k)) for k in STANDING_KINDS)})"
# (condition, how many are shown, how many are read, since those of the sections before may be among them)
_SECTIONS = (
    (_STANDING, STANDING_MAX, STANDING_MAX),
    (_PINNED, PINNED_MAX, STANDING_MAX + PINNED_MAX),
    (f"{_HOT} AND kind = 'open-thread'", THREADS_MAX, PINNED_MAX + THREADS_MAX),
    (f"{_HOT} AND kind <> 'checkpoint'", RECENT_MAX, STANDING_MAX + PINNED_MAX + THREADS_MAX + RECENT_MAX),
)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Each list the newest first, and a record in one of them at most. All are hot, and active or pinned; none
    is a checkpoint. Counts and tokens are of everything in scope."""

    standing: list[CatalogCard] = field(default_factory=list)
    pinned: list[CatalogCard] = field(default_factory=list)
    open_threads: list[CatalogCard] = field(default_factory=list)
    recent: list[CatalogCard] = field(default_factory=list)
    hot_count: int = 0
    hot_tokens: int = 0
    cold_count: int = 0
    cold_tokens: int = 0

    @property
    def cards(self) -> list[CatalogCard]:
        return [*self.standing, *self.pinned, *self.open_threads, *self.recent]


def catalog(scope: Scope) -> Catalog:
    """Two queries, whatever there is."""
    found = _first(scope)
    shown: set[str] = set()
    lists: list[list[CatalogCard]] = []
    for section, (_, most, _) in enumerate(_SECTIONS):
        cards = [card for card in found.get(section, []) if card.id not in shown][:most]
        shown.update(card.id for card in cards)
        lists.append(cards)
    amounts = {
        cold: (count, tokens)
        for cold, count, tokens in PoolTotal.objects.filter(scope.totals_q())
        .values_list("cold")
        .annotate(Sum("count"), Sum("tokens"))
    }
    standing, pinned, threads, recent = lists
    return Catalog(standing, pinned, threads, recent, *amounts.get(0, (0, 0)), *amounts.get(1, (0, 0)))


def _first(scope: Scope) -> dict[int, list[CatalogCard]]:
    """By section: enough cards, in order, also when those shown in the sections before it are taken out."""
    parts = [
        first_sql(f"{section} AS section, {_COLUMNS}", pool, Sql(condition), _ORDER, enough)
        for section, (condition, _, enough) in enumerate(_SECTIONS)
        for pool in pools_sql(scope)
    ]
    together = join([part for part in parts if part], " UNION ALL ")
    found: dict[int, list[CatalogCard]] = {}
    if together.sql:
        with connection.cursor() as cursor:
            cursor.execute(together.sql, together.params)
            for section, *row in cursor.fetchall():
                found.setdefault(section, []).append(CatalogCard(*row))
    for cards in found.values():
        cards.sort(key=lambda card: (card.updated_at, card.id), reverse=True)
    return found
