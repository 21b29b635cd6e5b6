"""workspaces.json: defaults, joins and pauses. The file is the truth; nothing of it is in the database.

{"schema": 1, "workspaces": {key: {"cwd", "l2", "l3"}}, "joins": [[key, …], …],
 "paused": {"all": bool, "workspaces": [key, …], "sessions": [id, …]}}
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from records.files import write_atomic
from records.home import home

from .sessionfile import StoreDamaged, WorkspacesDamaged, json_read

LEVELS = ("l2", "l3")


def _path() -> Path:
    return home() / "workspaces.json"


def workspaces_read() -> dict[str, Any]:
    """Raises StoreDamaged: what was off or paused must not be read for want of the file."""
    try:
        data = json_read(_path())
    except StoreDamaged as damage:
        raise WorkspacesDamaged(str(damage)) from damage
    data.setdefault("schema", 1)
    data.setdefault("workspaces", {})
    data.setdefault("joins", [])
    paused = data.setdefault("paused", {})
    paused.setdefault("all", False)
    paused.setdefault("workspaces", [])
    paused.setdefault("sessions", [])
    return data


@contextmanager
def _editing() -> Iterator[dict[str, Any]]:
    with FileLock(home() / "workspaces.json.lock"):
        data = workspaces_read()
        yield data
        write_atomic(_path(), json.dumps(data, ensure_ascii=False, indent=1).encode())


def workspace_default_set(key: str, cwd: str, *, l2: bool, l3: bool) -> None:
    """The levels that new sessions of a workspace start with; unlike a session's own they can be
    taken back."""
    with _editing() as data:
        data["workspaces"][key] = {"cwd": cwd, "l2": l2, "l3": l3}


def workspace_default(key: str) -> tuple[bool, bool] | None:
    entry = workspaces_read()["workspaces"].get(key)
    return (bool(entry["l2"]), bool(entry["l3"])) if entry else None


def workspace_joined(key: str) -> frozenset[str]:
    """The workspaces that are one pool with this one, itself included."""
    joins = workspaces_read()["joins"]
    return frozenset({key}.union(*(joined for joined in joins if key in joined)))


def pause_set(kind: str, value: str, *, paused: bool) -> None:
    """`kind`: all | workspaces | sessions; `value`: the key or id, "" for all."""
    with _editing() as data:
        if kind == "all":
            data["paused"]["all"] = paused
            return
        names: list[str] = data["paused"][kind]
        if paused and value not in names:
            names.append(value)
        elif not paused and value in names:
            names.remove(value)


def is_paused(session_ids: tuple[str, ...], workspace_key: str) -> bool:
    paused = workspaces_read()["paused"]
    return bool(
        paused["all"]
        or workspace_key in paused["workspaces"]
        or any(session_id in paused["sessions"] for session_id in session_ids)
    )


def workspaces_join(keys: Iterable[str]) -> list[str]:
    """Makes workspaces count as one, with all that they were joined to; their keys. Records and files stay
    where they are. ValueError for fewer than two."""
    wanted = set(keys)
    if len(wanted) < 2:
        raise ValueError("Name two folders or more that are to count as one workspace.")
    with _editing() as data:
        touched = [group for group in data["joins"] if wanted & set(group)]
        together = sorted(wanted.union(*touched))
        data["joins"] = [group for group in data["joins"] if group not in touched] + [together]
    return together


def workspace_unjoin(key: str) -> list[str]:
    """Takes a workspace out of those it was joined with; the keys of these. Empty when it was not joined."""
    with _editing() as data:
        for group in data["joins"]:
            if key in group:
                rest = [other for other in group if other != key]
                data["joins"].remove(group)
                if len(rest) > 1:
                    data["joins"].append(rest)
                return rest
    return []
