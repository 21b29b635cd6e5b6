import json
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def run(tmp_path: Path, *arguments: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "tests.records.search_processes", *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "MEMEX_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_was_written_is_found_once_after_kills(tmp_path):
    result = run(tmp_path, "kill", "12")
    assert result["written"] > 0
    assert (result["lost"], result["left"], result["twice"]) == ([], [], 0)


def test_processes_that_write_and_search_find_their_own(tmp_path):
    result = run(tmp_path, "race", "4")
    assert result == {"found": 60, "missed": 0, "failed": 0, "lost": [], "left": [], "twice": 0}
