"""What connecting changes in an agent's settings, before anything is changed. Pure but for the paths."""

import difflib
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from .errors import EditRefused

BOM = "\ufeff"
# Settings are small; an agent's state file may hold a history.
FILE_BYTES = 32 * 2**20
SERVER_NAME = "memex"
# Where a token for hooks and MCP over HTTP is read from. Not MEMEX_…: those are Memex's own settings.
TOKEN_VARIABLE = "MX_TOKEN"  # noqa: S105  # a name, no token
HOOK_SECONDS = 3
LINE_HEAD, LINE_TAIL = 100, 4000
HOOK_FILE = "memex_site/hook_client.py"


_OUR_MCP_URL = re.compile(r"http://127\.0\.0\.1:\d+/mcp/?")


def is_our_server(entry: Any) -> bool:
    """That an MCP server's entry starts this program, or leads to it: another's may be called memex as well."""
    if not isinstance(entry, dict):
        return False
    arguments, url = entry.get("args"), entry.get("url")
    said = [part for part in arguments if isinstance(part, str)] if isinstance(arguments, list) else []
    starts_us = "mcp" in said and any(re.split(r"[/\\]", part)[-1] == "manage.py" for part in said)
    return starts_us or (isinstance(url, str) and _OUR_MCP_URL.fullmatch(url) is not None)


def foreign_server(where: str) -> EditRefused:
    return EditRefused(
        f"{where}.{SERVER_NAME} is another program's: it would be lost. Give that entry another name first"
    )


class Wired(StrEnum):
    YES = "yes"
    # Ours, but with other paths or settings than this Memex would write.
    OTHERWISE = "otherwise"
    NO = "no"


@dataclass(frozen=True)
class Installation:
    """How an agent starts this Memex, in absolute paths. `port`: for what goes over HTTP."""

    python: str
    hook_client: str
    manage: str
    home: str
    port: int

    def hook_command(self, agent: str, event: str) -> list[str]:
        return [self.python, "-I", "-S", self.hook_client, agent, event, self.home]

    def mcp_arguments(self, agent: str) -> list[str]:
        return [self.manage, "mcp", "--agent", agent]

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@dataclass(frozen=True)
class Target:
    """A settings file, and how its text is edited. `connect`: text -> (text with ours, trace), given a text
    without ours; `disconnect`: (text, trace or None) -> text without ours; `wired`: text -> whether what
    `connect` writes is there, by "hooks" and "mcp"; `notes`: what a person should know of this text. All raise EditRefused."""

    path: Path
    connect: Callable[[str], tuple[str, dict[str, Any]]]
    disconnect: Callable[[str, dict[str, Any] | None], str]
    wired: Callable[[str], dict[str, Wired]]
    notes: Callable[[str], list[str]] = lambda _: []


@dataclass(frozen=True)
class FileEdit:
    """`before`, `after`: bytes, None = no such file. `record`: what undoing needs to know, as JSON."""

    path: Path
    before: bytes | None
    after: bytes | None
    record: dict[str, Any] | None = None

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    @property
    def diff_lines(self) -> list[tuple[str, str]]:
        """Each line of `diff` with what it is: added, removed, place or same."""
        kinds = {"+": "added", "-": "removed", "@": "place"}
        return [(kinds.get(line[:1], "same"), line) for line in self.diff().split("\n")[2:]]

    def diff(self) -> str:
        """Unified. A line of thousands of characters, as a file written by a program may be, is cut: what is
        ours stands near its end."""
        lines = difflib.unified_diff(
            _lines(self.before),
            _lines(self.after),
            str(self.path) if self.before is not None else "/dev/null",
            str(self.path) if self.after is not None else "/dev/null",
            lineterm="",
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class Plan:
    """`token`: whether the agent's token will be made, or with `is_undo` revoked."""

    agent: str
    is_undo: bool
    token: bool
    edits: list[FileEdit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changes(self) -> list[FileEdit]:
        return [edit for edit in self.edits if edit.is_change]

    @property
    def is_empty(self) -> bool:
        return not self.token and not self.changes

    @property
    def digest(self) -> str:
        """Stands for exactly these changes: what was looked at is what is done."""
        said = hashlib.sha256(f"{self.agent} {self.is_undo}".encode())
        for edit in self.changes:
            for content in (str(edit.path).encode("utf-8", "surrogateescape"), edit.before, edit.after):
                said.update(b"-" if content is None else hashlib.sha256(content).digest())
        return said.hexdigest()


def connecting(target: Target, before: bytes | None, record: dict[str, Any] | None) -> FileEdit:
    """`record`: of an earlier connecting of this file, if there was one. What is ours in the file is written
    anew unless it is as it should be. Raises EditRefused, naming the file."""
    with_bom, text = _text(target.path, before)
    with _named(target):
        if text and set(target.wired(text).values()) == {Wired.YES}:
            return FileEdit(target.path, before, before, record)
        clean = target.disconnect(text, record and record["trace"])
        after, trace = target.connect(clean)
    was_absent = before is None or bool(record and record["absent"] and not clean.strip())
    return FileEdit(target.path, before, (with_bom + after).encode(), {"absent": was_absent, "trace": trace})


def disconnecting(target: Target, before: bytes | None, record: dict[str, Any] | None) -> FileEdit:
    with_bom, text = _text(target.path, before)
    if before is None or not text.strip():
        return FileEdit(target.path, before, before)
    with _named(target):
        after = target.disconnect(text, record and record["trace"])
    if after == text:
        return FileEdit(target.path, before, before)
    if record and record["absent"] and not after.strip():
        return FileEdit(target.path, before, None)
    return FileEdit(target.path, before, (with_bom + after).encode())


def wired(target: Target, content: bytes | None) -> dict[str, Wired]:
    """Raises EditRefused for a file that can't be read."""
    text = _text(target.path, content)[1]
    with _named(target):
        return target.wired(text)


def notes(target: Target, content: bytes | None) -> list[str]:
    text = _text(target.path, content)[1]
    with _named(target):
        return target.notes(text)


@contextmanager
def _named(target: Target) -> Iterator[None]:
    """A refusal says which file it is about."""
    try:
        yield
    except EditRefused as error:
        raise EditRefused(f"{target.path}: {error}") from error


def _text(path: Path, content: bytes | None) -> tuple[str, str]:
    """A byte order mark, and what follows."""
    if content is None:
        return "", ""
    if len(content) > FILE_BYTES:
        raise EditRefused(f"{path}: larger than {FILE_BYTES // 2**20} MB")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise EditRefused(f"{path}: line {line}, column {column}: not UTF-8") from error
    return (BOM, text[1:]) if text.startswith(BOM) else ("", text)


def _lines(content: bytes | None) -> list[str]:
    text = (content or b"").decode("utf-8", "replace").removesuffix("\n")
    return [_shown(line.removesuffix("\r")) for line in text.split("\n")] if content else []


def _shown(line: str) -> str:
    left_out = len(line) - LINE_HEAD - LINE_TAIL
    return line if left_out <= 0 else f"{line[:LINE_HEAD]} … ({left_out} characters) … {line[-LINE_TAIL:]}"
