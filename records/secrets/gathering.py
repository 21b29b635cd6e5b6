"""Looks through the texts of a record that is being made, and decides what follows (policy)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from django.conf import settings

from records.fields import SUMMARY_MAX, TITLE_MAX, USE_WHEN_MAX
from records.recordfile import RecordDraft

from . import detector, policy
from .dismissed import dismissed, fingerprint
from .policy import UNSCANNED, Decision, Find, Mark, Scan, redacted, redacted_as

T = TypeVar("T")
# Characters that are handed to the detector together: each call costs as much as a few thousand.
_BATCH = 65_536
# Of a card's fields; what stands in place of a find may be longer than that.
_MOST = {"title": TITLE_MAX, "summary": SUMMARY_MAX, "use_when": USE_WHEN_MAX}


# What of a card is text.
CARD = ("title", "summary", "use_when", "tags", "entities", "slot")


class Gatherer:
    """One a record. `decision` is right once everything has gone through it."""

    def __init__(self, policy_name: str | None = None) -> None:
        self.decision = Decision(policy_name or settings.MEMEX_SENSITIVE_POLICY)
        self._dismissed = dismissed()
        self._fingerprints: dict[str, str] = {}

    @property
    def is_off(self) -> bool:
        return self.decision.policy == policy.OFF

    def text(self, text: str, seq: int | None = None) -> str:
        """The text without its finds, which are noted."""
        return self.texts([text], [seq])[0]

    def texts(self, texts: Sequence[str], seqs: Sequence[int | None]) -> list[str]:
        if self.is_off:
            return list(texts)
        scans = detector.scans(texts)
        return [
            redacted(text, self._noted(text, scan, seq))
            for text, scan, seq in zip(texts, scans, seqs, strict=True)
        ]

    def through(
        self, items: Iterable[T], texts_of: Callable[[T], list[str]], seq_of: Callable[[T], int]
    ) -> Iterator[tuple[T, list[str] | None]]:
        """Each item with its texts without their finds, None where there is none. As many items are held at a
        time as make a batch."""
        batch: list[tuple[T, list[str]]] = []
        size = 0
        for item in items:
            if self.is_off:
                yield item, None
                continue
            texts = texts_of(item)
            batch.append((item, texts))
            size += sum(map(len, texts))
            if size >= _BATCH:
                yield from self._batch(batch, seq_of)
                batch, size = [], 0
        yield from self._batch(batch, seq_of)

    def _batch(
        self, batch: list[tuple[T, list[str]]], seq_of: Callable[[T], int]
    ) -> Iterator[tuple[T, list[str] | None]]:
        texts = [text for _, each in batch for text in each]
        seqs = [seq_of(item) for item, each in batch for _ in each]
        clean = self.texts(texts, seqs) if texts else []
        at = 0
        for item, each in batch:
            found = clean[at : at + len(each)]
            at += len(each)
            yield item, found if found != each else None

    def card(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a card without their finds, each for itself: a card is shown to whoever may know that
        the record exists. Texts, and lists and objects of texts."""
        values = dict(given)
        if self.is_off:
            return values
        texts: list[str] = []
        _walk(values, texts.append)
        clean = iter(self.texts(texts, [None] * len(texts))) if texts else iter(())
        return _clipped(_rebuilt(values, lambda _: next(clean)))

    def _noted(self, text: str, scan: Scan, seq: int | None) -> list[Find]:
        kept: list[Find] = []
        for find in scan.finds:
            print_ = self._fingerprint(text[find.start : find.end])
            if print_ not in self._dismissed:
                kept.append(find)
                self.decision.marks.append(Mark(find.rule, seq, print_))
        if scan.gave_up:
            self.decision.marks.append(Mark(UNSCANNED, seq, fingerprint(f"{UNSCANNED} {len(text)} {seq}")))
        return kept

    def _fingerprint(self, value: str) -> str:
        if value not in self._fingerprints:
            self._fingerprints[value] = fingerprint(value)
        return self._fingerprints[value]


def draft_looked_through(draft: RecordDraft) -> RecordDraft:
    """Of a record that comes in as it is: its card without finds, and what follows from them and its body."""
    secrets = Gatherer()
    secrets.text(draft.body if isinstance(draft.body, str) else draft.body.decode("utf-8", "replace"))
    card = secrets.card({name: getattr(draft, name) for name in CARD})
    lost = secrets.card({"lost": draft.provenance.get("lost")})
    provenance = {**draft.provenance, **(lost if lost["lost"] else {})}
    decision = secrets.decision
    scope = decision.scope_for(draft.scope)
    looked = {**card, "tags": decision.tags(card["tags"]), "provenance": decision.provenance(provenance)}
    return replace(draft, scope=scope, **looked)


def put_back(given: Mapping[str, Any], values: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """`card` undone for (secret, rule): where a rule found several, nobody can say which of them stood there."""
    by_rule: dict[str, set[str]] = {}
    for value, rule in values:
        by_rule.setdefault(rule, set()).add(value)
    one = {
        redacted_as(rule): each for rule, (each, *more) in by_rule.items() if not more and "\n" not in each
    }

    def text(said: str) -> str:
        for marker, value in one.items():
            said = said.replace(marker, value)
        return said

    return _clipped(_rebuilt(dict(given), text))


def _clipped(card: dict[str, Any]) -> dict[str, Any]:
    return {name: value[: _MOST[name]] if name in _MOST else value for name, value in card.items()}


def _walk(value: Any, say: Callable[[str], None]) -> None:
    if isinstance(value, str):
        say(value)
    elif isinstance(value, dict):
        for each in value.values():
            _walk(each, say)
    elif isinstance(value, list | tuple):
        for each in value:
            _walk(each, say)


def _rebuilt(value: Any, text: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {name: _rebuilt(each, text) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rebuilt(each, text) for each in value]
    return value
