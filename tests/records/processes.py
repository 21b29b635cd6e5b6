"""Run as a program, with a MEMEX_HOME of its own: real processes on a real database.

`kill ROUNDS`: a child writes, updates, forgets and restores until it is killed, again and again; then
the store is repaired and compared with what the children said was done. `race PROCESSES`: all archive
the same compactions at once. Prints a JSON object.
"""

import json
import os
import random
import signal
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memex_site.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from records import services, trash  # noqa: E402
from records.home import ensure_home, records_dir  # noqa: E402
from records.maintenance.doctor import findings  # noqa: E402
from records.models import Record  # noqa: E402
from records.queries import record_open  # noqa: E402
from records.scope import OWNER  # noqa: E402
from tests.records.drafts import make_draft  # noqa: E402

BATCH = 3


def body(name: str) -> str:
    return f"The body of {name}.\n" * 50


def write_forever(round_number: int, out: int) -> None:
    """Says each step that is done in a line of its own: written, or forgotten, and which."""
    for n in range(1_000_000):
        names = [f"{round_number}-{n}-{each}" for each in range(BATCH)]
        services.records_write(
            [make_draft(name, body=body(name)) for name in names], actor="child", verb="archive"
        )
        os.write(out, "".join(f"written {name}\n" for name in names).encode())
        ids = [make_draft(name).id for name in names]
        services.record_set_status(ids[0], "resolved", actor="child")
        # Until its end is said, nobody can tell on which side of it the kill fell.
        os.write(out, f"forgetting {names[1]}\n".encode())
        bundle = services.records_forget([ids[1]], actor="child")
        if n % 2:
            trash.bundle_restore(bundle.id)
            os.write(out, f"written {names[1]}\n".encode())


def run_child(work) -> tuple[int, int]:
    reader, writer = os.pipe()
    connection.close()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            work(writer)
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    os.close(writer)
    return pid, reader


def said(reader: int) -> list[str]:
    with os.fdopen(reader) as file:
        return [line.rstrip("\n") for line in file if line.endswith("\n")]


def kill_rounds(rounds: int) -> dict[str, object]:
    expected: dict[str, bool] = {}
    for number in range(rounds):
        pid, reader = run_child(lambda out, number=number: write_forever(number, out))
        time.sleep(random.uniform(0.02, 0.25))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for line in said(reader):
            verb, name = line.split(" ")
            expected[name] = verb == "written"
    repaired = [finding.code for finding in findings(repair=True)]
    left = [str(finding) for finding in findings(repair=False)]
    written = [name for name, is_written in expected.items() if is_written]
    lost = [name for name in written if record_open(OWNER, make_draft(name).id).body != body(name).encode()]
    return {"written": len(written), "repaired": repaired, "left": left, "lost": lost}


def race(processes: int) -> dict[str, object]:
    def work(out: int) -> None:
        order = list(range(20))
        random.shuffle(order)
        for n in order:
            outcome = services.record_write(make_draft(f"c{n}"), actor="child", verb="archive")
            if outcome.created:
                os.write(out, f"{outcome.record_id}\n".encode())

    children = [run_child(work) for _ in range(processes)]
    created = [record_id for _, reader in children for record_id in said(reader)]
    failed = [pid for pid, _ in children if os.waitpid(pid, 0)[1] != 0]
    return {
        "created": len(created),
        "distinct": len(set(created)),
        "rows": Record.objects.count(),
        "files": len(list(records_dir().rglob("*"))) - 1,
        "failed": len(failed),
        "left": [str(finding) for finding in findings(repair=False)],
    }


if __name__ == "__main__":
    settings.MEMEX_MIN_FREE_MB = 0
    ensure_home()
    call_command("migrate", verbosity=0)
    task = {"kill": kill_rounds, "race": race}[sys.argv[1]]
    print(json.dumps(task(int(sys.argv[2]))))
