"""The list of sessions, and the reader of one."""

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from records.tombstones import is_forgotten
from records.views import is_part
from sessions_app import page_queries
from sessions_app.contexts import compaction_row, event_rows, session_rows, steps, summary_text
from sessions_app.levels import levels_of
from sessions_app.models import AgentSession, Compaction, SessionSettings
from sessions_app.sessionfile import workspace_key_of
from sessions_app.store_contexts import trash_row_of
from sessions_app.titles import session_title
from sessions_app.workspaces import is_paused, workspaces_read

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
        "all_paused": workspaces_read()["paused"]["all"],
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
        "later": window.later,
        "show": show,
        "section": "sessions",
    }
    if is_part(request):
        # What lies on the other side of it is on the page already.
        values["later" if "before" in request.GET else "earlier"] = None
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
        "job": page_queries.archive_job(live=True),
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
    if is_forgotten("session", session_id):
        return _forgotten(request, session_id)
    source = load_source(session_id)
    pool, _ = load_pool(session_id)
    if is_forgotten("session", pool):
        return _forgotten(request, pool)
    values = {
        "source": source,
        "job": page_queries.archive_job(),
        "section": "sessions",
        **_switches(session_id, pool, workspace_key_of(pool)),
    }
    return render(request, "sessions/off.html", values)


def _forgotten(request: HttpRequest, session_id: str) -> HttpResponse:
    values = {"session_id": session_id, "row": trash_row_of(session_id), "section": "sessions"}
    return render(request, "sessions/forgotten.html", values)


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
def session_compaction(request: HttpRequest, session_id: str, compaction_id: str) -> HttpResponse:
    """The summary beside what it lost."""
    session = load_session(session_id)
    compaction = Compaction.objects.filter(session_id=session_id, compaction_id=compaction_id).first()
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


def _varying(response: HttpResponse) -> HttpResponse:
    response["Vary"] = "HX-Request"
    return response
