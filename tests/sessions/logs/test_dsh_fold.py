import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.logs.dsh_fold import Numbering, Window, ranges_pack, ranges_unpack

NUMBERS = st.lists(st.integers(0, 60), max_size=40)


@given(NUMBERS)
def test_ranges_keep_every_number_and_the_order(numbers):
    assert ranges_unpack(ranges_pack(numbers)) == numbers


@pytest.mark.parametrize(
    ("numbers", "packed"),
    [
        ([], []),
        ([4, 5], [4, 5]),
        ([4, 5, 6], [[4, 6]]),
        ([19, 20, 8, 9], [19, 20, 8, 9]),
        ([1, 2, 3, 7], [[1, 3], 7]),
    ],
)
def test_only_runs_of_three_and_more_are_packed(numbers, packed):
    assert ranges_pack(numbers) == packed


@given(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=60))
def test_every_number_is_given_once(given_numbers):
    numbering = Numbering()
    taken = [numbering.take(number) for number in given_numbers]
    kept = [seq for seq in taken if seq is not None]
    assert len(kept) == len(set(kept))
    assert all(numbering.has(seq) for seq in kept)
    assert {seq for seq in range(numbering.following) if numbering.has(seq)} == set(kept)
    for asked, seq in zip(given_numbers, taken, strict=True):
        assert asked is None or seq in (asked, None)


def test_rows_without_a_number_go_on_after_the_last():
    numbering = Numbering()
    assert [numbering.take(given) for given in (None, None, 5, None, 1, 3, 3)] == [0, 1, 5, 6, None, 3, None]
    assert not numbering.has(2)


@pytest.mark.parametrize("given_number", [True, -1, 1.5, "7", 1 << 60, [], None])
def test_what_is_no_number_counts_as_none_given(given_number):
    assert Numbering(3).take(given_number) == 3


def test_a_span_goes_by_place_not_by_number():
    window = Window([5, 23, 17, 28])
    assert window.span(23, 17) == [23, 17]
    assert window.span(17, 23) == []
    assert window.span(5, 99) == []
    assert window.span(None, 5) == []


@given(st.permutations(range(8)), st.integers(0, 7), st.integers(0, 7))
def test_a_replacement_takes_the_place_of_what_it_replaces(nodes, one, other):
    start, end = sorted((one, other))
    window = Window(nodes)
    window.replace(window.span(nodes[start], nodes[end]), 100)
    assert window.nodes == [*nodes[:start], 100, *nodes[end + 1 :]]


def test_seqs_are_put_in_the_order_of_the_window():
    assert Window([5, 23, 17]).ordered([17, 2, 23, 17]) == [23, 17, 2]
