"""Connecting an agent, and taking it back: what the command and the page do."""

import sys
from pathlib import Path

from django.conf import settings
from django.db.models import QuerySet

from memex_site import hook_client, tokens
from memex_site.models import AgentToken
from records.files import write_atomic
from records.home import agents_dir
from sessions_app.principals import CAPACITY, READ, WRITE

from . import claude_code, codex, dsh
from .errors import EditRefused
from .files import edit_apply, edit_records, edit_records_write, file_read
from .plan import FileEdit, Installation, Plan, Target, connecting, disconnecting, notes

AGENTS = {"claude-code": "Claude Code", "codex": "Codex", "dsh": "DSH"}
# Levels are a person's to switch.
RIGHTS = (READ, WRITE, CAPACITY)


def installation(port: int) -> Installation:
    # The name that stays: the server and a command may have been started by different ones.
    named = Path(sys.prefix) / "bin" / "python"
    return Installation(
        python=str(named) if named.exists() else sys.executable,
        hook_client=str(Path(hook_client.__file__).absolute()),
        manage=str(settings.BASE_DIR / "manage.py"),
        home=str(settings.MEMEX_HOME),
        port=port,
    )


def agent_targets(agent: str, port: int, *, http: bool = False) -> list[Target]:
    home = settings.AGENT_HOMES[agent]
    if agent == claude_code.AGENT:
        return claude_code.targets(home, settings.CLAUDE_STATE_FILE, installation(port), http=http)
    if agent == codex.AGENT:
        return codex.targets(home, installation(port), http=http)
    return []


def connect_plan(agent: str, port: int, *, http: bool = False) -> Plan:
    """Raises EditRefused for an agent that isn't here, and settings that can't be edited safely."""
    home = settings.AGENT_HOMES[agent]
    if not home.is_dir():
        raise EditRefused(f"{AGENTS[agent]} was not found: there is no folder {home}. Start it once first.")
    records = edit_records(agent)
    edits: list[FileEdit] = []
    said: list[str] = []
    for target in agent_targets(agent, port, http=http):
        before = file_read(target.path)
        edits.append(connecting(target, before, records.get(str(target.path))))
        said += notes(target, before)
    return Plan(agent, False, not token_works(agent), edits, said + _notes(agent, http=http))


def disconnect_plan(agent: str, port: int) -> Plan:
    """Raises EditRefused for settings that can't be edited safely."""
    records = edit_records(agent)
    edits = [
        disconnecting(target, file_read(target.path), records.get(str(target.path)))
        for target in agent_targets(agent, port)
    ]
    has_token = token_path(agent).exists() or _tokens(agent).exists()
    return Plan(agent, True, has_token, edits, [dsh.BY_HAND] if agent == dsh.AGENT else [])


def plan_apply(plan: Plan) -> list[str]:
    """Does what `plan` says; one line for each thing that was done. Raises EditRefused, TokenRefused; what
    was done by then stays, and doing it again does the rest."""
    done: list[str] = []
    if plan.token and not plan.is_undo:
        token_make(plan.agent)
        done.append(f"Made the token {token_path(plan.agent)}.")
    records = edit_records(plan.agent)
    for edit in plan.changes:
        if not plan.is_undo and edit.record is not None:
            # First: a record of what was not done yet harms nobody.
            records[str(edit.path)] = edit.record
            edit_records_write(plan.agent, records)
        kept = edit_apply(plan.agent, edit)
        verb = "Removed" if edit.after is None else "Wrote"
        done.append(f"{verb} {edit.path}." + (f" As it was: {kept}" if kept else ""))
    if plan.is_undo:
        edit_records_write(plan.agent, {})
        if plan.token:
            token_remove(plan.agent)
            done.append("Revoked the token.")
    return done


def token_path(agent: str) -> Path:
    return agents_dir() / f"{agent}.token"


def token_works(agent: str) -> bool:
    """Whether the agent's file holds a token that is let in; asking doesn't count as its use."""
    try:
        token = token_path(agent).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return False
    return AgentToken.objects.filter(token_hash=tokens.token_hash(token), revoked_at=None).exists()


def token_make(agent: str) -> None:
    """In place of one whose file is gone: nobody can read that again."""
    tokens.token_revoke(agent)
    new = tokens.token_create(agent, rights=RIGHTS, agent=agent)
    write_atomic(token_path(agent), new.token.encode() + b"\n")


def token_remove(agent: str) -> None:
    tokens.token_revoke(agent)
    token_path(agent).unlink(missing_ok=True)


def _tokens(agent: str) -> QuerySet[AgentToken]:
    return AgentToken.objects.filter(name=agent, revoked_at=None)


def _notes(agent: str, *, http: bool) -> list[str]:
    said = []
    if agent == codex.AGENT and (settings.AGENT_HOMES[agent] / "hooks.json").exists():
        said.append("There is a hooks.json as well: it stays as it is, and Codex runs the hooks of both.")
    if agent == dsh.AGENT:
        said.append(dsh.BY_HAND)
    elif http:
        said.append(
            f"What goes over HTTP reads the token from the variable MX_TOKEN: start {AGENTS[agent]} with "
            f'MX_TOKEN="$(cat {token_path(agent)})" in its environment.'
        )
    return said
