"""The review list: records in which something looks like a password or key."""

from collections.abc import Callable

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.html import format_html
from django.views.decorators.http import require_POST, require_safe

from records.models import Record
from records.models import Scope as Tier
from records.recordfile import NewerSchemaError
from records.secrets import services
from records.secrets.detector import is_available
from records.secrets.queries import reviews
from records.services import Conflict, Unreadable
from records.templatetags.foreign import isolated
from sessions_app.fulltext import event_session
from sessions_app.owner import ACTOR

PLACES_SHOWN = 8


@require_safe
def secret_list(request: HttpRequest) -> HttpResponse:
    rows = [
        {
            "review": review,
            "session_id": event_session(review.record),
            "places": review.places[:PLACES_SHOWN],
            "more": max(0, len(review.places) - PLACES_SHOWN),
        }
        for review in reviews()
    ]
    values = {
        "rows": rows,
        "policy": settings.MEMEX_SENSITIVE_POLICY,
        "is_available": is_available(),
        "section": "health",
    }
    return render(request, "sessions/secrets.html", values)


def _dismiss(record_id: str) -> str:
    cleared = services.secret_dismiss(record_id, actor=ACTOR)
    others = len(cleared) - 1
    also = (
        f" {others} other record{' has' if others == 1 else 's have'} no find left either." if others else ""
    )
    scope = "shared in its workspace" if cleared[0].scope == Tier.WORKSPACE else "private to its session"
    return f"Not raised again; the record is {scope}, as it would have been.{also}"


def _keep(record_id: str) -> str:
    services.secret_keep(record_id, actor=ACTOR)
    return "Kept private."


def _share(record_id: str) -> str:
    services.secret_share(record_id, actor=ACTOR)
    return "Shared in its workspace."


_ACTIONS: dict[str, Callable[[str], str]] = {"dismiss": _dismiss, "keep": _keep, "share": _share}


@require_POST
def secret_decide(request: HttpRequest, record_id: str) -> HttpResponse:
    """`action`: dismiss, keep or share."""
    act = _ACTIONS.get(request.POST.get("action", ""))
    record = Record.objects.filter(pk=record_id).first()
    if act is None or record is None:
        raise Http404("No such record or decision.")
    try:
        messages.success(request, format_html("“{}”: {}", isolated(record.title), act(record_id)))
    except (
        services.NotSensitive,
        services.NotMeantToBeShared,
        Conflict,
        Unreadable,
        NewerSchemaError,
        OSError,
    ) as error:
        messages.error(request, f"Nothing was changed: {error}")
    return redirect("sessions:secrets")
