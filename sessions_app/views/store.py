"""The store as a whole: which workspaces are remembered, long tasks, samples, health."""

from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from records.queries import facets
from records.scope import OWNER
from records.views import is_part
from sessions_app import jobs, overview, samples
from sessions_app.archiving import homes_discover
from sessions_app.contexts import WorkspaceChoice, workspace_choice
from sessions_app.models import ImportWarning, Job, Source
from sessions_app.workspaces import workspace_default_set

DISCOVERY_SECONDS = 60
LISTED = 100
JOBS_LISTED = 20


@require_safe
def workspaces(request: HttpRequest) -> HttpResponse:
    _discover()
    values = {
        "workspaces": [workspace_choice(row) for row in overview.workspaces_found()],
        "job": Job.objects.filter(kind="archive").order_by("-pk").first(),
        "homes": settings.AGENT_HOMES,
        "section": "workspaces",
    }
    template = "sessions/workspaces.html#list" if is_part(request) else "sessions/workspaces.html"
    return render(request, template, values)


def _discover() -> None:
    """Finds the logs when none is known, rather than wait for the worker's first pass."""
    if cache.add("homes-discovered", True, DISCOVERY_SECONDS) and not Source.objects.exists():
        homes_discover()


@require_POST
def workspace_levels(request: HttpRequest, key: str) -> HttpResponse:
    before, job = _workspace(key), None
    l2, l3 = "l2" in request.POST, "l3" in request.POST
    if (l2, l3) == (before.l2, before.l3):
        messages.info(request, f"Nothing to do: {before.name} is as it was.")
    else:
        workspace_default_set(key, before.row.cwd, l2=l2, l3=l3)
        names = " and ".join(name for name, on in (("L2", l2), ("L3", l3)) if on)
        if names:
            job = jobs.job_queue("archive")
            messages.success(request, f"{before.name}: {names} on for its sessions, which are read now.")
        else:
            messages.success(request, f"{before.name}: off for new sessions. What is kept already stays.")
    if is_part(request):
        return render(request, "sessions/workspaces.html#changed", {"choice": _workspace(key), "job": job})
    return redirect("sessions:workspaces")


def _workspace(key: str) -> WorkspaceChoice:
    for row in overview.workspaces_found():
        if row.key == key:
            return workspace_choice(row)
    raise Http404("There is no such workspace.")


@require_POST
def archive_now(request: HttpRequest) -> HttpResponse:
    return _job_answer(request, jobs.job_queue("archive"))


@require_safe
def job_detail(request: HttpRequest, pk: int) -> HttpResponse:
    job = get_object_or_404(Job, pk=pk)
    if not is_part(request):
        return render(request, "sessions/job.html", {"job": job, "section": "workspaces"})
    response = render(request, "sessions/_job.html", {"job": job})
    if job.state not in (Job.State.QUEUED, Job.State.RUNNING):
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
        "jobs": Job.objects.order_by("-pk")[:JOBS_LISTED],
        "missing": Source.objects.exclude(missing_since=None).order_by("-missing_since")[:LISTED],
        "section": "health",
    }
    return render(request, "sessions/health.html", values)
