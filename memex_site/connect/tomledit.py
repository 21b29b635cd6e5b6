"""Whole tables put at the end of a TOML text, and taken out again, every other byte left as it is. Pure.

The text is cut at its headers, not written anew from what it says: no writer of TOML keeps all of a person's
formatting. What an edit means is compared with what it should mean before it is accepted.
"""

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .errors import EditRefused

_EMPTY_LINE = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_HEADER = re.compile(r"""[ \t]*(\[\[?)((?:"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[^\]"'#\n])+)\]""")
_LONG = r'"""(?:\\.|[^\\])*?"""(?:"{0,2})' + r"|'''.*?'''(?:'{0,2})"
_STRING = r'"(?:\\.|[^"\\\n])*"' + r"|'[^'\n]*'"
_TOKEN = re.compile(rf"{_LONG}|{_STRING}|#[^\n]*|[\[\]{{}}\n]|[^\[\]{{}}\n\"'#]+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Table:
    """`text[start:end]`: the lines from its header to its last key. `path`: (("hooks", "Stop"), …)."""

    path: tuple[str, ...]
    is_array: bool
    start: int
    end: int


def parsed(text: str) -> dict[str, Any]:
    """Raises EditRefused with line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EditRefused(str(error)) from error
    except RecursionError as error:
        raise EditRefused("nested too deeply") from error


def tables(text: str) -> list[Table]:
    """The tables that have a header, in their order. `text` must be TOML."""
    found: list[Table] = []
    at = 0
    while at < len(text):
        if empty := _EMPTY_LINE.match(text, at):
            at = empty.end()
            continue
        header = _HEADER.match(text, at)
        end = _line_end(text, header.end() if header else at, has_value=header is None)
        if header:
            found.append(Table(_path(header[2]), header[1] == "[[", at, end))
        elif found:
            last = found[-1]
            found[-1] = Table(last.path, last.is_array, last.start, end)
        at = end
    return found


def without(text: str, cut: Iterable[Table]) -> str:
    """Each table goes with the empty line before it."""
    for table in sorted(cut, key=lambda table: table.start, reverse=True):
        start = table.start
        for newline in ("\r\n", "\n"):
            if text[:start].endswith(newline) and text[: start - len(newline)].endswith("\n"):
                start -= len(newline)
                break
        text = text[:start] + text[table.end :]
    return text


def appended(text: str, blocks: list[list[str]]) -> str:
    """`blocks`: the lines of each table. An empty line stands before each, but not at the very beginning."""
    newline = "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"
    written = (newline * 2).join(newline.join(lines) for lines in blocks) + newline
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if text else "") + written


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def same(one: Any, other: Any) -> bool:
    """Whether two documents mean the same; nan is like nan, and keys have no order."""
    return _canonical(one) == _canonical(other)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _line_end(text: str, at: int, *, has_value: bool) -> int:
    """Behind the line in which what begins at `at` ends: a value in brackets goes over several."""
    depth = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        assert token is not None
        at = token.end()
        sign = token[0]
        if sign == "\n" and depth <= 0:
            return at
        if has_value:
            depth += (sign in "[{") - (sign in "]}") if len(sign) == 1 else 0
    return at


def _path(keys: str) -> tuple[str, ...]:
    path: list[str] = []
    node: Any = tomllib.loads(f"[{keys}]")
    while node:
        (name, node), *_ = node.items()
        path.append(name)
    return tuple(path)
