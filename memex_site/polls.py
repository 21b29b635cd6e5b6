"""Polls that are answered without asking: as long as nothing was written, an answer is what it was.

SQLite tells a connection whether another one has committed anything since it last asked (PRAGMA
data_version): 11 µs. What is not in the database, but decides what may be seen, is a file with a stamp.
"""

import hashlib
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_PATHS = frozenset({"/api/memory.index", "/api/memory.metrics", "/api/session.surface"})


class Stamp(NamedTuple):
    """A state of the store. Two that are equal were taken with nothing written in between."""

    database: tuple[int, int]
    version: int
    files: tuple[int, ...]


class PollCache:
    """Used by one event loop, which is one thread."""

    MOST = 4_000
    # What depends on the clock is asked for anew now and then.
    SECONDS = 60.0

    def __init__(self, database: Path, files: Sequence[Path]) -> None:
        self._database, self._files = database, tuple(files)
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] = (0, 0)
        self._known: OrderedDict[bytes, tuple[bytes, Stamp, float]] = OrderedDict()

    @staticmethod
    def is_poll(scope: Mapping[str, Any]) -> bool:
        return scope["method"] == "GET" and scope["path"] in _PATHS

    def known(self, scope: Mapping[str, Any], token: bytes, etag: bytes) -> bytes:
        """The ETag that is still right if the caller has it; b"" when Django has to be asked."""
        if not etag or not self.is_poll(scope):
            return b""
        found = self._known.get(_key(scope, token))
        if found is None or found[0] not in (part.strip() for part in etag.split(b",")):
            return b""
        current, stamp, until = found
        return current if time.monotonic() < until and stamp == self.stamp() else b""

    def note(self, scope: Mapping[str, Any], token: bytes, etag: bytes, stamp: Stamp | None) -> None:
        """`stamp`: of before the answer was worked out."""
        if stamp is None:
            return
        key = _key(scope, token)
        self._known[key] = (etag, stamp, time.monotonic() + self.SECONDS)
        self._known.move_to_end(key)
        while len(self._known) > self.MOST:
            self._known.popitem(last=False)

    def stamp(self) -> Stamp | None:
        """None when it can't be told."""
        try:
            status = self._database.stat()
            identity = (status.st_dev, status.st_ino)
            if self._connection is None or identity != self._opened:
                self._open(identity)
            assert self._connection is not None
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            return Stamp(identity, version, tuple(map(_changed, self._files)))
        except (OSError, sqlite3.Error):
            self._connection = None
            return None

    def _open(self, identity: tuple[int, int]) -> None:
        if self._connection is not None:
            self._connection.close()
        # Another file may have the number of a connection that is gone.
        self._known.clear()
        self._connection = sqlite3.connect(
            f"{self._database.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=0.2
        )
        self._opened = identity


def _key(scope: Mapping[str, Any], token: bytes) -> bytes:
    question = b"\0".join((token, scope["path"].encode(), scope["query_string"]))
    return hashlib.sha256(question).digest()


def _changed(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
