"""The owner as a writer, who speaks for no agent."""

from records.models import Scope
from records.writing import Writer

from .models import AgentSession
from .workspaces import workspace_joined

ACTOR = "owner"


def writer_of_session(session: AgentSession) -> Writer:
    """Private to it."""
    return Writer(
        actor=ACTOR,
        by_person=True,
        scope=Scope.SESSION,
        workspace_key=session.workspace_key,
        workspace=session.cwd,
        session_id=session.pool_session_id,
    )


def writer_of_workspace(key: str, folder: str) -> Writer:
    return Writer(
        actor=ACTOR,
        by_person=True,
        scope=Scope.WORKSPACE,
        workspace_key=key,
        workspace=folder,
        joined=workspace_joined(key),
    )
