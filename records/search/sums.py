"""Checksums of a folder's files. The engine does not notice a flipped byte: its answers would just be wrong."""

import hashlib
from pathlib import Path

import orjson

_NAME = "sums.json"
# Written once, under a name of their own, and never changed.
_SUFFIXES = frozenset({".term", ".idx", ".pos", ".fast", ".store", ".fieldnorm", ".del"})


def sums_write(folder: Path) -> None:
    """After a commit: adds the sums of new files."""
    known = _read(folder)
    sums = {path.name: known.get(path.name) or _sum(path) for path in _files(folder)}
    (folder / _NAME).write_bytes(orjson.dumps(sums))


def sums_wrong(folder: Path) -> list[str]:
    """Names of files that are not as they were written. One without a sum is passed over."""
    known = _read(folder)
    return [path.name for path in _files(folder) if path.name in known and known[path.name] != _sum(path)]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(folder: Path) -> dict[str, str]:
    try:
        given = orjson.loads((folder / _NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return given if isinstance(given, dict) else {}
