"""What there is, for the first visit, `memory levels` and `memory status`."""

from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from records.home import home
from records.ids import workspace_key
from records.tombstones import tombstones

from .levels import default_levels
from .models import AgentSession, Compaction, ImportWarning, Receipt, SessionSettings, Source
from .sessionfile import session_folders
from .workspaces import workspaces_read


@dataclass(slots=True)
class WorkspaceRow:
    """A folder that agents were started in. Sub-agents are counted with their parents; `sessions` are
    those that were not forgotten, `on` those of them with switches of their own."""

    key: str
    cwd: str
    agents: list[str] = field(default_factory=list)
    sessions: int = 0
    on: int = 0
    forgotten: int = 0
    bytes: int = 0
    latest_ns: int = 0
    levels: str = "off"
    is_sample: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "workspaceKey": self.key, "cwd": self.cwd, "agents": self.agents, "sessions": self.sessions,
            "sessionsOn": self.on, "sessionsForgotten": self.forgotten, "bytes": self.bytes, "levels": self.levels, "sample": self.is_sample,
        }  # fmt: skip


def forgotten_sessions() -> frozenset[str]:
    return frozenset(tombstone.id for tombstone in tombstones() if tombstone.kind == "session")


def topmost_sources() -> QuerySet[Source]:
    """The logs of sessions that stand for themselves; a sub-agent does so when nothing is known of its
    parent."""
    is_own = ~Q(relation="subagent") | Q(parent_id="")
    found = Exists(Source.objects.filter(session_id=OuterRef("parent_id")))
    read = Exists(AgentSession.objects.filter(session_id=OuterRef("parent_id")))
    return Source.objects.filter(is_own | (~found & ~read))


def workspaces_found() -> list[WorkspaceRow]:
    """The folders of every log that is known, the latest first."""
    rows: dict[str, WorkspaceRow] = {}
    seen: set[str] = set()
    forgotten = forgotten_sessions()
    switched = {
        session_id
        for session_id, l2, l3 in SessionSettings.objects.values_list("session_id", "l2", "l3")
        if l2 or l3
    }
    for source in topmost_sources().order_by("-mtime_ns"):
        key = workspace_key(source.cwd, source.session_id)
        row = rows.setdefault(key, WorkspaceRow(key, source.cwd, is_sample=source.is_sample))
        row.bytes += source.size
        row.latest_ns = max(row.latest_ns, source.mtime_ns)
        if source.agent not in row.agents:
            row.agents.append(source.agent)
        if source.session_id in seen:
            continue
        seen.add(source.session_id)
        pool = (source.relation == "subagent" and source.parent_id) or source.session_id
        if forgotten & {source.session_id, pool}:
            row.forgotten += 1
        else:
            row.sessions += 1
            row.on += pool in switched
    for row in rows.values():
        levels = default_levels(row.key)
        row.levels = str(levels) if levels.any else ("some" if row.on else "off")
    return list(rows.values())


def store_status() -> dict[str, Any]:
    """Figures of the whole store; constant queries."""
    state = Compaction.State
    states = list(Compaction.objects.filter(kind="compaction").values_list("state", flat=True))
    kept, most = sum(mirror_bytes().values()), settings.MEMEX_MIRROR_MAX_GB
    return {
        "home": str(home()),
        "sources": Source.objects.count(),
        "sessions": AgentSession.objects.count(),
        "sessionsOn": SessionSettings.objects.count(),
        "archived": states.count(state.ARCHIVED),
        "waiting": states.count(state.READY) + states.count(state.PENDING),
        "receipts": Receipt.objects.filter(delivered_at=None).count(),
        "warnings": ImportWarning.objects.count(),
        "mirrorBytes": kept,
        # More than the owner wanted: said, and nothing is removed by itself.
        "mirrorOver": most is not None and kept > most * 1_000_000_000,
        "paused": workspaces_read()["paused"],
    }


def mirror_bytes() -> dict[str, int]:
    """Bytes on disk of the mirrors, by workspace key."""
    found: dict[str, int] = {}
    for folder, data in session_folders():
        kept = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
        key = data.get("workspace_key", folder.parent.name)
        found[key] = found.get(key, 0) + kept
    return found
