"""The YAML block at the head of a record file. Pure.

Memex writes one `key: value` a line, each value as JSON, which is YAML too. What people write there by
hand is YAML: read with the types of JSON only, so that `title: no` and `2024-05-01` stay text.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import frontmatter
import yaml
from frontmatter.default_handlers import YAMLHandler

OPENING = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t]*\r?\n)*---[ \t]*\r?\n")
CLOSING = re.compile(rb"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
BLANK_LINE = re.compile(rb"\r?\n")
LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*): (.+)")
QUOTED = ("'", '"', "|", ">")
PLAIN = re.compile(r"-?\d+(?:\.\d+)?|null|true|false")
# Legal in JSON, but no YAML reader takes them as they are.
UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
SURROGATE = re.compile("[\ud800-\udfff]")


# Whoever writes it out again walks it recursively.
MAX_DEPTH = 100

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_finite).decode


class HeaderError(ValueError):
    """The block can't be read as YAML."""


class NoHeaderError(ValueError):
    """What stands between the two lines of dashes is no block of keys and values."""


class Plain(str):
    """A value without quotes: a number, truth value or text, as its field has it."""

    __slots__ = ()


class Parts(NamedTuple):
    """Offsets into a file: of its block, from the line after the dashes, and of its body."""

    start: int
    end: int
    body: int


def split(data: bytes) -> Parts | None:
    opening = OPENING.match(data)
    if opening is None:
        return None
    closing = CLOSING.search(data, opening.end())
    if closing is None:
        return None
    blank = BLANK_LINE.match(data, closing.end())
    return Parts(opening.end(), closing.start(), blank.end() if blank else closing.end())


def load(block: bytes) -> dict[str, Any]:
    """Values of the top level without quotes are `Plain`, or None. HeaderError, NoHeaderError."""
    text = block.decode("utf-8", "replace").replace("\r\n", "\n")
    try:
        metadata, _ = frontmatter.parse(f"---\n{text}\n---", handler=_Handler())
    except RecursionError as error:
        raise HeaderError("nested too deeply") from error
    if any(_is_deep(value) for value in metadata.values()):
        raise HeaderError(f"nested deeper than {MAX_DEPTH} levels")
    return dict(metadata)


def dump(fields: Mapping[str, Any]) -> str:
    return "".join(f"{name}: {to_json(value)}\n" for name, value in fields.items())


def to_json(value: object) -> str:
    """JSON on one line that is valid YAML and UTF-8 as well."""
    text = _encode(value)
    return text if text.isascii() and "\x7f" not in text else UNPRINTABLE.sub(_escape, clean(text))


def from_json(text: str) -> Any:
    """ValueError for what JSON doesn't have, such as numbers that are not finite."""
    return _decode(text)


def clean(text: str) -> str:
    """`text` without what UTF-8 and SQLite's text functions can't hold: lone surrogates, NUL."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return SURROGATE.sub("\ufffd", text)
    return text


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _children(each)]
        if not level:
            return False
    return True


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


class _Handler(YAMLHandler):
    FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.MULTILINE)

    def load(self, fm: str, **kwargs: object) -> dict[str, Any]:
        lines = [line for line in fm.split("\n") if line]
        try:
            return dict(_pair(line) for line in lines)
        except (ValueError, RecursionError):
            return _load_yaml(fm)


def _pair(line: str) -> tuple[str, Any]:
    match = LINE.fullmatch(line)
    if match is None:
        raise ValueError(line)
    name, value = match.groups()
    if PLAIN.fullmatch(value):
        return name, None if value == "null" else Plain(value)
    return name, from_json(value)


class _JsonTypes(yaml.CSafeLoader):
    """Knows the scalars of JSON only."""


_JsonTypes.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false", [*"tf"]),
    ("null", r"null|~|", ["n", "~", ""]),
    ("int", r"-?(?:0|[1-9]\d*)", [*"-0123456789"]),
    ("float", r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", [*"-0123456789"]),
):
    _JsonTypes.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)


def _load_yaml(text: str) -> dict[str, Any]:
    try:
        return _read_yaml(text)
    except yaml.YAMLError as error:
        if "\t" not in text:
            raise HeaderError(_reason(error)) from error
    try:
        # Editors indent with tabs, which YAML forbids.
        return _read_yaml(text.expandtabs(2))
    except yaml.YAMLError as error:
        raise HeaderError(_reason(error)) from error


def _read_yaml(text: str) -> dict[str, Any]:
    _refuse_aliases(text)
    loader = _JsonTypes(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise NoHeaderError
        pairs = [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
        return {key.value: _value(loader, value) for key, value in pairs}
    finally:
        loader.dispose()


def _refuse_aliases(text: str) -> None:
    """Eight lines of them can stand for gigabytes."""
    if "*" in text and any(
        isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.CSafeLoader)
    ):
        raise HeaderError("YAML aliases (*name) are not read")


def _value(loader: yaml.CSafeLoader, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        if node.style in QUOTED:
            return node.value
        return None if node.value in ("", "~", "null") else Plain(node.value)
    try:
        # Explicit tags (!!set, !!binary) bring in types that JSON hasn't.
        text = json.dumps(loader.construct_object(node, deep=True), default=str, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise HeaderError(str(error)) from error
    return json.loads(text)


def _reason(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())
