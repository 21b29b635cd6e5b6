"""The bench at its smallest: every operation beside a bare one that did the same work. No time is judged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from records.bench.clock import Pair
from records.bench.corpus import Corpus
from records.bench.run import BenchError, bench, bench_check
from records.bench.writing import record_id
from records.home import records_dir
from records.models import Record
from records.scope import OWNER
from records.search.indexing import bodies_pending
from records.search.search import search

ROOT = Path(__file__).resolve().parent.parent.parent
OPERATIONS = {"bulk_write", "body_index", "search", "get", "list", "facets", "catalog", "grep", "index_size"}


@pytest.mark.django_db(transaction=True)
def test_every_operation_is_measured_in_one_run(memex_home, tmp_path):
    said: list[str] = []
    result = bench(30, 500, tmp_path / "bare", say=said.append)
    assert result["operations"].keys() == OPERATIONS
    for name, measured in result["operations"].items():
        keys = measured.keys()
        assert {"ratio"} < keys, name
        assert {"seconds", "raw_seconds"} < keys or {"p95_ms", "raw_p95_ms"} < keys or {"bytes"} < keys
        assert all(value > 0 for value in measured.values()), name
    # All of it was written by the ordinary path, and can be found; the bare side is gone.
    assert Record.objects.count() == 30 == len(list(records_dir().rglob("*.md")))
    assert bodies_pending() == 0
    text = Corpus().text(17, 500)
    assert [hit.card.id for hit in search(OWNER, text.title, limit=1).hits] == [record_id(17)]
    assert not (tmp_path / "bare").exists()
    assert result["text_bytes"] == sum(len(text.body.encode()) for text in Corpus().texts(30, 500))
    assert said[0].startswith("30 of 30 records")


def test_figures_of_a_pair():
    pair = Pair()
    pair.ours.seconds, pair.raw.seconds = [0.001, 0.002, 0.009], [0.001, 0.001, 0.002]
    assert pair.as_totals() == {"seconds": 0.012, "raw_seconds": 0.004, "ratio": 3.0}
    found = pair.as_percentiles()
    assert (found["p50_ms"], found["p95_ms"], found["raw_p95_ms"], found["ratio"]) == (2.0, 9.0, 2.0, 3.0)


def test_a_disk_too_small_is_told_before_anything_is_written(tmp_path):
    bench_check(10, 10, tmp_path)
    with pytest.raises(BenchError, match="GB of free disk"):
        bench_check(10**9, 10**6, tmp_path)


def test_the_command_prints_one_object_and_leaves_nothing_behind(tmp_path):
    home, scratch = tmp_path / "owner", tmp_path / "scratch"
    home.mkdir()
    scratch.mkdir()
    finished = subprocess.run(
        [sys.executable, "manage.py", "scale_bench", "--records", "12", "--tokens", "300", "--json"],
        cwd=ROOT,
        env={**os.environ, "MEMEX_HOME": str(home), "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    result = json.loads(finished.stdout)
    assert (result["records"], result["tokens"]) == (12, 300)
    assert result["operations"].keys() == OPERATIONS | {"prompt"}
    assert not (home / "records").exists()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments"),
        (["--records", "5", "--logs", "."], "not allowed with"),
        (["--records", "0"], "at least 1"),
        (["--records", "5", "--mb", "5"], "--mb has no meaning with --records"),
        (["--logs", ".", "--tokens", "5"], "--tokens has no meaning with --logs"),
        (["--logs", "nowhere"], "nowhere"),
    ],
)
def test_exactly_one_form_and_what_belongs_to_it(arguments, message):
    with pytest.raises(CommandError, match=message):
        call_command("scale_bench", *arguments)
