"""Who may do what, and see what. Every request of an agent goes through here, whatever door it comes by."""

from dataclasses import dataclass

from records.ids import workspace_key
from records.models import Record
from records.models import Scope as Pool
from records.scope import OWNER, Scope
from records.secrets.queries import sensitive_records

from .levels import Levels, levels_of, workspace_levels
from .models import AgentSession, ArchivedCompaction
from .opening import KnownSession, UnknownSession, belongs_to, session_known, session_of_handle
from .principals import Principal
from .workspaces import workspace_joined


class Forbidden(Exception):
    """MEMORY_FORBIDDEN: the token lacks the right for this."""


@dataclass(frozen=True)
class Access:
    """What one request may see. `session` None: by folder alone, or the owner's view of everything."""

    principal: Principal
    scope: Scope
    levels: Levels
    session: KnownSession | None = None
    workspace_key: str = ""
    cwd: str = ""

    @property
    def is_everything(self) -> bool:
        return self.scope.is_owner

    @property
    def keys(self) -> frozenset[str]:
        """The workspaces that count as this one."""
        return self.scope.workspace_keys or frozenset({self.workspace_key} - {""})


def require(principal: Principal, right: str) -> None:
    """Raises Forbidden."""
    if not principal.may(right):
        raise Forbidden(f"This token lacks the right to {right}. Its owner can make one that has it.")


def require_owner(principal: Principal) -> None:
    if not principal.is_owner:
        raise Forbidden("Only the owner may do this, in the pages or with manage.py.")


def access_of(principal: Principal, *, session_id: str = "", cwd: str = "") -> Access:
    """By a session, else by a folder (its shared records only); the owner by neither: everything. Raises
    UnknownSession, also for what the principal may not know of."""
    if session_id:
        return session_access(principal, _own(session_known(session_id), principal, session_id))
    if cwd:
        return folder_access(principal, cwd)
    if principal.is_owner:
        return Access(principal, OWNER, Levels(True, True))
    raise UnknownSession("Name the session (sessionId), or a folder (cwd) that this token is limited to.")


def access_by_handle(principal: Principal, handle: str) -> Access:
    """Raises UnknownSession."""
    return session_access(principal, _own(session_of_handle(handle), principal, handle))


def _own(session: KnownSession | None, principal: Principal, name: str) -> KnownSession:
    if session is None or not belongs_to(session, principal):
        raise UnknownSession(f"No session {name}.")
    return session


def session_access(principal: Principal, session: KnownSession) -> Access:
    levels = levels_of(session.pool_id, session.workspace_key)
    return Access(
        principal, _scope(principal, session, levels), levels, session, session.workspace_key, session.cwd
    )


def _scope(principal: Principal, session: KnownSession, levels: Levels) -> Scope:
    pools = frozenset(
        pool for pool, is_on in ((Pool.SESSION, levels.l2), (Pool.WORKSPACE, levels.l3)) if is_on
    )
    return Scope(
        workspace_keys=_keys(principal, session.workspace_key),
        pools=pools,
        session_ids=frozenset({session.pool_id}),
        granted=_inherited(session, levels) if levels.any else frozenset(),
    )


def _keys(principal: Principal, key: str) -> frozenset[str]:
    """A workspace and those that were joined with it, as far as the token may go."""
    return frozenset(each for each in workspace_joined(key) if principal.may_enter(each))


def _inherited(session: KnownSession, levels: Levels) -> frozenset[tuple[str, str]]:
    """Private records of other sessions that this one, a fork of theirs, contains. Without L2, none that is
    private because of a secret: its own session doesn't see it either."""
    family = AgentSession.objects.filter(pool_session_id=session.pool_id).values("session_id")
    held = ArchivedCompaction.objects.filter(session_id__in=family).values("record_id")
    private = Record.objects.filter(pk__in=held, scope=Pool.SESSION).exclude(session_id=session.pool_id)
    if not levels.l2:
        private = private.exclude(pk__in=sensitive_records().values("pk"))
    return frozenset(private.values_list("pk", "session_id"))


def folder_access(principal: Principal, cwd: str, *, by_process: bool = False) -> Access:
    """The shared records of a folder's workspace. A caller that merely names a folder must have a token
    that lists it; `by_process`: it runs there, as the store's own user. Raises UnknownSession."""
    key = workspace_key(cwd, "")
    listed = principal.workspaces is not None and key in principal.workspaces
    if not (principal.is_owner or listed or (by_process and principal.may_enter(key))):
        raise UnknownSession(f"This token isn't limited to {cwd}: name the session instead.")
    levels = Levels(l3=workspace_levels(key).l3)
    pools = frozenset({Pool.WORKSPACE}) if levels.l3 else frozenset()
    return Access(principal, Scope(_keys(principal, key), pools), levels, None, key, cwd)
