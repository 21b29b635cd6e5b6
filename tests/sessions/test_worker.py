"""One worker at a time, and what happens when it dies or takes long."""

import threading
import time

import pytest

from records.search.indexing import bodies_pending
from sessions_app import worker
from sessions_app.jobs import job_queue, jobs_abandoned
from sessions_app.models import Job, Lease
from tests.records.drafts import write

pytestmark = pytest.mark.django_db(transaction=True)
NOW = 1_800_000_000_000


@pytest.fixture(autouse=True)
def no_agents(settings, tmp_path, memex_home) -> None:
    settings.AGENT_HOMES = {name: tmp_path / name for name in ("claude-code", "codex", "dsh")}


def another_holds(since: int) -> None:
    Lease.objects.update_or_create(name="archive", defaults={"holder": "elsewhere:1", "heartbeat_at": since})


def test_the_lease_is_one_s_until_its_heartbeat_stops():
    assert worker.lease_take(NOW)
    assert worker.lease_take(NOW + 1)
    another_holds(NOW)
    assert not worker.lease_take(NOW + 29_000)
    assert worker.lease_take(NOW + 31_000)
    worker.lease_drop()
    assert not Lease.objects.exists()


def test_who_drops_the_lease_drops_only_its_own():
    another_holds(NOW)
    worker.lease_drop()
    assert Lease.objects.get().holder == "elsewhere:1"


def test_the_heart_beats_while_a_pass_takes_long(monkeypatch):
    stop, seen = threading.Event(), []

    def long_pass(*_: object) -> None:
        deadline = time.monotonic() + 30
        while len(seen) < 3 and time.monotonic() < deadline:
            beat = Lease.objects.get().heartbeat_at
            if beat not in seen:
                seen.append(beat)
            time.sleep(0.01)
        stop.set()

    monkeypatch.setattr(worker, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(worker, "archive_quietly", long_pass)
    worker.start(stop)
    assert len(seen) == 3
    assert not Lease.objects.exists()


def test_a_worker_does_the_jobs_that_are_queued():
    stop = threading.Event()
    job = job_queue("archive")
    assert job_queue("archive") == job
    thread = threading.Thread(target=worker.start, args=(stop,))
    thread.start()
    deadline = time.monotonic() + 30
    while Job.objects.get().state in ("queued", "running") and time.monotonic() < deadline:
        time.sleep(0.05)
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
    done = Job.objects.get()
    assert (done.state, done.result["files"]) == ("done", 0)


def test_a_job_whose_worker_died_is_done_by_the_next():
    job_queue("archive")
    Job.objects.update(state="running")
    assert jobs_abandoned() == 1
    assert Job.objects.get().state == "queued"


def test_a_pass_leaves_nothing_for_the_next_search_to_index(memex_home):
    """Also what others wrote, and more of it than a search would bring in by itself."""
    for number in range(3):
        write(f"c{number}", body="walrus")
    assert bodies_pending() == 3
    worker.archive_quietly([], threading.Event())
    assert bodies_pending() == 0
