"""How full the pools of a session are."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Sum

from records.models import PoolTotal
from records.models import Scope as Pool

from .access import Access


@dataclass(frozen=True)
class PoolFigures:
    level: str
    is_on: bool
    capacity: int
    hot_count: int = 0
    hot_tokens: int = 0
    cold_count: int = 0
    cold_tokens: int = 0

    @property
    def percent(self) -> int:
        """Of its capacity, rounded down."""
        return self.hot_tokens * 100 // self.capacity

    def as_json(self) -> dict[str, Any]:
        return {
            "enabled": self.is_on,
            "tokens": self.hot_tokens + self.cold_tokens,
            "hotTokens": self.hot_tokens,
            "coldTokens": self.cold_tokens,
            "hotCount": self.hot_count,
            "coldCount": self.cold_count,
            "count": self.hot_count + self.cold_count,
            "capacityTokens": self.capacity,
        }


def pool_figures(access: Access) -> tuple[PoolFigures, PoolFigures]:
    """L2 and L3, on or off: of a session its own and its workspace's, for the owner's view all of them."""
    totals = PoolTotal.objects.all()
    if access.is_everything:
        l2, l3 = totals.filter(scope=Pool.SESSION), totals.filter(scope=Pool.WORKSPACE)
    else:
        pool = access.session.pool_id if access.session else ""
        l2 = totals.filter(scope=Pool.SESSION, session_id=pool) if pool else totals.none()
        l3 = totals.filter(scope=Pool.WORKSPACE, workspace_key__in=access.keys)
    return (
        _summed("l2", access.levels.l2, settings.MEMEX_SESSION_CAPACITY_TOKENS, l2),
        _summed("l3", access.levels.l3, settings.MEMEX_CAPACITY_TOKENS, l3),
    )


def _summed(level: str, is_on: bool, capacity: int, totals: Any) -> PoolFigures:
    found = {
        cold: (count, tokens)
        for cold, count, tokens in totals.order_by().values_list("cold").annotate(Sum("count"), Sum("tokens"))
    }
    return PoolFigures(level, is_on, capacity, *found.get(0, (0, 0)), *found.get(1, (0, 0)))
