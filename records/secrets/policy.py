"""What follows from a find: which finds count, what is written in their place, whom a record is for. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

AUTO, FLAG, REDACT, OFF = POLICIES = ("auto", "flag", "redact", "off")
# In tags and in the provenance of a record with finds.
SENSITIVE = "sensitive"
# The scopes of records, as models.Scope has them.
PRIVATE, SHARED_SCOPE = "session", "workspace"
# Nobody has looked at it yet; kept private, or shared, by its owner.
OPEN, KEPT, SHARED = "open", "kept", "shared"
# Stands for a rule when the detector gave up: what was not looked at counts as a find.
UNSCANNED = "not-scanned"
# Of a record's finds its front matter names so many; the count is complete.
FINDS_KEPT = 100


@dataclass(frozen=True, slots=True, order=True)
class Find:
    """Characters `start` to `end` of a text hold what looks like a secret, says `rule`."""

    start: int
    end: int
    rule: str


@dataclass(frozen=True, slots=True)
class Scan:
    """`finds`: in order and apart from each other. `gave_up`: why not all of the text was looked at, or ""."""

    finds: tuple[Find, ...] = ()
    gave_up: str = ""


def _password_like(value: str) -> bool:
    """In agents' logs nearly every `password = …` is code that passes one on."""
    return any(map(str.isdigit, value)) and not any(map(str.isspace, value))


# Rules that are mostly noise in agents' logs, and what of them counts all the same (docs/secrets.md).
NOISY: dict[str, Callable[[str], bool]] = {
    "generic-password": _password_like,
    # Found with a password, which counts by itself. A name is no secret.
    "generic-username": lambda _: False,
}


def counts(rule: str, value: str) -> bool:
    return rule not in NOISY or NOISY[rule](value)


def merged(finds: Iterable[Find]) -> tuple[Find, ...]:
    """In order; of those that overlap the longest names the rule."""
    apart: list[Find] = []
    for find in sorted(finds):
        if apart and find.start < apart[-1].end:
            last = apart[-1]
            longer = find if find.end - find.start > last.end - last.start else last
            apart[-1] = Find(last.start, max(last.end, find.end), longer.rule)
        else:
            apart.append(find)
    return tuple(apart)


def clipped(finds: Iterable[Find], start: int, end: int) -> list[Find]:
    """Those within `start` to `end`, as seen from there."""
    return [
        Find(max(find.start, start) - start, min(find.end, end) - start, find.rule)
        for find in finds
        if find.start < end and find.end > start
    ]


def redacted_as(rule: str) -> str:
    """What stands in place of a find."""
    return f"«redacted:{rule}»"


def redacted(text: str, finds: Sequence[Find]) -> str:
    """`text` with «redacted:rule» for each find. Lines stay lines: one that a find covers says so itself."""
    pieces: list[str] = []
    at = 0
    for find in finds:
        lines = text[find.start : find.end].split("\n")
        marker = redacted_as(find.rule)
        pieces += [text[at : find.start], "\n".join(marker if line else "" for line in lines)]
        at = find.end
    return "".join([*pieces, text[at:]]) if pieces else text


def part_redacted(data: bytes, finds: Sequence[Find], start: int, end: int) -> bytes:
    """Of the body's bytes from `start` to `end`, which are `data`."""
    pieces: list[bytes] = []
    at = 0
    for find in clipped(finds, start, end):
        secret = data[find.start : find.end].decode("utf-8", "surrogateescape")
        pieces.append(data[at : find.start])
        pieces.append(redacted(secret, [Find(0, len(secret), find.rule)]).encode("utf-8", "surrogateescape"))
        at = find.end
    return b"".join([*pieces, data[at:]])


@dataclass(frozen=True, slots=True)
class Mark:
    """A find as a record may name it. `seq`: the event it stands in, None for a text of its own;
    `fingerprint`: keyed, the same for the same secret."""

    rule: str
    seq: int | None
    fingerprint: str


@dataclass(slots=True)
class Decision:
    """What was found in a record's text, and under which policy."""

    policy: str
    marks: list[Mark] = field(default_factory=list)
    state: str = OPEN
    # Whom the record was for, when its finds keep it from them.
    wanted: str = ""
    # Finds beyond those that are named.
    unnamed: int = 0

    @property
    def rules(self) -> list[str]:
        return list(dict.fromkeys(mark.rule for mark in self.marks))

    def scope_for(self, wanted: str) -> str:
        """For whom a record is that was meant for `wanted`. That is remembered: dismissed finds give it back."""
        if self.policy != AUTO or not self.marks or wanted == PRIVATE:
            return wanted
        self.wanted = wanted
        return PRIVATE

    def tags(self, tags: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """One that somebody gave stays."""
        return {**tags, SENSITIVE: self.rules} if self.marks else dict(tags)

    def provenance(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        others = {name: value for name, value in provenance.items() if name != SENSITIVE}
        if not self.marks:
            return others
        kept = list(dict.fromkeys((mark.rule, mark.seq, mark.fingerprint) for mark in self.marks))
        said: dict[str, Any] = {"policy": self.policy, "state": self.state}
        said |= {"count": len(kept) + self.unnamed, "finds": [list(each) for each in kept[:FINDS_KEPT]]}
        if self.wanted:
            said["wanted"] = self.wanted
        return {**others, SENSITIVE: said}


def decision_of(provenance: Mapping[str, Any]) -> Decision | None:
    """What a record's front matter says, which people may have edited; None when nothing was found."""
    given = provenance.get(SENSITIVE)
    if not isinstance(given, dict):
        return None
    finds = given.get("finds")
    marks = [
        Mark(str(find[0]), find[1] if isinstance(find[1], int) else None, str(find[2]))
        for find in (finds if isinstance(finds, list) else [])
        if isinstance(find, list) and len(find) == 3
    ]
    count = given.get("count")
    return Decision(
        str(given.get("policy") or AUTO),
        marks,
        str(given.get("state") or OPEN),
        SHARED_SCOPE if given.get("wanted") == SHARED_SCOPE else "",
        max(0, count - len(marks)) if isinstance(count, int) else 0,
    )


def is_sensitive(tags: Any) -> bool:
    """By a record's tags: it is never sent to a language model, and its text never shown unasked."""
    return isinstance(tags, dict) and bool(tags.get(SENSITIVE))


def is_redacted(provenance: Mapping[str, Any]) -> bool:
    """Whether what an index holds of its text, and answers show, is without the finds."""
    decision = decision_of(provenance)
    return decision is not None and decision.policy == REDACT


def without(decision: Decision, dismissed: Collection[str]) -> Decision:
    return replace(decision, marks=[mark for mark in decision.marks if mark.fingerprint not in dismissed])
