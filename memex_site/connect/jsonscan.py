"""Where everything stands in a JSON text. Pure. Comments and trailing commas are taken as well, since people
write them into settings and the agents that read these may allow it."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from .errors import EditRefused

DEPTH_MAX = 200
# JSON's own white space: an agent would not pass over others.
SPACE = " \t\r\n"
_SPACE = re.compile(f"[{SPACE}]+")
COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])", re.ASCII)
_CLOSING = {"{": "}", "[": "]"}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


@dataclass(slots=True)
class Node:
    """A value: text[start:end]. `opening` is its first character. `is_closed`: its children were not listed."""

    start: int
    end: int
    opening: str
    children: list["Child"] = field(default_factory=list)
    is_closed: bool = False

    def child(self, key: str) -> "Node | None":
        return next((child.node for child in self.children if child.key == key), None)


@dataclass(slots=True)
class Child:
    """A member or element. `start`: where its key or else its value begins; `comma`: the one behind it."""

    key: str | None
    start: int
    node: Node
    comma: int | None = None


@dataclass(slots=True)
class Scanner:
    """`opened`: of the root's members only these are looked into, None = all."""

    text: str
    at: int = 0
    opened: str | None = None

    def gap(self) -> None:
        """Over white space and comments."""
        while found := _SPACE.match(self.text, self.at) or COMMENT.match(self.text, self.at):
            self.at = found.end()

    def value(self, depth: int = 0) -> Node:
        opening = self.text[self.at : self.at + 1]
        if opening in _CLOSING and opening:
            return self._container(opening, depth)
        found = _STRING.match(self.text, self.at) or _SCALAR.match(self.text, self.at)
        if found is None:
            raise self.refused("a value was expected")
        self.at = found.end()
        return Node(found.start(), found.end(), opening)

    def _container(self, opening: str, depth: int) -> Node:
        if depth >= DEPTH_MAX:
            raise self.refused("nested too deeply")
        node = Node(self.at, 0, opening)
        self.at += 1
        self.gap()
        while not self.text.startswith(_CLOSING[opening], self.at):
            if node.children and node.children[-1].comma is None:
                raise self.refused(f"a comma or {_CLOSING[opening]} was expected")
            node.children.append(child := self._child(opening, depth))
            self.gap()
            if self.text.startswith(",", self.at):
                child.comma = self.at
                self.at += 1
                self.gap()
        self.at += 1
        node.end = self.at
        return node

    def _child(self, opening: str, depth: int) -> Child:
        start, key = self.at, None
        if opening == "{":
            found = _STRING.match(self.text, self.at)
            if found is None:
                raise self.refused("a key in double quotes was expected")
            key = json.loads(found[0])
            self.at = found.end()
            self.gap()
            if not self.text.startswith(":", self.at):
                raise self.refused("a colon was expected")
            self.at += 1
            self.gap()
        is_passed_over = depth == 0 and self.opened is not None and key != self.opened
        node = self._passed_over() if is_passed_over else None
        return Child(key, start, node or self.value(depth + 1))

    def _passed_over(self) -> Node | None:
        """A value as the C decoder takes it, some ten times faster; None if that refuses it."""
        start = self.at
        try:
            _, self.at = _DECODER.raw_decode(self.text, start)
        except (ValueError, RecursionError):
            return None
        return Node(start, self.at, self.text[start], is_closed=True)

    def refused(self, what: str) -> EditRefused:
        before = self.text[: self.at]
        line, column = before.count("\n") + 1, self.at - before.rfind("\n")
        return EditRefused(f"line {line}, column {column}: {what}")


def scan(text: str, opened: str | None = None) -> Node | None:
    """The one value of `text`; None if there is none. `opened`: the one member of the root whose children are
    wanted; an agent's file may hold megabytes beside it. Raises EditRefused with line and column."""
    scanner = Scanner(text, opened=opened)
    scanner.gap()
    if scanner.at == len(text):
        return None
    node = scanner.value()
    scanner.gap()
    if scanner.at != len(text):
        raise scanner.refused("the end was expected")
    return node


def value_of(text: str, node: Node) -> Any:
    """What `node` says, of keys that are repeated the last."""
    if node.is_closed:
        return json.loads(text[node.start : node.end])
    if node.opening == "{":
        return {child.key: value_of(text, child.node) for child in node.children}
    if node.opening == "[":
        return [value_of(text, child.node) for child in node.children]
    return json.loads(text[node.start : node.end])
