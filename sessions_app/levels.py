"""Which levels a session has. The one place that decides it; every path asks here.

L2 keeps a session's archives private to it, L3 shares them with its workspace. Both are off until
switched on, and a session's own switches only ever go on.
"""

import time
from dataclasses import dataclass

from django.conf import settings
from django.db import connection, transaction

from records.models import Record
from records.tombstones import is_forgotten

from . import sessionfile
from .models import AgentSession, Receipt, SessionSettings, Source
from .workspaces import is_paused, workspace_default


class LevelSticky(Exception):
    """MEMORY_LEVEL_STICKY: a level that is on stays on."""


class LevelsOff(Exception):
    """MEMORY_LEVELS_OFF: nothing of this session is kept, shown or told."""


class SessionPaused(Exception):
    """The owner paused the session, its workspace or everything: nothing is kept until it is resumed."""


class SessionForgotten(Exception):
    """Nothing of a forgotten session is kept, its switches included, until it is undone."""


@dataclass(frozen=True, slots=True)
class Levels:
    l2: bool = False
    l3: bool = False

    @property
    def any(self) -> bool:
        return self.l2 or self.l3

    @property
    def capture_scope(self) -> str:
        """The deepest level that is on; "" = nothing is captured."""
        return "workspace" if self.l3 else "session" if self.l2 else ""

    def __str__(self) -> str:
        return "+".join(name for name, on in (("L2", self.l2), ("L3", self.l3)) if on) or "off"


def pool_session_id(session_id: str, parent_id: str, relation: str) -> str:
    """Whose switches and private pool a session uses: a sub-agent its topmost parent's."""
    seen = {session_id}
    while relation == "subagent" and parent_id and parent_id not in seen:
        seen.add(parent_id)
        session_id = parent_id
        above = (
            AgentSession.objects.filter(session_id=parent_id).values_list("parent_id", "relation").first()
            or Source.objects.filter(session_id=parent_id).values_list("parent_id", "relation").first()
        )
        parent_id, relation = above or ("", "")
    return session_id


def levels_of(pool_id: str, workspace_key: str) -> Levels:
    """The levels of the session that owns pool `pool_id`, whatever they come from."""
    return _levels_kept(pool_id) or _restored(pool_id, workspace_key) or default_levels(workspace_key)


def _levels_kept(pool_id: str) -> Levels | None:
    # Written out: it is asked several times for each log.
    with connection.cursor() as cursor:
        cursor.execute("SELECT l2, l3 FROM session_settings WHERE session_id = %s", [pool_id])
        row = cursor.fetchone()
    return Levels(bool(row[0]), bool(row[1])) if row else None


def _restored(pool_id: str, workspace_key: str) -> Levels | None:
    """The switches that the session's file has and the database lost: the file is the truth."""
    data = sessionfile.session_read(sessionfile.session_folder(workspace_key, pool_id))
    if "levels_updated_at" not in data or is_forgotten("session", pool_id):
        return None
    levels = Levels(bool(data.get("l2")), bool(data.get("l3")))
    SessionSettings.objects.bulk_create(
        [
            SessionSettings(
                session_id=pool_id, l2=levels.l2, l3=levels.l3, updated_at=data["levels_updated_at"]
            )
        ],
        ignore_conflicts=True,
    )
    return levels


def default_levels(workspace_key: str) -> Levels:
    """Those of a session for which nothing was switched on."""
    default = workspace_default(workspace_key)
    if default is None:
        names = settings.MEMEX_DEFAULT_LEVELS
        return Levels("l2" in names, "l3" in names)
    return Levels(*default)


def workspace_levels(workspace_key: str) -> Levels:
    """What is on in a workspace, for whom no session speaks: its default, or what any session of it has."""
    default = default_levels(workspace_key)
    sessions = AgentSession.objects.filter(workspace_key=workspace_key).values("pool_session_id")
    own = SessionSettings.objects.filter(session_id__in=sessions)
    return Levels(default.l2 or own.filter(l2=1).exists(), default.l3 or own.filter(l3=1).exists())


def may_read(session_id: str, pool_id: str, workspace_key: str) -> bool:
    """Whether anything of this session may be read into the store now."""
    return levels_of(pool_id, workspace_key).any and not is_paused((session_id, pool_id), workspace_key)


def level_enable(session_id: str, *names: str) -> Levels:
    """Switches levels on. `session_id`: the pool's session. Raises LevelSticky for another name than
    l2 or l3, SessionForgotten. The file is written first: a switch survives power loss."""
    if is_forgotten("session", session_id):
        raise SessionForgotten(f"{session_id} was forgotten. `memory trash restore` brings it back.")
    for name in names:
        if name not in ("l2", "l3"):
            raise LevelSticky(f"'{name}' is no level: l2 and l3 can be switched on, and stay on.")
    with transaction.atomic():
        # The transaction holds the store's write lock: nobody makes the row meanwhile.
        known = SessionSettings.objects.filter(session_id=session_id).first()
        row = known or SessionSettings(session_id=session_id, updated_at=0)
        l2, l3 = bool(row.l2) or "l2" in names, bool(row.l3) or "l3" in names
        if (l2, l3) != (bool(row.l2), bool(row.l3)):
            row.updated_at = int(time.time() * 1000)
            row.l2, row.l3 = int(l2), int(l3)
            sessionfile.levels_write(session_id, l2=l2, l3=l3, updated_at=row.updated_at)
            row.save(force_insert=known is None)
    return Levels(l2, l3)


def default_adopt(pool_id: str, workspace_key: str) -> Levels:
    """A default that is used becomes the session's own: taking the default back later does not touch
    what was switched on by it."""
    row = _levels_kept(pool_id)
    levels = row or levels_of(pool_id, workspace_key)
    if levels.any and row is None and _levels_kept(pool_id) is None:
        return level_enable(pool_id, *(name for name in ("l2", "l3") if getattr(levels, name)))
    return levels


def settings_expire() -> int:
    """Drops the switches of sessions that nothing came of: untouched for `settings_ttl_days`, without a
    record, a mirror or a receipt. How many."""
    days = settings.MEMEX_SETTINGS_TTL_DAYS
    if not days:
        return 0
    before = int(time.time() * 1000) - days * 24 * 3600 * 1000
    idle = SessionSettings.objects.filter(updated_at__lt=before).exclude(
        session_id__in=AgentSession.objects.values("pool_session_id")
    )
    idle = idle.exclude(session_id__in=Record.objects.exclude(session_id="").values("session_id"))
    idle = idle.exclude(session_id__in=Receipt.objects.values("session_id"))
    gone = list(idle.values_list("session_id", flat=True))
    for session_id in gone:
        sessionfile.levels_remove(session_id)
    SessionSettings.objects.filter(session_id__in=gone).delete()
    return len(gone)
