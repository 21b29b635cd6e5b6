"""What can be measured with, and what is refused."""

import json

import pytest

from records.evaluation.run import draft_of
from records.evaluation.suite import Query, SuiteError, documents_read, queries_read, suite_read
from records.fields import SUMMARY_MAX, TITLE_MAX
from records.recordfile import validate


@pytest.fixture
def folder(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    return corpus


def queries(tmp_path, *lines: object):
    file = tmp_path / "queries.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return file


def test_a_document_is_known_by_its_name_and_has_what_its_head_says(folder):
    (folder / "a.md").write_text('---\ntitle: "Of lamps"\ntags: ["x", "y"]\n---\n\nThe body.\n')
    (folder / "b.TXT").write_text("First line\nsecond")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "inner").mkdir()
    first, second = documents_read(folder)
    assert (first.id, first.body, first.fields["title"]) == ("a", b"The body.\n", "Of lamps")
    assert first.fields["tags"] == {"topic": ["x", "y"]}
    assert (second.id, second.body) == ("b", b"First line\nsecond")


def test_without_a_title_the_first_line_is_it(folder):
    (folder / "a.md").write_text("---\n---\n\nFirst line\nsecond\n")
    (folder / "empty.txt").write_text("")
    titles = [draft_of(document).title for document in documents_read(folder)]
    assert titles == ["First line", "empty"]


def test_what_is_too_long_for_a_card_or_no_utf8_is_a_record_all_the_same(folder):
    (folder / "a.md").write_text(f"---\ntitle: {'t' * 500}\nsummary: {'s' * 5000}\n---\n\nbody\n")
    (folder / "b.txt").write_bytes(b"\xff\xfe caf\xe9\r\n\x00")
    for document in documents_read(folder):
        draft = draft_of(document)
        validate(draft)
        assert len(draft.title) <= TITLE_MAX and len(draft.summary) <= SUMMARY_MAX
        assert draft.body_bytes


def test_a_head_that_cannot_be_read_is_text(folder):
    (folder / "a.md").write_text('---\ntitle: "open\nx: [\n---\n\nbody\n')
    (document,) = documents_read(folder)
    assert document.problem
    assert b"open" in document.body and b"body" in document.body


def test_a_byte_order_mark_is_no_text(folder, tmp_path):
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbfwords")
    file = tmp_path / "queries.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"query": "words", "gold": ["a"]}\r\n\r\n')
    suite = suite_read(folder, file)
    assert suite.documents[0].body == b"words"
    assert suite.queries == [Query("words", ("a",), "none")]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "no .md or .txt file"),
        (("a.md", "a.txt", "b.md"), "same id: a."),
    ],
)
def test_a_folder_that_will_not_do_is_refused(folder, names, message):
    for name in names:
        (folder / name).write_text(name)
    with pytest.raises(SuiteError, match=message):
        documents_read(folder)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SuiteError, match="no such folder"):
        documents_read(tmp_path / "nowhere")


def test_the_folder_above_the_documents_is_told_apart(folder):
    (folder / "docs").mkdir()
    with pytest.raises(SuiteError, match="its folder docs"):
        documents_read(folder)


def test_every_line_that_makes_no_sense_is_named(tmp_path):
    good = {"query": "x", "gold": ["a"], "category": "c"}
    file = queries(
        tmp_path,
        good,
        "{broken",
        "",
        ["a list"],
        {"query": " ", "gold": ["a"]},
        {"query": "x", "gold": []},
        {"query": "x", "gold": "a"},
        {"query": "x", "gold": ["a"], "category": 3},
        good,
    )
    with pytest.raises(SuiteError) as caught:
        queries_read(file)
    said = str(caught.value)
    assert [f"line {number}:" in said for number in range(1, 10)] == [
        number in (2, 4, 5, 6, 7, 8) for number in range(1, 10)
    ]


def test_hundreds_of_such_lines_are_counted(tmp_path):
    with pytest.raises(SuiteError, match=r"line 10: .*and 290 more"):
        queries_read(queries(tmp_path, *["{"] * 300))


def test_no_query_is_refused(tmp_path):
    with pytest.raises(SuiteError, match="no query"):
        queries_read(queries(tmp_path, "", ""))
    with pytest.raises(SuiteError, match="No such file"):
        queries_read(tmp_path / "nowhere.jsonl")


def test_gold_that_no_document_is_is_told(folder, tmp_path):
    (folder / "a.md").write_text("text")
    file = queries(tmp_path, {"query": "x", "gold": ["a", "b"]}, {"query": "y", "gold": ["c"]})
    assert suite_read(folder, file).missing == ["b", "c"]


def test_gold_of_another_corpus_is_refused(folder, tmp_path):
    (folder / "a.md").write_text("text")
    with pytest.raises(SuiteError, match="'b'"):
        suite_read(folder, queries(tmp_path, {"query": "x", "gold": ["b"]}))
