"""What happens at each hook of an agent. Hooks are hints: every archive also happens without them.

Injected is at SessionStart and UserPromptSubmit only, since agents take nothing at the others; what a
compaction leaves to be said waits for the next of these two.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from records.clock import now_ms
from records.ids import workspace_key
from sessions_app import worker
from sessions_app.access import Forbidden, session_access
from sessions_app.injection.budget import CLAUDE_CODE, CODEX, UNLIMITED
from sessions_app.injection.messages import Message
from sessions_app.injection.prestep import prestep
from sessions_app.injection.receipts import receipts_pending
from sessions_app.injection.state import window_began
from sessions_app.levels import levels_of
from sessions_app.models import AgentSession
from sessions_app.opening import KnownSession, session_known, session_note
from sessions_app.principals import Principal
from sessions_app.workspaces import is_paused

from .payload import Payload, transcript_of

START, PROMPT, END, COMPACTED = "SessionStart", "UserPromptSubmit", "SessionEnd", "PostCompact"
# All of which something follows; any other event is heard, and nothing more.
EVENTS = (START, PROMPT, "PreCompact", COMPACTED, "Stop", "SubagentStop", END)
_NEW_WINDOW = ("compact", "clear")
_BUDGETS = {"claude-code": CLAUDE_CODE, "codex": CODEX}
# After a compaction an agent starts again at once: its receipt is worth a moment.
_RECEIPT_WAIT_SECONDS, _LOOK_AGAIN_SECONDS = 0.8, 0.05


def hook_handle(principal: Principal, agent: str, event: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the agent takes for the hook's output; {} for nothing. Raises BadPayload, Forbidden,
    SessionTaken, SessionForgotten, UnknownSession, ValueError."""
    if not principal.is_owner and principal.agent != agent:
        raise Forbidden(f"This token is not one of {agent}.")
    payload = Payload.of(given)
    session = _session(principal, agent, payload)
    if session is None:
        return {}
    log = transcript_of(payload, agent) if settings.MEMEX_AUTO_ARCHIVE else None
    if log is not None:
        worker.nudge(log)
    if payload.agent_id:
        return {}  # of a sub-agent
    if event == COMPACTED or (event == START and payload.source in _NEW_WINDOW):
        window_began(session.session_id, now_ms())
    if event == END:
        AgentSession.objects.filter(pk=session.session_id).update(ended_at=now_ms())
    elif event in (START, PROMPT):
        AgentSession.objects.filter(pk=session.session_id).exclude(ended_at=None).update(ended_at=None)
    if event not in (START, PROMPT):
        return {}
    if event == START and payload.source == "compact" and log is not None:
        _receipt_await(session.session_id)
    prompt = payload.prompt if event == PROMPT else ""
    messages = prestep(
        session_access(principal, session),
        text=prompt,
        budget=_BUDGETS.get(agent, UNLIMITED),
        keeps_all=True,
    )
    return output(event, messages)


def _session(principal: Principal, agent: str, payload: Payload) -> KnownSession | None:
    """None when it is off or paused: then nothing is kept of it either."""
    found = session_known(payload.session_id)
    known = found or _unread(agent, payload)
    if not levels_of(known.pool_id, known.workspace_key).any:
        return None
    if is_paused((known.session_id, known.pool_id), known.workspace_key):
        return None
    row = session_note(principal, payload.session_id, agent, cwd=known.cwd, by_hook=True, known=found)
    return replace(known, handle=row.handle)


def _unread(agent: str, payload: Payload) -> KnownSession:
    """A session that was not heard of yet, as what a hook says of it."""
    key = workspace_key(payload.cwd, payload.session_id)
    return KnownSession(payload.session_id, agent, payload.cwd, key, payload.session_id)


def _receipt_await(session_id: str) -> None:
    until = time.monotonic() + _RECEIPT_WAIT_SECONDS
    while time.monotonic() < until and not receipts_pending(session_id):
        time.sleep(_LOOK_AGAIN_SECONDS)


def output(event: str, messages: list[Message]) -> dict[str, Any]:
    """As Claude Code and Codex take it; Codex refuses what it doesn't know."""
    if not messages:
        return {}
    text = "\n".join(message.wrapped for message in messages)
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
