"""`manage.py doctor`: does everything in the store agree?"""

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from sessions_app.checkup import store_findings
from sessions_app.locks import archive_lock
from sessions_app.management.store import StoreCommand


class Command(StoreCommand):
    help = (
        "Check that record files, mirrors, rows, totals and blobs agree; --repair mends what can be mended "
        "without guessing. Exit code 1 when something is wrong and was not mended."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repair", action="store_true", help="mend what can be mended")
        parser.add_argument("--json", action="store_true", help="end with one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        found = []
        with archive_lock():
            for finding in store_findings(repair=options["repair"]):
                found.append(finding)
                if not options["json"]:
                    mended = " (mended)" if finding.repaired else ""
                    self.stdout.write(f"{finding.code}: {finding.subject}: {finding.message}{mended}")
        left = sum(not finding.repaired for finding in found)
        if options["json"]:
            findings = [asdict(finding) for finding in found]
            self.stdout.write(json.dumps({"ok": not left, "findings": findings}, ensure_ascii=False))
        else:
            self.stdout.write(
                f"{len(found)} findings, {left} left." if found else "Everything in the store agrees."
            )
        if left:
            sys.exit(1)
