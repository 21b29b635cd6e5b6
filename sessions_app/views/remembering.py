"""A memory of a person's own."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods

from records.capacity.pools import PoolBusy
from records.files import StoreFull
from records.forms import MemoryForm
from records.models import Record, Scope
from records.services import Conflict
from records.templatetags.foreign import visible
from records.writing import WriteAnswer, memory_write
from records.written import Written
from sessions_app.models import AgentSession
from sessions_app.overview import workspaces_found
from sessions_app.owner import writer_of_session, writer_of_workspace
from sessions_app.page_queries import session_list
from sessions_app.titles import session_title

_SESSIONS = 20
_WORKSPACE, _SESSION = "workspace:", "session:"


@require_http_methods(["GET", "HEAD", "POST"])
def memory_new(request: HttpRequest) -> HttpResponse:
    """`workspace`, `session`: where it belongs unless another place is chosen."""
    folders = _folders()
    sessions = {each.session_id: each for each in session_list().sessions[:_SESSIONS]}
    wanted = request.GET.get("session", "")
    if wanted and wanted not in sessions:
        sessions |= {each.session_id: each for each in AgentSession.objects.filter(pk=wanted)}
    places = [
        (
            "Shared in a workspace (L3)",
            [(_WORKSPACE + key, visible(folder)) for key, folder in folders.items()],
        ),
        (
            "Private to a session (L2)",
            [(_SESSION + each.session_id, visible(session_title(each))) for each in sessions.values()],
        ),
    ]
    initial = _SESSION + wanted if wanted else _WORKSPACE + request.GET.get("workspace", "")
    form = MemoryForm(
        request.POST or None, places=[each for each in places if each[1]], initial={"where": initial}
    )
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        kind, _, key = given["where"].partition(":")
        writer = (
            writer_of_workspace(key, folders[key])
            if kind == "workspace"
            else writer_of_session(AgentSession.objects.get(pk=key))
        )
        try:
            answer = memory_write(
                Written(
                    kind=given["kind"],
                    text=given["text"],
                    title=given["title"],
                    use_when=given["use_when"],
                    tags=given["tags"],
                    slot=given["slot"],
                ),
                writer,
            )
        except (ValueError, PoolBusy, StoreFull, Conflict) as error:
            form.add_error(None, str(error))
        else:
            _say(request, answer)
            return redirect("records:detail", record_id=answer.id)
    values = {"form": form, "has_places": any(each[1] for each in places), "section": "memory"}
    return render(request, "records/new.html", values)


def _folders() -> dict[str, str]:
    """By workspace: those of logs, whether read or not, and those of records."""
    found = {row.key: row.cwd for row in workspaces_found() if row.cwd}
    known = Record.objects.exclude(workspace="").order_by("workspace")
    return found | dict(known.values_list("workspace_key", "workspace").distinct())


def _say(request: HttpRequest, answer: WriteAnswer) -> None:
    if answer.dedupe:
        messages.info(request, "This is remembered already: nothing was written twice.")
    else:
        messages.success(request, "Remembered.")
    if answer.sensitive:
        kept = " It is kept from your agents." if answer.scope == Scope.SESSION else ""
        messages.warning(
            request,
            format_html(
                'It holds what looks like a secret.{} See <a href="{}">secrets</a>.',
                kept,
                reverse("sessions:secrets"),
            ),
        )
    if answer.conflicts_with:
        links = [
            format_html('<a href="{}">{}</a>', reverse("records:detail", args=[each]), each)
            for each in answer.conflicts_with
        ]
        said = format_html(
            "It contradicts {}, about the same: keep the one that holds.", SafeString(", ".join(links))
        )
        messages.warning(request, said)
