"""Synonyms: built in, in two languages, and the owner's own."""

import logging
import os

import pytest

from records.scope import OWNER
from records.search.aliases import BUILT_IN, WEIGHT, Aliases, aliases_read
from records.search.query import ask
from records.search.search import search

from .drafts import write

SYNONYMS = Aliases(BUILT_IN)


@pytest.mark.parametrize(
    ("question", "synonym"),
    [
        ("where is the database", "sqlite"),
        ("databases", "sqlite"),
        ("数据库连的哪个", "postgr"),
        ("上线前要做什么检查", "deploy"),
        ("how do we deploy", "部署"),
        ("DEPLOY", "发布"),
        ("怎么部署", "releas"),
    ],
)
def test_a_word_stands_for_its_group_in_both_languages(question, synonym):
    asked = ask(question)
    expanded = SYNONYMS.expanded(asked)
    assert synonym in expanded.aliases
    assert synonym not in asked.weights
    assert expanded.weights[synonym] <= WEIGHT
    for term, weight in asked.weights.items():
        assert expanded.weights[term] == weight


def test_words_without_synonyms_stay_as_they_are():
    asked = ask("zanzibar 香蕉 src/a.py")
    assert SYNONYMS.expanded(asked) == asked


def warnings(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_no_file_is_no_trouble(tmp_path, caplog):
    assert aliases_read(tmp_path / "aliases.json") == BUILT_IN
    assert warnings(caplog) == []


def test_a_file_adds_groups_and_words_to_groups(tmp_path, caplog):
    path = tmp_path / "aliases.json"
    path.write_text('{"deploy": ["shipit"], "ours": ["billing", "账务"]}', encoding="utf-8")
    groups = aliases_read(path)
    assert groups["deploy"] == [*BUILT_IN["deploy"], "shipit"]
    assert groups["ours"] == ["billing", "账务"]
    assert groups.keys() == BUILT_IN.keys() | {"ours"}
    assert "shipit" not in BUILT_IN["deploy"]
    assert warnings(caplog) == []


@pytest.mark.parametrize(
    "content",
    [
        b"{broken",
        b"",
        b"\xff\xfe",
        b"[1, 2]",
        b'"words"',
        b"null",
        b'{"a": "b"}',
        b'{"a": [1]}',
        b'{"a": {"b": []}}',
    ],
    ids=repr,
)
def test_a_broken_file_costs_a_warning(tmp_path, caplog, content):
    path = tmp_path / "aliases.json"
    path.write_bytes(content)
    assert aliases_read(path) == BUILT_IN
    assert len(warnings(caplog)) == 1
    assert "passed over" in warnings(caplog)[0]


def test_one_broken_group_leaves_the_others(tmp_path, caplog):
    path = tmp_path / "aliases.json"
    path.write_text('{"bad": "x", "good": ["one", "two"]}')
    assert aliases_read(path)["good"] == ["one", "two"]
    assert len(warnings(caplog)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_search_finds_by_synonym_and_says_so(memex_home, caplog):
    write("a", title="Storage", body="We keep it all in sqlite.")
    write("b", title="Boats", body="The dinghy is moored here.")
    (hit,) = search(OWNER, "数据库连的哪个").hits
    assert hit.card.title == "Storage"
    assert hit.reason.aliases == ("sqlite",)
    assert "by synonym (alias): sqlite" in hit.reason.text
    assert search(OWNER, "rowboat").hits == []
    path = memex_home / "aliases.json"
    path.write_text('{"boats": ["rowboat", "dinghy"]}')
    (hit,) = search(OWNER, "rowboat").hits
    assert hit.card.title == "Boats"
    assert hit.reason.aliases == ("dinghi",)
    path.write_text("{broken")
    os.utime(path, ns=(1, 1))
    assert search(OWNER, "rowboat").hits == []
    assert search(OWNER, "dinghy").hits
    assert any("aliases.json is passed over" in warning for warning in warnings(caplog))
