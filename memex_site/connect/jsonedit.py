"""Edits of a JSON text that leave every other byte as it is, and can be taken back to the byte. Pure.

A `Trace` remembers what an edit can't read off the text later: which containers it made, and what stood in
those that were empty. Without one, an edit is taken back as well, but for white space and empty containers.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .errors import EditRefused
from .jsonscan import COMMENT, SPACE, Child, Node, Scanner, scan

Path = tuple[str, ...]
KINDS = {"{": "an object", "[": "a list"}


@dataclass
class Trace:
    """`made`: containers that were not there; `empty`: what stood between the brackets of one that held
    nothing; `whole`: the whole text, where it held no value at all."""

    made: list[Path] = field(default_factory=list)
    empty: dict[Path, str] = field(default_factory=dict)
    whole: str | None = None

    def to_json(self) -> dict[str, Any]:
        empty = [[list(path), text] for path, text in self.empty.items()]
        return {"made": [list(path) for path in self.made], "empty": empty, "whole": self.whole}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Trace":
        """Raises LookupError, TypeError, ValueError for what `to_json` didn't write."""
        empty = {tuple(path): text for path, text in data["empty"]}
        return cls([tuple(path) for path in data["made"]], empty, data["whole"])


def find(text: str, root: Node | None, path: Path) -> Node | None:
    """The value at `path`, keys from `root` on. Refuses what is ambiguous: a key that is repeated."""
    node = root
    for depth, key in enumerate(path):
        if node is None:
            return None
        _expect(text, node, "{", path[:depth])
        if sum(child.key == key for child in node.children) > 1:
            raise _refused(text, node.start, f"the key {json.dumps(key)} stands there more than once")
        node = node.child(key)
    return node


def append(text: str, path: Path, key: str | None, value: Any, trace: Trace) -> str:
    """`value` as the last member `key`, or with None as the last element, of the container at `path`, which
    is made if it isn't there. Raises EditRefused where something else stands."""
    opened = path[0] if path else ""
    root = scan(text, opened)
    if root is None:
        trace.whole = text
        newline = _newline(text)
        text += (newline if text.strip() and not text.endswith("\n") else "") + "{}" + newline
        root = scan(text, opened)
    there = len(path)
    while (node := find(text, root, path[:there])) is None:
        there -= 1
    _expect(text, node, "[" if key is None and there == len(path) else "{", path[:there])
    for depth in range(len(path), there, -1):
        trace.made.append(path[:depth])
        value, key = [value] if key is None else {key: value}, path[depth - 1]
    return _append(text, node, path[:there], key, value, trace)


def _append(text: str, node: Node, path: Path, key: str | None, value: Any, trace: Trace) -> str:
    newline = _newline(text)
    unit = _unit(text)
    outer = _indentation(text, node.start)
    last = node.children[-1] if node.children else None
    is_multiline = last is None or "\n" in text[node.start : node.end]
    inner = outer + unit if last is None else _indentation(text, last.start)
    named = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
    written = named + _written(value, unit if is_multiline else None, inner, newline)
    ahead = newline + inner if is_multiline else " "
    if last is None:
        content = text[node.start + 1 : node.end - 1]
        if not content.strip(SPACE):
            trace.empty[path] = content
            return _spliced(text, node.start + 1, node.end - 1, ahead + written + newline + outer)
        place = _content_end(text, node.start + 1)
        return _spliced(text, place, place, ahead + written)
    before = last.node.end if last.comma is None else last.comma + 1
    place = _content_end(text, before)
    if "//" in text[before:place]:
        # Not in the same line, however lines end here: it would be part of the comment.
        ahead = newline + inner
    if last.comma is not None:
        return _spliced(text, place, place, ahead + written + ",")
    text = _spliced(text, place, place, ahead + written)
    return _spliced(text, before, before, ",")


def remove(
    text: str,
    find_one: Callable[[str, Node], tuple[Path, Node, Child] | None],
    trace: Trace | None,
    opened: str | None = None,
) -> str:
    """Takes out what `find_one` finds (the path of its container, the container, the child), again and again
    until it finds nothing, and then the containers that were made for it and are empty. `opened`: the one
    member of the root in which it looks."""
    touched: set[Path] = set()
    while (root := scan(text, opened)) is not None and (found := find_one(text, root)) is not None:
        path, node, child = found
        text = _without(text, node, child)
        touched.add(path)
    for path in sorted(touched, key=len, reverse=True):
        text = _tidied(text, path, trace)
    if not touched or trace is None or trace.whole is None:
        return text
    if (root := scan(text, "")) is None or not _is_empty(text, root):
        return text
    rest = text[: root.start] + text[root.end :]
    return trace.whole if rest.strip() == trace.whole.strip() else rest


def _tidied(text: str, path: Path, trace: Trace | None) -> str:
    """Puts the container at `path` back as it was if it is empty now; upwards, as far as that leads."""
    root = scan(text, path[0] if path else "")
    node = find(text, root, path)
    if node is None or not _is_empty(text, node):
        return text
    if trace is not None and path in trace.empty:
        return _spliced(text, node.start + 1, node.end - 1, trace.empty[path])
    if not path or (trace is not None and path not in trace.made):
        return text
    parent = find(text, root, path[:-1])
    assert parent is not None
    child = next(child for child in parent.children if child.key == path[-1])
    return _tidied(_without(text, parent, child), path[:-1], trace)


def _is_empty(text: str, node: Node) -> bool:
    """A comment alone counts as content."""
    return not text[node.start + 1 : node.end - 1].strip(SPACE)


def _without(text: str, node: Node, child: Child) -> str:
    place = node.children.index(child)
    before = node.children[place - 1].comma if place else node.start
    assert before is not None
    start = before + 1 + len(text[before + 1 : child.start].rstrip(SPACE))
    end = child.node.end
    if child.comma is not None:
        # What stands between the value and its comma is a person's comment.
        text = _spliced(text, child.comma, child.comma + 1, "")
    if _ends_in_line_comment(text[before + 1 : start]) and text[end : end + 1] not in ("\r", "\n"):
        start = child.start
    text = _spliced(text, start, end, "")
    return _spliced(text, before, before + 1, "") if place and child.comma is None else text


def _ends_in_line_comment(gap: str) -> bool:
    comments = COMMENT.findall(gap)
    return bool(comments) and comments[-1].startswith("//")


def _spliced(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def _content_end(text: str, start: int) -> int:
    """Behind the comments that follow `start`, before the white space behind them."""
    scanner = Scanner(text, start)
    scanner.gap()
    return start + len(text[start : scanner.at].rstrip(SPACE))


def _written(value: Any, unit: str | None, inner: str, newline: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False)
    return lines.replace("\n", newline + inner)


def _newline(text: str) -> str:
    return "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"


def _indentation(text: str, place: int) -> str:
    """The white space that begins the line of `place`."""
    line = text.rfind("\n", 0, place) + 1
    found = re.compile(r"[ \t]*").match(text, line)
    assert found is not None
    return found[0]


def _unit(text: str) -> str:
    """What the first indented line is indented by; two spaces if none is."""
    found = re.search(r"^([ \t]+)[^ \t\r\n]", text, re.MULTILINE)
    return found[1] if found else "  "


def _expect(text: str, node: Node, opening: str, path: Path) -> None:
    if node.opening != opening:
        where = ".".join(path) or "the whole"
        found = KINDS.get(node.opening, "a plain value")
        raise _refused(text, node.start, f"{where} is {found}, not {KINDS[opening]}")


def _refused(text: str, place: int, what: str) -> EditRefused:
    return Scanner(text, place).refused(what)
