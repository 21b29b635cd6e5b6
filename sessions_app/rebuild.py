"""Sessions, events and archive rows anew from the mirrors and record files: `reindex`, and undo."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Model

from records.models import Record
from records.tombstones import is_forgotten

from . import sessionfile
from .archive import session_archive
from .archiverows import rows_relink
from .eventrefs import with_lanes
from .ingest import ownership_transfer, session_reparse
from .mirror import Mirror, MirrorDamaged, generations
from .models import (
    AgentSession,
    ArchivedCompaction,
    Compaction,
    Event,
    Generation,
    L1Eviction,
    SessionFile,
    SessionSettings,
    Source,
)


@dataclass(slots=True)
class Rebuilt:
    sessions: int = 0
    events: int = 0
    archived_compactions: int = 0
    l1_evictions: int = 0
    damaged: list[str] = field(default_factory=list)  # what was left as it was, and why


def sessions_rebuild(workspace_key: str | None = None) -> Rebuilt:
    """The record rows must be right already. The caller holds the archive lock."""
    result = Rebuilt()
    folders = [
        (folder, data)
        for folder, data in sessionfile.session_folders()
        if not is_forgotten("session", data["session_id"])
        and (workspace_key is None or data.get("workspace_key") == workspace_key)
    ]
    kept = [data["session_id"] for _, data in folders]
    if workspace_key is None:
        _orphans_delete(kept)
    else:
        stale = AgentSession.objects.filter(workspace_key=workspace_key).exclude(
            session_id__in=with_lanes(kept)
        )
        sessions_delete(stale.values_list("session_id", flat=True))
    for folder, data in folders:
        try:
            session_rebuild(folder, data)
            result.sessions += 1
        except MirrorDamaged as damage:
            result.damaged.append(f"{data['session_id']}: {damage}")
    archives_relink(with_lanes(kept))
    result.events = Event.objects.filter(session_id__in=with_lanes(kept)).count()
    result.archived_compactions = ArchivedCompaction.objects.count()
    result.l1_evictions = L1Eviction.objects.count()
    return result


def session_rebuild(folder: Path, data: dict[str, Any]) -> None:
    """The rows of one session from its folder. Raises MirrorDamaged before it has touched anything."""
    session_id = data["session_id"]
    mirror_check(folder, data)
    with transaction.atomic():
        if "levels_updated_at" in data:
            SessionSettings.objects.update_or_create(
                session_id=session_id,
                defaults={
                    "l2": int(data.get("l2", 0)),
                    "l3": int(data.get("l3", 0)),
                    "updated_at": data["levels_updated_at"],
                },
            )
        if "agent" not in data:
            return  # switched on, and nothing read yet
        sessions_delete(with_lanes([session_id]))
        session = AgentSession.objects.create(
            session_id=session_id,
            agent=data["agent"],
            workspace_key=data["workspace_key"],
            cwd=data["cwd"],
            parent_id=data["parent_id"],
            relation=data["relation"],
            pool_session_id=data["pool_session_id"],
            is_sample=data["is_sample"],
            view_generation=data["view_generation"],
            ended_at=data["ended_at"],
        )
        SessionFile.objects.bulk_create(
            SessionFile(session=session, path=path, **values) for path, values in data["files"].items()
        )
        for path, values in data.get("sources", {}).items():
            Source.objects.update_or_create(
                path=path,
                defaults={
                    **values,
                    "agent": data["agent"],
                    "session_id": session_id,
                    "is_sample": data["is_sample"],
                },
            )
    for number in generations(folder):
        session_reparse(session, folder, number)


def mirror_check(folder: Path, data: dict[str, Any]) -> None:
    """Reads all of a session's mirror. Raises MirrorDamaged when something that was read is not there."""
    recorded: dict[str, int] = data.get("generations", {})
    for number in sorted({*generations(folder), *map(int, recorded)}):
        length = sum(map(len, Mirror(folder, number).stream()))
        if length < recorded.get(str(number), 0):
            raise MirrorDamaged(
                f"{folder}: {length:,} of {recorded[str(number)]:,} bytes of generation {number} are there. "
                "Restore the folder from a backup."
            )


# Rows that a session's folder and its records give again. Children before what they refer to.
_CHILDREN: tuple[type[Model], ...] = (Event, Compaction, SessionFile, Generation)
_REBUILT: tuple[type[Model], ...] = (*_CHILDREN, ArchivedCompaction, L1Eviction, AgentSession)


def sessions_delete(session_ids: Iterable[str]) -> None:
    """The rows of these sessions, switches, sources and receipts excepted."""
    session_ids = list(session_ids)
    for model in _REBUILT:
        model._default_manager.filter(session_id__in=session_ids).delete()


def _orphans_delete(session_ids: Iterable[str]) -> None:
    """Rows of sessions that have no folder, and rows whose session's own row is gone."""
    known = with_lanes(session_ids)
    there = AgentSession.objects.filter(session_id__in=known).values("session_id")
    for model in _CHILDREN:
        model._default_manager.exclude(session_id__in=there).delete()
    AgentSession.objects.exclude(session_id__in=known).delete()
    # By record: a session that is not read, but that others inherited from, is named in these too.
    records = Record.objects.values("id")
    ArchivedCompaction.objects.exclude(record_id__in=records).delete()
    L1Eviction.objects.exclude(record_id__in=records).delete()


def archives_relink(session_ids: Iterable[str]) -> None:
    """Archive rows, what each record owns, and the state of compactions, from the records: what the
    archive pass would write, without writing a record."""
    session_ids = list(session_ids)
    views = dict(
        AgentSession.objects.filter(session_id__in=session_ids).values_list("session_id", "view_generation")
    )
    records = Record.objects.filter(provenance__sessionId__in=session_ids, provenance__has_key="rows")
    for record in records.order_by("created_at", "id").iterator(200):
        given = record.provenance
        # Closing archives first: a later compaction owns only what they did not. And what a rewritten
        # log no longer says can only be had from the record.
        mirror_id = given.get("mirrorSessionId") or given["sessionId"]
        if given["source"] == "session-end" or given["generation"] != views.get(
            mirror_id, given["generation"]
        ):
            rows_relink(record)
    sessions = AgentSession.objects.filter(session_id__in=session_ids)
    for session in sorted(sessions, key=parents_first):
        with transaction.atomic():
            if session.view_generation:
                ownership_transfer(session, session.view_generation)
            session_archive(session, now=0, link_only=True)


def parents_first(session: AgentSession) -> tuple[int, int, str]:
    order = {"": 0, "fork": 1, "subagent": 2}
    return order.get(session.relation, 0), session.started_at or 0, session.session_id
