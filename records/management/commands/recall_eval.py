"""`manage.py recall_eval`: how well documents are found again, on a suite with known answers."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from records.evaluation.figures import QUALITY, Figures, Ranking, Threshold, below, by_category, figures
from records.evaluation.run import LIMIT, Loaded, Miss, documents_load
from records.evaluation.suite import NAMED, Suite, SuiteError, suite_read
from records.throwaway import is_inside, run_and_forget, store_prepare

_COLUMNS = (*QUALITY, "p50_ms", "p95_ms")


def _threshold(text: str) -> Threshold:
    try:
        return Threshold.parse(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from error


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is no number of queries")
    return int(text)


class Command(BaseCommand):
    help = (
        "Load documents into a throw-away store, ask queries whose answers are known, and print how often "
        "they are found: hit@k, recall@k and MRR, by category, and how long a search takes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--corpus",
            type=Path,
            required=True,
            metavar="DIR",
            help=".md and .txt documents; a document's id is its file name without the ending",
        )
        parser.add_argument(
            "--queries",
            type=Path,
            required=True,
            metavar="FILE",
            help='one JSON object a line: {"query": text, "gold": [ids], "category": text}',
        )
        parser.add_argument(
            "--threshold",
            type=_threshold,
            action="append",
            default=[],
            metavar="NAME=X",
            help=f"exit 1 when a figure is below, as hit@5=0.9; may be repeated ({', '.join(QUALITY)})",
        )
        parser.add_argument(
            "--explain-misses",
            type=_count,
            default=0,
            metavar="N",
            help="show N queries whose answer didn't come first, and why what came was found",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        corpus, queries = options["corpus"].resolve(), options["queries"].resolve()
        if not is_inside():
            arguments = ["recall_eval", f"--corpus={corpus}", f"--queries={queries}"]
            arguments += [f"--threshold={name}={least}" for name, least in options["threshold"]]
            arguments.append(f"--explain-misses={options['explain_misses']}")
            run_and_forget(arguments + ["--json"] * options["json"])
            return
        try:
            suite = suite_read(corpus, queries)
        except SuiteError as error:
            raise CommandError(str(error)) from error
        self._warn(suite)
        store_prepare()
        loaded = documents_load(suite.documents)
        rankings = loaded.rankings(suite.queries)
        overall = figures(rankings)
        if options["json"]:
            self._print_json(suite, loaded, rankings, overall, options["explain_misses"])
        else:
            self._print(suite, rankings, overall)
            for miss in loaded.misses(rankings, options["explain_misses"]):
                self.stdout.write(f"\n{_explained(miss)}")
        if failed := below(overall, options["threshold"]):
            raise CommandError(
                "; ".join(f"{name} is {overall[name]:.4f}, below {least:g}" for name, least in failed)
            )

    def _warn(self, suite: Suite) -> None:
        if suite.missing:
            few = ", ".join(suite.missing[:NAMED])
            more = ", …" if len(suite.missing) > NAMED else ""
            self.stderr.write(
                f"{len(suite.missing)} gold ids are no documents, and count as not found: {few}{more}"
            )
        for document in suite.documents:
            if document.problem:
                self.stderr.write(
                    f"{document.id}: its front matter counts as text, since it can't be read: {document.problem}"
                )

    def _print_json(
        self, suite: Suite, loaded: Loaded, rankings: list[Ranking], overall: Figures, misses: int
    ) -> None:
        result: dict[str, Any] = {
            **overall,
            "documents": len(suite.documents),
            "missing_gold": len(suite.missing),
            "by_category": by_category(rankings),
        }
        if misses:
            result["misses"] = [
                {**asdict(miss), "query": miss.query.text, "category": miss.query.category}
                for miss in loaded.misses(rankings, misses)
            ]
        self.stdout.write(json.dumps(result, ensure_ascii=False))

    def _print(self, suite: Suite, rankings: list[Ranking], overall: Figures) -> None:
        categories = by_category(rankings)
        width = max(map(len, (*categories, "category")))
        self.stdout.write(f"{len(suite.documents):,} documents, {len(rankings):,} queries\n")
        self.stdout.write(f"{'category':<{width}}  queries  " + "  ".join(f"{name:>9}" for name in _COLUMNS))
        for name, measured in {**categories, "all": overall}.items():
            cells = (f"{100 * measured[column]:>8.1f}%" for column in QUALITY)
            times = (f"{measured[column]:>9.1f}" for column in ("p50_ms", "p95_ms"))
            self.stdout.write(f"{name:<{width}}  {measured['queries']:>7}  " + "  ".join([*cells, *times]))


def _explained(miss: Miss) -> str:
    place = f"at {miss.rank}" if miss.rank else f"not among the first {LIMIT}"
    lines = [
        f"[{miss.query.category}] {miss.query.text}",
        f"  expected {miss.expected}, {place}: {miss.expected_reason or 'not found'}",
        f"  first    {miss.first or 'nothing'}: {miss.first_reason or 'no hit'}",
    ]
    return "\n".join(lines)
