"""What the owner said is no secret: kept by fingerprint, in a file, so that it is not raised again."""

import json
import os
from functools import lru_cache
from pathlib import Path

from django.utils.crypto import salted_hmac

from records.clock import now_ms
from records.files import FILE_MODE
from records.home import home


def fingerprint(value: str) -> str:
    """Keyed with the store's own key: without it nobody can try out what was found."""
    return salted_hmac("memex.secrets", value.encode("utf-8", "replace"), algorithm="sha256").hexdigest()[:24]


def dismissed() -> frozenset[str]:
    """Fingerprints."""
    try:
        stat = _path().stat()
    except FileNotFoundError:
        return frozenset()
    return _read(_path(), stat.st_mtime_ns, stat.st_size)


def dismiss(fingerprints: list[str]) -> None:
    """Appended in one call; what is there already is not written again."""
    new = [each for each in dict.fromkeys(fingerprints) if each not in dismissed()]
    lines = b"".join(json.dumps({"at": now_ms(), "fingerprint": each}).encode() + b"\n" for each in new)
    if lines:
        descriptor = os.open(_path(), os.O_CREAT | os.O_APPEND | os.O_WRONLY, FILE_MODE)
        try:
            os.write(descriptor, lines)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _path() -> Path:
    return home() / "dismissed.jsonl"


@lru_cache(maxsize=4)
def _read(path: Path, _mtime_ns: int, _size: int) -> frozenset[str]:
    found = set()
    for line in path.read_bytes().splitlines():
        try:
            found.add(str(json.loads(line)["fingerprint"]))
        except (ValueError, KeyError, TypeError):
            # Cut off by a crash, or edited: the others stand.
            continue
    return frozenset(found)
