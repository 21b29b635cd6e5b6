"""Figures against values worked out by hand."""

import pytest

from records.evaluation.figures import Ranking, Threshold, below, by_category, figures, percentile
from records.evaluation.suite import Query


def ranking(found: str, *, gold: str = "a", category: str = "c", seconds: float = 0.001) -> Ranking:
    return Ranking(Query("q", tuple(gold), category), tuple(found), seconds)


def test_figures_of_four_rankings():
    measured = figures(
        [
            ranking("abc"),
            ranking("xya", gold="ab"),
            ranking("uvwxyza", gold="a"),
            ranking("xyz", gold="a"),
        ]
    )
    assert measured == {
        "queries": 4,
        "hit@1": 0.25,
        "hit@3": 0.5,
        "hit@5": 0.5,
        "hit@10": 0.75,
        # 1, 1/2, 0 (1 at 10), 0
        "recall@5": 0.375,
        "recall@10": 0.625,
        # 1, 1/3, 1/7, 0
        "mrr": round((1 + 1 / 3 + 1 / 7) / 4, 4),
        "p50_ms": 1.0,
        "p95_ms": 1.0,
    }


def test_a_document_that_is_found_twice_counts_once():
    assert figures([ranking("aa", gold="ab")])["recall@5"] == 0.5


def test_nothing_found_is_nothing():
    measured = figures([ranking("")])
    assert measured["mrr"] == measured["hit@10"] == measured["recall@10"] == 0


def test_categories_are_measured_apart():
    measured = by_category(
        [ranking("a", category="x"), ranking("b", category="y"), ranking("a", category="y")]
    )
    assert {name: (each["queries"], each["hit@1"]) for name, each in measured.items()} == {
        "x": (1, 1.0),
        "y": (2, 0.5),
    }


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([7], 95, 7), ([3, 1, 2], 50, 2), ([1, 2], 50, 1), (range(1, 101), 95, 95), (range(1, 22), 95, 20)],
)
def test_percentiles(values, percent, expected):
    assert percentile(list(values), percent) == expected


def test_thresholds_fail_below_and_hold_at_their_value():
    measured = figures([ranking("xa"), ranking("a")])
    given = [Threshold.parse(text) for text in ("hit@1=0.5", "hit@3=1", "MRR=0.76")]
    assert below(measured, given) == [Threshold("mrr", 0.76)]


@pytest.mark.parametrize(
    "text", ["hit@2=0.5", "hit@1", "hit@1=x", "hit@1=95", "hit@1=-0.1", "p95_ms=3", "mrr=nan"]
)
def test_senseless_thresholds_are_refused(text):
    with pytest.raises(ValueError):
        Threshold.parse(text)
