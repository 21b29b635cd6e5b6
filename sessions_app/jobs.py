"""Long tasks: asked for by a page, done by the worker, followed through one row.

Whoever holds the worker's lease takes the next queued job, so that it does not matter which process the
page ran in, nor whether that one lives on.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import transaction

from records.search.indexing import bodies_sync

from .archiving import Progress, archive_run
from .models import Job

_LIVE = (Job.State.QUEUED, Job.State.RUNNING)


def _now() -> int:
    return int(time.time() * 1000)


def job_queue(kind: str, **arguments: Any) -> Job:
    """Queues a job, or finds the same one waiting."""
    with transaction.atomic():
        waiting = Job.objects.filter(kind=kind, state=Job.State.QUEUED, arguments=arguments).first()
        return waiting or Job.objects.create(
            kind=kind, arguments=arguments, created_at=_now(), updated_at=_now()
        )


def job_cancel(job: Job) -> None:
    Job.objects.filter(pk=job.pk, state__in=_LIVE).update(cancel_requested=True)


def jobs_abandoned() -> int:
    """Jobs that were running when their worker died go back into the queue: all of them may be repeated."""
    return Job.objects.filter(state=Job.State.RUNNING).update(state=Job.State.QUEUED)


def job_next() -> Job | None:
    """Takes the oldest queued job."""
    with transaction.atomic():
        job = Job.objects.filter(state=Job.State.QUEUED).order_by("pk").first()
        if job:
            job.state, job.updated_at = Job.State.RUNNING, _now()
            job.save()
    return job


def job_run(job: Job, stopped: Callable[[], bool]) -> None:
    """Does a job to its end and writes down how it went. A stopped worker leaves it to the next."""
    try:
        result = _KINDS[job.kind](job, lambda: stopped() or _cancelled(job))
    except Exception as error:
        job.state, job.message = Job.State.FAILED, f"{type(error).__name__}: {error}"
    else:
        if stopped():
            return
        job.state = Job.State.CANCELLED if _cancelled(job) else Job.State.DONE
        job.result = result
    job.updated_at = _now()
    job.save()


def _cancelled(job: Job) -> bool:
    return Job.objects.filter(pk=job.pk, cancel_requested=True).exists()


def _archive(job: Job, stopped: Callable[[], bool]) -> dict[str, Any]:
    paths = job.arguments.get("paths")

    def progress(step: Progress) -> None:
        Job.objects.filter(pk=job.pk).update(
            done=step.done, total=step.total, message=Path(step.path).name, updated_at=_now()
        )
        job.done, job.total, job.message = step.done, step.total, Path(step.path).name

    result = archive_run(
        [Path(path) for path in paths] if paths else None,
        level=job.arguments.get("level"),
        is_sample=job.arguments.get("is_sample", False),
        progress=progress,
        stopped=stopped,
    )
    bodies_sync(purge=True)
    return result.as_json()


_KINDS: dict[str, Callable[[Job, Callable[[], bool]], dict[str, Any]]] = {"archive": _archive}
