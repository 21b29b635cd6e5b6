"""Lines of a text that match, as they are shown."""

from math import inf
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.search.grep_pattern import pattern_compile
from records.search.grep_scan import (
    LINE_CHARACTERS,
    WINDOW_BYTES,
    LineHit,
    TimeUp,
    body_start,
    lines_matching,
)


def scan(pattern: str, data: bytes | str, **how) -> list[LineHit]:
    content = data if isinstance(data, bytes) else data.encode()
    return list(
        lines_matching(content, pattern_compile(pattern).re2, **({"deadline": monotonic() + 60} | how))
    )


def marked(hit: LineHit) -> list[str]:
    return [hit.line[start:end] for start, end in hit.spans]


def test_numbers_offsets_spans_and_context():
    text = "eins\nzwei Käse\ndrei\nKÄSE mit käse\nfünf"
    first, second = scan("käse", text, context=1)
    assert (first.number, first.offset, first.line, first.spans) == (2, 5, "zwei Käse", ((5, 9),))
    assert (first.before, first.after) == (("eins",), ("drei",))
    assert second.number == 4
    assert text.encode()[second.offset :].startswith("KÄSE mit".encode())
    assert second.spans == ((0, 4), (9, 13))
    assert (second.before, second.after) == (("drei",), ("fünf",))


def test_context_ends_where_the_text_does():
    (hit,) = scan("b", "---\na\nb\n", start=4, context=5)
    assert (hit.number, hit.before, hit.after) == (2, ("a",), ())


def test_each_hit_knows_the_event_it_stands_in():
    text = (
        "## Summary\n\nx0\n\n### [#3] user · x1\n\nx2\n\\### [#8] x3\n### [#nine] x4\n\n### [#12] tool\n\nx5"
    )
    assert [(hit.line[-2:], hit.seq) for hit in scan(r"x\d", text)] == [
        ("x0", None), ("x1", 3), ("x2", 3), ("x3", 3), ("x4", 3), ("x5", 12),
    ]  # fmt: skip


def test_an_event_at_the_very_beginning():
    (hit,) = scan("word", "### [#5] user\nword")
    assert hit.seq == 5


def test_a_line_may_end_with_crlf_and_hold_anything():
    data = b"one\r\ntwo\x00 needle\r\n\xff\xfe needle \xe6\x95\r\n"
    first, second = scan("needle", data, context=1)
    assert (first.line, first.before, marked(first)) == ("two\x00 needle", ("one",), ["needle"])
    assert (second.number, second.line, marked(second)) == (3, "\ufffd\ufffd needle \ufffd", ["needle"])
    assert [hit.number for hit in scan("needle$", data)] == [2]
    assert scan(r"\r", data) == []


def test_a_pattern_that_matches_next_to_nothing_does_not_flood():
    assert scan(r"\b", "a b c\n" * 100) == []
    assert [hit.line for hit in scan(r"\b|needle", "a b c\nneedle\n")] == []
    assert [hit.line for hit in scan(r"(?:needle)?\b", "a b c\nneedle\n")] == ["needle"]


def test_a_long_line_is_cut_around_its_first_match():
    (hit,) = scan("needle", "ä" * 10_000 + "needle" + "中" * 10_000 + "needle")
    assert len(hit.line) == LINE_CHARACTERS
    assert hit.cut_before
    assert hit.cut_after
    assert marked(hit) == ["needle"]
    assert hit.line == "ä" * 100 + "needle" + "中" * 194
    (at_end,) = scan("needle$", "ä" * 10_000 + "needle")
    assert at_end.line == "ä" * 294 + "needle"
    assert not at_end.cut_after
    (long_match,) = scan("a+", "-" + "a" * 5_000)
    assert long_match.spans == ((1, LINE_CHARACTERS),)


def test_a_line_of_many_megabytes():
    data = b"x" * 50_000_000 + b"needle" + b"y" * 1_000_000 + b"\nneedle"
    first, second = scan("needle", data, context=1)
    assert (first.number, marked(first), first.after) == (1, ["needle"], ("needle",))
    assert (second.number, second.offset) == (2, 51_000_007)
    assert second.before == ("x" * LINE_CHARACTERS,)


def test_texts_larger_than_a_window_are_searched_to_their_end():
    line = b"some words\n"
    count = WINDOW_BYTES * 2 // len(line)
    hits = scan("needle", line * count + b"needle\n" + line * count + b"needle")
    assert [hit.number for hit in hits] == [count + 1, 2 * count + 2]


def test_only_what_ends_beyond_a_place_counts():
    text = "needle one\nneedle two needle\nneedle"
    middle = text.index("two")
    assert [(hit.number, marked(hit)) for hit in scan("needle", text, beyond=middle)] == [
        (2, ["needle"]), (3, ["needle"]),
    ]  # fmt: skip
    # One across the border counts.
    assert [hit.number for hit in scan("two needle", text, beyond=middle + 2)] == [2]
    assert scan("needle", text, beyond=len(text)) == []


def test_time_is_looked_at():
    with pytest.raises(TimeUp):
        scan("a", "b", deadline=-inf)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"---\ntitle: a\n---\n\n", b"text"),
        (b"---\r\ntitle: a\r\n---\r\n\r\n", b"text"),
        (b"---\n{broken: [\n---\n", b"text"),
        (b"", b"no head\n---\ntext"),
        (b"", b"---\njust words\n---\ntext"),
        (b"", b"---\ntitle: never closed\n"),
        (b"", b""),
    ],
)
def test_where_a_body_begins(head, body):
    assert body_start(head + body) == len(head)


PIECES = st.sampled_from(
    [b"ab", b"A", "é".encode(), "中".encode(), b"\n", b"\r\n", b"\xff", b"\0", b" ", b"x" * 400]
)


@given(
    st.lists(PIECES, max_size=60).map(b"".join),
    st.sampled_from(["a", "é", "中", "b.", "[^x]x", "a+"]),
    st.integers(0, 3),
)
def test_hits_fit_together_whatever_the_text(data, pattern, context):  # fmt: skip
    expression = pattern_compile(pattern).re2
    lines = data.split(b"\n")
    hits = scan(pattern, data, context=context)
    shown = {hit.number for hit in hits}
    assert shown == {n for n, line in enumerate(lines, 1) if expression.search(line)}
    for hit in hits:
        assert data[: hit.offset].count(b"\n") == hit.number - 1
        assert len(hit.line) <= LINE_CHARACTERS
        assert hit.spans
        assert all(0 <= start < end <= len(hit.line) for start, end in hit.spans)
        whole = lines[hit.number - 1].removesuffix(b"\r").decode("utf-8", "replace")
        if not hit.cut_before and not hit.cut_after:
            assert hit.line == whole
        # What follows the last line end is no line when it is empty.
        total = len(lines) - (not lines[-1])
        assert len(hit.before) == min(context, hit.number - 1)
        assert len(hit.after) == max(0, min(context, total - hit.number))
