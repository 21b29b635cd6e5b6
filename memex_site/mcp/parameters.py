"""What a tool takes: declared once, for the schema that clients are shown and for the check of each call. Pure.

Checked here and not by the SDK, which lets unknown arguments through and answers wrong ones in words of its
library.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SHOWN_MAX = 60


class BadCall(ValueError):
    """The message says what is wrong with the call, and what to give instead."""


@dataclass(frozen=True)
class Parameter:
    """`type`: string, integer, number, boolean, strings (a list of them), texts (an object of lists of
    strings) or objects (a list of objects). `low`, `high`: of a number, or of a string's length."""

    name: str
    type: str
    description: str
    required: bool = False
    default: Any = None
    low: float | None = None
    high: float | None = None
    choices: Sequence[str] = ()

    def schema(self) -> dict[str, Any]:
        """As JSON Schema says it."""
        item: dict[str, Any] = {"type": "string"}
        if self.choices:
            item["enum"] = list(self.choices)
        schema: dict[str, Any] = {
            "strings": {"type": "array", "items": item},
            "texts": {"type": "object", "additionalProperties": {"type": "array", "items": item}},
            "objects": {"type": "array", "items": {"type": "object"}},
            "string": item,
        }.get(self.type, {"type": self.type})
        if self.type in ("integer", "number"):
            schema |= _given(minimum=self.low, maximum=self.high)
        elif self.type == "string":
            schema |= _given(minLength=self.low, maxLength=self.high)
        return schema | _given(description=self.description, default=self.default)

    def checked(self, value: Any) -> Any:
        """BadCall."""
        if not _is_of(self.type, value):
            raise BadCall(f"{self.name} must be {_NAMES[self.type]}, not {_shown(value)}.")
        values = value if self.type == "strings" else [value] if self.type == "string" else ()
        if self.choices and (wrong := [each for each in values if each not in self.choices]):
            raise BadCall(f"{self.name} must be {' or '.join(self.choices)}, not {_shown(wrong[0])}.")
        if self.type in ("integer", "number"):
            self._check_range(value, f"is {value}")
        elif self.type == "string":
            if self.low and not value.strip():
                raise BadCall(f"{self.name} is empty.")
            self._check_range(len(value), f"has {len(value):,} characters")
        return value

    def _check_range(self, number: float, shown: str) -> None:
        # Written so that it refuses NaN as well.
        if self.low is not None and not number >= self.low:
            raise BadCall(f"{self.name} {shown}; the least is {_plain(self.low)}.")
        if self.high is not None and number > self.high:
            raise BadCall(f"{self.name} {shown}; the most is {_plain(self.high)}.")


_NAMES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "strings": "a list of strings",
    "texts": 'an object of lists of strings, such as {"topic": ["deploy"]}',
    "objects": "a list of objects",
}


def schema_of(parameters: Sequence[Parameter]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema() for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }


def checked(tool: str, parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter with its value or its default; null counts as not given. BadCall."""
    names = [parameter.name for parameter in parameters]
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise BadCall(f"{tool} has no argument {_shown(name)}.{meant} It takes: {', '.join(names)}.")
    values: dict[str, Any] = {}
    for parameter in parameters:
        value = given.get(parameter.name)
        if value is not None:
            values[parameter.name] = parameter.checked(value)
        elif parameter.required:
            raise BadCall(f"{tool} needs {parameter.name}: {parameter.description}")
        else:
            values[parameter.name] = parameter.default
    return values


def _is_of(kind: str, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return is_number and isinstance(value, int)
        case "number":
            return is_number
        case "boolean":
            return isinstance(value, bool)
        case "strings":
            return isinstance(value, list) and all(isinstance(each, str) for each in value)
        case "texts":
            return isinstance(value, dict) and all(_is_of("strings", each) for each in value.values())
        case _:
            return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"


def _plain(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else str(number)
