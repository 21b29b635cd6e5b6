"""The list of sessions, and the reader of one."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from records.views import is_part
from sessions_app import page_queries
from sessions_app.contexts import compaction_row, event_rows, session_rows, session_title, steps, summary_text
from sessions_app.jobs import job_queue
from sessions_app.levels import LevelSticky, level_enable, levels_of
from sessions_app.models import AgentSession, Compaction, SessionSettings
from sessions_app.sessionfile import workspace_key_of
from sessions_app.workspaces import is_paused, pause_set

from .loading import load_pool, load_session, load_source, whole_number

OFF_A_PAGE = 50
SHOW_LABELS = (
    ("conversation", "Conversation"),
    ("current", "In context"),
    ("dropped", "Compacted away"),
    ("all", "Everything in the log"),
)


@require_safe
def session_list(request: HttpRequest) -> HttpResponse:
    if request.GET.get("show") == "off":
        return _off_list(request)
    chosen = {name: request.GET.get(name, "").replace("\0", "") for name in ("workspace", "agent")}
    after = request.GET.get("after", "")
    try:
        found = page_queries.session_list(**chosen, after_cursor=after)
    except ValueError:
        raise Http404("This address names no place in the list.") from None
    places = AgentSession.objects.order_by("cwd").values_list("workspace_key", "cwd", "agent").distinct()
    values = {
        "rows": session_rows(found),
        "next_cursor": found.next_cursor,
        "chosen": chosen,
        "workspaces": list({key: cwd or key for key, cwd, _ in places}.items()),
        "agents": sorted({agent for _, _, agent in places}),
        "off_count": page_queries.off_sources().count(),
        "section": "sessions",
    }
    template = "sessions/list.html"
    if is_part(request):
        template += "#rows" if after else "#results"
    return _varying(render(request, template, values))


def _off_list(request: HttpRequest) -> HttpResponse:
    page = Paginator(page_queries.off_sources(), OFF_A_PAGE).get_page(request.GET.get("page"))
    return render(request, "sessions/off_list.html", {"page": page, "section": "sessions"})


@require_safe
def session_detail(request: HttpRequest, session_id: str) -> HttpResponse:
    session = page_queries.session_named(session_id)
    if session is None:
        return _off_detail(request, session_id)
    show = request.GET.get("show", "conversation")
    if show not in page_queries.SHOWN:
        raise Http404("There is no such view of a session.")
    window = page_queries.event_window(
        session,
        show=show,
        start=whole_number(request.GET.get("at")),
        before=whole_number(request.GET.get("before")),
    )
    values = {
        "session": session,
        "steps": list(steps(session, window)),
        "earlier": window.earlier,
        # What follows earlier events is on the page already, when they are loaded into it.
        "later": None if is_part(request) and "before" in request.GET else window.later,
        "show": show,
        "section": "sessions",
    }
    if is_part(request):
        return _varying(render(request, "sessions/session.html#window", values))
    return _varying(render(request, "sessions/session.html", values | _around(session)))


def _around(session: AgentSession) -> dict[str, object]:
    """What stands beside the events."""
    parent = page_queries.session_named(session.parent_id) if session.parent_id else None
    compactions = page_queries.session_compactions(session)[: page_queries.COMPACTIONS_LISTED]
    return {
        "title": session_title(session),
        "show_labels": SHOW_LABELS,
        "compactions": [compaction_row(compaction) for compaction in compactions],
        "children": [
            (child, session_title(child)) for child in page_queries.sub_agents([session.session_id])
        ],
        "parent": parent,
        "parent_title": session_title(parent) if parent else "",
        **_switches(session.session_id, session.pool_session_id, session.workspace_key),
    }


def _switches(session_id: str, pool: str, workspace_key: str) -> dict[str, object]:
    return {
        "session_id": session_id,
        "pool": pool,
        "levels": levels_of(pool, workspace_key),
        # Without a row of its own the levels are the folder's default, which can be taken back.
        "is_sticky": SessionSettings.objects.filter(session_id=pool).exists(),
        "paused": is_paused((session_id, pool), workspace_key),
    }


def _off_detail(request: HttpRequest, session_id: str) -> HttpResponse:
    source = load_source(session_id)
    pool, _ = load_pool(session_id)
    values = {"source": source, "section": "sessions", **_switches(session_id, pool, workspace_key_of(pool))}
    return render(request, "sessions/off.html", values)


@require_safe
def session_event(request: HttpRequest, session_id: str, seq: int) -> HttpResponse:
    """One event with its whole text, up to what a page can hold."""
    session = load_session(session_id)
    event = page_queries.event_get(session, seq)
    if event is None:
        raise Http404(f"The session has no event #{seq}.")
    values = {
        "session": session,
        "title": session_title(session),
        "row": event_rows(session, [event], folded=False)[0],
        "whole": True,
        "section": "sessions",
    }
    template = "sessions/_event.html" if is_part(request) else "sessions/event.html"
    return _varying(render(request, template, values))


@require_safe
def session_compaction(request: HttpRequest, session_id: str, pk: int) -> HttpResponse:
    """The summary beside what it lost."""
    session = load_session(session_id)
    compaction = Compaction.objects.filter(session_id=session_id, pk=pk).first()
    if compaction is None:
        raise Http404("The session has no such compaction.")
    values = {
        "session": session,
        "title": session_title(session),
        "row": compaction_row(compaction),
        "summary": summary_text(session, compaction),
        "section": "sessions",
    }
    template = "sessions/compaction.html#panel" if is_part(request) else "sessions/compaction.html"
    return _varying(render(request, template, values))


@require_POST
def session_level(request: HttpRequest, session_id: str) -> HttpResponse:
    pool, paths = load_pool(session_id)
    name = request.POST.get("level", "")
    own = SessionSettings.objects.filter(session_id=pool).first()
    try:
        level_enable(pool, name)
    except LevelSticky as error:
        messages.error(request, f"Nothing was changed: {error}")
        return redirect("sessions:detail", session_id=session_id)
    if own and getattr(own, name):
        messages.info(request, f"Nothing to do: {name.upper()} is on already.")
    elif paths:
        job_queue("archive", paths=paths)
        messages.success(request, f"{name.upper()} is on and stays on. The session's log is being read.")
    else:
        messages.success(
            request, f"{name.upper()} is on and stays on. No log of this session is left to read."
        )
    return redirect("sessions:detail", session_id=session_id)


@require_POST
def session_pause(request: HttpRequest, session_id: str) -> HttpResponse:
    pool, _ = load_pool(session_id)
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
        messages.success(request, "Resumed: what was added meanwhile is read at the next pass.")
    return redirect("sessions:detail", session_id=session_id)


def _varying(response: HttpResponse) -> HttpResponse:
    response["Vary"] = "HX-Request"
    return response
