"""Runs a module of the tests as a program, on a store of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


def run(module: str, tmp_path: Path, *arguments: str) -> dict[str, Any]:
    """The JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.records.{module}", *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "MEMEX_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
