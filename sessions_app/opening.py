"""Sessions as agents name them: who they are, whose they are, and the handle that stands for one."""

import base64
import re
import secrets
from dataclasses import dataclass

from records.clock import now_ms
from records.ids import workspace_key
from records.tombstones import is_forgotten

from .levels import SessionForgotten, pool_session_id
from .models import AgentSession, OpenedSession, Source
from .principals import Principal

AGENT = re.compile(r"[a-z0-9-]{1,32}")
SESSION_ID_MAX = 200
HANDLE_PREFIX = "mxs_"
_HANDLE_BYTES = 10
# `heard_at` is for people to look at: no write for each step of an agent.
_HEARD_EVERY_MS = 60 * 1000


class UnknownSession(LookupError):
    """There is none, or the one who asks may not know of it."""


class SessionTaken(Exception):
    """It belongs to another token, or is read from its agent's log."""


@dataclass(frozen=True, slots=True)
class KnownSession:
    """`token_id` None: it belongs to its agent, whose logs or hooks brought it. `handle` "": none was made."""

    session_id: str
    agent: str
    cwd: str
    workspace_key: str
    pool_id: str
    token_id: int | None = None
    context_window: int | None = None
    handle: str = ""


def session_known(session_id: str) -> KnownSession | None:
    """A session that was read, opened, or of which a log was found."""
    if not session_id or len(session_id) > SESSION_ID_MAX or is_forgotten("session", session_id):
        return None
    opened = OpenedSession.objects.filter(pk=session_id).first()
    token_id, handle = (opened.token_id, opened.handle) if opened else (None, "")
    row = AgentSession.objects.filter(pk=session_id).first()
    if opened is not None and row is not None and opened.agent != row.agent:
        token_id = None  # whoever opened it under this id is not the agent whose log it is
    if row is not None:
        window = row.context_window or (opened.context_window if opened else None)
        return KnownSession(
            session_id, row.agent, row.cwd, row.workspace_key, row.pool_session_id, token_id, window, handle
        )
    source = Source.objects.filter(session_id=session_id).order_by("pk").first()
    if source is not None:
        pool = pool_session_id(session_id, source.parent_id, source.relation)
        cwd, key = source.cwd, workspace_key(source.cwd, session_id)
        window = opened.context_window if opened else None
        return KnownSession(session_id, source.agent, cwd, key, pool, token_id, window, handle)
    if opened is not None:
        relation = "subagent" if opened.parent_id else ""
        pool = pool_session_id(session_id, opened.parent_id, relation)
        key = workspace_key(opened.cwd, session_id)
        window = opened.context_window
        return KnownSession(session_id, opened.agent, opened.cwd, key, pool, token_id, window, handle)
    return None


def belongs_to(session: KnownSession, principal: Principal) -> bool:
    """A session is its token's, or its agent's; the owner's are all."""
    if principal.is_owner:
        return True
    if not principal.may_enter(session.workspace_key):
        return False
    if session.token_id is not None:
        return session.token_id == principal.token_id
    return bool(principal.agent) and session.agent == principal.agent


def session_note(
    principal: Principal,
    session_id: str,
    agent: str,
    *,
    cwd: str = "",
    parent_id: str = "",
    context_window: int | None = None,
    by_hook: bool = False,
    known: KnownSession | None = None,
) -> OpenedSession:
    """Notes that an agent speaks of a session; again is the same. `by_hook`: it becomes its agent's, not the
    token's. `known`: for whom has asked for it already. Raises SessionTaken, SessionForgotten, ValueError for an id or agent that can't be."""
    if not session_id or len(session_id) > SESSION_ID_MAX:
        raise ValueError(f"A session id has 1 to {SESSION_ID_MAX} characters.")
    if not AGENT.fullmatch(agent):
        raise ValueError("An agent's name has 1 to 32 characters: a-z, 0-9 and -.")
    if is_forgotten("session", session_id):
        raise SessionForgotten(f"{session_id} was forgotten.")
    known = known or session_known(session_id)
    if known is not None and (not belongs_to(known, principal) or known.agent != agent):
        raise SessionTaken(f"There is a session {session_id} of another agent or token.")
    if known is None and not principal.may_enter(workspace_key(cwd, session_id)):
        raise UnknownSession(session_id)
    if known is None and parent_id:
        # A sub-agent sees its parent's records.
        parent = session_known(parent_id)
        if parent is None or not belongs_to(parent, principal):
            raise UnknownSession(f"No session {parent_id}.")
    now = now_ms()
    token_id = None if by_hook or (known and known.token_id is None) else principal.token_id
    row, is_new = OpenedSession.objects.get_or_create(
        session_id=session_id,
        defaults={
            "handle": _handle(), "agent": agent, "cwd": cwd, "parent_id": parent_id,
            "context_window": context_window, "token_id": token_id, "opened_at": now, "heard_at": now,
        },
    )  # fmt: skip
    if not is_new:
        _heard(row, now, context_window)
    return row


def _heard(row: OpenedSession, now: int, context_window: int | None) -> None:
    if context_window and context_window != row.context_window:
        row.context_window = context_window
        row.save(update_fields=["context_window"])
    if now - row.heard_at >= _HEARD_EVERY_MS:
        row.heard_at = now
        row.save(update_fields=["heard_at"])


def session_handle(session: KnownSession) -> str:
    """The session's handle, made when first needed."""
    if session.handle:
        return session.handle
    now = now_ms()
    row, _ = OpenedSession.objects.get_or_create(
        session_id=session.session_id,
        defaults={
            "handle": _handle(), "agent": session.agent, "cwd": session.cwd, "opened_at": now, "heard_at": now,
        },
    )  # fmt: skip
    return row.handle


def session_of_handle(handle: str) -> KnownSession | None:
    found = OpenedSession.objects.filter(handle=handle).values_list("session_id", flat=True).first()
    return session_known(found) if found else None


def _handle() -> str:
    return HANDLE_PREFIX + base64.b32encode(secrets.token_bytes(_HANDLE_BYTES)).decode("ascii").lower()
