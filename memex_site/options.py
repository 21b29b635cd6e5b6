"""The settings a user may change, as data: declared in settings.py, described in docs/settings.md."""

from dataclasses import dataclass
from pathlib import Path

from . import env


@dataclass(frozen=True, kw_only=True)
class Option:
    name: str
    type: str
    default: str  # as one would write it in the environment
    allowed: str
    meaning: str

    @property
    def variable(self) -> str:
        return env.PREFIX + self.name.upper()


class OptionTable:
    """Each method declares one option and gives its value: from the environment, else the default."""

    def __init__(self) -> None:
        self.options: list[Option] = []

    def switch(self, name: str, default: bool, meaning: str) -> bool:
        self._declare(name, "switch", "on" if default else "off", "on, off", meaning)
        return env.env_bool(name.upper(), default)

    def number(self, name: str, default: int, meaning: str, *, low: int, high: int | None = None) -> int:
        self._declare(name, "number", str(default), f"≥ {low}" if high is None else f"{low}–{high}", meaning)
        return env.env_int(name.upper(), default, low=low, high=high)

    def fraction(self, name: str, default: float, meaning: str, *, low: float, high: float) -> float:
        self._declare(name, "fraction", str(default), f"{low}–{high}", meaning)
        return env.env_fraction(name.upper(), default, low=low, high=high)

    def fraction_below(
        self, name: str, default: float, meaning: str, *, low: float, other: str, limit: float
    ) -> float:
        """One that must be less than the option `other`, whose value is `limit`."""
        allowed = f"≥ {low}, < `{env.PREFIX}{other.upper()}`"
        self._declare(name, "fraction", str(default), allowed, meaning)
        value = env.env_fraction(name.upper(), default, low=low, high=1.0)
        env.refuse_unless_below(name.upper(), value, other.upper(), limit)
        return value

    def optional_number(self, name: str, meaning: str, *, low: int) -> int | None:
        self._declare(name, "number", env.NONE, f"{env.NONE}, ≥ {low}", meaning)
        return env.env_optional_int(name.upper(), low=low)

    def choice(self, name: str, default: str, meaning: str, *, choices: tuple[str, ...]) -> str:
        self._declare(name, "choice", default, ", ".join(choices), meaning)
        return env.env_choice(name.upper(), default, choices)

    def folder(self, name: str, default: str, meaning: str) -> Path:
        self._declare(name, "folder", default, "a folder outside the program's own", meaning)
        return env.env_path(name.upper(), default)

    def refuse_unknown(self, *others: str) -> None:
        """`others`: variables of ours that are no settings."""
        env.refuse_unknown([*(option.variable for option in self.options), *others])

    def _declare(self, name: str, kind: str, default: str, allowed: str, meaning: str) -> None:
        self.options.append(Option(name=name, type=kind, default=default, allowed=allowed, meaning=meaning))
