"""Brings pools down to a share of their capacity by moving records to the cold tier.

Data flow: the candidates of a pool, in the order in which they go (choice) -> a batch at a time to cold/
(cold), until the running totals say that it is enough -> gc, when cold records have a quota. Each run leaves
a row (runs). What is cold is no candidate any more, so that a run that was cut short is gone on with.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from django.conf import settings
from django.db import OperationalError
from filelock import Timeout

from records.clock import now_ms
from records.models import Record, Status
from records.search.indexing import bodies_sync

from .choice import Candidate, chosen, ordered
from .cold import BATCH, record_cool
from .gc import GcReport, gc_run
from .pools import CapacityPool, PoolFigures, pool_figures, pools_locked
from .runs import RunLog

COLD, DIGEST = "cold", "digest"
STRATEGIES = (COLD, DIGEST)
RATIO_MIN, RATIO_MAX = 0.1, 0.95
_HOUR_MS = 60 * 60 * 1000
_INDEX_SECONDS = 5


class DigestRequiresModel(Exception):
    """Digests are made by a language model, and none is set up."""


@dataclass(frozen=True)
class Progress:
    pool: CapacityPool
    hot_tokens: int
    target_tokens: int
    cold_moved: int


@dataclass(frozen=True)
class CompressionPreview:
    """What a run would move; `ids` in the order in which they would go."""

    pool: CapacityPool
    figures: PoolFigures
    target_tokens: int
    ids: list[str]
    tokens: int

    @property
    def after_hot(self) -> int:
        return self.figures.hot_tokens - self.tokens


@dataclass
class CompressionReport:
    """`errors`: what could not be moved, and why; `stopped`: it was asked to, before it was done; `gc`: what
    the quota for cold records made go."""

    pool: CapacityPool
    target_tokens: int
    before_hot: int
    after_hot: int
    cold_moved: int = 0
    freed_tokens: int = 0
    stopped: bool = False
    errors: list[str] = field(default_factory=list)
    gc: GcReport | None = None
    run_id: int = 0


def _never() -> bool:
    return False


def _silent(_: Progress) -> None:
    return None


def compress(
    pools: Sequence[CapacityPool],
    *,
    actor: str,
    strategy: str = COLD,
    target_ratio: float | None = None,
    min_age_ms: int | None = None,
    session_id: str = "",
    stopped: Callable[[], bool] = _never,
    progress: Callable[[Progress], None] = _silent,
) -> list[CompressionReport]:
    """A report for each pool, in order. `target_ratio` and `min_age_ms`: None = as set; `session_id`: who
    asks, when that is a session; `stopped` is asked before each batch, `progress` told after it.

    PoolBusy (before anything was changed), DigestRequiresModel, ValueError. Not inside a transaction.
    """
    _check(strategy, target_ratio, min_age_ms)
    if strategy == DIGEST:
        raise DigestRequiresModel("A digest needs a language model, and none is set up: use strategy cold.")
    with pools_locked(pools):
        reports = []
        for pool in pools:
            run = _Run(pool, target_ratio, min_age_ms, stopped, progress)
            reports.append(run.run(actor=actor, session_id=session_id))
    return reports


def compress_preview(
    pool: CapacityPool, *, target_ratio: float | None = None, min_age_ms: int | None = None
) -> CompressionPreview:
    """What strategy cold would do now; changes nothing. ValueError."""
    _check(COLD, target_ratio, min_age_ms)
    figures = pool_figures(pool)
    target = target_tokens(pool, target_ratio)
    going = chosen(candidates(pool, min_age_ms), figures.hot_tokens - target)
    return CompressionPreview(
        pool, figures, target, [each.id for each in going], sum(each.tokens for each in going)
    )


def target_tokens(pool: CapacityPool, ratio: float | None = None) -> int:
    return int(pool.capacity_tokens * (settings.MEMEX_TARGET_RATIO if ratio is None else ratio))


def candidates(pool: CapacityPool, min_age_ms: int | None = None) -> list[Candidate]:
    """In the order in which they go. What was changed a moment ago is as young as what is new."""
    age = settings.MEMEX_MIN_AGE_HOURS * _HOUR_MS if min_age_ms is None else min_age_ms
    limit = now_ms() - age
    hot = Record.objects.filter(pool.q(), cold=0, created_at__lte=limit, updated_at__lte=limit)
    rows = hot.exclude(status=Status.PINNED).values_list(*Candidate._fields)
    return ordered(Candidate(*row) for row in rows.iterator())


def _check(strategy: str, target_ratio: float | None, min_age_ms: int | None) -> None:
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}.")
    if target_ratio is not None and not RATIO_MIN <= target_ratio <= RATIO_MAX:
        raise ValueError(
            f"The target ratio must lie between {RATIO_MIN} and {RATIO_MAX}, not {target_ratio}."
        )
    if min_age_ms is not None and min_age_ms < 0:
        raise ValueError("The least age can't be negative.")


@dataclass
class _Run:
    pool: CapacityPool
    target_ratio: float | None
    min_age_ms: int | None
    stopped: Callable[[], bool]
    progress: Callable[[Progress], None]

    def run(self, *, actor: str, session_id: str) -> CompressionReport:
        hot = pool_figures(self.pool).hot_tokens
        log = RunLog(self.pool, strategy=COLD, hot_tokens=hot, session_id=session_id, actor=actor)
        report = CompressionReport(
            self.pool, target_tokens(self.pool, self.target_ratio), hot, hot, run_id=log.row.id
        )
        try:
            self._cool(report, log, actor)
            quota = settings.MEMEX_COLD_QUOTA_TOKENS
            if quota is not None and not report.stopped:
                report.gc = gc_run(self.pool, keep_tokens=quota, actor=actor)
        except BaseException as error:
            log.errors.append(f"{type(error).__name__}: {error}")
            raise
        finally:
            log.end()
        _index(report.cold_moved)
        return report

    def _cool(self, report: CompressionReport, log: RunLog, actor: str) -> None:
        if report.before_hot <= report.target_tokens:
            return
        left = candidates(self.pool, self.min_age_ms)
        while left and (excess := report.after_hot - report.target_tokens) > 0:
            if self.stopped():
                report.stopped = True
                log.errors.append("stopped when asked to")
                return
            batch = chosen(left, excess, BATCH)
            left = left[len(batch) :]
            moved = record_cool([each.id for each in batch], actor=actor)
            report.cold_moved += len(moved.ids)
            report.freed_tokens += moved.tokens
            # Others write meanwhile: what counts is what the totals say now.
            report.after_hot = pool_figures(self.pool).hot_tokens
            report.errors += [f"{record_id}: {why}" for record_id, why in moved.skipped.items()]
            log.errors = list(report.errors)
            log.moved(len(moved.ids), report.after_hot)
            self.progress(Progress(self.pool, report.after_hot, report.target_tokens, report.cold_moved))


def _index(records: int) -> None:
    """Takes what went cold out of the body index; what is left of that is done by the next search."""
    if records:
        with suppress(Timeout, OperationalError, OSError):
            bodies_sync(timeout=_INDEX_SECONDS, most_records=records)
