"""How full the pools of a session are, and what was compressed of them."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Sum

from records.capacity import pools
from records.capacity.pools import CapacityPool, Level, session_pool, workspace_pool
from records.capacity.runs import compression_stats, run_json
from records.models import CompressionRun, PoolTotal
from records.models import Scope as Tier

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


def pools_of(access: Access) -> dict[str, CapacityPool]:
    """By level, on or off. None of the owner's view of everything, which is many pools."""
    found: dict[str, CapacityPool] = {}
    if access.session is not None:
        found[str(Level.L2)] = session_pool(access.session.pool_id)
    if access.keys:
        found[str(Level.L3)] = workspace_pool(access.keys)
    return found


def pool_figures(access: Access) -> tuple[PoolFigures, PoolFigures]:
    """L2 and L3, on or off: of a session its own and its workspace's, for the owner's view all of them."""
    named = pools_of(access)
    return (
        _figures(access, "l2", named.get("l2"), settings.MEMEX_SESSION_CAPACITY_TOKENS),
        _figures(access, "l3", named.get("l3"), settings.MEMEX_CAPACITY_TOKENS),
    )


def _figures(access: Access, level: str, pool: CapacityPool | None, capacity: int) -> PoolFigures:
    is_on = getattr(access.levels, level)
    if pool is not None:
        known = pools.pool_figures(pool)
        return PoolFigures(
            level, is_on, known.capacity_tokens, known.hot_count, known.hot_tokens, known.cold_count,
            known.cold_tokens,
        )  # fmt: skip
    if not access.is_everything:
        return PoolFigures(level, is_on, capacity)
    every = PoolTotal.objects.filter(scope=Tier.SESSION if level == "l2" else Tier.WORKSPACE)
    sums = every.order_by().values_list("cold").annotate(Sum("count"), Sum("tokens"))
    found = {cold: (count, tokens) for cold, count, tokens in sums}
    return PoolFigures(level, is_on, capacity, *found.get(0, (0, 0)), *found.get(1, (0, 0)))


def compression(access: Access) -> dict[str, Any]:
    """As the API says it."""
    if access.is_everything:
        runs = CompressionRun.objects.order_by("-id")
        recent = list(runs[:10])
        count = runs.count()
    else:
        stats = compression_stats(
            [pool for level, pool in pools_of(access).items() if getattr(access.levels, level)]
        )
        recent, count = list(stats.recent), stats.count
    shown = [run_json(run) for run in recent]
    return {"count": count, "last": shown[0] if shown else None, "recent": shown}
