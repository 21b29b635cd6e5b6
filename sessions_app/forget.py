"""Forgetting: what goes is moved to the trash as one bundle, previewed first, undone as one, and stays
away while the agent's log still exists.

The bundle's manifest is the intent, written first. Rows that a rebuild makes are deleted, the others are
kept in the manifest; then the files move. `forget_resume` completes what a kill cut short.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Model, QuerySet

from records import trash
from records.ledger import ledger_write
from records.models import Record
from records.rows import chunks
from records.search.indexing import bodies_forgotten, bodies_sync
from records.services import record_update, records_forget_parts

from . import sessionfile
from .blobs import blob_path
from .eventrefs import with_lanes
from .injection.state import shown_forget
from .locks import archive_lock
from .models import (
    AgentSession,
    ArchivedCompaction,
    Compaction,
    ImportWarning,
    Injection,
    L1Eviction,
    OpenedSession,
    Receipt,
    SessionFile,
    SessionSettings,
    Source,
)
from .pushsource import push_path
from .rebuild import archives_relink, session_rebuild, sessions_delete


@dataclass(slots=True)
class ForgetPlan:
    """What would go. `shared`: records that other sessions hold too; they only lose these sessions."""

    session_ids: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    shared: list[Record] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    blobs: list[str] = field(default_factory=list)
    mirror_bytes: int = 0
    session_title: str = ""

    @property
    def tokens(self) -> int:
        return sum(record.tokens for record in self.records)

    @property
    def title(self) -> str:
        if not self.session_ids:
            return self.records[0].title if len(self.records) == 1 else f"{len(self.records)} records"
        records = f"{len(self.records)} record{'s' if len(self.records) != 1 else ''}"
        return f"{self.session_title or self.session_ids[0]} ({records})"

    def as_json(self) -> dict[str, Any]:
        return {
            "sessions": self.session_ids,
            "records": [{"id": record.id, "title": record.title} for record in self.records],
            "shared": [record.id for record in self.shared],
            "tokens": self.tokens,
            "mirrorBytes": self.mirror_bytes,
        }


def forget_plan(*, session_ids: Sequence[str] = (), record_ids: Sequence[str] = ()) -> ForgetPlan:
    """Raises Record.DoesNotExist for an id that isn't there."""
    if record_ids:
        return ForgetPlan(records=_records(record_ids))
    plan = ForgetPlan(session_ids=_with_children(session_ids))
    wanted = set(plan.session_ids)
    for record in Record.objects.order_by("created_at", "id").iterator():
        holders = {source.get("session_id") for source in record.sources}
        holders |= {record.session_id, record.provenance.get("sessionId")} - {None, ""}
        if not holders & wanted:
            continue
        others = {source.get("session_id") for source in record.sources} - wanted
        (plan.shared if others else plan.records).append(record)
    sessions = AgentSession.objects.filter(session_id__in=wanted)
    plan.session_title = next((row.title for row in sessions if row.session_id == plan.session_ids[0]), "")
    folders = (sessionfile.session_folder(row.workspace_key, row.session_id) for row in sessions)
    plan.folders = [folder for folder in folders if folder.is_dir()]
    plan.mirror_bytes = sum(file.stat().st_size for folder in plan.folders for file in folder.iterdir())
    held = SessionFile.objects.exclude(sha256="")
    mine = set(held.filter(session_id__in=wanted).values_list("sha256", flat=True))
    plan.blobs = sorted(mine - set(held.exclude(session_id__in=wanted).values_list("sha256", flat=True)))
    return plan


def _records(record_ids: Sequence[str]) -> list[Record]:
    found: dict[str, Record] = {}
    for chunk in chunks(record_ids):
        found |= Record.objects.in_bulk(chunk)
    if missing := [record_id for record_id in record_ids if record_id not in found]:
        raise Record.DoesNotExist(f"No record {missing[0]}.")
    return [found[record_id] for record_id in record_ids]


def records_trash(record_ids: Sequence[str], actor: str) -> str:
    """Moves records to the trash, with what belongs to them; the id of the bundle. Record.DoesNotExist."""
    return forget_run(forget_plan(record_ids=record_ids), actor=actor)


def _with_children(session_ids: Iterable[str]) -> list[str]:
    """These sessions with their sub-agents, and those with theirs."""
    found = list(dict.fromkeys(session_ids))
    for session_id in found:
        children = AgentSession.objects.filter(parent_id=session_id, relation="subagent")
        found += [child for child in children.values_list("session_id", flat=True) if child not in found]
    return found


