"""The second look: exact scores of the best candidates. Pure.

The engine ranks hundreds of thousands of passages in milliseconds, with lengths kept in a byte and fixed
parameters. What it puts first is read again and scored exactly, BM25 (Robertson and Zaragoza, 2009), twice:
each passage by itself (k1 1.2, b 0.7), and what all candidate passages of a record hold together (k1 1.5,
b 0.75), which measured as good as the whole text does. Each is divided by its own best and both are added.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import re2

from .engine import Statistics
from .extraction import identifier_spans, terms_of_chunk
from .folding import case_and_spaces, fold_case_kept, fold_spaces
from .query import Asked
from .relevance import Relevance
from .terms import is_cjk, without_cjk

PASSAGE_K1, PASSAGE_B = 1.2, 0.7
RECORD_K1, RECORD_B = 1.5, 0.75
# On the scale of the two shares above, which add up to 2 at most.
# Neighbours in the question count as near when they begin within so many bytes, or characters of Chinese.
NEARNESS, WORD_GAP, CJK_GAP = 0.2, 25, 10
LOOKED_AT = 20
SHORT = 3
# What words and identifiers are made of.
_LETTER = r"[0-9A-Za-z_\x{80}-\x{10FFFF}]"
VERBATIM, WHOLE_WORDS, EXACTS, QUOTED = 3.0, 0.5, 1.0, 2.0
# For a record that holds every term of the question, and for a passage that does.
ALL_TERMS, ALL_HERE = 0.2, 0.2
SHORT_QUESTION, LEAST_SHARE = 8, 0.1


class Look(NamedTuple):
    """A text, looked at. `counts`: how often it says each term of the question; `folded`: with single blanks;
    `nearness`: 0 to 1, how many neighbours in the question are neighbours here."""

    counts: dict[str, int]
    folded: str
    nearness: float


class Spotter:
    """Finds the terms of a question in text without taking all of it apart.

    One pass of a linear-time expression gives the few words that may hold a term, since they contain its
    beginning; only these are extracted. (Extraction of whole passages took three quarters of a search.)
    """

    def __init__(self, terms: Iterable[str]) -> None:
        given = list(terms)
        self._cjk = [term for term in given if is_cjk(term)]
        self._words = frozenset(given) - frozenset(self._cjk)
        beginnings = sorted(map(_beginning, self._words))
        self._chunks = (
            re2.compile(f"(?i){_LETTER}*(?:{'|'.join(beginnings)}){_LETTER}*(?:\\+\\+|#)?".encode())
            if beginnings
            else None
        )
        # What each word holds: the passages of one question say the same words over and over.
        self._known: dict[bytes, list[str]] = {}

    def spots(self, folded: str) -> dict[str, list[int]]:
        """Where each term that occurs begins: characters for CJK, else bytes. `folded`: but for its case."""
        places: dict[str, list[int]] = {}
        if not folded.isascii():
            for term in self._cjk:
                at = folded.find(term)
                while at >= 0:
                    places.setdefault(term, []).append(at)
                    at = folded.find(term, at + 1)
        for at, _, terms in self._found(folded.encode("utf-8", "replace")):
            for term in terms:
                places.setdefault(term, []).append(at)
        return places

    def marks(self, folded: str) -> Iterator[tuple[int, int]]:
        """(start, end) in characters of what holds a term: words, and identifiers as far as they do."""
        for term in self._cjk:
            at = folded.find(term)
            while at >= 0:
                yield at, at + len(term)
                at = folded.find(term, at + 1)
        data = folded.encode("utf-8", "replace")
        for start, end, _ in self._found(data):
            offset = start if len(data) == len(folded) else len(data[:start].decode("utf-8", "replace"))
            for first, last, terms in identifier_spans(data[start:end].decode()):
                if not self._words.isdisjoint(terms):
                    yield offset + first, offset + last

    def _found(self, data: bytes) -> Iterator[tuple[int, int, list[str]]]:
        """(start, end, terms) of the words and identifiers that hold terms of the question."""
        if self._chunks is None:
            return
        known = self._known
        for match in self._chunks.finditer(data):
            start, end = match.span()
            word = data[start:end]
            terms = known.get(word)
            if terms is None:
                terms = known[word] = self._terms_in(word.decode("utf-8", "replace"))
            if terms:
                yield start, end, terms

    def _terms_in(self, chunk: str) -> list[str]:
        parts = (chunk,) if chunk.isascii() else without_cjk(chunk)[0].split()
        return [term for part in parts for term in terms_of_chunk(part) if term in self._words]


def _beginning(term: str) -> str:
    """An expression for what every word with this stem begins with: "queri" is also the stem of "query"."""
    if len(term) > SHORT:
        return str(re2.escape(term[:-1]))
    # In the middle of words a short one is nearly everywhere: it has to begin a word or a part.
    start = re2.escape(term.removesuffix("i") or term)
    if term.isdecimal():
        return f"(?:^|[^0-9]){start}"
    if len(term) == 1:
        return rf"(?:\b|_){start}(?:\b|_|[0-9])"
    if not (term.isascii() and term.isalpha()):
        return rf"(?:\b|_){start}"
    return rf"(?:\b|_|[0-9]){start}|(?-i:[a-z0-9](?:{start.capitalize()}|{start.upper()}))"


class Scorer:
    """`frequencies`: in how many passages each term stands, and in how many records."""

    def __init__(self, asked: Asked, frequencies: dict[str, tuple[int, int]], statistics: Statistics) -> None:
        self.asked = asked
        self._statistics = statistics
        self.spotter = Spotter(asked.weights)
        self._passage_weights = {
            term: weight * rarity(frequencies[term][0], statistics.passages)
            for term, weight in asked.weights.items()
        }
        self._record_weights = {
            term: weight * rarity(frequencies[term][1], statistics.records)
            for term, weight in asked.weights.items()
        }
        self.relevance = Relevance(
            asked, {term: with_it for term, (_, with_it) in frequencies.items()}, statistics.records
        )
        own = {term: weight for term, weight in self._passage_weights.items() if term not in asked.aliases}
        total = sum(own.values()) or 1.0
        self._shares = {term: weight / total for term, weight in own.items()}
        self._exacts = [
            (exact, (QUOTED if exact in asked.quoted else EXACTS) * self.share(exact))
            for exact in asked.exacts
        ]
        self._pairs = list(self._neighbours())
        self._all_pairs = sum(weight for *_, weight in self._pairs)

    def _neighbours(self) -> Iterator[tuple[str, str, int, float]]:
        """(term, the one after it in the question, how far apart they may be, what the two weigh)"""
        said = [term for term in self.asked.weights if term not in self.asked.aliases]
        for first, second in pairwise(said):
            if is_cjk(first) == is_cjk(second):
                gap = CJK_GAP if is_cjk(first) else WORD_GAP
                yield first, second, gap, self._passage_weights[first] + self._passage_weights[second]

    def look(self, text: str) -> Look:
        folded = fold_case_kept(text)
        places = self.spotter.spots(folded)
        counts = {term: len(found) for term, found in places.items()}
        return Look(counts, case_and_spaces(folded), self._nearness(places))

    def _nearness(self, places: dict[str, list[int]]) -> float:
        if not self._all_pairs:
            return 0.0
        near = 0.0
        for first, second, gap, weight in self._pairs:
            if first in places and second in places and _follow(places[first], places[second], gap):
                near += weight
        return near / self._all_pairs

    def passage(self, look: Look, length: int) -> float:
        average = self._statistics.passage_length
        counts = self._once(look.counts)
        score = _bm25(counts, self._passage_weights, length / average, PASSAGE_K1, PASSAGE_B)
        return score * (1 + NEARNESS * look.nearness)

    def record(self, counts: Mapping[str, int], length: int) -> float:
        average = self._statistics.record_length
        counts = self._once(counts)
        return _bm25(counts, self._record_weights, length / average, RECORD_K1, RECORD_B)

    def _once(self, counts: Mapping[str, int]) -> Mapping[str, int]:
        """A term stands for itself, else its best synonym does: five of them are not five terms found."""
        aliases = self.asked.aliases
        if not aliases or aliases.keys().isdisjoint(counts):
            return counts
        kept = {term: count for term, count in counts.items() if term not in aliases}
        best: dict[str, str] = {}
        for alias in sorted(aliases.keys() & counts):
            origin = aliases[alias]
            if origin not in kept and self._weighs(alias, counts) > self._weighs(best.get(origin), counts):
                best[origin] = alias
        return kept | {alias: counts[alias] for alias in best.values()}

    def _weighs(self, term: str | None, counts: Mapping[str, int]) -> float:
        return self._passage_weights[term] * min(counts[term], 3) if term else 0.0

    def share(self, text: str) -> float:
        """How much of the question a text holds, 0 to 1, by what its terms weigh."""
        weights = self._shares
        held = self.spotter.spots(fold_case_kept(text)).keys() & weights
        return sum(weights[term] for term in held)

    def is_hit(self, terms: Iterable[str]) -> bool:
        """That these say enough of a short question: the "e" of "E0308" does not. Long ones hold much that no
        text answers."""
        aliases = self.asked.aliases
        # However often a word is said, it is one that a text may hold.
        weights = {
            term: weight / max(1.0, self.asked.weights[term])
            for term, weight in self._passage_weights.items()
            if term not in aliases
        }
        if len(weights) > SHORT_QUESTION:
            return True
        held = {aliases.get(term, term) for term in terms}
        return sum(weights.get(term, 0.0) for term in held) >= LEAST_SHARE * sum(weights.values())

    def equals_one(self, values: Iterable[str]) -> bool:
        """That the question says one of these values as it is."""
        asked = self.asked.verbatim
        return any(
            value and value in asked and _stands_alone(value, asked) for value in map(fold_spaces, values)
        )

    def bonus(self, folded: str) -> float:
        """For text that holds the question, or its names and quotations, as they stand."""
        asked = self.asked
        total = 0.0
        if asked.verbatim and asked.verbatim in folded:
            total += VERBATIM + (WHOLE_WORDS if _stands_alone(asked.verbatim, folded) else 0.0)
        return total + sum(worth for exact, worth in self._exacts if exact in folded)


def _bm25(counts: Mapping[str, int], weights: dict[str, float], length: float, k1: float, b: float) -> float:
    damping = k1 * (1 - b + b * length)
    return sum(weights[term] * count * (k1 + 1) / (count + damping) for term, count in counts.items())


def _follow(first: list[int], second: list[int], gap: int) -> bool:
    return any(0 <= after - before <= gap for before in first[:LOOKED_AT] for after in second[:LOOKED_AT])


def rarity(frequency: int, total: int) -> float:
    return math.log(1 + (max(total, frequency) - frequency + 0.5) / (frequency + 0.5))


def _stands_alone(part: str, text: str) -> bool:
    """That `part` is somewhere in `text` not a piece of a longer word."""
    at = text.find(part)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(part) : at + len(part) + 1]
        if not (before.isalnum() and part[0].isalnum()) and not (after.isalnum() and part[-1].isalnum()):
            return True
        at = text.find(part, at + 1)
    return False
