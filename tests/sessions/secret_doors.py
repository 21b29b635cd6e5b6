"""Records with a secret in them, by each of the ways in which a record is made."""

import json

from records.ids import workspace_key
from records.models import Record
from records.search.assembling import assemble
from records.search.grep import grep
from records.search.search import search
from records.writing import Writer, memory_write
from records.written import Written
from sessions_app.archiving import archive_run
from sessions_app.evicting import eviction_apply
from sessions_app.levels import level_enable
from sessions_app.push import session_open
from tests.records.secret_texts import GITHUB
from tests.sessions.pushes import CWD, SESSION, opened, push, turns
from tests.sessions.stories import session_id, write_log

DOORS = ("archive", "eviction", "write")


def log_with(agent_home, secret: str = GITHUB, number: int = 1):
    path = write_log(agent_home, number, compactions=1)
    spoken = json.dumps(f"harbour token {secret} of step 0.0")[1:-1]
    path.write_bytes(path.read_bytes().replace(b"harbour of step 0.0", spoken.encode()))
    return path


def through(door: str, agent_home, level: str = "l3") -> Record:
    """A record that came in by this door, with a secret in it."""
    if door == "archive":
        log_with(agent_home)
        archive_run(level=level)
    elif door == "eviction":
        opened(SESSION, level, context_window=1_000)
        events = turns(10, size=50)
        events[8]["text"] = f"harbour token {GITHUB} please"
        push(events)
        eviction_apply(SESSION)
    else:
        session_open("s1", "claude-code", cwd=CWD)
        level_enable("s1", level)
        session_open("s1", "claude-code", cwd=CWD)
        writer = Writer(
            actor="agent",
            by_person=False,
            scope="workspace",
            workspace_key=workspace_key(CWD, ""),
            session_id="s1",
            workspace=CWD,
        )
        memory_write(Written(kind="note", text=f"harbour token {GITHUB}\n\nUse it to push."), writer)
    (record,) = Record.objects.all()
    return record


def session_of(door: str) -> str:
    return {"archive": session_id(), "eviction": SESSION, "write": "s1"}[door]


def another_session(door: str) -> str:
    """Of the same workspace, with both levels on."""
    cwd = "/home/dev/demo" if door == "archive" else CWD
    for _ in range(2):
        session_open("other", "my-agent", cwd=cwd)
        level_enable("other", "l2", "l3")
    return "other"


def said(scope) -> str:
    """All that an agent of this scope can have said to it about the secret."""
    hits = [*search(scope, "harbour token").hits, *search(scope, GITHUB).hits]
    lines = [*grep(scope, "harbour token").hits, *grep(scope, GITHUB, literal=True).hits]
    packs = assemble(scope, "harbour token", budget=4_000)
    return "\n".join([*map(repr, hits), *map(repr, lines), repr(packs)])
