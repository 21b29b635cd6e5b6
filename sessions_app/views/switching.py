"""What the owner switches: levels of sessions and folders, and pauses."""

from pathlib import Path

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from records.templatetags.foreign import isolated
from records.views import is_part
from sessions_app.jobs import job_queue
from sessions_app.levels import LevelSticky, SessionForgotten, level_enable
from sessions_app.models import Job, SessionSettings
from sessions_app.overview import workspaces_found
from sessions_app.sessionfile import workspace_key_of
from sessions_app.store_contexts import WorkspaceChoice, workspace_choices
from sessions_app.workspaces import LEVELS, is_paused, pause_set, workspace_default_set, workspaces_read

from .loading import load_pool


@require_POST
def session_level(request: HttpRequest, session_id: str) -> HttpResponse:
    pool, paths = load_pool(session_id)
    name = request.POST.get("level", "")
    own = SessionSettings.objects.filter(session_id=pool).first()
    try:
        level_enable(pool, name)
    except LevelSticky as error:
        messages.error(request, f"Nothing was changed: {error}")
    except SessionForgotten:
        messages.error(request, _forgotten())
    else:
        if own and getattr(own, name):
            messages.info(request, f"Nothing to do: {name.upper()} is on already.")
        else:
            messages.success(request, f"{name.upper()} is on and stays on. {_read(session_id, pool, paths)}")
    return redirect("sessions:detail", session_id=session_id)


def _forgotten() -> str:
    return format_html(
        'Nothing was changed: this session was forgotten. Restore it from the <a href="{}">trash</a> first; '
        "what was purged from there stays forgotten.",
        reverse("sessions:trash"),
    )


def _read(session_id: str, pool: str, paths: list[str]) -> str:
    """Has the session's logs read, and says so."""
    if not paths:
        return "No log of this session is left to read."
    if is_paused((session_id, pool), workspace_key_of(pool)):
        return "It is paused: nothing of it is read until you resume."
    _job_queue(paths)
    return "The session's log is being read."


def _job_queue(paths: list[str]) -> Job:
    """A run over the agents' homes; logs that lie elsewhere have to be named."""
    homes = settings.AGENT_HOMES.values()
    elsewhere = [path for path in paths if not any(Path(path).is_relative_to(home) for home in homes)]
    return job_queue("archive", paths=elsewhere) if elsewhere else job_queue("archive")


@require_POST
def session_pause(request: HttpRequest, session_id: str) -> HttpResponse:
    pool, paths = load_pool(session_id)
    paused = request.POST.get("paused") == "1"
    pause_set("sessions", pool, paused=paused)
    if paused:
        messages.success(
            request, "Paused: nothing more of this session is read or archived until you resume."
        )
    elif is_paused((session_id, pool), workspace_key_of(pool)):
        messages.warning(
            request, "This session is resumed, but its workspace, or everything, is paused still."
        )
    else:
        messages.success(request, f"Resumed. {_read(session_id, pool, paths)}")
    return redirect("sessions:detail", session_id=session_id)


@require_POST
def workspace_levels(request: HttpRequest, key: str) -> HttpResponse:
    before, job = _workspace(key), None
    l2, l3 = "l2" in request.POST, "l3" in request.POST
    name = isolated(before.name)
    if (l2, l3) == (before.levels.l2, before.levels.l3):
        messages.info(request, format_html("Nothing to do: {} is as it was.", name))
    else:
        workspace_default_set(key, before.row.cwd, l2=l2, l3=l3)
        levels = " and ".join(level for level, on in (("L2", l2), ("L3", l3)) if on)
        if levels:
            job = job_queue("archive")
            messages.success(
                request, format_html("{}: {} on for its sessions, which are read now.", name, levels)
            )
        else:
            messages.success(
                request, format_html("{}: off for new sessions. What is kept already stays.", name)
            )
    return _workspace_answer(request, key, job)


@require_POST
def workspace_pause(request: HttpRequest, key: str) -> HttpResponse:
    name, job = isolated(_workspace(key).name), None
    paused = request.POST.get("paused") == "1"
    pause_set("workspaces", key, paused=paused)
    if paused:
        messages.success(request, format_html("{}: paused. Nothing more of it is read or archived.", name))
    elif workspaces_read()["paused"]["all"]:
        messages.warning(request, format_html("{}: resumed, but everything is paused still.", name))
    else:
        job = job_queue("archive")
        messages.success(request, format_html("{}: resumed. What was added meanwhile is read now.", name))
    return _workspace_answer(request, key, job)


def _workspace(key: str) -> WorkspaceChoice:
    for choice in workspace_choices(row for row in workspaces_found() if row.key == key):
        return choice
    raise Http404("There is no such workspace.")


def _workspace_answer(request: HttpRequest, key: str, job: Job | None) -> HttpResponse:
    if is_part(request):
        return render(request, "sessions/workspaces.html#changed", {"choice": _workspace(key), "job": job})
    return redirect("sessions:workspaces")


@require_POST
def workspaces_levels(request: HttpRequest) -> HttpResponse:
    """One level for every folder that was found."""
    level = request.POST.get("level", "")
    rows = workspaces_found()
    if level not in LEVELS or not rows:
        messages.error(request, "Nothing was changed: choose L2 or L3, and a folder must have been found.")
        return redirect("sessions:workspaces")
    for row in rows:
        workspace_default_set(row.key, row.cwd, l2=level == "l2", l3=level == "l3")
    job_queue("archive")
    messages.success(request, f"{level.upper()} is on for {len(rows)} folders, whose sessions are read now.")
    return redirect("sessions:workspaces")


@require_POST
def pause_everything(request: HttpRequest) -> HttpResponse:
    paused = request.POST.get("paused") == "1"
    pause_set("all", "", paused=paused)
    if paused:
        messages.success(request, "Everything is paused: nothing is read or archived until you resume.")
    else:
        job_queue("archive")
        messages.success(request, "Resumed. What was added meanwhile is read now.")
    return redirect("sessions:workspaces")
