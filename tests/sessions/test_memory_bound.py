"""Memory is bounded by limits, not by the log."""

import os
import subprocess
import sys
from pathlib import Path

from tests.sessions.stories import ROOT, Store, as_bytes, session_id, story

MIB = 1024 * 1024
# The process says its own peak: what the system says of a child includes that of its parent, whose memory
# it shares until it becomes another program.
RUN = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path("manage.py", run_name="__main__")
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def peak_of_archiving(folder: Path, windows: int, *, ended: bool) -> int:
    """Bytes of memory that importing a log of about 2.5 MB a window takes at most."""
    store = Store(folder)
    log = folder / f"{session_id()}.jsonl"
    with log.open("wb") as file:
        for window in range(windows):
            lines = story(compactions=1, turns=8, size=20_000, word=f"lamp{window}")
            for line in lines[: None if ended else -32]:
                line["uuid"] = f"{window:08d}{line['uuid'][8:]}"
                if ended and line["type"] == "system":
                    continue
                file.write(as_bytes([line]))
    if ended:
        os.utime(log, (1, 1))
    store.run("memory", "status")
    arguments = ["manage.py", "archive", str(log), "--level", "l2"]
    finished = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], cwd=ROOT, env=store.env, check=True, capture_output=True
    )
    return int(finished.stdout.split()[-2]) * 1024


def test_memory_does_not_grow_with_the_log(tmp_path):
    small = peak_of_archiving(tmp_path / "small", 4, ended=False)
    large = peak_of_archiving(tmp_path / "large", 24, ended=False)
    assert large < 300 * MIB
    assert large < small + 60 * MIB


def test_memory_does_not_grow_with_one_window(tmp_path):
    small = peak_of_archiving(tmp_path / "small", 4, ended=True)
    large = peak_of_archiving(tmp_path / "large", 16, ended=True)
    assert large < 300 * MIB
    assert large < small + 90 * MIB
