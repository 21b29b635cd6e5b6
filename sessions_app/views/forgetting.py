"""Forgetting, previewed first, and the trash, where it is undone or made final."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from records import trash as bundles
from records.models import Record
from records.templatetags.foreign import isolated
from sessions_app.forget import ForgetPlan, forget_plan, forget_run, forget_undo
from sessions_app.owner import ACTOR
from sessions_app.store_contexts import TrashRow
from sessions_app.titles import session_title

from .loading import load_session

RECORDS_AT_ONCE = 500


@require_http_methods(["GET", "HEAD", "POST"])
def session_forget(request: HttpRequest, session_id: str) -> HttpResponse:
    session = load_session(session_id)
    plan = forget_plan(session_ids=[session_id])
    if request.method == "POST":
        _forget(request, plan, format_html("the session “{}”", isolated(session_title(session))))
        return redirect("sessions:list")
    values = {
        "plan": plan,
        "what": session_title(session),
        "back": reverse("sessions:detail", args=[session_id]),
        "section": "sessions",
    }
    return render(request, "sessions/forget.html", values)


@require_http_methods(["GET", "HEAD", "POST"])
def records_forget(request: HttpRequest) -> HttpResponse:
    """`id`, once for each record."""
    ids = (request.POST if request.method == "POST" else request.GET).getlist("id")[:RECORDS_AT_ONCE]
    try:
        plan = forget_plan(record_ids=list(dict.fromkeys(ids)))
    except Record.DoesNotExist:
        raise Http404("One of these records does not exist, or was forgotten already.") from None
    if not plan.records:
        raise Http404("No record was named.")
    title = plan.records[0].title if len(plan.records) == 1 else f"{len(plan.records)} records"
    if request.method == "POST":
        _forget(request, plan, format_html("“{}”", isolated(title)))
        return redirect("home")
    back = reverse("records:detail", args=[ids[0]]) if len(plan.records) == 1 else reverse("home")
    return render(
        request, "sessions/forget.html", {"plan": plan, "what": title, "back": back, "section": "memory"}
    )


def _forget(request: HttpRequest, plan: ForgetPlan, what: str) -> None:
    bundle_id = forget_run(plan, actor=ACTOR)
    messages.success(
        request,
        format_html(
            'Forgotten: {}. It is in the <a href="{}#{}">trash</a> and can be restored from there.',
            what,
            reverse("sessions:trash"),
            bundle_id,
        ),
    )


@require_safe
def trash(request: HttpRequest) -> HttpResponse:
    rows = [TrashRow(bundle) for bundle in bundles.bundle_list()]
    return render(request, "sessions/trash.html", {"rows": rows, "section": "trash"})


@require_POST
def trash_restore(request: HttpRequest, bundle_id: str) -> HttpResponse:
    bundle = _bundle(bundle_id)
    try:
        forget_undo(bundle_id, actor=ACTOR)
    except bundles.BundleError as error:
        messages.error(request, f"Nothing was restored: {error}")
    else:
        messages.success(request, format_html("Restored: {}.", isolated(TrashRow(bundle).title)))
    return redirect("sessions:trash")


@require_http_methods(["GET", "HEAD", "POST"])
def trash_purge(request: HttpRequest, bundle_id: str) -> HttpResponse:
    bundle = _bundle(bundle_id)
    if request.method != "POST":
        return render(request, "sessions/purge.html", {"row": TrashRow(bundle), "section": "trash"})
    try:
        bundles.bundle_purge(bundle_id, actor=ACTOR)
    except bundles.BundleError as error:
        messages.error(request, f"Nothing was purged: {error}")
    else:
        messages.success(request, format_html("Purged for good: {}.", isolated(TrashRow(bundle).title)))
    return redirect("sessions:trash")


def _bundle(bundle_id: str) -> bundles.Bundle:
    try:
        return bundles.bundle_get(bundle_id)
    except bundles.BundleError as error:
        raise Http404(str(error)) from None
