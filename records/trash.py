"""The trash: what was forgotten together is one bundle, undone or purged together.

trash/<bundle id>/manifest.json   what belongs to it; written first and never changed
trash/<bundle id>/state           how far it is; no such file: being filled
trash/<bundle id>/files/…         what was moved there, by its path below MEMEX_HOME

Each step can be repeated, so that `bundles_resume` completes whatever a kill cut short. The steps hold
the database's write lock, which keeps two processes from taking the same one.
"""

import json
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import models, transaction

from . import rows as record_rows
from .clock import now_ms
from .files import move, write_atomic
from .home import home, relative, trash_dir
from .ledger import ledger_write
from .models import Record
from .tombstones import tombstones_add, tombstones_remove

BUNDLE_ID = re.compile(r"\d{8}t\d{6}-[0-9a-f]{8}")
MANIFEST = "manifest.json"
STATE = "state"
DAY_MS = 24 * 60 * 60 * 1000

# Values by attribute name, by table; parents before the rows that refer to them.
TableRows = Mapping[str, Sequence[Mapping[str, Any]]]


class BundleError(Exception):
    """The bundle doesn't exist, or can't be put back, or names what it must not."""


class State(StrEnum):
    FILLING = "filling"
    FULL = "full"
    RESTORING = "restoring"
    PURGING = "purging"


@dataclass(frozen=True)
class Manifest:
    bundle_id: str
    kind: str
    title: str
    created_at: int
    files: list[str]
    rows: dict[str, list[dict[str, Any]]]
    tombstones: list[dict[str, str]]


@dataclass(frozen=True)
class Bundle:
    manifest: Manifest

    @property
    def id(self) -> str:
        return self.manifest.bundle_id

    @property
    def path(self) -> Path:
        return trash_dir() / self.id

    @property
    def state(self) -> State:
        try:
            return State((self.path / STATE).read_text(encoding="ascii"))
        except FileNotFoundError:
            return State.FILLING

    @property
    def ids(self) -> list[str]:
        return [tombstone["id"] for tombstone in self.manifest.tombstones]


def bundle_create(
    *, kind: str, title: str, files: Sequence[Path], rows: TableRows, tombstones: Sequence[Mapping[str, str]]
) -> Bundle:
    """Writes down what is to be forgotten; `bundle_fill` does it. `files` may be folders."""
    manifest = Manifest(
        bundle_id=f"{datetime.now(UTC):%Y%m%dt%H%M%S}-{secrets.token_hex(4)}",
        kind=kind,
        title=title,
        created_at=now_ms(),
        files=[relative(_inside(relative(path))) for path in files],
        rows={table: [dict(row) for row in table_rows] for table, table_rows in rows.items()},
        tombstones=[dict(tombstone) for tombstone in tombstones],
    )
    for table in manifest.rows:
        _model(table)
    bundle = Bundle(manifest)
    write_atomic(bundle.path / MANIFEST, json.dumps(asdict(manifest), ensure_ascii=True).encode())
    return bundle


def bundle_fill(bundle: Bundle) -> None:
    """Tombstones, then rows, then files: nothing comes back meanwhile, nothing is shown half."""
    tombstones_add(bundle.manifest.tombstones)
    with transaction.atomic():
        _refuse(bundle, State.RESTORING, State.PURGING)
        for table, rows in reversed(bundle.manifest.rows.items()):
            _delete_rows(_model(table), rows)
    with transaction.atomic():
        for name in bundle.manifest.files:
            _move(_lying(name), bundle.path / "files" / name)
        _set_state(bundle, State.FULL)


def bundle_restore(bundle_id: str, *, actor: str = "owner") -> Manifest:
    """Puts everything back and removes the bundle."""
    bundle = bundle_get(bundle_id)
    with transaction.atomic():
        _refuse(bundle, State.PURGING)
        _refuse_taken(bundle)
        _set_state(bundle, State.RESTORING)
        for name in bundle.manifest.files:
            _move(bundle.path / "files" / name, _inside(name))
    with transaction.atomic():
        for table, rows in bundle.manifest.rows.items():
            _insert_rows(_model(table), rows)
        tombstones_remove(bundle.manifest.tombstones)
    _erase(bundle.path)
    ledger_write(actor, "restore", bundle.ids)
    return bundle.manifest


def bundle_purge(bundle_id: str, *, actor: str = "owner") -> None:
    """The one act that can't be undone. The tombstones stay."""
    bundle = bundle_get(bundle_id)
    with transaction.atomic():
        _refuse(bundle, State.FILLING, State.RESTORING)
        _set_state(bundle, State.PURGING)
    _erase(bundle.path)
    ledger_write(actor, "purge", bundle.ids)


def bundle_get(bundle_id: str) -> Bundle:
    if not BUNDLE_ID.fullmatch(bundle_id):
        raise BundleError(f"{bundle_id!r} is no bundle.")
    try:
        return Bundle(Manifest(**json.loads((trash_dir() / bundle_id / MANIFEST).read_bytes())))
    except FileNotFoundError:
        raise BundleError(f"There is no bundle {bundle_id}.") from None


