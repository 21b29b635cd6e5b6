"""Pools as they have a capacity: the private records of a session (L2), the shared ones of a workspace or of
several joined ones (L3)."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings
from django.db.models import Q, Sum
from filelock import FileLock, Timeout

from records.files import make_dir
from records.home import locks_dir
from records.models import PoolTotal
from records.models import Scope as Tier


class Level(StrEnum):
    L2 = "l2"
    L3 = "l3"


class PoolBusy(Exception):
    """Another run is changing this pool."""


@dataclass(frozen=True)
class CapacityPool:
    """Made by `session_pool` or `workspace_pool`."""

    level: Level
    session_id: str = ""
    workspace_keys: tuple[str, ...] = ()

    def q(self) -> Q:
        """A filter for records and for their totals."""
        if self.level is Level.L2:
            return Q(scope=Tier.SESSION, session_id=self.session_id)
        return Q(scope=Tier.WORKSPACE, workspace_key__in=self.workspace_keys)

    @property
    def capacity_tokens(self) -> int:
        name = "SESSION_CAPACITY_TOKENS" if self.level is Level.L2 else "CAPACITY_TOKENS"
        return int(getattr(settings, f"MEMEX_{name}"))

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of what no two runs may change at once. Pools that overlap share one."""
        return tuple(f"{self.level}:{name}" for name in self.workspace_keys or (self.session_id,))

    def __str__(self) -> str:
        return f"{self.level.upper()} {', '.join(self.workspace_keys or (self.session_id,))}"


def session_pool(session_id: str) -> CapacityPool:
    """`session_id`: whose private pool it is; a sub-agent's is its parent's. ValueError when empty."""
    if not session_id:
        raise ValueError("A session's pool needs its session.")
    return CapacityPool(Level.L2, session_id=session_id)


def workspace_pool(workspace_keys: Iterable[str]) -> CapacityPool:
    """Joined workspaces are one pool. ValueError when none is named."""
    keys = tuple(sorted(set(workspace_keys)))
    if not all(keys) or not keys:
        raise ValueError("A shared pool needs its workspaces.")
    return CapacityPool(Level.L3, workspace_keys=keys)


@dataclass(frozen=True)
class PoolFigures:
    """`count` and `tokens` include cold records; the capacity is for hot ones."""

    count: int
    tokens: int
    hot_count: int
    hot_tokens: int
    cold_count: int
    cold_tokens: int
    capacity_tokens: int

    @property
    def hot_ratio(self) -> float:
        return self.hot_tokens / self.capacity_tokens


def pool_figures(pool: CapacityPool) -> PoolFigures:
    """From the running totals: the same cost whatever the pool holds."""
    sums = (
        PoolTotal.objects.filter(pool.q()).values("cold").annotate(records=Sum("count"), used=Sum("tokens"))
    )
    by_tier = {row["cold"]: (row["records"], row["used"]) for row in sums}
    hot_count, hot_tokens = by_tier.get(0, (0, 0))
    cold_count, cold_tokens = by_tier.get(1, (0, 0))
    return PoolFigures(
        count=hot_count + cold_count,
        tokens=hot_tokens + cold_tokens,
        hot_count=hot_count,
        hot_tokens=hot_tokens,
        cold_count=cold_count,
        cold_tokens=cold_tokens,
        capacity_tokens=pool.capacity_tokens,
    )


@contextmanager
def pools_locked(pools: Sequence[CapacityPool]) -> Iterator[None]:
    """PoolBusy at once when another run has one of them. A process that dies lets go of them."""
    make_dir(locks_dir())
    with ExitStack() as held:
        for pool in pools:
            for part in pool.parts:
                name = hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:24]
                try:
                    held.enter_context(FileLock(locks_dir() / f"pool-{name}.lock", timeout=0))
                except Timeout:
                    raise PoolBusy(
                        f"{pool} is being compressed or cleared already; try again later."
                    ) from None
        yield
