"""Downloads of what an agent's log said, byte for byte."""

from collections.abc import AsyncIterator, Iterator
from itertools import chain

from asgiref.sync import sync_to_async
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_safe

from records.models import Record
from records.queries import record_get
from records.scope import OWNER
from sessions_app.mirror import MirrorDamaged
from sessions_app.originals import NoOriginal, record_rows
from sessions_app.page_queries import event_get
from sessions_app.queries import SessionNotFound, event_texts

from .loading import load_session

# Nothing in it may run, should a browser show it all the same.
_SANDBOX = "sandbox; default-src 'none'"


@require_safe
def record_original(request: HttpRequest, record_id: str) -> StreamingHttpResponse:
    try:
        pieces = record_rows(record_get(OWNER, record_id))
        return _download(request, pieces, f"{record_id}.jsonl")
    except Record.DoesNotExist:
        raise Http404(f"There is no record {record_id}.") from None
    except NoOriginal as error:
        raise Http404(str(error)) from None


@require_safe
def event_original(request: HttpRequest, session_id: str, seq: int) -> StreamingHttpResponse:
    session = load_session(session_id)
    event = event_get(session, seq)
    if event is None:
        raise Http404(f"The session has no event #{seq}.")
    return _download(
        request, (text.raw for text in event_texts(session, iter((event,)))), f"event-{seq}.jsonl"
    )


def _download(request: HttpRequest, pieces: Iterator[bytes], name: str) -> StreamingHttpResponse:
    """The first piece is read at once: what is missing is a 404 and not a broken download."""
    try:
        first = next(pieces, b"")
    except (SessionNotFound, MirrorDamaged, OSError) as error:
        raise Http404(f"The original can't be read: {error}") from error
    if not first:
        raise Http404("The original is missing from the kept log.")
    whole = chain((first,), pieces)
    response = StreamingHttpResponse(
        _in_a_thread(whole) if hasattr(request, "scope") else whole, content_type="text/plain; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Content-Security-Policy"] = _SANDBOX
    return response


async def _in_a_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Under ASGI a plain iterator would be read into memory as a whole."""

    @sync_to_async
    def read() -> bytes | None:
        return next(pieces, None)

    while (piece := await read()) is not None:
        yield piece