def forget_run(plan: ForgetPlan, *, actor: str) -> str:
    """Does what the plan shows; the id of the bundle in the trash."""
    with archive_lock():
        parts = records_forget_parts([record.id for record in plan.records])
        bundle = trash.bundle_create(
            kind="session" if plan.session_ids else "record",
            title=plan.title,
            files=[
                *plan.folders,
                *parts.files,
                *(blob_path(sha256) for sha256 in plan.blobs),
            ],
            rows={**parts.rows, **_rows_kept(plan)},
            tombstones=[
                *({"kind": "session", "id": session_id} for session_id in plan.session_ids),
                *parts.tombstones,
            ],
        )
        _rows_delete(plan.session_ids, [record.id for record in plan.records])
        for record in plan.shared:
            left = [source for source in record.sources if source.get("session_id") not in plan.session_ids]
            record_update(
                record.id, expected_hash=None, changes={"sources": left}, actor=actor, verb="forget"
            )
        trash.bundle_fill(bundle)
    ledger_write(actor, "forget", [*plan.session_ids, *(record.id for record in plan.records)])
    _scrub()
    return bundle.id


def _rows_kept(plan: ForgetPlan) -> dict[str, list[dict[str, Any]]]:
    """Rows that no rebuild makes again: switches, receipts, what agents were told."""
    record_ids = [record.id for record in plan.records]
    kept: dict[str, QuerySet[Any]] = {
        "session_settings": SessionSettings.objects.filter(session_id__in=plan.session_ids),
        "receipts": Receipt.objects.filter(session_id__in=plan.session_ids)
        | Receipt.objects.filter(record_id__in=record_ids),
        "opened_sessions": OpenedSession.objects.filter(session_id__in=plan.session_ids),
        "injections": Injection.objects.filter(session_id__in=plan.session_ids),
    }
    return {table: [_values(row) for row in rows] for table, rows in kept.items()}


def _values(row: Model) -> dict[str, Any]:
    return {column.attname: getattr(row, column.attname) for column in row._meta.concrete_fields}


def _rows_delete(session_ids: Sequence[str], record_ids: Sequence[str]) -> None:
    with transaction.atomic():
        ImportWarning.objects.filter(session_id__in=session_ids).delete()
        # Who inherited a compaction from here archives it as its own at the next pass.
        Compaction.objects.filter(record_id__in=record_ids, state=Compaction.State.INHERITED).exclude(
            session_id__in=session_ids
        ).update(state=Compaction.State.READY, record_id="")
        ArchivedCompaction.objects.filter(record_id__in=record_ids).delete()
        L1Eviction.objects.filter(record_id__in=record_ids).delete()
        shown_forget(record_ids)
        sessions_delete(with_lanes(session_ids))
        # Unlike a log's these rows stand for nothing that is still there.
        Source.objects.filter(path__in=[push_path(name) for name in session_ids]).delete()
        Compaction.objects.filter(record_id__in=record_ids).update(
            state=Compaction.State.FORGOTTEN, record_id="", lost={}
        )


def _scrub() -> None:
    """Deleted rows are overwritten (secure_delete); their earlier images in the log of writes go too, and the
    words of their passages."""
    bodies_forgotten()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def forget_resume() -> list[str]:
    """Completes forgetting and undoing that were cut short; the bundles it was about."""
    unfinished = trash.bundles_unfinished()
    if not unfinished:
        return []
    with archive_lock():
        for bundle_id in unfinished:
            bundle = trash.bundle_get(bundle_id)
            if bundle.state is trash.State.FILLING:
                of_kind = {kind: [] for kind in ("session", "record")}  # type: dict[str, list[str]]
                for tombstone in bundle.manifest.tombstones:
                    of_kind[tombstone["kind"]].append(tombstone["id"])
                _rows_delete(of_kind["session"], of_kind["record"])
        done = trash.bundles_resume()
    _scrub()
    return done


def forget_undo(bundle_id: str, *, actor: str) -> None:
    """Brings a bundle back: files, records, switches, and what is rebuilt from them."""
    with archive_lock():
        manifest = trash.bundle_restore(bundle_id, actor=actor)
        session_ids = [entry["id"] for entry in manifest.tombstones if entry["kind"] == "session"]
        record_ids = [entry["id"] for entry in manifest.tombstones if entry["kind"] == "record"]
        for folder, data in sessionfile.session_folders():
            if data["session_id"] in session_ids:
                session_rebuild(folder, data)
        touched = Compaction.objects.filter(state=Compaction.State.FORGOTTEN)
        if record_ids:
            touched.update(state=Compaction.State.READY)
        holders = {record.provenance.get("sessionId") for record in Record.objects.filter(pk__in=record_ids)}
        archives_relink(with_lanes([*session_ids, *(holder for holder in holders if holder)]))
    bodies_sync()


def trash_expire() -> list[str]:
    """Purges what has been in the trash for `trash_days`."""
    due = trash.bundles_due(settings.MEMEX_TRASH_DAYS)
    for bundle in due:
        trash.bundle_purge(bundle.id, actor="trash_days")
    return [bundle.id for bundle in due]
