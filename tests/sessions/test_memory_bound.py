"""Memory is bounded by limits, not by the log."""

import os
from pathlib import Path

from tests.sessions.stories import Store, as_bytes, session_id, story

MIB = 1024 * 1024


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
    process = store.start("archive", str(log), "--level", "l2", "--json")
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, out
    return used.ru_maxrss * 1024


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
