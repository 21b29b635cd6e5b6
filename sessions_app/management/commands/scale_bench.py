"""`manage.py scale_bench`: how fast, as ratios to the raw operation in the same run."""

import json
import tempfile
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from records.bench.run import BenchError, bench, bench_check
from records.home import home
from records.throwaway import is_inside, run_inside, store_prepare
from sessions_app.bench import import_bench, logs_multiply, prompt_bench

_MEGABYTES, _TOKENS = 100, 10_000


def _number(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


class Command(BaseCommand):
    help = (
        "Measure speed in a throw-away store, as ratios to the bare operation in the same run. --records: "
        "write, search, open, list and grep generated records. --logs: import logs, copied under fresh ids "
        "until there is enough of them, compared with a bare orjson.loads of every line."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--records", type=_number, metavar="N", help="how many records to generate")
        what.add_argument("--logs", type=Path, metavar="DIR", help="plain .jsonl logs to import")
        parser.add_argument(
            "--tokens", type=_number, metavar="M", help=f"of each record (default {_TOKENS:,})"
        )
        parser.add_argument(
            "--mb", type=_number, help=f"how much of the logs to import (default {_MEGABYTES})"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        for form, other in (("records", "mb"), ("logs", "tokens")):
            if options[form] is not None and options[other] is not None:
                raise CommandError(f"--{other} has no meaning with --{form}.")
        if is_inside():
            self._measure(options)
            return
        with tempfile.TemporaryDirectory(prefix="memex-bench-") as given:
            folder = Path(given)
            try:
                arguments = self._prepare(folder, options)
            except (BenchError, FileNotFoundError, ValueError) as error:
                raise CommandError(str(error)) from error
            status = run_inside(folder, ["scale_bench", *arguments, *["--json"] * options["json"]])
        if status:
            raise CommandError(f"The measuring process ended with {status}.")

    def _prepare(self, folder: Path, options: dict[str, Any]) -> list[str]:
        """Arguments for the process that measures."""
        if options["logs"] is not None:
            logs_multiply(options["logs"], folder / "logs", options["mb"] or _MEGABYTES)
            return [f"--logs={folder / 'logs'}"]
        tokens = options["tokens"] or _TOKENS
        bench_check(options["records"], tokens, folder)
        return [f"--records={options['records']}", f"--tokens={tokens}"]

    def _measure(self, options: dict[str, Any]) -> None:
        store_prepare()
        if options["logs"] is not None:
            result = import_bench(sorted(options["logs"].rglob("*.jsonl"))).as_json()
        else:
            try:
                result = bench(
                    options["records"], options["tokens"], home().parent / "bare",
                    more=prompt_bench, say=self.stderr.write,
                )  # fmt: skip
            except BenchError as error:
                raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(result))
            return
        operations = result.pop("operations", {})
        for name, value in result.items():
            self.stdout.write(f"{name:<16} {value}")
        for name, measured in operations.items():
            values = "  ".join(f"{key} {value}" for key, value in measured.items())
            self.stdout.write(f"{name:<16} {values}")
