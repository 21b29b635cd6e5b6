"""The Memory page and a record's own page. What forgets records is with the sessions they came from."""

from dataclasses import replace
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import escape, format_html
from django.views.decorators.http import require_POST, require_safe

from . import services
from .contexts import HITS_FEW, HITS_MANY, BodyPart, RecordPage, Wanted, body_part, memory_page, record_page
from .models import Record, Status
from .page_filters import Filters
from .queries import OpenedRecord, record_get, record_open
from .recordfile import NewerSchemaError
from .scope import OWNER
from .templatetags.foreign import isolated


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
    is_whole = not is_part(request)
    part: BodyPart | None = (
        body_part(opened, wanted, _session_url(page), with_lead=is_whole) if opened else None
    )
    template = "records/record.html" if is_whole else "records/record.html#part"
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


@require_POST
def record_pin(request: HttpRequest, record_id: str) -> HttpResponse:
    pinned = request.POST.get("pinned") == "1"
    record = _record(record_id)
    if pinned == (record.status == Status.PINNED):
        state = record.get_status_display()
        messages.info(
            request, format_html("Nothing to do: “{}” is {} already.", isolated(record.title), state)
        )
    else:
        record = _pin(request, record, pinned=pinned)
    if is_part(request):
        return render(request, "records/memory.html#changed", {"record": record})
    return redirect("records:detail", record_id=record_id)


def _pin(request: HttpRequest, record: Record, *, pinned: bool) -> Record:
    try:
        changed = services.record_pin(record.id, pinned=pinned, actor="owner")
    except (services.Conflict, services.Unreadable, NewerSchemaError) as error:
        messages.error(request, f"Nothing was changed: {error}")
        return record
    done = "Pinned" if pinned else "No longer pinned"
    messages.success(request, format_html("{}: “{}”.", done, isolated(record.title)))
    return changed


def is_part(request: HttpRequest) -> bool:
    """Whether a part of the page is asked for, and not all of it (as on going back in the history)."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


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
