"""Run as a program, with a MEMEX_HOME of its own: real processes on one body index.

`kill ROUNDS`: a child writes, changes and indexes until it is killed, again and again; then everything that
it said was written must be found, once. `race PROCESSES`: all write, index and search at the same time.
Prints a JSON object.
"""

import json
import os
import random
import signal
import sys
import time
from collections import Counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memex_site.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402

from records import services  # noqa: E402
from records.home import ensure_home  # noqa: E402
from records.maintenance.searchcheck import search_findings  # noqa: E402
from records.scope import OWNER  # noqa: E402
from records.search.indexing import bodies_sync  # noqa: E402
from records.search.pools import PoolName, folder  # noqa: E402
from records.search.search import search  # noqa: E402
from tests.records.drafts import make_draft  # noqa: E402
from tests.records.processes import run_child, said  # noqa: E402

BATCH = 5
WORKSPACE = "0123456789abcdef"


def word(name: str) -> str:
    """One that no other record has. Letters only, so that it is a word."""
    return "zq" + "".join(chr(ord("a") + int(digit, 16)) for digit in name.encode().hex())


def write(names: list[str]) -> None:
    drafts = [make_draft(name, body=f"{word(name)} and words that all have\n" * 20) for name in names]
    services.records_write(drafts, actor="child", verb="archive")


def write_forever(round_number: int, out: int) -> None:
    for n in range(1_000_000):
        names = [f"{round_number}-{n}-{each}" for each in range(BATCH)]
        write(names)
        os.write(out, "".join(f"{name}\n" for name in names).encode())
        bodies_sync()
        services.record_set_status(make_draft(names[0]).id, "resolved", actor="child")
        if n % 3 == 0:
            search(OWNER, word(names[1]))


def lost(names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if [hit.card.id for hit in search(OWNER, word(name)).hits[:1]] != [make_draft(name).id]
    ]


def passages_twice() -> int:
    """Records with more than one card in the index."""
    known = folder(PoolName(WORKSPACE, "workspace"))
    assert known is not None
    return known.statistics.records - len(known.numbers())


def kill_rounds(rounds: int) -> dict[str, object]:
    names: list[str] = []
    for number in range(rounds):
        pid, reader = run_child(lambda out, number=number: write_forever(number, out))
        time.sleep(random.uniform(0.03, 0.4))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        names += said(reader)
    missing = lost(names)
    bodies_sync()
    left = [str(finding) for finding in search_findings(repair=False)]
    return {"written": len(names), "lost": missing, "left": left, "twice": passages_twice()}


def race(processes: int) -> dict[str, object]:
    def work(out: int) -> None:
        own = f"p{os.getpid()}"
        for n in range(15):
            write([f"{own}-{n}"])
            found = search(OWNER, word(f"{own}-{n}")).hits
            seen = "found" if found and found[0].card.id == make_draft(f"{own}-{n}").id else "missed"
            os.write(out, f"{own}-{n} {seen}\n".encode())

    children = [run_child(work) for _ in range(processes)]
    lines = [line.split(" ") for _, reader in children for line in said(reader)]
    failed = [pid for pid, _ in children if os.waitpid(pid, 0)[1] != 0]
    counts = Counter(seen for _, seen in lines)
    missing = lost([name for name, _ in lines])
    left = [str(finding) for finding in search_findings(repair=False)]
    return {
        "found": counts["found"], "missed": counts["missed"], "failed": len(failed),
        "lost": missing, "left": left, "twice": passages_twice(),
    }  # fmt: skip


if __name__ == "__main__":
    settings.MEMEX_MIN_FREE_MB = 0
    ensure_home()
    call_command("migrate", verbosity=0)
    task = {"kill": kill_rounds, "race": race}[sys.argv[1]]
    print(json.dumps(task(int(sys.argv[2]))))
