"""What is remembered of compressions: a row each, written when it begins and brought up to date."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from records.clock import now_ms
from records.header import to_json
from records.models import CompressionRun

from .pools import CapacityPool, Level

RECENT = 10
# What stands among the errors of a run that has not ended, or was killed.
UNFINISHED = "unfinished"
_ERRORS_MAX = 50


class RunLog:
    """The row of a run."""

    def __init__(
        self, pool: CapacityPool, *, strategy: str, hot_tokens: int, session_id: str, actor: str
    ) -> None:
        self._started = monotonic()
        self.errors: list[str] = []
        self.row = CompressionRun.objects.create(
            session_id=pool.session_id or session_id,
            workspace_keys=list(pool.workspace_keys),
            level=str(pool.level),
            strategy=strategy,
            before_hot=hot_tokens,
            after_hot=hot_tokens,
            errors=UNFINISHED,
            created_at=now_ms(),
            actor=actor,
        )

    def moved(self, records: int, hot_tokens: int) -> None:
        """After each batch, so that a run that is killed has said how far it came."""
        self.row.cold_moved += records
        self.row.after_hot = hot_tokens
        self.row.save(update_fields=["cold_moved", "after_hot"])

    def end(self) -> None:
        shown = self.errors[:_ERRORS_MAX]
        if more := len(self.errors) - len(shown):
            shown.append(f"… and {more:,} more")
        self.row.errors = "\n".join(shown)
        self.row.duration_ms = round((monotonic() - self._started) * 1000)
        self.row.save(update_fields=["errors", "duration_ms"])


@dataclass(frozen=True)
class CompressionStats:
    """Runs of some pools: how many there were, the last, and the last ten, newest first."""

    count: int
    last: CompressionRun | None
    recent: Sequence[CompressionRun]


def compression_stats(pools: Sequence[CapacityPool]) -> CompressionStats:
    """No pools, no runs."""
    named = Q(pk__in=[])
    for pool in pools:
        if pool.level is Level.L2:
            named |= Q(level=str(pool.level), session_id=pool.session_id)
        for key in pool.workspace_keys:
            named |= Q(level=str(pool.level), keys__contains=to_json(key))
    runs = CompressionRun.objects.alias(keys=Cast("workspace_keys", TextField())).filter(named)
    recent = list(runs.order_by("-id")[:RECENT])
    return CompressionStats(runs.count(), recent[0] if recent else None, recent)


def run_json(run: CompressionRun) -> dict[str, Any]:
    """A run as the API and the commands say it."""
    return {
        "id": run.id,
        "sessionId": run.session_id,
        "level": run.level,
        "strategy": run.strategy,
        "beforeHot": run.before_hot,
        "afterHot": run.after_hot,
        "coldMoved": run.cold_moved,
        "digests": run.digests,
        "llmCalls": run.llm_calls,
        "errors": run.errors.split("\n") if run.errors else [],
        "createdAt": run.created_at,
        "durationMs": run.duration_ms,
        "actor": run.actor,
    }
