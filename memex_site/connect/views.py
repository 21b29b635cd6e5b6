"""The Connect page: agents, and the tokens they show."""

from pathlib import Path
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from memex_site import tokens
from memex_site.models import AgentToken
from sessions_app.principals import RIGHTS

from .errors import EditRefused
from .queries import agent_cards, tokens_listed
from .services import AGENTS, connect_plan, disconnect_plan, plan_apply


@never_cache
@require_safe
def connect(request: HttpRequest) -> HttpResponse:
    return _page(request, {"rights": tokens.USUAL_RIGHTS})


@require_POST
def agent_change(request: HttpRequest, agent: str) -> HttpResponse:
    """Connects, or with `undo` takes back; only if that changes what was shown."""
    if agent not in AGENTS:
        raise Http404
    try:
        plan = (disconnect_plan if "undo" in request.POST else connect_plan)(agent, _port(request))
        if plan.digest != request.POST.get("digest"):
            messages.warning(request, "Nothing was changed: the settings are not what was shown. Look again.")
        else:
            done = " ".join(plan_apply(plan))
            messages.success(request, done or "Nothing to do: it is so already.")
    except (EditRefused, tokens.TokenRefused) as error:
        messages.error(request, f"Not done: {error}")
    return redirect("connect")


@never_cache
@require_POST
def token_create(request: HttpRequest) -> HttpResponse:
    """The answer is the one page that ever shows the token."""
    name, agent = request.POST.get("name", "").strip(), request.POST.get("agent", "")
    rights, folders = request.POST.getlist("right"), request.POST.get("folders", "")
    try:
        new = tokens.token_create(name, rights=rights, folders=_folders(folders), agent=agent)
    except tokens.TokenRefused as error:
        given = {"name": name, "agent": agent, "rights": rights, "folders": folders, "problem": str(error)}
        return _page(request, given)
    return render(request, "connect/token.html", {"new": new, "section": "connect"})


@require_POST
def token_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(AgentToken, pk=pk)
    if row.revoked_at is None and tokens.token_revoke(row.name):
        messages.success(request, f"{row.name} is let in no more.")
    else:
        messages.info(request, f"Nothing to do: {row.name} was revoked before.")
    return redirect("connect")


def _page(request: HttpRequest, given: dict[str, Any]) -> HttpResponse:
    values = {
        "cards": agent_cards(_port(request)),
        "tokens": tokens_listed(),
        "given": given,
        "all_rights": RIGHTS,
        "agents": AGENTS,
        "section": "connect",
    }
    return render(request, "connect/connect.html", values)


def _folders(text: str) -> list[str]:
    """One a line. Raises TokenRefused for one that isn't absolute: it would depend on where the server runs."""
    folders = [Path(line.strip()).expanduser() for line in text.splitlines() if line.strip()]
    for folder in folders:
        if not folder.is_absolute():
            raise tokens.TokenRefused(f"{folder} is no whole path: write it from the root, or from ~.")
    return [str(folder) for folder in folders]


def _port(request: HttpRequest) -> int:
    return int(request.get_port())
