"""forgotten.jsonl: what the owner had forgotten, by id, so that nothing brings it back.

Agents' logs outlive what was archived from them, and import, hooks and reindex would read them again.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from django.db import transaction

from .clock import now_ms
from .files import FILE_MODE, fsync_dir, write_all, write_atomic
from .home import home


class Tombstone(NamedTuple):
    kind: str  # record | session
    id: str


class _Snapshot(NamedTuple):
    path: Path
    stamp: tuple[int, int, int]
    forgotten: frozenset[Tombstone]


_snapshot: _Snapshot | None = None


def tombstones_path() -> Path:
    return home() / "forgotten.jsonl"


def tombstones() -> frozenset[Tombstone]:
    """All of them; the file is read again only when it has changed."""
    global _snapshot
    path = tombstones_path()
    try:
        stat = path.stat()
    except FileNotFoundError:
        return frozenset()
    stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    snapshot = _snapshot
    if snapshot is None or snapshot.path != path or snapshot.stamp != stamp:
        forgotten = frozenset(Tombstone(entry["kind"], entry["id"]) for entry in _entries(path))
        _snapshot = snapshot = _Snapshot(path, stamp, forgotten)
    return snapshot.forgotten


def is_forgotten(kind: str, record_or_session_id: str) -> bool:
    return Tombstone(kind, record_or_session_id) in tombstones()


def tombstones_add(entries: Iterable[Mapping[str, str]]) -> None:
    """`entries`: {"kind", "id"}. They are on disk when this returns."""
    # The store's write lock keeps a removal, which replaces the file, from losing what is added.
    with transaction.atomic():
        known = tombstones()
        new = [entry for entry in entries if Tombstone(entry["kind"], entry["id"]) not in known]
        if new:
            at = now_ms()
            _append(
                "".join(_line({"kind": entry["kind"], "id": entry["id"], "at": at}) for entry in new).encode()
            )


def tombstones_remove(entries: Iterable[Mapping[str, str]]) -> None:
    gone = {Tombstone(entry["kind"], entry["id"]) for entry in entries}
    path = tombstones_path()
    with transaction.atomic():
        if gone & tombstones():
            kept = [entry for entry in _entries(path) if Tombstone(entry["kind"], entry["id"]) not in gone]
            write_atomic(path, "".join(map(_line, kept)).encode())


def _append(data: bytes) -> None:
    path = tombstones_path()
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, FILE_MODE)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        write_all(descriptor, b"\n" + data if torn else data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    fsync_dir(path.parent)


def _line(entry: Mapping[str, object]) -> str:
    return json.dumps(entry) + "\n"


def _entries(path: Path) -> list[dict[str, str]]:
    """A line that a power cut tore costs that line."""
    entries = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and {"kind", "id"} <= entry.keys():
            entries.append(entry)
    return entries
