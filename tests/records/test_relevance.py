"""What is worth telling somebody who did not ask: the measure, and its floor on the committed suite."""

from pathlib import Path

import pytest

from records.evaluation.run import documents_load
from records.evaluation.suite import suite_read
from records.scope import OWNER
from records.search.everyday import everyday_terms
from records.search.query import ask
from records.search.relevance import FLOOR, MOST, Held, Relevance, relevant
from records.search.search import search

SUITE = Path(__file__).resolve().parent.parent / "evaluation"
# What recall asks for: a text of at least so many characters.
SHORTEST = 3
# A little below what is measured (docs/retrieval.md).
LEAST_RIGHT, MOST_EVERYDAY = 0.78, 0.02


def measure(question: str, *held: str, records_with=None, records=100, **as_they_stand) -> float:
    """Of a passage with these terms."""
    asked = ask(question)
    assert set(held) <= asked.weights.keys()
    return Relevance(asked, records_with or {}, records).of(Held(held, **as_they_stand))


def everyday(question: str) -> frozenset[str]:
    return everyday_terms(question, ask(question).weights)


def prompts() -> list[str]:
    return (SUITE / "everyday.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("memex_home")
def test_recalls_what_bears_on_a_prompt_and_nothing_on_everyday_ones():
    suite = suite_read(SUITE / "docs", SUITE / "queries.jsonl")
    loaded = documents_load(suite.documents)

    def told(text: str) -> list[str]:
        hits = relevant(search(OWNER, text, limit=10).hits)
        assert len(hits) <= MOST
        return [loaded.names[hit.card.id] for hit in hits]

    asked = [query for query in suite.queries if len(query.text.strip()) >= SHORTEST]
    missed = [query for query in asked if not {*told(query.text)} & {*query.gold}]
    assert 1 - len(missed) / len(asked) >= LEAST_RIGHT
    wrongly = {text: found for text in prompts() if (found := told(text))}
    assert len(wrongly) <= MOST_EVERYDAY * len(prompts()), wrongly
    # It is the floor that keeps them quiet: the search finds something for most.
    assert sum(bool(search(OWNER, text).hits) for text in prompts()) > 0.5 * len(prompts())


def test_the_everyday_prompts_are_many_and_different():
    given = prompts()
    assert len(given) == len({*given}) >= 60
    assert all(text == text.strip() and len(text) > 1 for text in given)
    assert not {*given} & {
        query.text for query in suite_read(SUITE / "docs", SUITE / "queries.jsonl").queries
    }


@pytest.mark.parametrize(
    "text", ["go on", "fix the failing test", "thanks, commit it", "继续", "修复失败的测试"]
)
def test_all_of_an_everyday_prompt_held_word_for_word_is_no_evidence(text):
    assert measure(text, *ask(text).weights, verbatim=True, nearness=1.0) == 0


def test_rare_words_are_evidence_and_common_ones_are_less():
    rare = measure("turbine flange", "turbin", "flang")
    assert rare > FLOOR
    everywhere = {"turbin": 90, "flang": 90}
    common = measure("turbine flange", "turbin", "flang", records_with=everywhere, records=100)
    assert common < FLOOR


def test_one_plain_word_among_everyday_ones_is_not_enough():
    assert measure("put that in the flange", "put", "flang", nearness=1.0) < FLOOR
    assert measure("flange", "flang") > FLOOR
    assert measure("put 48211 in there", "put", "48211", nearness=1.0) > FLOOR


def test_what_is_missing_counts_against_it():
    question = "what did the beekeeper say of turbine flange corrosion"
    shares = [
        measure(question, *held)
        for held in (["turbin"], ["turbin", "flang"], ["beekeep", "turbin", "flang", "corros"])
    ]
    assert shares == sorted(shares)
    assert shares[0] < FLOOR < shares[2]


def test_in_a_store_of_one_record_a_rare_word_is_still_rare():
    frequencies = {"turbin": 1, "flang": 1}
    assert measure("turbine flange", "turbin", "flang", records_with=frequencies, records=1) > FLOOR


def test_a_larger_store_asks_for_more():
    question, held = "turbine flange corrosion", ["turbin", "flang"]
    frequencies = {"turbin": 1, "flang": 1}
    small = measure(question, *held, records_with=frequencies, records=1_000)
    large = measure(question, *held, records_with=frequencies, records=100_000)
    assert large < small


def test_the_parts_of_a_path_say_less_than_the_whole():
    path = "src/billing/flange_sync.py"
    parts = ask(path).parts[path]
    assert measure(path, *parts, exacts=frozenset([path])) > 2 * measure(path, "bill", "sync")
    assert measure(path, "src", "py") == 0


def test_a_name_made_of_everyday_words_is_evidence_as_a_whole():
    name = "next_order_number"
    assert measure(name, "next", "order", "number") == 0
    assert measure(name, name, "next", "order", "number", exacts=frozenset([name]), nearness=1.0) > FLOOR


def test_a_synonym_is_worth_less_than_the_word():
    asked = ask("turbine flange")
    other = asked.with_weights({**asked.weights, "rotor": 0.5}, {"rotor": "turbin"})
    judge = Relevance(other, {}, 100)
    assert (
        judge.of(Held(["flang"])) < judge.of(Held(["rotor", "flang"])) < judge.of(Held(["turbin", "flang"]))
    )


def test_terms_near_each_other_say_more():
    near = measure("turbine flange", "turbin", "flang", nearness=1.0)
    assert near > measure("turbine flange", "turbin", "flang")


def test_nothing_held_or_asked_is_nothing():
    assert measure("turbine flange") == 0
    assert Relevance(ask(""), {}, 0).of(Held([])) == 0


def test_chinese_words_are_told_by_where_they_stand():
    found = everyday("先继续修复那个熔断器的问题")
    assert {"继续", "修复", "续修", "问题", "复那"} <= found
    assert not {"熔断", "断器"} & found


def test_numbers_are_everyday_when_they_are_small():
    assert everyday("skip 5, 7 and 4711") >= {"5", "7"}
    assert "4711" not in everyday("skip 5, 7 and 4711")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("memex_home")
def test_hits_in_a_small_store_carry_it():
    suite = suite_read(SUITE / "docs", SUITE / "queries.jsonl")
    few = suite.documents[:10]
    documents_load(few)
    ids = {document.id for document in few}
    query = next(query for query in suite.queries if query.category == "path" and ids.issuperset(query.gold))
    best = search(OWNER, query.text).hits[0]
    assert best.relevance > FLOOR
    quiet = search(OWNER, "please continue with the next test").hits
    assert quiet
    assert max(hit.relevance for hit in quiet) < FLOOR
    assert relevant([*quiet, *[best] * 5]) == [best] * MOST
    assert relevant([best, best], most=1) == [best]
