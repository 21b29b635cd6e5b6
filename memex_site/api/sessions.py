"""Routes of an agent's own session."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from sessions_app.access import Access, access_of, require
from sessions_app.injection.prestep import prestep
from sessions_app.opening import session_note
from sessions_app.operations.shapes import levels_json
from sessions_app.principals import WRITE, Principal

from . import inputs, outputs

router = Router(tags=["Sessions"], by_alias=True)


def own(request: HttpRequest, session_id: str, right: str = WRITE) -> Access:
    """The session that a route is about. Raises Forbidden, UnknownSession."""
    principal: Principal = request.auth  # type: ignore[attr-defined]  # ninja puts it there
    require(principal, right)
    return access_of(principal, session_id=session_id)


@router.post("session.open", response=outputs.OpenAnswer, summary="Make a session known; again is the same")
def session_open(request: HttpRequest, given: inputs.OpenBody) -> dict[str, Any]:
    principal: Principal = request.auth  # type: ignore[attr-defined]
    require(principal, WRITE)
    row = session_note(
        principal,
        given.session_id,
        given.agent,
        cwd=given.cwd,
        parent_id=given.parent_session_id,
        context_window=given.context_window,
    )
    access = access_of(principal, session_id=given.session_id)
    return {"sessionId": row.session_id, "handle": row.handle, "levels": levels_json(access.levels)}


@router.post("session.prestep", response=outputs.PrestepAnswer, summary="What to add before the next step")
def session_prestep(request: HttpRequest, given: inputs.PrestepBody) -> dict[str, Any]:
    access = own(request, given.session_id)
    messages = prestep(access, text=given.text, ack=given.ack, dry_run=given.dry_run)
    return {
        "messages": [message.as_json() for message in messages],
        "evict": {"due": False, "usedTokens": 0, "threshold": 0},
    }
