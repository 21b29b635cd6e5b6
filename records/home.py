"""Where things lie under MEMEX_HOME."""

import hashlib
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from .files import make_dir

SAFE_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Windows opens a device for these, whatever extension follows.
DEVICE_NAME = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE)


class ForeignStore(ImproperlyConfigured):
    """MEMEX_HOME holds an index.db that another program made."""


def home() -> Path:
    return Path(settings.MEMEX_HOME)


def records_dir() -> Path:
    return home() / "records"


def cold_dir() -> Path:
    return home() / "cold"


def sessions_dir() -> Path:
    return home() / "sessions"


def blobs_dir() -> Path:
    return home() / "blobs"


def trash_dir() -> Path:
    return home() / "trash"


def agents_dir() -> Path:
    return home() / "agents"


def bodies_dir() -> Path:
    return home() / "bodies"


def locks_dir() -> Path:
    """Empty files, locked by whoever works on a pool."""
    return home() / "locks"


def content_dirs() -> tuple[Path, ...]:
    """The folders that hold content. Every store has them all."""
    return (
        records_dir(),
        cold_dir(),
        sessions_dir(),
        blobs_dir(),
        trash_dir(),
        agents_dir(),
        bodies_dir(),
    )


def index_path() -> Path:
    return home() / "index.db"


def safe_segment(text: str) -> str:
    """`text` as one segment of a path: itself where that is harmless, else a hash of it."""
    if SAFE_SEGMENT.fullmatch(text) and not DEVICE_NAME.fullmatch(text):
        return text
    return "s_" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def record_path(workspace_key: str, record_id: str, *, cold: bool) -> Path:
    return (cold_dir() if cold else records_dir()) / safe_segment(workspace_key) / f"{record_id}.md"


def relative(path: Path) -> str:
    """`path` below MEMEX_HOME, with forward slashes, as rows and manifests hold it."""
    return path.relative_to(home()).as_posix()


def ensure_home() -> None:
    """Creates the layout. ForeignStore when MEMEX_HOME is another program's store."""
    _refuse_foreign()
    for folder in content_dirs():
        make_dir(folder)
    # SQLite would create it readable by others; an empty file is an empty database.
    os.close(os.open(index_path(), os.O_CREAT | os.O_RDWR, 0o600))


def _refuse_foreign() -> None:
    if index_path().is_file() and _is_foreign(index_path()):
        raise ForeignStore(
            f"{index_path()} was not made by Memex. Point MEMEX_HOME at another folder and bring these "
            f"records in with: manage.py import_records {home()}"
        )


def _is_foreign(database: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError:
        # Damaged, not foreign: whoever opens it says so, and `doctor` names it.
        return False
    return "records" in tables and "django_migrations" not in tables
