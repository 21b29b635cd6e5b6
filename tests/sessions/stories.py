"""Whole sessions of Claude Code for end-to-end tests, and ways to look at a store."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import connection

from tests.sessions.logs.claude_lines import assistant, boundary, call, micro, result, summary, user

ROOT = Path(__file__).resolve().parents[2]
# Every table that a rebuild makes, and the columns that are only keys of the database.
DERIVED = (
    "records", "pool_totals", "sources", "agent_sessions", "generations", "events", "compactions",
    "archived_compactions", "l1_evictions", "session_settings", "session_files",
)  # fmt: skip
_KEYED = set(DERIVED) - {"records", "agent_sessions", "session_settings"}


def session_id(number: int = 1) -> str:
    return f"{number:08d}-2222-4333-8444-555555555555"


def story(
    number: int = 1,
    *,
    compactions: int = 2,
    turns: int = 4,
    word: str = "harbour",
    micros: bool = False,
    cwd: str = "/home/dev/demo",
    size: int = 40,
) -> list[dict[str, Any]]:
    """The lines of a session: `compactions` windows of `turns` turns, and one more that stays."""
    lines: list[dict[str, Any]] = []
    common = {"sessionId": session_id(number), "cwd": cwd}
    minute = 0

    def at() -> dict[str, Any]:
        nonlocal minute
        minute += 1
        return {
            **common,
            "timestamp": f"2026-03-{1 + minute // 1440:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:00.000Z",
        }

    def uid(name: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number}/{name}"))

    for window in range(compactions + 1):
        for turn in range(turns):
            name = f"{window}.{turn}"
            lines += [
                user(uid(f"u{name}"), f"Please look at the {word} of step {name}", **at()),
                assistant(uid(f"a{name}"), f"I will read src/{word}_{turn}.py.", **at()),
                call(uid(f"c{name}"), f"toolu_{number}_{name}", **at()),
                result(uid(f"r{name}"), f"toolu_{number}_{name}", f"{word} {name}: " + "row of output; " * size, **at()),
            ]  # fmt: skip
        if micros and window < compactions:
            tools = [f"toolu_{number}_{window}.{turn}" for turn in range(turns // 2)]
            lines.append({**micro(uid(f"m{window}"), tools), **at()})
        if window < compactions:
            lines.append(boundary(uid(f"b{window}"), **at()))
            lines.append(
                summary(
                    uid(f"s{window}"), uid(f"b{window}"), f"Summary {window}: worked on the {word}.", **at()
                )
            )
    return lines


def as_bytes(lines: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


def write_log(folder: Path, number: int = 1, **how: Any) -> Path:
    """As Claude Code lays it out below `folder` (its config folder)."""
    path = folder / "projects" / "-work-demo" / f"{session_id(number)}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_bytes(story(number, **how)))
    return path


def dump(skip: dict[str, set[str]] | None = None) -> dict[str, list[str]]:
    """The rows of all derived tables, comparable across stores."""
    found: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        for table in DERIVED:
            cursor.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            left_out = (skip or {}).get(table, set()) | ({"id"} if table in _KEYED else set())
            found[table] = sorted(
                json.dumps(
                    {name: value for name, value in zip(names, row, strict=True) if name not in left_out}
                )
                for row in cursor.fetchall()
            )
    return found


def everything_in(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path, path.read_bytes()


class Store:
    """A store of its own, worked on by real processes."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.agent = folder / "claude"
        self.agent.mkdir(parents=True, exist_ok=True)
        self.env = {
            **os.environ,
            "MEMEX_HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.agent),
            "CODEX_HOME": str(folder / "codex"),
            "DSH_HOME": str(folder / "dsh"),
            "MEMEX_MIN_FREE_MB": "0",
        }

    def start(self, *arguments: str, **how: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how,
        )  # fmt: skip

    def run(self, *arguments: str, fails: bool = False) -> bytes:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        assert (process.returncode != 0) is fails, err.decode()
        return err if fails else out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").splitlines()[-1])
