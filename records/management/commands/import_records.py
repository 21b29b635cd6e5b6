"""`manage.py import_records DIR`: bring in the records of an original Memex store."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from records.files import StoreFull
from records.home import ensure_home
from records.importing import NoStore, records_import


class Command(BaseCommand):
    help = (
        "Bring in the records of an original Memex store (DSH keeps it in $DSH_HOME/memories). Its files are "
        "only read; records that are here already are left as they are."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "folder", type=Path, metavar="DIR", help="the folder with records/ and cold/ in it"
        )
        parser.add_argument("--json", action="store_true", help="end with one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            ensure_home()
            call_command("migrate", verbosity=0, interactive=False)
            result = records_import(
                options["folder"], say=lambda line: self.stderr.write(f"left out: {line}")
            )
        except (NoStore, StoreFull, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(asdict(result)))
            return
        self.stdout.write(
            f"{result.found} record files: {result.created} brought in, {result.there_before} were here, "
            f"{result.forgotten} are forgotten, {result.unreadable} left out."
        )
