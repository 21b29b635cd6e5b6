"""Moves the oldest cold records of a pool to the trash, until the rest fits into so many tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from records.models import Record, Status
from records.services import records_forget

from .pools import CapacityPool, pool_figures, pools_locked

# Records a run.
MOST = 5_000

# Moves records to the trash as one bundle and returns its id. Whoever keeps rows about records registers
# one that takes these along: this package knows nothing of sessions.
Trasher = Callable[[Sequence[str], str], str]


def _forget(record_ids: Sequence[str], actor: str) -> str:
    return records_forget(record_ids, actor=actor).id


_trasher: Trasher = _forget


def trasher_set(trasher: Trasher) -> None:
    global _trasher
    _trasher = trasher


@dataclass(frozen=True)
class GcReport:
    """`ids`: what went, or would go; `bundle_id`: where it is in the trash, "" when nothing went."""

    pool: CapacityPool
    before_cold: int
    after_cold: int
    ids: list[str] = field(default_factory=list)
    tokens: int = 0
    bundle_id: str = ""


def gc(pool: CapacityPool, *, keep_tokens: int, actor: str) -> GcReport:
    """The oldest first, at most MOST a run, pinned ones never. PoolBusy, ValueError; not in a transaction."""
    _check(keep_tokens)
    with pools_locked([pool]):
        return gc_run(pool, keep_tokens=keep_tokens, actor=actor)


def gc_preview(pool: CapacityPool, *, keep_tokens: int) -> GcReport:
    """What it would do now; changes nothing. ValueError."""
    _check(keep_tokens)
    cold = pool_figures(pool).cold_tokens
    ids, tokens = _going(pool, cold - keep_tokens)
    return GcReport(pool, cold, cold - tokens, ids, tokens)


def gc_run(pool: CapacityPool, *, keep_tokens: int, actor: str) -> GcReport:
    """The same as `gc` for whoever holds the pool's lock."""
    cold = pool_figures(pool).cold_tokens
    ids, tokens = _going(pool, cold - keep_tokens)
    bundle_id = _trasher(ids, actor) if ids else ""
    return GcReport(pool, cold, pool_figures(pool).cold_tokens, ids, tokens, bundle_id)


def _check(keep_tokens: int) -> None:
    if keep_tokens < 0:
        raise ValueError("The tokens to keep can't be negative.")


def _going(pool: CapacityPool, excess: int) -> tuple[list[str], int]:
    ids: list[str] = []
    tokens = 0
    if excess <= 0:
        return ids, tokens
    oldest = (
        Record.objects.filter(pool.q(), cold=1).exclude(status=Status.PINNED).order_by("created_at", "id")
    )
    for record_id, size in oldest.values_list("id", "tokens")[:MOST].iterator():
        if tokens >= excess:
            break
        ids.append(record_id)
        tokens += size
    return ids, tokens
