"""What rankings are worth: the usual figures of retrieval. Pure."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .suite import Query

HIT_AT, RECALL_AT = (1, 3, 5, 10), (5, 10)
QUALITY = (*(f"hit@{k}" for k in HIT_AT), *(f"recall@{k}" for k in RECALL_AT), "mrr")

Figures = dict[str, float]


class Ranking(NamedTuple):
    """What a query found: `found` ids, the best first, in `seconds`."""

    query: Query
    found: tuple[str, ...]
    seconds: float

    @property
    def rank(self) -> int | None:
        """From 1, of the first document that answers; None when none was found."""
        return next((at for at, name in enumerate(self.found, 1) if name in self.query.gold), None)


class Threshold(NamedTuple):
    name: str
    least: float

    @classmethod
    def parse(cls, text: str) -> "Threshold":
        """Of `hit@5=0.9`. ValueError."""
        name, _, value = text.partition("=")
        name = name.strip().lower()
        if name not in QUALITY:
            raise ValueError(f"{name!r} is none of {', '.join(QUALITY)}")
        least = float(value)
        if not 0 <= least <= 1:
            raise ValueError(f"{value.strip()} is not between 0 and 1")
        return cls(name, least)


def figures(rankings: Sequence[Ranking]) -> Figures:
    """`queries`; fractions from 0 to 1, rounded to four digits: hit@k, the share of queries with a document
    that answers among the first k; recall@k, the mean share of such documents among the first k; mrr, the
    mean of 1 ÷ the rank of the first; p50_ms and p95_ms of the searches."""
    result: Figures = {"queries": len(rankings)}
    ranks = [ranking.rank or math.inf for ranking in rankings]
    for k in HIT_AT:
        result[f"hit@{k}"] = _mean(rank <= k for rank in ranks)
    for k in RECALL_AT:
        result[f"recall@{k}"] = _mean(_recall(ranking, k) for ranking in rankings)
    result["mrr"] = _mean(1 / rank for rank in ranks)
    milliseconds = [ranking.seconds * 1_000 for ranking in rankings]
    for percent in (50, 95):
        result[f"p{percent}_ms"] = round(percentile(milliseconds, percent), 2)
    return result


def by_category(rankings: Iterable[Ranking]) -> dict[str, Figures]:
    groups: dict[str, list[Ranking]] = {}
    for ranking in rankings:
        groups.setdefault(ranking.query.category, []).append(ranking)
    return {category: figures(group) for category, group in sorted(groups.items())}


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that at least `percent` of all don't exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def below(measured: Figures, thresholds: Iterable[Threshold]) -> list[Threshold]:
    return [threshold for threshold in thresholds if measured[threshold.name] < threshold.least]


def _recall(ranking: Ranking, k: int) -> float:
    gold = ranking.query.gold
    return len({*ranking.found[:k]} & {*gold}) / len(gold)


def _mean(values: Iterable[float]) -> float:
    given = list(values)
    return round(sum(given) / len(given), 4)
