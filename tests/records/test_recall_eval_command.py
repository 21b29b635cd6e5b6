"""The command as it is used: by its output and exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def suite(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "lamps.md").write_text(
        '---\ntitle: "Of lamps"\n---\n\nThe lamp in the cellar is broken since May.\n'
    )
    (corpus / "cats.txt").write_text("A cat sleeps on the warm roof of the cellar.\n")
    file = tmp_path / "queries.jsonl"
    lines = [
        {"query": "broken lamp", "gold": ["lamps"], "category": "words"},
        {"query": "where does the cat sleep?", "gold": ["cats"], "category": "question"},
        {"query": "zeppelin", "gold": ["cats"], "category": "question"},
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    return ["--corpus", str(corpus), "--queries", str(file)]


@pytest.fixture
def run(tmp_path):
    """Nothing may reach the owner's store, and nothing may stay behind."""
    home, scratch = tmp_path / "owner", tmp_path / "scratch"
    home.mkdir()
    scratch.mkdir()
    environment = {**os.environ, "MEMEX_HOME": str(home), "TMPDIR": str(scratch)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        finished = subprocess.run(
            [sys.executable, "manage.py", "recall_eval", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        # Made, as every command does, and left empty.
        assert [path for path in home.rglob("*.db") if path.stat().st_size] == []
        assert not (home / "records").exists()
        assert list(scratch.iterdir()) == []
        return finished

    return run


def test_figures_misses_and_thresholds_as_json(run, suite):
    finished = run(
        *suite, "--json", "--explain-misses", "5", "--threshold", "hit@1=0.6", "--threshold", "mrr=0.7"
    )
    assert finished.returncode == 1
    assert "mrr is 0.6667, below 0.7" in finished.stderr
    assert "hit@1 is" not in finished.stderr
    result = json.loads(finished.stdout)
    assert (result["queries"], result["documents"], result["missing_gold"]) == (3, 2, 0)
    assert result["hit@1"] == result["recall@5"] == pytest.approx(2 / 3, abs=1e-4)
    assert result["by_category"]["words"]["hit@1"] == 1
    assert result["by_category"]["question"].keys() == result["by_category"]["words"].keys()
    assert result.keys() > result["by_category"]["question"].keys()
    assert result["p95_ms"] > 0
    (miss,) = result["misses"]
    assert (miss["query"], miss["rank"], miss["expected"]) == ("zeppelin", None, "cats")


def test_the_table_shows_every_category_and_why_a_query_missed(run, suite, tmp_path):
    queries = tmp_path / "queries.jsonl"
    more = {"query": "cellar lamp roof", "gold": ["cats"], "category": "words"}
    queries.write_text(queries.read_text() + "\n" + json.dumps(more | {"gold": ["cats", "gone"]}))
    finished = run(*suite, "--explain-misses", "2", "--threshold", "hit@10=0.5")
    assert finished.returncode == 0, finished.stderr
    assert "1 gold ids are no documents" in finished.stderr and "gone" in finished.stderr
    rows = [line.split()[:2] for line in finished.stdout.splitlines()]
    assert ["question", "2"] in rows and ["words", "2"] in rows and ["all", "4"] in rows
    assert "zeppelin" in finished.stdout and "not among the first 50" in finished.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--corpus", "nowhere", "--queries", "nowhere.jsonl"], "no such folder"),
        (["--corpus", "tests/evaluation/docs", "--queries", "nowhere.jsonl"], "No such file"),
        (["--corpus", "tests/evaluation/docs"], "--queries"),
        (["--corpus", ".", "--queries", "x", "--threshold", "hit@7=1"], "hit@7"),
    ],
)
def test_what_it_can_not_measure_it_refuses_in_one_line(run, arguments, message):
    finished = run(*arguments)
    assert finished.returncode != 0
    assert message in finished.stderr
    assert "Traceback" not in finished.stderr
    assert finished.stdout == ""
