"""How a session that is pushed is known: by a source row like those of logs, under a path that no file has."""

from .logs import registry
from .logs.events import LogFormat
from .models import Source

PREFIX = "push:"


def push_path(session_id: str) -> str:
    return PREFIX + session_id


def is_pushed(session_id: str) -> bool:
    return Source.objects.filter(path=push_path(session_id)).exists()


def format_for(session_id: str, agent: str) -> LogFormat:
    """The format of a session's rows. An agent whose logs Memex reads may push a session all the same."""
    log_format = registry.FORMATS.get(agent)
    if log_format is None or is_pushed(session_id):
        return registry.PUSHED
    return log_format
