"""What an agent hands to a hook. Open: agents add fields at each release; only what is used is looked at."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any

from django.conf import settings
from django.db.models import Q

from sessions_app.discovery import head_read
from sessions_app.models import Source


class BadPayload(ValueError):
    """A field that is needed is missing, or is no text."""


@dataclass(frozen=True)
class Payload:
    """`source`: why a session starts; `prompt`: what was typed; `agent_id`: of a sub-agent, "" for the session
    itself."""

    session_id: str
    cwd: str = ""
    transcript_path: str = ""
    source: str = ""
    prompt: str = ""
    reason: str = ""
    agent_id: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Payload":
        def text(*names: str) -> str:
            for name in names:
                if isinstance(value := given.get(name), str):
                    return value
            return ""

        session_id = text("session_id", "sessionId", "thread_id")
        if not session_id:
            raise BadPayload("The payload has no session_id.")
        return cls(
            session_id=session_id,
            cwd=text("cwd"),
            transcript_path=text("agent_transcript_path") or text("transcript_path"),
            source=text("source"),
            prompt=text("prompt"),
            reason=text("reason"),
            agent_id=text("agent_id"),
        )


def transcript_of(payload: Payload, agent: str) -> Path | None:
    """The log that a hook names, if it may be read: a regular file below its agent's folder, whatever links
    lead there, that is this session's."""
    home = settings.AGENT_HOMES.get(agent)
    if home is None or not payload.transcript_path or "\0" in payload.transcript_path:
        return None
    try:
        path = Path(payload.transcript_path).resolve(strict=True)
        if not path.is_relative_to(home.resolve()) or not S_ISREG(path.stat().st_mode):
            return None
        if _is_known(payload, agent):
            return Path(payload.transcript_path)
        head = head_read(path, agent)
    except (OSError, ValueError, RuntimeError):
        return None
    is_its_own = head is not None and payload.session_id in (head.session_id, head.parent_id)
    # By the name that the watcher knows it by.
    return Path(payload.transcript_path) if is_its_own else None


def _is_known(payload: Payload, agent: str) -> bool:
    """Whether discovery has read this log's head already: a hook comes at each prompt."""
    named = Source.objects.filter(path=payload.transcript_path, agent=agent)
    return named.filter(Q(session_id=payload.session_id) | Q(parent_id=payload.session_id)).exists()
