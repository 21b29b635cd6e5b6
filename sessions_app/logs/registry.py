"""Which formats there are, and which of them a file is in."""

from collections.abc import Iterable
from itertools import islice

from . import claude_code, codex, dsh, pushed
from .events import Head, LogFormat
from .rows import Row

# Logs may open with many rows of bookkeeping, or with damaged ones: one row decides nothing.
SNIFFED_ROWS = 500

FORMATS: dict[str, LogFormat] = {
    log_format.agent: log_format for log_format in (claude_code.FORMAT, codex.FORMAT, dsh.FORMAT)
}
# Of agents that have no log: their sessions are pushed.
PUSHED: LogFormat = pushed.FORMAT


def format_of(agent: str) -> LogFormat:
    """Raises KeyError for an agent whose logs Memex cannot read."""
    return FORMATS[agent]


def sniff(rows: Iterable[Row], path: str, agent: str | None = None) -> tuple[LogFormat, Head] | None:
    """The format (that of `agent`, if given) whose signature the first rows carry, and what they tell."""
    first = list(islice(rows, SNIFFED_ROWS))
    for log_format in [FORMATS[agent]] if agent in FORMATS else FORMATS.values():
        if head := log_format.head(first, path):
            return log_format, head
    return None
