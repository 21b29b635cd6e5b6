"""Run as a program, with a MEMEX_HOME of its own: real processes that compress.

`kill ROUNDS`: a child moves records to the cold tier and back until it is killed, again and again; after
each kill every record can be read, and after `doctor --repair` nothing is wrong. `between`: a child is killed
after the rename and before its row. `race PROCESSES`: all compress one pool at once. Prints a JSON object.
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

from records import services  # noqa: E402
from records.capacity import cold  # noqa: E402
from records.capacity.compress import compress  # noqa: E402
from records.capacity.pools import PoolBusy, pool_figures, workspace_pool  # noqa: E402
from records.home import ensure_home  # noqa: E402
from records.maintenance.doctor import findings  # noqa: E402
from records.maintenance.searchcheck import search_findings  # noqa: E402
from records.models import CompressionRun, Record  # noqa: E402
from records.queries import record_open  # noqa: E402
from records.scope import OWNER  # noqa: E402
from tests.records.drafts import make_draft  # noqa: E402
from tests.records.processes import run_child, said  # noqa: E402

POOL = workspace_pool(["0123456789abcdef"])
RECORDS = 40


def body(n: int) -> str:
    return f"The text of record {n:02}.\n" * 100


def fill() -> dict[str, bytes]:
    drafts = [make_draft(f"c{n}", body=body(n), created_at=1_000 + n) for n in range(RECORDS)]
    services.records_write(drafts, actor="test", verb="archive")
    return {draft.id: draft.body_bytes for draft in drafts}


def unreadable(bodies: dict[str, bytes]) -> list[str]:
    return [record_id for record_id, data in bodies.items() if record_open(OWNER, record_id).body != data]


def wrong() -> list[str]:
    return [str(each) for each in [*findings(repair=False), *search_findings(repair=False)]]


def there_and_back(ids: list[str], out: int) -> None:
    while True:
        cold.record_cool(random.sample(ids, 10), actor="child")
        for record_id in random.sample(ids, 5):
            cold.record_restore(record_id, actor="child")
        os.write(out, b"round\n")


def kill(rounds: int) -> dict[str, object]:
    bodies = fill()
    done, lost = 0, []
    for _ in range(rounds):
        pid, reader = run_child(lambda out: there_and_back(list(bodies), out))
        time.sleep(random.uniform(0.05, 0.3))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        done += len(said(reader))
        lost += unreadable(bodies)
    list(findings(repair=True))
    list(search_findings(repair=True))
    return {"rounds": done, "lost": lost, "left": wrong(), "again": unreadable(bodies)}


def between(_: int) -> dict[str, object]:
    bodies = fill()

    def die(_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def work(_: int) -> None:
        cold.rows_put = die  # type: ignore[assignment]
        compress([POOL], actor="child", min_age_ms=0, target_ratio=0.5)

    settings.MEMEX_CAPACITY_TOKENS = pool_figures(POOL).hot_tokens
    pid, _reader = run_child(work)
    os.waitpid(pid, 0)
    lost = unreadable(bodies)
    unfinished = CompressionRun.objects.filter(duration_ms=None).count()
    found = [each.code for each in findings(repair=True)]
    cold_ones = Record.objects.filter(cold=1).count()
    # The lock went with the process.
    (report,) = compress([POOL], actor="test", min_age_ms=0, target_ratio=0.5)
    return {
        "lost": lost, "unfinished": unfinished, "found": sorted(set(found)), "moved": len(found) == cold_ones > 0,
        "fits": report.after_hot <= report.target_tokens, "left": wrong(), "again": unreadable(bodies),
    }  # fmt: skip


def race(processes: int) -> dict[str, object]:
    bodies = fill()
    settings.MEMEX_CAPACITY_TOKENS = pool_figures(POOL).hot_tokens
    gate_reader, gate_writer = os.pipe()

    def work(out: int) -> None:
        os.close(gate_writer)
        os.read(gate_reader, 1)
        try:
            (report,) = compress([POOL], actor="child", min_age_ms=0, target_ratio=0.5)
            os.write(out, f"moved {report.cold_moved}\n".encode())
        except PoolBusy:
            os.write(out, b"busy 0\n")

    children = [run_child(work) for _ in range(processes)]
    os.close(gate_writer)
    lines = [line.split(" ") for _, reader in children for line in said(reader)]
    failed = [pid for pid, _ in children if os.waitpid(pid, 0)[1] != 0]
    return {
        "answered": len(lines), "failed": len(failed), "moved": sum(int(count) for _, count in lines),
        "cold": Record.objects.filter(cold=1).count(), "runs": CompressionRun.objects.count(),
        "ran": sum(word == "moved" for word, _ in lines), "left": wrong(), "lost": unreadable(bodies),
    }  # fmt: skip


if __name__ == "__main__":
    settings.MEMEX_MIN_FREE_MB = 0
    ensure_home()
    call_command("migrate", verbosity=0)
    task = {"kill": kill, "between": between, "race": race}[sys.argv[1]]
    print(json.dumps(task(int(sys.argv[2]))))
