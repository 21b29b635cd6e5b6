"""session.json, beside a session's mirror: what a rebuild needs and the log does not say.

{"schema": 1, "session_id", "agent", "workspace_key", "cwd", "parent_id", "relation",
 "pool_session_id", "is_sample", "l2", "l3", "levels_updated_at",
 "generations": {"0": {"source_path", "size", "mtime_ns"}},
 "files": {path: {"row", "state", "sha256", "size"}}, "ended_at", "sources": {path: {…}}}
Keys that are not known yet are absent.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.db import connection

from records.files import write_atomic
from records.home import safe_segment, sessions_dir
from records.ids import workspace_key

from .mirror import generations

NAME = "session.json"
# Asked several times for each log: the ORM would need two questions.
_KEY_OR_CWD = """
    SELECT (SELECT workspace_key FROM agent_sessions WHERE session_id = %s),
        (SELECT cwd FROM sources WHERE session_id = %s ORDER BY id LIMIT 1)
"""


class StoreDamaged(Exception):
    """A small file of the store that nothing can be rebuilt from can't be read; the message names it."""


class WorkspacesDamaged(StoreDamaged):
    """workspaces.json: without it nobody can tell what is off or paused."""


def session_folder(key: str, session_id: str) -> Path:
    return sessions_dir() / safe_segment(key) / safe_segment(session_id)


def workspace_key_of(session_id: str, cwd: str = "") -> str:
    """The workspace of a session that is known by its rows or by its log only; `cwd`: where it is taken to
    have been started when it is not known at all."""
    with connection.cursor() as cursor:
        cursor.execute(_KEY_OR_CWD, [session_id, session_id])
        key, known = cursor.fetchone()
    return key or workspace_key(cwd if known is None else known, session_id)


def session_read(folder: Path) -> dict[str, Any]:
    """{} when there is none. Raises StoreDamaged."""
    return json_read(folder / NAME)


def json_read(path: Path) -> dict[str, Any]:
    """A file of ours, {} when there is none. Raises StoreDamaged."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise StoreDamaged(f"{path} is damaged ({error}). Mend it or put it back from a backup.") from error
    if not isinstance(data, dict):
        raise StoreDamaged(f"{path} is damaged: not an object. Mend it or put it back from a backup.")
    return data


def session_write(folder: Path, data: dict[str, Any]) -> None:
    """Written only when it changes something: an unchanged session costs no fsync."""
    if session_read(folder) == data:
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(folder / NAME, json.dumps(data, ensure_ascii=False, indent=1).encode())


def levels_write(session_id: str, *, l2: bool, l3: bool, updated_at: int) -> None:
    key = workspace_key_of(session_id)
    folder = session_folder(key, session_id)
    data = session_read(folder) or {"schema": 1, "session_id": session_id, "workspace_key": key}
    session_write(folder, {**data, "l2": l2, "l3": l3, "levels_updated_at": updated_at})


def levels_settle(session_id: str, key: str) -> None:
    """Switches set before the session's folder was known lie under its id: they move to its workspace."""
    stray = session_folder(workspace_key("", session_id), session_id)
    folder = session_folder(key, session_id)
    if stray == folder or not (data := session_read(stray)):
        return
    session_write(folder, {**data, **session_read(folder), "workspace_key": key})
    _folder_drop(stray)


def levels_remove(session_id: str) -> None:
    """For a session that nothing was mirrored of: its session.json held the switches alone."""
    folder = session_folder(workspace_key_of(session_id), session_id)
    if folder.is_dir() and not generations(folder):
        _folder_drop(folder)


def _folder_drop(folder: Path) -> None:
    (folder / NAME).unlink(missing_ok=True)
    folder.rmdir()
    if not any(folder.parent.iterdir()):
        folder.parent.rmdir()


def session_folders() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every session of the store with its session.json, in a fixed order; damaged ones are left out."""
    for path in sorted(sessions_dir().glob(f"*/*/{NAME}")):
        with suppress(StoreDamaged):
            if (data := session_read(path.parent)) and "session_id" in data:
                yield path.parent, data


def damaged_folders() -> Iterator[tuple[Path, str]]:
    """Session folders without a readable session.json, and why."""
    for folder in sorted(path for path in sessions_dir().glob("*/*") if path.is_dir()):
        try:
            if "session_id" not in session_read(folder):
                yield folder, f"{folder / NAME} is missing or says no session_id."
        except StoreDamaged as damage:
            yield folder, str(damage)
