"""Agents' settings files, read and replaced; what they were before lies beside the store."""

import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from records.files import FILE_MODE, fsync_dir, make_dir, write_all, write_atomic
from records.home import agents_dir

from .errors import EditRefused
from .plan import FileEdit


def file_read(path: Path) -> bytes | None:
    """None when there is none. Raises EditRefused when it can't be read, or is no file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EditRefused(f"{path}: {error.strerror}") from error


def edit_apply(agent: str, edit: FileEdit) -> Path | None:
    """Makes the change and returns where the file as it was lies now. Raises EditRefused when the file isn't
    any more what the edit was made for, or can't be written."""
    if file_read(edit.path) != edit.before:
        raise EditRefused(f"{edit.path} changed meanwhile. Nothing was changed in it; look again.")
    kept = None if edit.before is None else _backup(agent, edit.path, edit.before)
    try:
        _replace(edit.path, edit.after)
    except OSError as error:
        raise EditRefused(f"{edit.path} can't be written: {error.strerror}") from error
    return kept


def edit_records(agent: str) -> dict[str, dict[str, Any]]:
    """What undoing needs to know, by the path of the file; what can't be read counts as not known."""
    try:
        found = json.loads(_records_path(agent).read_bytes())
        return {
            path: {"absent": record["absent"] is True, "trace": dict(record["trace"])}
            for path, record in found.items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def edit_records_write(agent: str, records: dict[str, dict[str, Any]]) -> None:
    if records:
        write_atomic(_records_path(agent), json.dumps(records, ensure_ascii=True, indent=1).encode())
    else:
        _records_path(agent).unlink(missing_ok=True)


def _records_path(agent: str) -> Path:
    return agents_dir() / f"{agent}.json"


def _backup(agent: str, path: Path, content: bytes) -> Path:
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    kept = agents_dir() / "backups" / f"{agent}-{path.name}-{moment}"
    write_atomic(kept, content)
    return kept


def _replace(path: Path, content: bytes | None) -> None:
    """Whole or not at all. A link stays a link, and a file keeps its mode."""
    target = Path(os.path.realpath(path))
    if content is None:
        target.unlink()
        fsync_dir(target.parent)
        return
    make_dir(target.parent)
    mode = target.stat().st_mode & 0o7777 if target.exists() else FILE_MODE
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.memex-")
    try:
        os.fchmod(descriptor, mode)
        write_all(descriptor, content)
        os.fsync(descriptor)
    except OSError:
        Path(temporary).unlink()
        raise
    finally:
        os.close(descriptor)
    Path(temporary).replace(target)
    fsync_dir(target.parent)
