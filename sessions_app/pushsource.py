"""How a session that is pushed is known: by a source row like those of logs, under a path that no file has."""

from .logs import registry
from .logs.events import LogFormat
from .models import Source

PREFIX = "push:"


def push_path(session_id: str) -> str:
    return PREFIX + session_id


def is_pushed(session_id: str) -> bool:
    """Whether anything was pushed. One that was only opened may still turn out to have a log."""
    return Source.objects.filter(path=push_path(session_id), size__gt=0).exists()


def has_log_format(agent: str) -> bool:
    """Whether it is an agent whose logs Memex reads."""
    return agent in registry.FORMATS


def format_for(session_id: str, agent: str) -> LogFormat:
    """The format of a session's rows. An agent whose logs Memex reads may push a session all the same."""
    log_format = registry.FORMATS.get(agent)
    if log_format is None or is_pushed(session_id):
        return registry.PUSHED
    return log_format
