"""What is done with records in a list, one or several at once, and undone again."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from records import trash as bundles
from records.deciding import AT_ONCE, Action, Done, decision_undo, records_decide
from records.models import Record
from records.templatetags.foreign import isolated
from records.views import is_part, own_page
from sessions_app.forget import forget_plan, forget_run, forget_undo
from sessions_app.owner import ACTOR
from sessions_app.workspaces import workspace_joined

FORGET = "forget"
_SALT = "memex.undo"
# A page that was left open for longer is out of date anyway.
_UNDO_SECONDS = 24 * 60 * 60
_SHOWN = 3

_SAID = {
    Action.PIN: "Pinned",
    Action.UNPIN: "No longer pinned",
    Action.RESOLVE: "Resolved",
    Action.REOPEN: "Taken up again",
    Action.COOL: "Moved to the cold tier",
    Action.RESTORE: "Brought back from the cold tier",
    Action.CONFIRM: "Confirmed",
    Action.KEEP: "Kept; what contradicted it is superseded",
    Action.KEEP_ALL: "All kept: they don't contradict each other",
}


@require_POST
def records_act(request: HttpRequest) -> HttpResponse:
    """`action`, `id` once for each record; `next`: the page to go back to without JavaScript."""
    action, ids = request.POST.get("action", ""), list(dict.fromkeys(request.POST.getlist("id")))
    if action != FORGET and action not in [str(each) for each in Action]:
        return HttpResponseBadRequest("No such action.")
    if len(ids) > AT_ONCE:
        messages.error(request, f"Nothing was changed: {AT_ONCE} records at most at once, not {len(ids)}.")
        return _answer(request, [], [])
    if not ids:
        messages.info(request, "Nothing to do: no record was chosen.")
        return _answer(request, [], [])
    if action == FORGET:
        return _answer(request, [], _forgotten(request, ids))
    done = records_decide(Action(action), ids, actor=ACTOR, joined_of=workspace_joined)
    if done.steps:
        token = signing.dumps(done.steps, salt=_SALT, compress=True)
        changed = done.changed or list(done.steps)
        _say(request, _SAID[Action(action)], changed, _undo_form(request, "steps", token))
    _say_skipped(request, done)
    return _answer(request, list(done.steps), [])


@require_POST
def records_undo(request: HttpRequest) -> HttpResponse:
    """`steps`: what an action said it changed; or `bundle`: what it forgot."""
    if bundle := request.POST.get("bundle"):
        try:
            forget_undo(bundle, actor=ACTOR)
            messages.success(request, "Brought back from the trash.")
        except bundles.BundleError as error:
            messages.error(request, f"Nothing was restored: {error}")
        return _answer(request, [], [], reload=True)
    try:
        steps = signing.loads(request.POST.get("steps", ""), salt=_SALT, max_age=_UNDO_SECONDS)
    except signing.BadSignature:
        messages.error(request, "Nothing was changed: this can't be undone from here any more.")
        return _answer(request, [], [])
    done = decision_undo(steps, actor=ACTOR)
    if done.changed:
        _say(request, "Undone", done.changed)
    _say_skipped(request, done)
    return _answer(request, [], [], reload=True)


def _forgotten(request: HttpRequest, ids: Sequence[str]) -> list[str]:
    """Those that are gone, also when they were before."""
    there = list(Record.objects.filter(pk__in=ids).values_list("pk", flat=True))
    if not there:
        messages.info(request, "Nothing to do: forgotten already.")
        return list(ids)
    titles = _titles(there)
    bundle = forget_run(forget_plan(record_ids=there), actor=ACTOR)
    where = format_html('in the <a href="{}#{}">trash</a>', reverse("sessions:trash"), bundle)
    messages.success(
        request,
        format_html("Forgotten: {}; {}. {}", titles, where, _undo_form(request, "bundle", bundle)),
    )
    return list(ids)


def _say(request: HttpRequest, what: str, ids: Sequence[str], more: str = "") -> None:
    messages.success(request, format_html("{}: {}. {}", what, _titles(ids), more))


def _say_skipped(request: HttpRequest, done: Done) -> None:
    if done.skipped:
        reasons = "; ".join(sorted(set(done.skipped.values())))
        count = len(done.skipped)
        said = _titles(list(done.skipped)) if count <= _SHOWN else f"{count} records"
        messages.warning(request, format_html("Left as it is: {} ({}).", said, reasons))


def _titles(ids: Sequence[str]) -> str:
    if len(ids) > _SHOWN:
        return f"{len(ids)} records"
    known: Mapping[str, Any] = dict(Record.objects.filter(pk__in=ids).values_list("pk", "title"))
    titles = [format_html("“{}”", isolated(known.get(each) or each)) for each in ids]
    return SafeString(", ".join(titles))


def _undo_form(request: HttpRequest, name: str, value: str) -> str:
    return format_html(
        '<form method="post" action="{0}" class="undo" hx-post="{0}" hx-swap="none">'
        '<input type="hidden" name="csrfmiddlewaretoken" value="{1}">'
        '<input type="hidden" name="{2}" value="{3}"><button>Undo</button></form>',
        reverse("sessions:records_undo"),
        get_token(request),
        name,
        value,
    )


def _answer(
    request: HttpRequest, changed: Sequence[str], gone: Sequence[str], *, reload: bool = False
) -> HttpResponse:
    """The rows as they are now, to be put in the place of the old ones; without JavaScript the page again."""
    if not is_part(request):
        return redirect(own_page(request.POST.get("next", "")))
    shown = urlsplit(request.headers.get("HX-Current-URL", ""))
    values = {
        "changed": list(Record.objects.filter(pk__in=changed)),
        "gone": gone,
        "next": f"{shown.path}?{shown.query}",
    }
    response = render(request, "records/_changed.html", values)
    if reload:
        response["HX-Trigger"] = "memory-changed"
    return response
