"""The folders of the body index: one for the shared records of a workspace and one for its private ones.

So frequencies and scores don't depend on other workspaces' text, shared records are searched without a
filter, and forgetting a workspace is removing a folder.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from filelock import FileLock

from records.home import bodies_dir, home, safe_segment
from records.models import Scope as Pool
from records.models import SearchEntry
from records.scope import Scope

from .engine import VERSION, Folder, remove

_LAYOUT = "VERSION"


class PoolName(NamedTuple):
    workspace_key: str
    scope: str

    @property
    def path(self) -> Path:
        kind = "shared" if self.scope == Pool.WORKSPACE else "private"
        return bodies_dir() / safe_segment(self.workspace_key) / kind


class Visible(NamedTuple):
    """A pool and, where only some sessions' records in it may be seen, these sessions."""

    pool: PoolName
    session_ids: frozenset[str] | None = None


def bodies_lock(timeout: float = -1) -> FileLock:
    """Held by whoever writes to the body index, across processes. Below 0: however long it takes."""
    return FileLock(home() / "bodies.lock", timeout=timeout)


def pools_visible(scope: Scope, workspace_key: str | None, session_id: str | None) -> Iterator[Visible]:
    """Where to look. What is found there is checked against the scope again, record by record."""
    if scope.is_owner:
        yield from (Visible(pool) for pool in _pools_of_owner(workspace_key, session_id))
        return
    if Pool.WORKSPACE in scope.pools:
        keys = scope.workspace_keys if scope.workspace_keys is not None else _keys_of(Pool.WORKSPACE)
        for key in sorted(keys):
            if workspace_key in (None, key):
                yield Visible(PoolName(key, Pool.WORKSPACE))
    if sessions := scope.private_sessions:
        private = SearchEntry.objects.filter(scope=Pool.SESSION, session_id__in=sorted(sessions))
        for key in sorted(set(private.values_list("workspace_key", flat=True).distinct())):
            if workspace_key in (None, key):
                yield Visible(PoolName(key, Pool.SESSION), sessions)


def _pools_of_owner(workspace_key: str | None, session_id: str | None) -> Iterator[PoolName]:
    """By the folders there are: what is in none of them is pending, and found by its card."""
    if session_id is not None:
        entries = SearchEntry.objects.filter(session_id=session_id)
        yield from (
            PoolName(*pool) for pool in sorted(entries.values_list("workspace_key", "scope").distinct())
        )
        return
    segments = [path.name for path in bodies_dir().iterdir() if path.is_dir()] if not workspace_key else []
    for key in [workspace_key] if workspace_key else sorted(segments):
        yield from (PoolName(key, scope) for scope in (Pool.WORKSPACE, Pool.SESSION))


def _keys_of(scope: str) -> set[str]:
    return set(SearchEntry.objects.filter(scope=scope).values_list("workspace_key", flat=True).distinct())


_folders: dict[Path, Folder] = {}
_opening = Lock()


def folder(pool: PoolName) -> Folder | None:
    """None when nothing has been written there. IndexDamaged."""
    path = pool.path
    with _opening:
        if not (path / "meta.json").is_file():
            _folders.pop(path, None)
            return None
        known = _folders.get(path)
        if known is None:
            known = _folders[path] = Folder(path)
        else:
            known.refresh()
        return known


def folder_discard(pool: PoolName) -> None:
    """Removes a folder whose files are damaged, or whose workspace is gone. The caller holds the lock."""
    with _opening:
        _folders.pop(pool.path, None)
    remove(pool.path)
    with suppress(OSError):
        pool.path.parent.rmdir()  # unless the workspace's other pool is there


def layout_is_current() -> bool:
    mark = bodies_dir() / _LAYOUT
    try:
        return mark.read_text(encoding="ascii", errors="replace").strip() == str(VERSION)
    except FileNotFoundError:
        return False


def layout_ensure() -> bool:
    """Removes folders that another version laid out; True if they have to be written anew. The caller holds
    the lock."""
    if layout_is_current():
        return False
    with _opening:
        _folders.clear()
    for path in bodies_dir().iterdir():
        remove(path)
    (bodies_dir() / _LAYOUT).write_text(f"{VERSION}\n", encoding="ascii")
    return True
