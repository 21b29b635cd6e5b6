"""`manage.py reindex`: the database anew from the files."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from records.ids import workspace_key
from records.maintenance.reindex import ReindexCounts, records_reindex
from records.search.indexing import Synced, bodies_rebuild
from sessions_app.archiving import homes_discover
from sessions_app.locks import archive_lock
from sessions_app.management.store import StoreCommand
from sessions_app.rebuild import Rebuilt, sessions_rebuild


class Command(StoreCommand):
    help = (
        "Rebuild records, sources, sessions, events, archives, totals and search indexes from the files under MEMEX_HOME. "
        "What was forgotten stays forgotten; people, switches' history, receipts and read counts are kept."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", type=Path, metavar="DIR", help="only this folder's")
        parser.add_argument("--json", action="store_true", help="end with one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = options["workspace"]
        key = workspace_key(str(folder.expanduser().absolute()), "") if folder else None
        with archive_lock():
            records = records_reindex(key)
            sessions = sessions_rebuild(key)
        indexed = bodies_rebuild(key)
        if key is None:
            homes_discover()
        for damage in sessions.damaged:
            self.stderr.write(f"left as it was: {damage}")
        if options["json"]:
            self.stdout.write(
                json.dumps(
                    {"records": asdict(records), "sessions": asdict(sessions), "search": asdict(indexed)}
                )
            )
        else:
            self._say(records, sessions, indexed)
        if sessions.damaged:
            sys.exit(1)

    def _say(self, records: ReindexCounts, sessions: Rebuilt, indexed: Synced) -> None:
        self.stdout.write(
            f"{records.found} record files: {records.added} added, {records.changed} changed, "
            f"{records.removed} removed, {records.unreadable} unreadable; {sessions.sessions} sessions, "
            f"{sessions.events} events, {sessions.archived_compactions} archives, "
            f"{sessions.l1_evictions} evictions; {indexed.passages} passages of {indexed.records} records to search."
        )
