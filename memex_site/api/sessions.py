"""Routes of an agent's own session: what it pushes, what it reads back, what it is told."""

import json
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router

from sessions_app.access import Access, access_of, require
from sessions_app.evicting import Due, Rules, evict_due, eviction_apply, eviction_planned, eviction_undo
from sessions_app.evicting import Eviction as Evicted
from sessions_app.injection.prestep import prestep
from sessions_app.levels import SessionPaused
from sessions_app.opening import UnknownSession, session_note
from sessions_app.operations.shapes import levels_json
from sessions_app.principals import CAPACITY, READ, WRITE, Principal
from sessions_app.push import PushRefused, session_compaction_push, session_events_push
from sessions_app.push import session_open as push_open
from sessions_app.queries import SessionNotFound
from sessions_app.surface import session_read as surface_read
from sessions_app.surface import session_surface as surface_page

from . import inputs, outputs
from .door import refuse_unknown
from .idempotency import once

router = Router(tags=["Sessions"], by_alias=True)

_LAST_SEQ = 2**53 - 1
_EVENT = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": True,
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": 120},
        "role": {"type": "string"},
        "type": {"type": "string"},
        "source": {"type": "object"},
        "time": {"type": "integer", "description": "milliseconds UTC"},
        "content": {"description": "text, or blocks as the model's API has them"},
        "text": {"type": "string"},
        "toolCallId": {"type": "string"},
        "usage": {"type": "object"},
    },
}
_EVENTS_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["sessionId", "events"],
                    "additionalProperties": False,
                    "properties": {
                        "sessionId": {"type": "string", "minLength": 1, "maxLength": 200},
                        "events": {"type": "array", "items": _EVENT},
                    },
                }
            }
        },
    }
}


def own(request: HttpRequest, session_id: str, right: str = WRITE) -> Access:
    """The session that a route is about. Raises Forbidden, UnknownSession."""
    principal: Principal = request.auth  # type: ignore[attr-defined]  # ninja puts it there
    require(principal, right)
    return access_of(principal, session_id=session_id)


def rules() -> Rules:
    return Rules(
        settings.MEMEX_EVICT_AT_RATIO,
        settings.MEMEX_RETAIN_RATIO,
        settings.MEMEX_EVICT_MAX_CHARS,
        settings.MEMEX_CAPTURE_LEVEL,
    )


def due_json(due: Due) -> dict[str, Any]:
    return {"due": due.due, "usedTokens": due.used_tokens, "threshold": due.threshold}


def due_of(access: Access) -> dict[str, Any]:
    """Of a session that nothing was read of, nothing is due."""
    assert access.session is not None
    if not access.levels.any:
        return due_json(Due(False, 0, 0))
    session = access.session
    ratio = settings.MEMEX_EVICT_AT_RATIO
    try:
        # The window was named when the session was opened, perhaps with its levels off.
        return due_json(evict_due(session.session_id, None, session.context_window, evict_at_ratio=ratio))
    except (SessionNotFound, SessionPaused):
        return due_json(Due(False, 0, 0))


@router.post(
    "session.events",
    response=outputs.EventsAnswer,
    openapi_extra=_EVENTS_BODY,
    summary="Push events; each is kept as the bytes that come",
)
def session_events(request: HttpRequest) -> dict[str, Any]:
    access = own(request, _session_id(request.body))
    assert access.session is not None
    pushed = session_events_push(access.session.session_id, request.body)
    return {
        "stored": pushed.stored,
        "duplicates": pushed.duplicates,
        "nextSeq": pushed.next_seq,
        "evict": due_of(access),
    }


def _session_id(body: bytes) -> str:
    """The session that a push names; its events are looked at as bytes, by whoever stores them."""
    try:
        given = json.loads(body.decode("utf-8-sig", "surrogateescape"))
    except (ValueError, RecursionError):
        raise PushRefused("The body is no JSON.") from None
    named = given.get("sessionId") if isinstance(given, dict) else None
    if not isinstance(named, str) or not named:
        raise PushRefused("sessionId is missing.")
    return named


@router.get("session.surface", response=outputs.SurfaceAnswer, summary="What is in the window now")
def session_surface(request: HttpRequest, given: Query[inputs.SurfaceQuery]) -> dict[str, Any]:
    refuse_unknown(request, given)
    page = surface_page(_named(own(request, given.session_id, READ)), given.after)
    return {
        "messages": [asdict(message) for message in page.messages],
        "usedTokens": page.used_tokens,
        "cursor": page.cursor,
        "restarted": page.restarted,
        "more": page.more,
    }


@router.get("session.read", response=outputs.ReadAnswer, summary="Events as they were")
def session_read(request: HttpRequest, given: Query[inputs.ReadQuery]) -> dict[str, Any]:
    refuse_unknown(request, given)
    last = _LAST_SEQ if given.last is None else given.last
    events, more = surface_read(
        _named(own(request, given.session_id, READ)), given.first, last, raw=given.raw
    )
    return {
        "events": [
            {
                "seq": event.seq, "row": event.row, "role": event.role, "type": event.type,
                "surface": event.surface, "shadowedBy": event.shadowed_by, "time": event.time, "text": event.text,
            }
            for event in events
        ],
        "more": more,
    }  # fmt: skip


def _named(access: Access) -> str:
    if access.session is None:
        raise UnknownSession("Name the session with sessionId.")
    return access.session.session_id


@router.post("session.compaction", response=outputs.CompactionAnswer, summary="A compaction has happened")
@once
def session_compaction(request: HttpRequest, given: inputs.CompactionBody) -> dict[str, Any]:
    done = session_compaction_push(
        _named(own(request, given.session_id)),
        given.compaction_id,
        summary=given.summary,
        removed_ids=given.removed_ids,
        trigger=given.trigger,
        tokens_before=given.tokens_before,
        tokens_after=given.tokens_after,
    )
    return {"recordId": done.record_id or None, "state": done.state, "missing": list(done.missing)}


@router.post("session.evict", response=outputs.EvictAnswer, summary="Make room in the window")
@once
def session_evict(request: HttpRequest, given: inputs.EvictBody) -> dict[str, Any]:
    access = own(request, given.session_id, CAPACITY)
    session_id = _named(access)
    window = given.context_window or (access.session.context_window if access.session else None)
    if given.mode == "undo":
        return _evicted(eviction_undo(session_id, given.plan_id or ""))
    if given.mode == "plan":
        return _evicted(
            eviction_planned(session_id, context_window=window, used_tokens=given.used_tokens, rules=rules())
        )
    return _evicted(
        eviction_apply(
            session_id,
            given.plan_id or "",
            context_window=window,
            used_tokens=given.used_tokens,
            rules=rules(),
        )
    )


def _evicted(done: Evicted) -> dict[str, Any]:
    return {
        "due": done.due,
        "usedTokens": done.used_tokens,
        "threshold": done.threshold,
        "planId": done.plan_id or None,
        "startSeq": done.start_seq,
        "endSeq": done.end_seq,
        "tokens": done.tokens,
        "stops": [{"seq": seq, "why": why} for seq, why in done.stops],
        "recordId": done.record_id or None,
        "messageId": done.message_id or None,
        "message": done.message or None,
    }


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
    push_open(
        given.session_id,
        given.agent,
        cwd=given.cwd,
        title=given.title,
        parent_session_id=given.parent_session_id,
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
        "evict": due_of(access),
    }
