"""Every change of a record goes through here: its file first, then its row, in one transaction."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import F

from . import places, rows
from .clock import now_ms
from .fields import FIELDS
from .files import Staging, ensure_free_space, staging, write_atomic
from .header import HeaderError
from .ledger import ledger_write
from .models import Record, Status
from .places import Content, Place
from .plans import Fate, Plan, plan_writes
from .recordfile import RecordDraft, check_card, render, replace_front_matter, validate
from .rows import Row, content_hash, project
from .tombstones import is_forgotten
from .trash import Bundle, bundle_create, bundle_fill

logger = logging.getLogger(__name__)

# How often a write is planned anew because another process got in between.
ATTEMPTS = 5
EDITABLE = frozenset(
    {
        "kind",
        "title",
        "summary",
        "use_when",
        "status",
        "trust",
        "confidence",
        "slot",
        "tags",
        "entities",
        "sources",
        "links",
    }
)
SETTABLE = frozenset({Status.ACTIVE, Status.PINNED, Status.RESOLVED, Status.SUPERSEDED})


class Conflict(Exception):
    """The record's file is no longer the one that the caller has read; it wins."""


class Unreadable(Exception):
    """The record's file is missing, or what stands at its head can't be read."""


class _Overtaken(Exception):
    """Another process wrote or forgot one of these records meanwhile."""


@dataclass(frozen=True)
class WriteOutcome:
    record_id: str
    # False: it was there already, or is forgotten.
    created: bool
    tombstoned: bool = False


Within = Callable[[list[WriteOutcome]], None]


def records_write(
    drafts: Sequence[RecordDraft], *, actor: str, verb: str, within: Within | None = None
) -> list[WriteOutcome]:
    """Writes new records; one that exists with the same provenance is left as it is.

    `within` writes the caller's own rows in the same transaction; what it raises undoes everything.
    Must not be called inside a transaction, whose rollback would leave the files.
    ValueError (a draft is wrong, or its id is taken by something else), StoreFull.
    """
    ensure_free_space()
    for draft in drafts:
        validate(draft)
    for _ in range(ATTEMPTS):
        try:
            outcomes = _write(plan_writes(drafts), within)
        except _Overtaken:
            continue
        if created := [outcome.record_id for outcome in outcomes if outcome.created]:
            ledger_write(actor, verb, created)
        return outcomes
    raise Conflict("Other processes keep writing the same records.")


def record_write(draft: RecordDraft, *, actor: str, verb: str, within: Within | None = None) -> WriteOutcome:
    return records_write([draft], actor=actor, verb=verb, within=within)[0]


def _write(plans: list[Plan], within: Within | None) -> list[WriteOutcome]:
    new = [plan for plan in plans if plan.fate is Fate.NEW]
    if within is None and not any(plan.fate in (Fate.NEW, Fate.ADOPTED) for plan in plans):
        return [_outcome(plan) for plan in plans]
    with staging() as stage:
        stage.add((plan.place.path, _rendered(plan)) for plan in new)
        try:
            with transaction.atomic(durable=True):
                _recheck(plans)
                _publish_new(stage)
                rows.rows_insert([plan.row for plan in plans if plan.row is not None])
                outcomes = [_outcome(plan) for plan in plans]
                if within is not None:
                    within(outcomes)
        except BaseException:
            published = set(stage.published)
            _remove_unowned([plan.place for plan in new if plan.place.path in published])
            raise
    return outcomes


def _rendered(plan: Plan) -> bytes:
    data = render(plan.draft)
    plan.row = rows.row_of_draft(plan.draft, place=plan.place, data=data)
    return data


def _outcome(plan: Plan) -> WriteOutcome:
    return WriteOutcome(plan.draft.id, created=plan.row is not None, tombstoned=plan.fate is Fate.FORGOTTEN)


def _recheck(plans: list[Plan]) -> None:
    """The plan was made without the write lock; now that it is held, does it still hold?"""
    writing = [plan for plan in plans if plan.fate in (Fate.NEW, Fate.ADOPTED)]
    ids = [plan.draft.id for plan in writing]
    if rows.rows_present(ids) or any(is_forgotten("record", record_id) for record_id in ids):
        raise _Overtaken
    if not all(plan.place.path.is_file() for plan in writing if plan.fate is Fate.ADOPTED):
        raise _Overtaken


def _publish_new(stage: Staging) -> None:
    try:
        stage.publish(replace=False)
    except FileExistsError:
        raise _Overtaken from None


def _remove_unowned(written: list[Place]) -> None:
    """Undoes a write, except for files that another process has meanwhile taken for its own."""
    try:
        with transaction.atomic():
            owned = rows.rows_present([place.record_id for place in written])
            for place in written:
                if place.record_id not in owned:
                    place.path.unlink(missing_ok=True)
    except DatabaseError as error:
        logger.warning("Files of a failed write stay, to be indexed by doctor: %s", error)


def record_update(
    record_id: str, *, expected_hash: str | None, changes: Mapping[str, Any], actor: str, verb: str = "update"
) -> Record:
    """Changes fields of the card. `expected_hash` None: whatever the file says now is fine.

    Conflict, Unreadable, ValueError, Record.DoesNotExist, recordfile.NewerSchemaError.
    """
    if unknown := changes.keys() - EDITABLE:
        raise ValueError(f"These fields can't be changed: {', '.join(sorted(unknown))}.")
    check_card(changes)
    for _ in range(ATTEMPTS):
        place, content, known = _current(record_id)
        if expected_hash is not None and content_hash(content.data) != expected_hash:
            record_refresh(record_id)
            raise Conflict(f"{record_id} has changed since it was read.")
        with suppress(_Overtaken):
            _rewrite(place, content, known, changes)
            ledger_write(actor, verb, [record_id])
            return Record.objects.get(pk=record_id)
    raise Conflict(f"{record_id} keeps changing.")


