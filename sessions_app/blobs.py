"""Files a log points to, stored once by sha256 under blobs/."""

import hashlib
import os
import stat
from pathlib import Path

from records.files import write_atomic
from records.home import blobs_dir

MAX_BYTES = 100 * 1024 * 1024
# Where agents put what they spill. A log may have been written by anybody: nothing else is followed.
_FOLDERS = {"tool-results", "attachments"}


class BlobRefused(Exception):
    """`state` is a SessionFile state: missing, too-large, outside."""

    def __init__(self, state: str, size: int = 0) -> None:
        super().__init__(state)
        self.state, self.size = state, size


def blob_path(sha256: str) -> Path:
    return blobs_dir() / sha256[:2] / sha256


def file_keep(path: str, root: Path) -> tuple[str, int]:
    """Copies a file below `root` into the store; (sha256, size). Raises BlobRefused."""
    full, top = Path(os.path.realpath(root / path)), os.path.realpath(root)
    if not full.is_relative_to(top) or not _FOLDERS.intersection(full.relative_to(top).parts[:-1]):
        raise BlobRefused("outside")
    try:
        handle = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise BlobRefused("missing") from error
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise BlobRefused("missing")
        if status.st_size > MAX_BYTES:
            raise BlobRefused("too-large", status.st_size)
        data = file.read(MAX_BYTES + 1)
    digest = hashlib.sha256(data).hexdigest()
    target = blob_path(digest)
    if not target.exists():
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(target, data)
    return digest, len(data)


def blob_read(sha256: str) -> bytes:
    """Raises FileNotFoundError."""
    return blob_path(sha256).read_bytes()
