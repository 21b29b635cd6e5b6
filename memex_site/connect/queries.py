"""What the Connect page shows: each agent with what is wired, and the tokens."""

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db.models import Max, QuerySet

from memex_site.models import AgentToken
from sessions_app.models import OpenedSession

from . import dsh
from .errors import EditRefused
from .files import file_read
from .plan import Plan, Wired, wired
from .services import AGENTS, agent_targets, connect_plan, disconnect_plan, installation, token_works

TOKENS_LISTED = 100
STATES = {
    Wired.YES: "wired",
    Wired.OTHERWISE: "wired otherwise than this Memex would do it",
    Wired.NO: "not wired",
}


@dataclass(frozen=True)
class AgentCard:
    """`hooks`, `mcp`: None where there is nothing to wire, or it can't be read: then `problem` says why.
    `connect`, `undo`: what these would change, None = nothing. Times: milliseconds UTC."""

    agent: str
    title: str
    home: Path
    is_found: bool
    hooks: Wired | None
    mcp: Wired | None
    has_token: bool
    heard_at: int | None
    token_used_at: int | None
    connect: Plan | None
    undo: Plan | None
    notes: list[str]
    problem: str = ""
    snippet: str = ""

    @property
    def is_connected(self) -> bool:
        return self.has_token and {self.hooks, self.mcp} <= {Wired.YES, None} and not self.problem

    @property
    def is_partly(self) -> bool:
        """Something of ours is there, but not all, or not as it should be."""
        return not self.is_connected and self.undo is not None

    @property
    def hooks_state(self) -> str:
        return STATES[self.hooks] if self.hooks else ""

    @property
    def mcp_state(self) -> str:
        return STATES[self.mcp] if self.mcp else ""


def agent_cards(port: int) -> list[AgentCard]:
    """`port`: on which the server that is asked listens."""
    heard = dict(OpenedSession.objects.values_list("agent").annotate(at=Max("heard_at")))
    used = dict(AgentToken.objects.values_list("agent").annotate(at=Max("last_used_at")))
    return [_card(agent, port, heard.get(agent), used.get(agent)) for agent in AGENTS]


def _card(agent: str, port: int, heard_at: int | None, used_at: int | None) -> AgentCard:
    home = settings.AGENT_HOMES[agent]
    states: dict[str, Wired] = {}
    connect = undo = None
    said: list[str] = []
    problem = ""
    if home.is_dir():
        try:
            states = _wired(agent, port)
            connect, undo = connect_plan(agent, port), disconnect_plan(agent, port)
            said = connect.notes
        except EditRefused as error:
            problem = str(error)
    is_wired = bool(states) and set(states.values()) == {Wired.YES}
    if connect and is_wired and not connect.token:
        # Over HTTP as well: that was chosen on the command line.
        connect = None
    return AgentCard(
        agent=agent,
        title=AGENTS[agent],
        home=home,
        is_found=home.is_dir(),
        hooks=states.get("hooks"),
        mcp=states.get("mcp"),
        has_token=token_works(agent),
        heard_at=heard_at,
        token_used_at=used_at,
        connect=connect if connect and not connect.is_empty else None,
        undo=undo if undo and not undo.is_empty else None,
        notes=said,
        problem=problem,
        snippet=dsh.snippet(installation(port)) if agent == dsh.AGENT else "",
    )


def _wired(agent: str, port: int) -> dict[str, Wired]:
    """Either way counts: by commands, or over HTTP."""
    states: dict[str, Wired] = {}
    for http in (False, True):
        for target in agent_targets(agent, port, http=http):
            for name, state in wired(target, file_read(target.path)).items():
                states[name] = state if states.get(name) != Wired.YES else Wired.YES
    return states


def tokens_listed() -> QuerySet[AgentToken]:
    """Those that work first, then the newest."""
    return AgentToken.objects.order_by("revoked_at", "-created_at", "-pk")[:TOKENS_LISTED]
