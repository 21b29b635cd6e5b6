from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from records.abstracts import ABSTRACT_MAX, abstract_of
from records.capacity.choice import DONE, Candidate, chosen, ordered

candidates = st.lists(
    st.builds(
        Candidate,
        id=st.uuids().map(str),
        status=st.sampled_from(["active", "resolved", "superseded", "conflict", "suggested"]),
        tokens=st.integers(1, 1_000),
        created_at=st.integers(0, 5),
        last_read_at=st.none() | st.integers(1, 5),
    ),
    unique_by=lambda each: each.id,
)


@given(candidates, st.integers(-10, 5_000), st.none() | st.integers(1, 5))
def test_no_more_go_than_are_needed_and_the_first_go_first(given_ones, excess, most):
    order = ordered(given_ones)
    going = chosen(order, excess, most)
    assert going == order[: len(going)]
    total = sum(each.tokens for each in going)
    if going:
        # Without the last one it would not be enough.
        assert total - going[-1].tokens < excess
    if total < excess:
        assert len(going) == (len(order) if most is None else min(most, len(order)))


@given(candidates)
def test_the_order_is_what_it_says(given_ones):
    order = ordered(given_ones)
    assert sorted(order) == sorted(given_ones)
    for first, second in pairwise(order):
        assert (first.status in DONE) >= (second.status in DONE)
        if (first.status in DONE) != (second.status in DONE):
            continue
        if first.last_read_at != second.last_read_at:
            assert first.last_read_at is None or (
                second.last_read_at is not None and first.last_read_at < second.last_read_at
            )
        else:
            assert first.created_at <= second.created_at


@given(st.lists(candidates, min_size=1, max_size=1), st.randoms())
def test_the_order_does_not_depend_on_where_they_come_from(lists, random):
    shuffled = random.sample(lists[0], len(lists[0]))
    assert ordered(shuffled) == ordered(lists[0])


def test_an_abstract_names_what_the_summary_lost():
    lost = {"paths": ["src/a.py", "src/b.py"], "errors": ["ValueError: no\nsuch"], "found": {"paths": 9}}
    assert abstract_of({"lost": lost}, "text") == "paths: src/a.py, src/b.py\nerrors: ValueError: no such"


def test_no_category_crowds_out_the_others():
    lost = {
        "paths": [f"src/{n:04}.py" for n in range(40)] * 5,
        "commands": ["make test"],
        "numbers": ["17 ms"],
    }
    abstract = abstract_of({"lost": lost}, "text")
    assert "commands: make test\n" in abstract
    assert "numbers: 17 ms" in abstract
    assert ABSTRACT_MAX - 20 < len(abstract) <= ABSTRACT_MAX


def test_without_losses_an_abstract_is_the_start_of_the_text():
    body = "> Archived.\n\n" + "words " * 400
    for provenance in (
        {},
        {"lost": {}},
        {"lost": {"paths": []}},
        {"lost": "by hand"},
        {"lost": {"paths": 7}},
    ):
        assert abstract_of(provenance, body) == ("words " * 400)[:ABSTRACT_MAX]


@given(
    st.dictionaries(
        st.sampled_from(["paths", "commands", "errors", "numbers", "decisions", "found"]),
        st.lists(st.integers(0, 1_200).map("x ".__mul__) | st.integers(), max_size=9),
    )
)
def test_an_abstract_is_never_too_long(lost):
    assert len(abstract_of({"lost": lost}, "x" * 5_000)) <= ABSTRACT_MAX
