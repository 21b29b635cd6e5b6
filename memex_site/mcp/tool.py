"""What a tool is, and what several of them say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sessions_app.access import Access

from .parameters import Parameter
from .rendering import line

Arguments = Mapping[str, Any]

SESSION = Parameter(
    "session",
    "string",
    'Which session this is for: the handle "mxs_…" that stands in the text which Memex adds to your context. '
    "Without it only what is shared in the folder can be seen.",
    low=1,
    high=64,
)
PAGE = Parameter("page", "integer", "Page of a long answer.", default=1, low=1, high=10_000)
RECORD_ID_MAX = 45


@dataclass(frozen=True)
class Tool:
    """`run` answers one call, in a thread of its own. `max_chars`: of its answers, for clients that cut
    what is longer than they expect. Every tool takes `session` besides its parameters."""

    name: str
    title: str
    description: str
    right: str
    run: Callable[[Access, Arguments], str]
    own_parameters: tuple[Parameter, ...] = ()
    is_read_only: bool = True
    is_idempotent: bool = True
    max_chars: int | None = None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (*self.own_parameters, SESSION)


def reach(access: Access) -> str:
    """What an empty answer is to add: why less was looked at than the caller may think."""
    if not access.levels.any:
        where = "this session" if access.session else line(access.cwd, 200)
        return (
            f"Memory is off for {where}: nothing is kept. Your user can switch it on, on the Workspaces page or "
            "with manage.py memory level."
        )
    if access.session is None:
        return (
            f"Only what is shared in {line(access.cwd, 200)} was looked at: with session, the handle from the "
            "text that Memex adds to your context, a session's private records are as well."
        )
    return ""
