"""Runs ripgrep over files: which of them hold a match. No ORM.

It is asked for names alone. What is shown of a file is then read by us: one line of 50 MB, or a word in
every line, costs no output, and a hit means the same whichever engine found it.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Self

from .grep_scan import TimeUp

# Never -P, which backtracks. NUL bytes and byte order marks are text like any other; and a file that shrinks
# while it is read must not end the process, as a memory map would.
_OPTIONS = (
    "--no-config", "-uuu", "--text", "--encoding=none", "--no-mmap", "--color=never",
    "--no-messages", "--files-with-matches", "--null",
)  # fmt: skip
_NOTHING_FOUND, _TROUBLE = 1, 2


@cache
def binary() -> Path | None:
    """ripgrep as installed with us, else the machine's; None when there is none."""
    beside = Path(sys.executable).with_name("rg")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("rg")
    return Path(found) if found else None


class Search:
    """One run over `paths` (below `folder`), which works on while its owner does something else.

        with Search(program, pattern, paths, folder=folder, deadline=deadline) as search:
            ...
            found = search.files_matching()

    `deadline`: of time.monotonic. Whatever it started has ended when the block ends."""

    def __init__(
        self, program: Path, pattern: str, paths: Sequence[str], *, folder: Path, deadline: float
    ) -> None:
        self._command = [str(program), *_OPTIONS, "-e", pattern, "--", *paths]
        self._paths, self._folder, self._deadline = paths, folder, deadline
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with suppress(OSError):
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _end(self._process)

    def files_matching(self) -> set[str] | None:
        """Those that hold a match or have gone; None when ripgrep can't tell. Raises TimeUp."""
        process, paths = self._process, self._paths
        if process is None:
            return None
        # No more than all names and what ends them.
        output = _output(process, sum(map(len, paths)) * 4 + len(paths), self._deadline)
        if output is None:
            return None
        try:
            status = process.wait(max(0.0, self._deadline - monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeUp from None
        if status not in (0, _NOTHING_FOUND, _TROUBLE):
            return None
        found = {os.fsdecode(name) for name in output.split(b"\0") if name}
        if status != _TROUBLE:
            return found
        # Either it refused the pattern, or a file could not be read.
        if not found:
            return None
        return found | {path for path in paths if not (self._folder / path).is_file()}


def _output(process: "subprocess.Popen[bytes]", limit: int, deadline: float) -> bytes | None:
    """None when it is more than `limit` bytes."""
    assert process.stdout
    descriptor = process.stdout.fileno()
    pieces: list[bytes] = []
    size = 0
    while size <= limit:
        left = deadline - monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            raise TimeUp
        piece = os.read(descriptor, 65_536)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
    return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends the whole group: also what a program in ripgrep's place has started."""
    # While nobody has waited for it, its number is nobody else's.
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout:
        process.stdout.close()
