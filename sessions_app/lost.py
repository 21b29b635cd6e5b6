"""What a compaction lost: what the originals name and the agent's summary does not. Pure.

What counts as surviving is generous to the summary:
- a path survives if the summary has its last two parts (`app/models.py` for `/home/dev/site/app/models.py`);
  the bare name alone does only for a path that has no directory, since it doesn't say which file;
- a command survives if the summary has its first line, with or without a leading `cd … &&`;
- an error survives if the summary has the line or what follows its first colon;
- a number survives if the summary has the same digits, whatever their unit and grouping;
- a decision survives if the summary has most of its words, in whatever order.
Case, spacing and Markdown's quoting never matter. Without a readable summary everything is lost.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .facts import ArchivedEvent, Facts, Tally

LISTED = 40
CATEGORIES = ("paths", "commands", "errors", "numbers", "decisions")
# Share of a decision's words that must be in the summary.
_DECISION_SHARE = 0.6
_SHORTEST_MESSAGE = 12
# A readable summary is a few thousand words; what is longer is compared by its beginning.
_SUMMARY_CHARACTERS = 400_000

_SPACE = re.compile(r"\s+")
_PATH_WORD = re.compile(r"[\w.@+~/-]+")
_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?")
_WORD = re.compile(r"[a-z0-9_]{3,}")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_CHANGE_DIRECTORY = re.compile(r"^cd \S+ (?:&&|;) ")


@dataclass(slots=True)
class Lost:
    """Up to LISTED lost values a category, the most important first (how often, then how recently they
    were seen); `found` and `lost` count all distinct values, by category."""

    paths: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    found: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in CATEGORIES}
        return {**values, "found": self.found, "lost": self.lost}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Lost":
        result = cls()
        for name in CATEGORIES:
            getattr(result, name).extend(str(item) for item in value.get(name, ()))
        for name in ("found", "lost"):
            getattr(result, name).update({key: int(count) for key, count in value.get(name, {}).items()})
        return result


def what_was_lost(originals: Iterable[ArchivedEvent], summary: str) -> Lost:
    """`summary`: the agent's own, "" when there is none or it can't be read."""
    return lost_facts(Facts(originals), summary)


def lost_facts(facts: Facts, summary: str) -> Lost:
    kept = _Summary(summary)
    result = Lost()
    checks: tuple[tuple[str, Tally, Callable[[str], bool]], ...] = (
        ("paths", facts.paths, kept.has_path),
        ("commands", facts.commands, kept.has_command),
        ("errors", facts.errors, kept.has_error),
        ("numbers", facts.numbers, kept.has_number),
        ("decisions", facts.decisions, kept.has_decision),
    )
    for name, tally, survives in checks:
        missing = [value for value in tally.ranked() if not survives(value)]
        getattr(result, name).extend(missing[:LISTED])
        result.found[name], result.lost[name] = len(tally), len(missing)
    return result


class _Summary:
    def __init__(self, text: str) -> None:
        self._text = _normalised(text[:_SUMMARY_CHARACTERS])
        self._paths = {
            ending for word in set(_PATH_WORD.findall(self._text)) for ending in _path_endings(word)
        }
        self._numbers = {_plain_number(digits) for digits in _DIGITS.findall(self._text)}
        self._words = _content_words(self._text)

    def has_path(self, path: str) -> bool:
        return "/".join(_path_parts(_normalised(path))[-2:]) in self._paths

    def has_command(self, command: str) -> bool:
        wanted = _normalised(command)
        return wanted in self._text or _CHANGE_DIRECTORY.sub("", wanted) in self._text

    def has_error(self, line: str) -> bool:
        wanted = _normalised(line)
        message = wanted.partition(": ")[2]
        return wanted in self._text or (len(message) >= _SHORTEST_MESSAGE and message in self._text)

    def has_number(self, number: str) -> bool:
        digits = _DIGITS.search(number)
        return bool(digits) and _plain_number(digits[0] if digits else "") in self._numbers

    def has_decision(self, sentence: str) -> bool:
        words = _content_words(_normalised(sentence))
        return bool(words) and len(words & self._words) >= _DECISION_SHARE * len(words)


def _normalised(text: str) -> str:
    return _SPACE.sub(" ", text.lower().replace("`", "").replace("**", "").replace("\\", "/")).strip()


def _path_parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".", "~")]


def _path_endings(word: str) -> tuple[str, str]:
    parts = _path_parts(word.rstrip(".-"))
    return "/".join(parts[-2:]), "/".join(parts[-1:])


def _plain_number(digits: str) -> str:
    return digits.replace(",", "")


def _content_words(text: str) -> set[str]:
    words = set(_WORD.findall(text))
    for run in _WIDE.findall(text):
        words.update(run[at : at + 2] for at in range(len(run) - 1))
    return words
