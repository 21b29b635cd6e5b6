"""The store as a whole: which workspaces are remembered, long tasks, samples, health."""

from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from records.queries import facets
from records.scope import OWNER
from records.secrets.queries import reviews
from records.views import is_part
from sessions_app import jobs, overview, page_queries, samples
from sessions_app.archiving import homes_discover
from sessions_app.models import ImportWarning, Job, Source
from sessions_app.store_contexts import job_end, workspace_choices
from sessions_app.workspaces import workspaces_read

DISCOVERY_SECONDS = 60
LISTED = 100
JOBS_LISTED = 20


@require_safe
def workspaces(request: HttpRequest) -> HttpResponse:
    _discover()
    values = {
        "workspaces": workspace_choices(overview.workspaces_found()),
        "job": page_queries.archive_job(),
        "homes": settings.AGENT_HOMES,
        "all_paused": workspaces_read()["paused"]["all"],
        "is_first_visit": page_queries.is_first_visit(),
        "section": "workspaces",
    }
    template = "sessions/workspaces.html#list" if is_part(request) else "sessions/workspaces.html"
    return render(request, template, values)


def _discover() -> None:
    """Finds the logs when none is known, rather than wait for the worker's first pass."""
    if cache.add("homes-discovered", True, DISCOVERY_SECONDS) and not Source.objects.exists():
        homes_discover()


@require_POST
def archive_now(request: HttpRequest) -> HttpResponse:
    return _job_answer(request, jobs.job_queue("archive"))


@require_safe
def job_detail(request: HttpRequest, pk: int) -> HttpResponse:
    job = get_object_or_404(Job, pk=pk)
    if not is_part(request):
        return render(request, "sessions/job.html", {"job": job, "section": "workspaces"})
    has_ended = job.state not in (Job.State.QUEUED, Job.State.RUNNING)
    if has_ended:
        level = messages.SUCCESS if job.state == Job.State.DONE else messages.WARNING
        messages.add_message(request, level, job_end(job))
    response = render(request, "sessions/_job.html", {"job": job, "has_ended": has_ended})
    if has_ended:
        response["HX-Trigger"] = "job-ended"
    return response


@require_POST
def job_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    job = get_object_or_404(Job, pk=pk)
    jobs.job_cancel(job)
    job.refresh_from_db()
    return _job_answer(request, job)


def _job_answer(request: HttpRequest, job: Job) -> HttpResponse:
    if is_part(request):
        return render(request, "sessions/_job.html", {"job": job})
    return redirect("sessions:job", pk=job.pk)


@require_POST
def samples_load(request: HttpRequest) -> HttpResponse:
    return redirect("sessions:job", pk=samples.samples_load().pk)


@require_POST
def samples_remove(request: HttpRequest) -> HttpResponse:
    removed = samples.samples_remove()
    if removed:
        messages.success(request, f"The samples are gone: {removed} sessions and their records.")
    else:
        messages.info(request, "Nothing to do: there are no samples.")
    return redirect("sessions:workspaces")


@require_safe
def health(request: HttpRequest) -> HttpResponse:
    values = {
        "status": overview.store_status(),
        "records": facets(OWNER),
        "warnings": ImportWarning.objects.order_by("-created_at", "-pk")[:LISTED],
        "secrets": len(reviews(open_only=True)),
        "jobs": Job.objects.order_by("-pk")[:JOBS_LISTED],
        "missing": Source.objects.exclude(missing_since=None).order_by("-missing_since")[:LISTED],
        "section": "health",
    }
    return render(request, "sessions/health.html", values)
