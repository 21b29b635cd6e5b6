"""Strict readers of environment variables: a wrong value stops the start and is named."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

PREFIX = "MEMEX_"
NONE = "none"


def env_bool(name: str, default: bool) -> bool:
    text = os.environ.get(PREFIX + name)
    if text is None:
        return default
    if text not in ("on", "off"):
        raise ImproperlyConfigured(f"{PREFIX}{name} must be 'on' or 'off', not {text!r}.")
    return text == "on"


def env_int(name: str, default: int, *, low: int, high: int | None = None) -> int:
    text = os.environ.get(PREFIX + name)
    return default if text is None else _whole_number(name, text, low, high)


def env_fraction(name: str, default: float, *, low: float, high: float) -> float:
    text = os.environ.get(PREFIX + name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        raise ImproperlyConfigured(f"{PREFIX}{name} must be a number such as 0.5, not {text!r}.") from None
    # Written so that it refuses `nan` as well.
    if not low <= number <= high:
        raise ImproperlyConfigured(f"{PREFIX}{name} is {text}; it must lie between {low} and {high}.")
    return number


def env_optional_int(name: str, *, low: int) -> int | None:
    """None when unset or `none`."""
    text = os.environ.get(PREFIX + name, NONE)
    return None if text == NONE else _whole_number(name, text, low, None)


def env_choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    text = os.environ.get(PREFIX + name, default)
    if text not in choices:
        raise ImproperlyConfigured(f"{PREFIX}{name} must be one of {', '.join(choices)}, not {text!r}.")
    return text


def env_path(name: str, default: str) -> Path:
    """An absolute folder. Empty is refused: it would mean whatever folder the process runs in."""
    text = os.environ.get(PREFIX + name, default)
    if not text:
        raise ImproperlyConfigured(f"{PREFIX}{name} is empty; it must name a folder.")
    return Path(text).expanduser().absolute()


def agent_home(variable: str, default: str) -> Path:
    """Where an agent keeps its logs, from the variable that the agent itself reads."""
    return Path(os.environ.get(variable) or default).expanduser().absolute()


def refuse_unknown(known: Iterable[str]) -> None:
    """Raises for a MEMEX_* variable that is not in `known`: most likely a misspelt one."""
    names = set(known)
    for variable in sorted(os.environ):
        if variable.startswith(PREFIX) and variable not in names:
            nearest = difflib.get_close_matches(variable, names, n=1, cutoff=0)
            raise ImproperlyConfigured(
                f"{variable} is not a setting of Memex. Did you mean {nearest[0]}? All of them: docs/settings.md"
            )


def refuse_unless_below(name: str, value: float, other: str, limit: float) -> None:
    """Raises unless setting `name` is less than setting `other`."""
    if value >= limit:
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {value}; it must be less than {PREFIX}{other}, which is {limit}."
        )


def _whole_number(name: str, text: str, low: int, high: int | None) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ImproperlyConfigured(f"{PREFIX}{name} must be a whole number, not {text!r}.") from None
    if number < low:
        raise ImproperlyConfigured(f"{PREFIX}{name} is {number}; the least is {low}.")
    if high is not None and number > high:
        raise ImproperlyConfigured(f"{PREFIX}{name} is {number}; the most is {high}.")
    return number
