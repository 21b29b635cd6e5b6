"""`manage.py archive`: read agents' logs and archive what their compactions dropped."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from records.files import StoreFull
from records.search.indexing import bodies_sync
from sessions_app.archiving import AGENTS, archive_run
from sessions_app.management.store import StoreCommand
from sessions_app.processes import MOST, WorkerLost


class Command(StoreCommand):
    help = (
        "Read new lines of agents' logs and archive what their compactions dropped. Only sessions with a "
        "level on are read. Safe from cron, next to a running server, and killed at any moment."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*", type=Path, metavar="PATH",
                            help="log files or folders; without one the agents' known homes")  # fmt: skip
        parser.add_argument("--agent", default="auto", choices=("auto", *AGENTS))
        parser.add_argument("--level", choices=("l2", "l3"), help="switch it on for what is imported")
        parser.add_argument("--processes", type=int, choices=range(1, MOST + 1),
                            help="among how many to share the work (default: as it is worth)")  # fmt: skip
        parser.add_argument("--json", action="store_true", help="end with one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = archive_run(
                options["paths"] or None,
                agent=None if options["agent"] == "auto" else options["agent"],
                level=options["level"],
                say=lambda line: self.stderr.write(f"warning: {line}"),
                processes=options["processes"],
            )
        except (FileNotFoundError, StoreFull, WorkerLost) as error:
            raise CommandError(str(error)) from error
        # Found again from the moment on that this says it is archived.
        indexed = bodies_sync(purge=True)
        if options["json"]:
            self.stdout.write(json.dumps(result.as_json() | {"passages": indexed.passages}))
            return
        self.stdout.write(
            f"{result.files} files ({result.skipped} passed over), {result.sessions} sessions, "
            f"{result.events} new events; {result.compactions} compactions: {result.archived} archived now, "
            f"{result.already} before, {result.inherited} inherited, {result.pending} pending, "
            f"{result.empty} empty; {result.micro} evictions, {result.closing} closing archives, "
            f"{result.warnings} warnings, {result.seconds} s"
        )
        if result.files and not result.sessions:
            self.stdout.write(
                "Nothing was read: no session here has a level on. Switch one on in the pages, with "
                "`manage.py memory level`, or for these files with `archive PATH --level l2`."
            )
        sys.stdout.flush()
