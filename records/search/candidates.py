"""Asks the body index in several ways, and gathers the passages that deserve a second look."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter

from .engine import Folder, Hit, Part, Statistics
from .query import Asked
from .scoring import rarity

# Of the best passages so many are read: measured, more change nothing (docs/retrieval.md).
LIMIT = 60
# The engine's time grows with the terms: of a whole dialogue the rarest, weighted by how often they are said.
TERMS_MAX = 32
# A question with more terms is no list of words that a record should hold all of.
ALL_MAX = 12
_ALL_LIMIT, _FRAGMENT_LIMIT, _FRAGMENTS = 20, 100, 8
_PREFIX_LIMIT, PREFIX_WEIGHT = 6, 0.5

Key = tuple[int, int, int, int | None]


@dataclass(slots=True)
class Found:
    """What one folder gave. `frequencies`: passages and records with each term; `legs`: by which ways each
    passage was found; `complete`: records that hold every term; `seconds`: of the bare queries."""

    asked: Asked
    frequencies: dict[str, tuple[int, int]]
    statistics: Statistics
    hits: dict[Key, Hit] = field(default_factory=dict)
    legs: dict[Key, set[str]] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)
    seconds: float = 0.0
    # The terms that were asked for themselves.
    needed: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.needed = frozenset(self.asked.weights) - self.asked.aliases.keys()

    def add(self, leg: str, hits: Iterable[Hit]) -> None:
        for hit in hits:
            key = (hit.record, hit.part, hit.at, hit.seq_start)
            self.hits.setdefault(key, hit)
            self.legs.setdefault(key, set()).add(leg)


def gather(
    folder: Folder,
    asked: Asked,
    session_ids: frozenset[str] | None,
    numbers: list[int] | None,
    unknown: Collection[str],
) -> Found:
    """`session_ids`, `numbers`: only passages of these sessions, of these records. `unknown`: terms that no
    folder that is searched holds."""
    started = perf_counter()
    frequencies = {term: (folder.frequency(term), folder.records_with(term)) for term in asked.weights}
    asked, extra = _with_prefixes(folder, asked, unknown)
    frequencies |= extra
    known = {term: weight for term, weight in asked.weights.items() if frequencies[term][0]}
    found = Found(asked, frequencies, folder.statistics)
    only = None
    if numbers is not None:
        only = folder.of_records(numbers)
    elif session_ids is not None:
        only = folder.of_sessions(session_ids)
    rarest = _rarest(known, frequencies, folder)
    found.add("passage", folder.any_of(rarest, LIMIT, only))
    needed = found.needed
    if 1 < len(needed) <= ALL_MAX and all(term in known for term in needed):
        found.add("all terms", folder.all_of(needed, _ALL_LIMIT, only))
        cards = folder.records_of_all(needed, _ALL_LIMIT, only)
        found.complete = {hit.record for hit in cards}
        if found.complete:
            inside = folder.of_records(found.complete)
            found.add("passage", folder.any_of(rarest, 2 * _ALL_LIMIT, inside))
    if by_card := _by_card_only(found):
        # A hit is a place, and a record more than its card.
        found.add("passage", folder.any_of(rarest, 2 * len(by_card), folder.of_records(by_card)))
    fragments = _fragments(asked, frequencies)
    for fragment in fragments:
        found.add("fragment", folder.containing(fragment, _FRAGMENT_LIMIT // len(fragments), only))
    found.seconds = perf_counter() - started
    return found


def _by_card_only(found: Found) -> set[int]:
    inside = {hit.record for hit in found.hits.values() if hit.part != Part.CARD}
    return {hit.record for hit in found.hits.values() if hit.part == Part.CARD} - inside


def _rarest(
    known: dict[str, float], frequencies: dict[str, tuple[int, int]], folder: Folder
) -> dict[str, float]:
    if len(known) <= TERMS_MAX:
        return known
    passages = folder.statistics.passages
    by_worth = sorted(known.items(), key=lambda item: -item[1] * rarity(frequencies[item[0]][0], passages))
    return dict(by_worth[:TERMS_MAX])


def _with_prefixes(
    folder: Folder, asked: Asked, unknown: Collection[str]
) -> tuple[Asked, dict[str, tuple[int, int]]]:
    """Words that occur nowhere stand for those that begin with them: "authenti" for "authentication"."""
    wanted = [term for term in asked.weights if _may_be_part(term) and term in unknown]
    extra: dict[str, tuple[int, int]] = {}
    weights = dict(asked.weights)
    origins: dict[str, str] = {}
    for term in wanted[:_FRAGMENTS]:
        for other in folder.with_prefix(term, _PREFIX_LIMIT) or _known_beginning(folder, term):
            if other not in weights:
                weights[other] = PREFIX_WEIGHT * weights[term]
                extra[other] = (folder.frequency(other), folder.records_with(other))
                origins[other] = term
    return (asked.with_weights(weights, origins, similar=True) if extra else asked), extra


def _known_beginning(folder: Folder, term: str) -> list[str]:
    """A word broken off inside its ending has another stem than the whole: "authenticat", "authent"."""
    beginnings = (term[:end] for end in range(len(term) - 1, max(3, len(term) - 6), -1))
    return list(islice((start for start in beginnings if folder.frequency(start)), 1))


def _fragments(asked: Asked, frequencies: dict[str, tuple[int, int]]) -> list[str]:
    """What may stand inside an identifier: names as they were written, and words that are unknown by
    themselves."""
    unknown = [term for term in asked.weights if term in frequencies and not frequencies[term][0]]
    wanted = dict.fromkeys([*asked.exacts, *filter(_may_be_part, unknown)])
    return [fragment for fragment in wanted if len(fragment) >= 3 and " " not in fragment][:_FRAGMENTS]


def _may_be_part(term: str) -> bool:
    return len(term) >= 3 and term.isascii()
