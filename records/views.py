"""The Memory page and a record's own page. What forgets records is with the sessions they came from."""

from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_safe

from . import services
from .contexts import HITS_FEW, HITS_MANY, BodyPart, RecordPage, Wanted, body_part, memory_page, record_page
from .forms import CardForm
from .models import Record
from .page_filters import Filters
from .queries import OpenedRecord, record_get, record_open
from .recordfile import NewerSchemaError
from .scope import OWNER


@require_safe
def memory(request: HttpRequest) -> HttpResponse:
    filters = Filters.of(request.GET)
    after = request.GET.get("after", "")
    try:
        page = memory_page(filters, after, limit=HITS_MANY if request.GET.get("more") else HITS_FEW)
    except ValueError:
        raise Http404("This address names no place in the list.") from None
    template, part = "records/memory.html", is_part(request)
    if part:
        template += "#rows" if after else "#results"
    response = render(request, template, {"page": page, "part": part, "section": "memory"})
    response["Vary"] = "HX-Request"
    if part and not after:
        _keep_address(request, response, filters)
    return response


def _keep_address(request: HttpRequest, response: HttpResponse, filters: Filters) -> None:
    """The browser's address follows what is shown. A question that is still being typed is one step of its
    history, so that Back does not lead through its letters."""
    shown = Filters.of(QueryDict(urlsplit(request.headers.get("HX-Current-URL", "")).query))
    is_typing = bool(filters.q and shown.q) and replace(filters, q="") == replace(shown, q="")
    query = filters.query()
    address = f"{reverse('home')}?{query}" if query else reverse("home")
    response["HX-Replace-Url" if is_typing or filters == shown else "HX-Push-Url"] = address


@require_safe
def record_detail(request: HttpRequest, record_id: str) -> HttpResponse:
    given = {name: request.GET.get(name, "").replace("\0", "").strip() for name in ("q", "also")}
    start = request.GET.get("from")
    wanted = Wanted(None if start is None else _whole_number(start), **given)
    record = _record(record_id)
    page = record_page(record)
    opened, problem = _opened(record)
    is_whole, is_pane = not is_part(request), "pane" in request.GET
    part: BodyPart | None = (
        body_part(opened, wanted, _session_url(page), with_lead=is_whole) if opened else None
    )
    template = "records/record.html" + ("" if is_whole else "#pane" if is_pane else "#part")
    values = {
        "page": record_page(opened.record, opened.body) if opened else page,
        "part": part,
        "problem": problem,
        "wanted": wanted,
        "section": "memory",
    }
    response = render(request, template, values)
    response["Vary"] = "HX-Request"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def record_edit(request: HttpRequest, record_id: str) -> HttpResponse:
    """Of the card; the archived text stays what it was."""
    record = _record(record_id)
    form = CardForm(request.POST or None, record=record)
    if request.method == "POST" and form.is_valid():
        changes = form.changes
        if not changes:
            messages.info(request, "Nothing was changed: it says this already.")
            return redirect("records:detail", record_id=record_id)
        try:
            services.record_update(
                record_id, expected_hash=form.cleaned_data["content_hash"], changes=changes, actor="owner"
            )
        except services.Conflict:
            form = _outdated(request, record_id)
        except (ValueError, services.Unreadable, NewerSchemaError, OSError) as error:
            form.add_error(None, f"Nothing was saved: {error}")
        else:
            messages.success(request, format_html("Saved: {}.", ", ".join(_labels(form, changes))))
            return redirect("records:detail", record_id=record_id)
    return render(request, "records/edit.html", {"form": form, "record": record, "section": "memory"})


def _outdated(request: HttpRequest, record_id: str) -> CardForm:
    """What was typed, to be saved over what the record says by now, if it is sent again."""
    record = _record(record_id)
    typed = request.POST.copy()
    typed["content_hash"] = record.content_hash
    form = CardForm(typed, record=record)
    problem = format_html(
        'The record has changed since this page was opened, and nothing was saved. <a href="{}">See what it says '
        "now</a>; to save yours over it, send this again.",
        reverse("records:detail", args=[record_id]),
    )
    form.add_error(None, problem)
    return form


def _labels(form: CardForm, names: Iterable[str]) -> list[str]:
    return [str(form[name].label).lower() for name in names]


def is_part(request: HttpRequest) -> bool:
    """Whether a part of the page is asked for, and not all of it (as on going back in the history)."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


def own_page(address: str) -> str:
    """`address` if it is one of ours, else the first page."""
    is_ours = address.startswith("/") and url_has_allowed_host_and_scheme(address, allowed_hosts=None)
    return address if is_ours else "home"


def _record(record_id: str) -> Record:
    try:
        return record_get(OWNER, record_id)
    except Record.DoesNotExist:
        raise Http404(f"There is no record {record_id}.") from None


def _opened(record: Record) -> tuple[OpenedRecord | None, str]:
    try:
        return record_open(OWNER, record.id), ""
    except (services.Unreadable, OSError) as error:
        return None, str(error)


def _session_url(page: RecordPage) -> str:
    """Escaped, to stand in HTML; "" for a record that comes from no session."""
    return str(escape(reverse("sessions:detail", args=[page.session_id]))) if page.session_id else ""


def _whole_number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise Http404("This address names no part of the record.")
    return int(text)
