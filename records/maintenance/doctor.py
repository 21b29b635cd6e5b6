"""Compares files, rows and totals, says what doesn't agree, and mends what can be mended without guessing."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.db import transaction

from records import places
from records.files import DIR_MODE, FILE_MODE, is_leftover
from records.header import HeaderError
from records.home import content_dirs, home, relative
from records.models import Record
from records.places import Place
from records.rows import Projection, Row, chunks, project, rows_differ, rows_drop, rows_known, rows_put
from records.tombstones import is_forgotten
from records.totals import totals_counted, totals_recount, totals_stored
from records.trash import bundles_damaged, bundles_remains, bundles_resume, bundles_unfinished

BATCH = 100


@dataclass(frozen=True)
class Finding:
    code: str
    # A record id, or a path below MEMEX_HOME.
    subject: str
    message: str
    repaired: bool = False


def findings(*, repair: bool) -> Iterator[Finding]:
    """In this order, since a bundle that is completed leaves nothing for the checks after it."""
    yield from _unfinished_bundles(repair)
    yield from _leftovers(repair)
    yield from _modes(repair)
    yield from _Records(repair).findings()
    yield from _totals(repair)


def _unfinished_bundles(repair: bool) -> Iterator[Finding]:
    unfinished = bundles_resume() if repair else bundles_remains() + bundles_unfinished()
    for bundle_id in unfinished:
        yield Finding("unfinished-bundle", bundle_id, "Forgetting or restoring was cut short.", repair)
    for bundle_id in bundles_damaged():
        yield Finding("damaged-bundle", bundle_id, "Its manifest is gone; its files are in trash/ still.")


def _leftovers(repair: bool) -> Iterator[Finding]:
    for path in _everything():
        if is_leftover(path):
            if repair:
                path.unlink(missing_ok=True)
            yield Finding("leftover", relative(path), "A write was cut short.", repair)


def _modes(repair: bool) -> Iterator[Finding]:
    for path in _everything():
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:
            continue
        wanted = DIR_MODE if path.is_dir() else FILE_MODE
        if mode != wanted and not path.is_symlink():
            if repair:
                path.chmod(wanted)
            yield Finding("mode", relative(path), f"Its mode is {mode:o}, not {wanted:o}.", repair)


def _everything() -> Iterator[Path]:
    """The home, what lies directly in it, and the folders that hold content."""
    yield home()
    # A lock file holds nothing, and its library chooses the mode.
    yield from (path for path in sorted(home().iterdir()) if path.is_file() and path.suffix != ".lock")
    for top in content_dirs():
        yield top
        for folder, names, files in os.walk(top):
            yield from (Path(folder, name) for name in sorted([*names, *files]))


@dataclass
class _Records:
    repair: bool
    seen: set[str] = field(default_factory=set)

    def findings(self) -> Iterator[Finding]:
        for paths in chunks(places.record_files(), BATCH):
            found = [(path, places.place_at(path)) for path in paths]
            known = rows_known(place.record_id for _, place in found if place is not None)
            for path, place in found:
                if place is None:
                    yield Finding("stray", relative(path), "No record has a file of this name, or a link.")
                else:
                    yield from self._file(place, known.get(place.record_id))
        yield from self._rows_without_file()

    def _file(self, place: Place, known: Row | None) -> Iterator[Finding]:
        if is_forgotten("record", place.record_id):
            yield Finding("forgotten", place.relative, "A forgotten record has a file here.")
            return
        if place.record_id in self.seen:
            yield Finding("duplicate", place.relative, "The same record has a file elsewhere.")
            return
        self.seen.add(place.record_id)
        try:
            projection = project(place, places.read(place), known)
        except FileNotFoundError:
            return
        except HeaderError as error:
            yield Finding("unreadable", place.relative, f"What stands at its head can't be read: {error}")
            return
        yield from self._file_and_row(place, projection, known)
        for problem in projection.problems:
            yield Finding("front-matter", place.relative, problem)
        for edit in projection.identity_edits:
            yield Finding("identity", place.relative, f"{edit}; the store decides.")

    def _file_and_row(self, place: Place, projection: Projection, known: Row | None) -> Iterator[Finding]:
        if _disagreement(projection.row, known) is None:
            return
        with transaction.atomic():
            # Once more, now that nobody else can write: the row may have been on its way.
            try:
                known = rows_known([place.record_id]).get(place.record_id)
                row = project(place, places.read(place), known).row
            except (FileNotFoundError, HeaderError):
                return
            disagreement = _disagreement(row, known)
            if disagreement is None:
                return
            if self.repair:
                rows_put([row])
        code, message = disagreement
        yield Finding(code, place.relative, message, self.repair)

    def _rows_without_file(self) -> Iterator[Finding]:
        indexed = Record.objects.order_by("pk").values_list("pk", "workspace_key", "cold")
        unseen = [entry for entry in indexed.iterator() if entry[0] not in self.seen]
        for record_id, key, cold in unseen:
            with transaction.atomic():
                if places.find(places.place_of(record_id, key, cold=bool(cold))) is not None:
                    continue
                if self.repair:
                    rows_drop([record_id])
            yield Finding("row-without-file", record_id, "Its file is gone.", self.repair)


def _disagreement(row: Row, known: Row | None) -> tuple[str, str] | None:
    if known is None:
        return "file-without-row", "It is not indexed."
    if (row["cold"], row["path"]) != (known["cold"], known["path"]):
        return "place", f"The index has it at {known['path']}, cold {known['cold']}."
    if row["content_hash"] != known["content_hash"]:
        return "hash", "It has changed since it was indexed."
    if rows_differ(row, known):
        return "row", "The index says something else than the file."
    return None


def _totals(repair: bool) -> Iterator[Finding]:
    with transaction.atomic():
        stored, counted = totals_stored(), totals_counted()
        drifted = [
            key for key in sorted(stored.keys() | counted.keys()) if stored.get(key) != counted.get(key)
        ]
        if drifted and repair:
            totals_recount()
    for key in drifted:
        yield Finding(
            "totals", "/".join(map(str, key)), f"{stored.get(key)} instead of {counted.get(key)}.", repair
        )
