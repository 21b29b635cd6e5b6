"""Whether a record is worth telling somebody who did not ask for it. Pure.

A hit's score says which record is best, nothing of whether it bears on the question at all. That is judged by
how unlikely it is that text about something else holds the same terms: each is worth the bits of its rarity.
In a small store frequencies say little, so they are mixed with what is expected of a word beforehand; and what
people say to agents whatever the subject is (`everyday`) is no evidence.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from .query import Asked, ask
from .results import SearchHit
from .terms import is_cjk

# Measured (docs/retrieval.md).
FLOOR = 3.0
MOST = 3
# The share of records that a term is expected in, as if seen in so many records.
_WORD, _PAIR, _CHARACTER, _SEEN = 0.004, 0.006, 0.04, 100
_BITS_MAX, _EVERYDAY = 10.0, 1.0
# What the parts of a path or identifier are worth by themselves; the rest goes to the whole.
_PARTS, _NAME, _ALIAS = 0.5, 0.6, 0.6
# A text that holds little of a question says less than its share.
_POWER, _NEARNESS = 1.5, 1.0
# One word in a sentence of everyday ones may be one more of them: no list has all.
_ALONE = 0.1
# In a larger store chance finds more.
_RECORDS, _TENFOLD = 100, 0.5


class Held(NamedTuple):
    """What a passage holds of a question. `exacts`, and the whole question if `verbatim`, as they stand;
    `nearness`: 0 to 1, how many neighbours in the question are neighbours here."""

    terms: Collection[str]
    exacts: frozenset[str] = frozenset()
    verbatim: bool = False
    nearness: float = 0.0


class Relevance:
    """Of passages to one question. `records_with`: how many of `records` hold each term."""

    def __init__(self, asked: Asked, records_with: Mapping[str, int], records: int) -> None:
        self._asked = asked
        has_pairs = any(len(term) > 1 and is_cjk(term) for term in asked.weights)
        # A character says nothing that its pairs don't.
        terms = [
            term
            for term in asked.weights
            if term not in asked.aliases and not (has_pairs and len(term) == 1 and is_cjk(term))
        ]
        worth = {term: self._worth_of(term, records_with.get(term, 0), records) for term in terms}
        compounds = {
            exact: known
            for exact, parts in asked.parts.items()
            if len(known := [part for part in parts if part in worth]) > 1
        }
        rest = {part: value * (1 - _PARTS) for part, value in worth.items()}
        self._wholes = {exact: {part: rest[part] for part in parts} for exact, parts in compounds.items()}
        for part in {part for parts in compounds.values() for part in parts}:
            worth[part] *= _PARTS
        self._worth = worth
        self._total = sum(worth.values()) + sum(sum(whole.values()) for whole in self._wholes.values())
        self._is_sentence = " " in asked.verbatim.strip()
        self._by_chance = 1 + _TENFOLD * math.log10(max(_RECORDS, records) / _RECORDS)

    def _worth_of(self, term: str, held_by: int, records: int) -> float:
        weight = min(1.0, self._asked.weights[term])
        if term in self._asked.everyday:
            return _EVERYDAY * weight
        expected = _WORD
        if is_cjk(term):
            expected = _CHARACTER if len(term) == 1 else _PAIR
        share = (held_by + expected * _SEEN) / (max(records, held_by) + _SEEN)
        bits = min(_BITS_MAX, -math.log2(share))
        return bits * (_NAME if term in self._asked.names else weight)

    def of(self, held: Held) -> float:
        """From 0, in bits of the evidence that it is no chance; FLOOR is enough to be told unasked."""
        if not self._total:
            return 0.0
        found = self._found(held)
        everyday = self._asked.everyday
        worth = sum(value for _, value in found)
        evidence = sum(value for term, value in found if term not in everyday)
        if self._is_sentence and len(held_rare := {term for term, _ in found} - everyday) == 1:
            evidence *= 1.0 if self._is_name(*held_rare) else _ALONE
        share = min(1.0, worth / self._total)
        return evidence * math.pow(share, _POWER) * (1 + _NEARNESS * held.nearness) / self._by_chance

    def _is_name(self, term: str) -> bool:
        """Or a number, or Chinese: no plain word, which the everyday ones may lack."""
        in_name = any(term in whole for whole in self._wholes.values())
        return in_name or term in self._asked.names or not (term.isascii() and term.isalpha())

    def _found(self, held: Held) -> list[tuple[str, float]]:
        """(term, what finding it is worth); parts of a path or identifier once more when it stands there whole."""
        asked = self._asked
        wholes = self._wholes if held.verbatim else self._wholes.keys() & held.exacts
        terms = set(self._worth) if held.verbatim else {*held.terms}
        terms.update(part for exact in wholes for part in asked.parts[exact])
        found = {term: self._worth[term] for term in terms & self._worth.keys()}
        for alias in asked.aliases.keys() & terms:
            origin = asked.aliases[alias]
            if origin in self._worth:
                found.setdefault(origin, _ALIAS * self._worth[origin])
        return [*found.items(), *(item for exact in wholes for item in self._wholes[exact].items())]


def may_be_relevant(text: str) -> bool:
    """Whether anything can be: not if all of it is what people say whatever the subject is."""
    asked = ask(text)
    return not asked.is_empty and not asked.weights.keys() <= asked.everyday


def relevant(hits: Iterable[SearchHit], most: int = MOST) -> list[SearchHit]:
    """Those worth telling unasked, in their order: at most `most`, and often none."""
    return [hit for hit in hits if hit.relevance >= FLOOR][:most]
