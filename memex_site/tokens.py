"""Agents' tokens: made, checked and revoked here."""

import hashlib
import re
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from records.clock import now_ms
from records.durable import durable_write
from records.ids import workspace_key
from records.ledger import ledger_write
from sessions_app.archiving import AGENTS
from sessions_app.models import OpenedSession
from sessions_app.principals import READ, RIGHTS, WRITE, Principal

from .models import AgentToken

PREFIX = "mx_"
# Capacity is asked for, levels are the owner's to give: `connect` grants neither of the latter.
USUAL_RIGHTS = (READ, WRITE)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
AGENT = re.compile(r"[a-z0-9-]{1,32}")
LAST_USED_EVERY_MS = 5 * 60 * 1000


class TokenRefused(ValueError):
    """The name, a right or the agent is not what it must be; the message says how."""


@dataclass(frozen=True)
class NewToken:
    row: AgentToken
    # Shown once: nobody can read it again.
    token: str


def token_create(
    name: str, *, rights: Collection[str] = USUAL_RIGHTS, folders: Iterable[str] = (), agent: str = ""
) -> NewToken:
    """`folders`: absolute; the token is limited to their workspaces. Raises TokenRefused."""
    if not NAME.fullmatch(name):
        raise TokenRefused(f"{name!r} can't name a token: up to 64 letters, digits, dots, - and _.")
    if unknown := sorted(set(rights) - set(RIGHTS)):
        raise TokenRefused(f"There is no right {', '.join(unknown)}: {', '.join(RIGHTS)}.")
    if not rights:
        raise TokenRefused(f"A token needs at least one right: {', '.join(RIGHTS)}.")
    if agent and not AGENT.fullmatch(agent):
        raise TokenRefused(f"{agent!r} can't name an agent: up to 32 of a–z, 0–9 and -.")
    token = PREFIX + secrets.token_urlsafe(32)
    with durable_write():
        if AgentToken.objects.filter(name=name, revoked_at=None).exists():
            raise TokenRefused(f"There is a token {name} already. Revoke it first, or take another name.")
        row = AgentToken.objects.create(
            name=name,
            token_hash=token_hash(token),
            agent=agent,
            rights=[right for right in RIGHTS if right in rights],
            workspaces=[[workspace_key(folder, ""), folder] for folder in dict.fromkeys(folders)],
            created_at=now_ms(),
        )
    ledger_write("owner", "token create", [name])
    return NewToken(row, token)


def token_verify(token: str) -> Principal | None:
    """Whom a token stands for; None if it is none, or revoked."""
    row = AgentToken.objects.filter(token_hash=token_hash(token), revoked_at=None).first()
    if row is None:
        return None
    now = now_ms()
    if row.last_used_at is None or now - row.last_used_at >= LAST_USED_EVERY_MS:
        AgentToken.objects.filter(pk=row.pk).update(last_used_at=now)
    return principal_of(row)


def principal_of(row: AgentToken) -> Principal:
    keys = frozenset(key for key, _ in row.workspaces)
    return Principal(row.name, row.pk, row.agent, frozenset(row.rights), keys or None)


def token_revoke(name: str) -> bool:
    """False when there is none of this name that works."""
    with durable_write():
        revoked = AgentToken.objects.filter(name=name, revoked_at=None).update(revoked_at=now_ms())
    if revoked:
        ledger_write("owner", "token revoke", [name])
    return bool(revoked)


def token_adopt(principal: Principal, agent: str) -> Principal:
    """A token made for no agent in particular becomes that of the agent whose hook it sends first, unless it
    is in use for sessions that it opened itself."""
    if principal.token_id is None or principal.agent or agent not in AGENTS:
        return principal
    if OpenedSession.objects.filter(token_id=principal.token_id).exists():
        return principal
    AgentToken.objects.filter(pk=principal.token_id, agent="").update(agent=agent)
    return replace(principal, agent=agent)


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
