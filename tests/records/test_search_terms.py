"""Extraction, folding and passages: what is indexed is what is asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.search.extraction import extract
from records.search.folding import fold, fold_case_kept
from records.search.passages import OUTPUT, passages
from records.search.query import QUERY_MAX, ask
from records.search.scoring import Spotter
from records.search.terms import chunk_exact, chunk_terms


def terms(text: str) -> list[str]:
    return extract(text).terms.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deployments,", ["deploy"]),
        ("queries", ["queri"]),
        ("query", ["queri"]),
        ("getHttpURL", ["gethttpurl", "get", "http", "url"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("snake_case_id", ["snake_case_id", "snake", "case", "id"]),
        ("E0308", ["e0308", "e", "0308"]),
        ("C++", ["c++", "c"]),
        ("ＡＢＣ", ["abc"]),
        ("Café", ["cafe"]),
        ("資料庫", ["资", "料", "库", "资料", "料库"]),
        ("한국", ["한", "국", "한국"]),
        ("x", ["x"]),
        ("🚀", ["🚀"]),
    ],
)
def test_terms(text, expected):
    assert terms(text) == expected


@pytest.mark.parametrize(
    "text", [".env", "--dry-run", "a/b.py:42", "e0308", "10.0.0.1", "c++", "std::vector"]
)
def test_names_are_kept_as_they_are_written(text):
    assert chunk_exact(text) == [text]


@given(st.text() | st.text(alphabet="aZ_09./:-+#@ 数据é"))
def test_extraction_takes_any_text(text):
    found = extract(text)
    assert found.length <= len(found.terms.split())
    for chunk in text.split():
        single = extract(chunk)
        assert sorted(single.terms.split()) == sorted(term.text for term in chunk_terms(chunk))
        assert set(single.exact.split()) == set(chunk_exact(chunk))


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_folding_is_done_when_it_is_done(text):
    once = fold(text)
    assert fold(once) == once


@given(st.text(alphabet="ab  \n。.資aé#[]0123456789", max_size=4_000))
def test_passages_are_the_whole_body_without_gaps(text):
    body = f"### [#3] user\n{text}\n### [#4] tool\n{text}".encode()
    at = 0
    for passage in passages(body):
        # What is left out between two is blank.
        assert not body[at : passage.start].strip()
        assert body[passage.start : passage.start + passage.size].decode() == passage.text
        assert len(passage.text) <= OUTPUT
        at = passage.start + passage.size
    assert not body[at:].strip()


def test_passages_name_their_events():
    body = (
        "> Preface.\n\n"
        + "".join(f"### [#{n}] user\n\n{'word ' * 100}\n" for n in (7, 9))
        + "### [#10] x\n\ny\n"
    )
    found = [(passage.seq_start, passage.seq_end) for passage in passages(body.encode())]
    assert found[0] == (None, None)
    assert (7, 7) in found
    assert (10, 10) in found


def test_passages_of_bytes_that_are_no_text():
    body = b"\xff\xfe one\n" * 300
    found = list(passages(body))
    assert b"".join(body[p.start : p.start + p.size] for p in found) == body


@given(st.text(max_size=3_000))
def test_any_text_is_a_question(text):
    asked = ask(text)
    assert all(weight > 0 for weight in asked.weights.values())


def test_a_question_keeps_what_it_repeats_and_drops_stop_words():
    assert ask("the deploy of the deploy").weights == {"deploy": 2.0}
    assert ask("to be or not to be").weights["be"] == 2.0
    assert ask('where is "not found" raised').quoted == ("not found",)
    assert ask("什么 的").weights
    assert ask("?!… ——").is_empty
    assert not ask("x" * (2 * QUERY_MAX)).is_empty


@given(
    st.lists(
        st.sampled_from(["queries", "getHttpURL", "资料库", "E0308", "Café", "ui", "possibility"]), min_size=1
    )
)
def test_the_spotter_finds_what_extraction_finds(words):
    text = " ".join(words)
    wanted = frozenset(terms("query possible cafe 資料庫 e0308 url ui"))
    found = Spotter(wanted).spots(fold_case_kept(text))
    assert found.keys() == wanted & frozenset(terms(text))
