"""Who calls, and what the call may see."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sessions_app.access import Access, access_by_handle, folder_access
from sessions_app.opening import UnknownSession
from sessions_app.principals import Principal

from .rendering import line

_HANDLE = (
    "Give session: the handle mxs_… that stands in the text which Memex adds to your context, such as "
    '[MEMORY CATALOG] or [MEMORY CHECKPOINT] (session "mxs_…").'
)
_NONE_THERE = (
    "If there is none, ask your user to connect this agent to Memex (manage.py connect) and to switch memory "
    "on for this folder."
)


class NotLetIn(Exception):
    """The token is none that works; the message says how to get one."""


class NoSession(Exception):
    """It can't be told what the call is for; the message says how to say it."""


@dataclass(frozen=True)
class Door:
    """One way in. `principal`: of a request (None over stdio), asked at every call; NotLetIn.

    A call without a session is for a folder: `folder` when the door knows it, else the client's first root,
    else `fallback`. `by_process`: this process runs there as the user's own, and is not merely told so."""

    principal: Callable[[Any], Principal]
    folder: str = ""
    fallback: str = ""
    by_process: bool = False


# The key of an HTTP request's scope that says whom its token stands for.
PRINCIPAL = "memex.principal"


def http_door() -> Door:
    """Whoever comes in by HTTP was checked before; where it runs is for it to say."""

    def principal(request: Any) -> Principal:
        found = request.scope.get(PRINCIPAL)
        if not isinstance(found, Principal):
            raise NotLetIn("This needs a token that works.")
        return found

    return Door(principal)


def access_for(door: Door, principal: Principal, session: str | None, folder: str) -> Access:
    """NoSession."""
    if session:
        try:
            return access_by_handle(principal, session)
        except UnknownSession:
            raise NoSession(
                f"There is no session {line(session, 60)} for this token. {_HANDLE} {_NONE_THERE}"
            ) from None
    if not folder:
        raise NoSession(f"It can't be told which session this call is for. {_HANDLE} {_NONE_THERE}")
    try:
        return folder_access(principal, folder, by_process=door.by_process)
    except UnknownSession:
        raise NoSession(
            f"Without a session this token may not read what is shared in {line(folder, 200)}. {_HANDLE} "
            f"{_NONE_THERE}"
        ) from None
