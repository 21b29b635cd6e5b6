import json
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def run(tmp_path: Path, *arguments: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "tests.records.processes", *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "MEMEX_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_acknowledged_is_lost_when_writers_are_killed(tmp_path):
    result = run(tmp_path, "kill", "15")
    assert result["written"] > 0
    assert result["lost"] == []
    assert result["left"] == []


def test_processes_that_archive_the_same_make_each_record_once(tmp_path):
    result = run(tmp_path, "race", "4")
    assert result == {"created": 20, "distinct": 20, "rows": 20, "files": 20, "failed": 0, "left": []}