def _current(record_id: str) -> tuple[Place, Content, Row]:
    known = rows.rows_known([record_id]).get(record_id)
    if known is None:
        raise Record.DoesNotExist(f"No record {record_id}.")
    place = places.find(places.place_of(record_id, known["workspace_key"], cold=bool(known["cold"])))
    if place is None:
        raise Unreadable(f"The file of {record_id} is missing.")
    return place, places.read(place), known


def _rewrite(place: Place, content: Content, known: Row, changes: Mapping[str, Any]) -> None:
    changes = {**changes, "updated_at": now_ms()}
    try:
        if not project(place, content, known).has_header:
            # Else the file would lose what only its row still knows.
            changes = {**{name: known[name] for name in FIELDS}, **changes}
        data = replace_front_matter(content.data, changes)
        row = project(place, Content(data, content.stamp, content.mtime_ms), known).row
    except HeaderError as error:
        raise Unreadable(f"{place.relative}: {error}") from error
    with staging() as stage:
        stage.add([(place.path, data)])
        try:
            with transaction.atomic(durable=True):
                if not places.is_unchanged(place, content) or not rows.rows_present([place.record_id]):
                    raise _Overtaken
                stage.publish()
                rows.rows_put([row])
        except BaseException:
            if stage.published:
                _put_back(place, written=data, before=content.data)
            raise


def _put_back(place: Place, *, written: bytes, before: bytes) -> None:
    with suppress(DatabaseError, OSError), transaction.atomic():
        if places.read(place).data == written:
            write_atomic(place.path, before)


def record_sensitivity_set(
    record_id: str, changes: Mapping[str, Any], *, actor: str, verb: str, scope: str | None = None
) -> Record:
    """For records.secrets, which alone may change a record's provenance and for whom it is: as
    `record_update`. `scope` None: as it is."""
    for _ in range(ATTEMPTS):
        place, content, known = _current(record_id)
        moved = scope is not None and scope != known["scope"]
        pool = {"scope": str(scope)} if moved else {}
        with suppress(_Overtaken):
            _rewrite(place, content, {**known, **pool}, {**changes, **pool})
            ledger_write(actor, verb, [record_id])
            return Record.objects.get(pk=record_id)
    raise Conflict(f"{record_id} keeps changing.")


def record_set_status(record_id: str, status: str, *, actor: str) -> Record:
    if status not in SETTABLE:
        raise ValueError(f"A status can be set to {', '.join(sorted(SETTABLE))}, not {status!r}.")
    return record_update(
        record_id, expected_hash=None, changes={"status": str(status)}, actor=actor, verb=f"status {status}"
    )


def record_pin(record_id: str, *, pinned: bool, actor: str) -> Record:
    status = Status.PINNED if pinned else Status.ACTIVE
    return record_update(
        record_id,
        expected_hash=None,
        changes={"status": str(status)},
        actor=actor,
        verb="pin" if pinned else "unpin",
    )


def record_refresh(record_id: str) -> Record:
    """Brings the row up to its file, after an edit by hand. A file that can't be read changes nothing."""
    with transaction.atomic():
        place, content, known = _current(record_id)
        try:
            rows.rows_put([project(place, content, known).row])
        except HeaderError as error:
            logger.warning("%s: %s", place.relative, error)
    return Record.objects.get(pk=record_id)


def record_mark_read(record_ids: Iterable[str]) -> None:
    for chunk in rows.chunks(record_ids):
        Record.objects.filter(pk__in=chunk).update(read_count=F("read_count") + 1, last_read_at=now_ms())


@dataclass(frozen=True)
class ForgetParts:
    """What of these records a bundle takes: the arguments of `bundle_create`."""

    files: list[Path]
    rows: dict[str, list[dict[str, Any]]]
    tombstones: list[dict[str, str]]


def records_forget_parts(record_ids: Sequence[str]) -> ForgetParts:
    """Record.DoesNotExist when one of them doesn't."""
    known = rows.rows_known(record_ids)
    if missing := [record_id for record_id in record_ids if record_id not in known]:
        raise Record.DoesNotExist(f"No record {', '.join(missing)}.")
    found = [
        places.find(places.place_of(row["id"], row["workspace_key"], cold=bool(row["cold"])))
        for row in known.values()
    ]
    return ForgetParts(
        files=[place.path for place in found if place is not None],
        rows={Record._meta.db_table: list(known.values())},
        tombstones=[{"kind": "record", "id": record_id} for record_id in known],
    )


def records_forget(record_ids: Sequence[str], *, actor: str, bundle: Bundle | None = None) -> Bundle:
    """Moves records to the trash, as a bundle of their own or in one that names them already."""
    if bundle is None:
        parts = records_forget_parts(record_ids)
        cards = parts.rows[Record._meta.db_table]
        title = cards[0]["title"] if len(cards) == 1 else f"{len(cards)} records"
        bundle = bundle_create(
            kind="records", title=title, files=parts.files, rows=parts.rows, tombstones=parts.tombstones
        )
    bundle_fill(bundle)
    ledger_write(actor, "forget", record_ids)
    return bundle
