"""The evaluation suite is what its README says: a wrong gold would make every figure measured on it wrong."""

import json
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

SUITE = Path(__file__).resolve().parent / "evaluation"
FIELDS = {"title": str, "summary": str, "tags": list}
VERBATIM = {
    "path",
    "identifier",
    "fragment",
    "error-line",
    "number",
    "symbols",
    "zh-1",
    "zh-2",
    "zh-3",
}
BY_HAND = {"question-en", "question-zh", "zh-long", "mixed", "forms", "alias"}
CATEGORIES = VERBATIM | BY_HAND | {"words"}
HAN = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Document:
    fields: dict[str, str | list[str]]
    body: str

    @property
    def text(self) -> str:
        tags = self.fields.get("tags", [])
        parts = [self.fields.get("title", ""), self.fields.get("summary", ""), *tags, self.body]
        return "\n".join(part for part in parts if part)


def read_document(path: Path) -> Document:
    opening, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    assert opening == "", f"{path.name} does not begin with front matter"
    fields = {}
    for line in head.splitlines():
        name, value = line.split(": ", 1)
        fields[name] = json.loads(value)
    return Document(fields, body)


def fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def label(query: dict) -> str:
    return f"{query['category']}: {query['query'][:40]}"


DOCUMENTS = {path.stem: read_document(path) for path in sorted((SUITE / "docs").glob("*.md"))}
FOLDED = {name: fold(document.text) for name, document in DOCUMENTS.items()}
QUERIES = [json.loads(line) for line in (SUITE / "queries.jsonl").read_text(encoding="utf-8").splitlines()]


def of(*categories: str) -> list[dict]:
    return [query for query in QUERIES if query["category"] in categories]


def test_there_are_enough_of_each():
    assert len(DOCUMENTS) >= 150
    assert len(QUERIES) >= 200
    counted = Counter(query["category"] for query in QUERIES)
    assert set(counted) == CATEGORIES
    assert min(counted.values()) >= 15, counted


def test_documents_have_known_fields_and_some_have_none():
    for name, document in DOCUMENTS.items():
        assert re.fullmatch(r"[a-z]+-[0-9]+", name)
        for field, value in document.fields.items():
            assert isinstance(value, FIELDS[field]) and value, f"{name}: {field}"
    assert sum(not document.fields for document in DOCUMENTS.values()) >= 5


def test_bodies_differ_and_have_the_length_of_real_ones():
    bodies = [document.body.strip() for document in DOCUMENTS.values()]
    assert len({fold(body) for body in bodies}) == len(bodies)
    lengths = [len(body) for body in bodies]
    assert min(lengths) >= 290
    assert max(lengths) <= 6000
    assert 1000 <= median(lengths) <= 2500


def test_queries_are_asked_once_and_name_documents_that_exist():
    assert len({query["query"] for query in QUERIES}) == len(QUERIES)
    for query in QUERIES:
        assert query.keys() == {"query", "gold", "category"}
        assert query["query"].strip() == query["query"] != ""
        gold = query["gold"]
        assert 1 <= len(gold) <= 5 and len(set(gold)) == len(gold), label(query)
        assert set(gold) <= DOCUMENTS.keys(), label(query)


@pytest.mark.parametrize("query", of(*VERBATIM), ids=label)
def test_a_verbatim_query_stands_in_its_gold_and_nowhere_else(query):
    containing = {name for name, text in FOLDED.items() if fold(query["query"]) in text}
    assert containing == set(query["gold"])


@pytest.mark.parametrize("query", of("words"), ids=label)
def test_rare_words_meet_in_one_document_only(query):
    words = fold(query["query"]).split()
    assert 3 <= len(words) <= 5
    assert [name for name, text in FOLDED.items() if all(word in text for word in words)] == query["gold"]


@pytest.mark.parametrize("query", of("fragment"), ids=label)
def test_a_fragment_lies_inside_an_identifier(query):
    inside = re.compile(rf"\w{re.escape(fold(query['query']))}\w")
    assert any(inside.search(FOLDED[name]) for name in query["gold"])


@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_chinese_queries_have_the_length_they_claim(length):
    for query in of(f"zh-{length}"):
        assert len(query["query"]) == length == len(HAN.findall(query["query"]))


def test_scripts_are_those_of_the_category():
    for query in of("question-zh", "zh-long"):
        assert len(HAN.findall(query["query"])) >= 5, label(query)
    for query in of("question-en"):
        assert not HAN.search(query["query"]), label(query)
    for query in of("mixed"):
        assert HAN.search(query["query"]) and re.search(r"[A-Za-z]", query["query"]), label(query)


@pytest.mark.parametrize("query", of("forms", "alias"), ids=label)
def test_another_form_is_not_the_text_itself(query):
    assert all(query["query"] not in DOCUMENTS[name].text for name in query["gold"])