def bundle_list() -> list[Bundle]:
    """Newest first."""
    bundles = [bundle_get(path.name) for path in _folders() if _has_manifest(path)]
    return sorted(bundles, key=lambda bundle: bundle.manifest.created_at, reverse=True)


def bundles_due(days: int) -> list[Bundle]:
    """Full ones that have been there for `days`."""
    limit = now_ms() - days * DAY_MS
    return [
        bundle
        for bundle in bundle_list()
        if bundle.manifest.created_at <= limit and bundle.state is State.FULL
    ]


def bundles_unfinished() -> list[str]:
    return [bundle.id for bundle in bundle_list() if bundle.state is not State.FULL]


def bundles_remains() -> list[str]:
    """Folders without a manifest: killed before it was written, or when only the folder was left to go."""
    return [path.name for path in _folders() if not _has_manifest(path) and not _holds_files(path)]


def bundles_damaged() -> list[str]:
    """Bundles that lost their manifest, but hold something; left alone."""
    return [path.name for path in _folders() if not _has_manifest(path) and _holds_files(path)]


def bundles_resume() -> list[str]:
    """Completes what was cut short; returns the bundles it was."""
    remains, unfinished = bundles_remains(), bundles_unfinished()
    for bundle_id in remains:
        _erase(trash_dir() / bundle_id)
    for bundle_id in unfinished:
        bundle = bundle_get(bundle_id)
        if bundle.state is State.FILLING:
            bundle_fill(bundle)
        elif bundle.state is State.RESTORING:
            bundle_restore(bundle_id)
        elif bundle.state is State.PURGING:
            bundle_purge(bundle_id)
    return remains + unfinished


def _folders() -> list[Path]:
    if not trash_dir().is_dir():
        return []
    return sorted(path for path in trash_dir().iterdir() if BUNDLE_ID.fullmatch(path.name))


def _has_manifest(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def _holds_files(folder: Path) -> bool:
    return any(not path.is_dir() for path in (folder / "files").rglob("*"))


def _inside(name: str) -> Path:
    """The path of `name` below MEMEX_HOME. Symlinks don't help to leave it."""
    path = home() / name
    resolved = path.resolve()
    inside = resolved.is_relative_to(home().resolve()) and resolved != home().resolve()
    if not inside or ".." in Path(name).parts or resolved.is_relative_to(trash_dir().resolve()):
        raise BundleError(f"{name!r} is not a file of this store.")
    return path


def _lying(name: str) -> Path:
    """Where a file lies now: a record may have changed its tier since it was named."""
    path = _inside(name)
    tier, slash, rest = name.partition("/")
    other = {"records": "cold", "cold": "records"}.get(tier)
    if path.exists() or other is None:
        return path
    moved = _inside(f"{other}{slash}{rest}")
    return moved if moved.is_file() else path


def _refuse(bundle: Bundle, *states: State) -> None:
    if bundle.state in states:
        raise BundleError(f"The bundle {bundle.id} is {bundle.state}.")


def _refuse_taken(bundle: Bundle) -> None:
    taken = [
        name
        for name in bundle.manifest.files
        if (bundle.path / "files" / name).exists() and _inside(name).exists()
    ]
    if taken:
        raise BundleError(f"Something else is there now: {', '.join(taken[:3])}.")


def _set_state(bundle: Bundle, state: State) -> None:
    write_atomic(bundle.path / STATE, state.encode("ascii"))


def _move(source: Path, target: Path) -> None:
    """Nothing to do when it is moved already, or was gone before."""
    if source.exists():
        move(source, target)


def _erase(path: Path) -> None:
    """The manifest goes after the files and before the state: no kill leaves one that is acted on anew."""
    shutil.rmtree(path / "files", ignore_errors=True)
    (path / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(path)


def _model(table: str) -> type[models.Model]:
    for model in apps.get_models():
        if model._meta.db_table == table:
            return model
    raise BundleError(f"There is no table {table!r}.")


def _delete_rows(model: type[models.Model], rows: Sequence[Mapping[str, Any]]) -> None:
    keys = [row[_key(model)] for row in rows]
    if model is Record:
        record_rows.rows_drop(keys)
        return
    for chunk in record_rows.chunks(keys):
        model._base_manager.filter(pk__in=chunk).delete()


def _insert_rows(model: type[models.Model], rows: Sequence[Mapping[str, Any]]) -> None:
    """Columns that came or went since the bundle was made take their default, or are left out."""
    names = {field.attname for field in model._meta.concrete_fields}
    known = [model(**{name: value for name, value in row.items() if name in names}) for row in rows]
    if model is not Record:
        model._base_manager.bulk_create(known, ignore_conflicts=True)
        return
    present = record_rows.rows_present(str(record.pk) for record in known)
    record_rows.rows_insert(
        [
            {name: getattr(record, name) for name in record_rows.ATTRIBUTES}
            for record in known
            if record.pk not in present
        ]
    )


def _key(model: type[models.Model]) -> str:
    key = model._meta.pk
    assert key is not None
    return str(key.attname)
