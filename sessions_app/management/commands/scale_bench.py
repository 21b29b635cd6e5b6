"""`manage.py scale_bench`: how fast, as ratios to the raw operation in the same run."""

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from records.home import ensure_home
from sessions_app.bench import import_bench, logs_multiply

# Where the copies lie, told to the process that measures: it has a store of its own.
_LOGS = "BENCH_LOGS"


class Command(BaseCommand):
    help = (
        "Import logs into a throw-away store and compare with a bare orjson.loads of every line: parsing "
        "alone, and archiving from start to end. The logs below DIR are copied under fresh ids until there "
        "is enough of them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--logs", type=Path, required=True, metavar="DIR", help="plain .jsonl logs")
        parser.add_argument("--mb", type=int, default=100, help="how much to import (default 100)")
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if given := os.environ.get(_LOGS):
            self._measure(Path(given), as_json=options["json"])
            return
        with tempfile.TemporaryDirectory(prefix="memex-bench-") as folder:
            copies = Path(folder) / "logs"
            try:
                logs_multiply(options["logs"], copies, options["mb"])
            except (FileNotFoundError, ValueError) as error:
                raise CommandError(str(error)) from error
            environment = {**os.environ, "MEMEX_HOME": str(Path(folder) / "home"), _LOGS: str(copies)}
            environment["MEMEX_MIN_FREE_MB"] = "0"
            finished = subprocess.run(
                [sys.executable, str(settings.BASE_DIR / "manage.py"), *sys.argv[1:]],
                env=environment,
                check=False,
            )
        if finished.returncode:
            raise CommandError(f"The measuring process ended with {finished.returncode}.")

    def _measure(self, logs: Path, *, as_json: bool) -> None:
        ensure_home()
        call_command("migrate", verbosity=0)
        result = import_bench(sorted(logs.rglob("*.jsonl"))).as_json()
        if as_json:
            self.stdout.write(json.dumps(result))
            return
        for name, value in result.items():
            self.stdout.write(f"{name:<16} {value}")
