"""Times of an operation and of the bare one beside it, and what is said of them. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

from records.evaluation.figures import percentile

T = TypeVar("T")


@dataclass
class Laps:
    """Seconds of one operation, call by call."""

    seconds: list[float] = field(default_factory=list)

    def time(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        started = perf_counter()
        result = work(*args, **kwargs)
        self.seconds.append(perf_counter() - started)
        return result

    @property
    def total(self) -> float:
        return sum(self.seconds)


@dataclass
class Pair:
    """Ours and the bare operation, on the same things in the same run."""

    ours: Laps = field(default_factory=Laps)
    raw: Laps = field(default_factory=Laps)

    def as_totals(self) -> dict[str, Any]:
        return {
            "seconds": round(self.ours.total, 3),
            "raw_seconds": round(self.raw.total, 3),
            "ratio": _ratio(self.ours.total, self.raw.total),
        }

    def as_percentiles(self) -> dict[str, Any]:
        """`ratio`: of the sums, which a single slow call moves least."""
        found: dict[str, Any] = {}
        for prefix, laps in (("", self.ours), ("raw_", self.raw)):
            for percent in (50, 95):
                value = percentile([1_000 * second for second in laps.seconds], percent)
                found[f"{prefix}p{percent}_ms"] = round(value, 3)
        return {**found, "ratio": _ratio(self.ours.total, self.raw.total), "calls": len(self.ours.seconds)}


def as_sizes(ours: int, raw: int) -> dict[str, Any]:
    return {"bytes": ours, "raw_bytes": raw, "ratio": _ratio(ours, raw)}


def _ratio(ours: float, raw: float) -> float | None:
    return round(ours / raw, 2) if raw else None
