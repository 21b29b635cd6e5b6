"""The second look at candidates: records in their order, each with its best place and why it was found."""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from records.clock import now_ms

from .candidates import Found, Key
from .cards import card_fields
from .engine import Hit, Part, Statistics
from .query import Asked
from .reading import Texts
from .relevance import Held
from .results import Card, Reason, SearchHit
from .scoring import ALL_HERE, ALL_TERMS, Look, Scorer, Spotter
from .snippets import snippet

# On the scale of scoring: shares of a best score, 0 to 1. Card fields as the original store weighed them.
_FIELDS = {"title": 3.0, "tags": 1.6, "summary": 1.4, "use_when": 1.2, "abstract": 0.9}
_FIELDS_SCALE, _TAG_EQUAL, _RECENT, _RECENT_DAYS, _COLD, _PINNED = 0.02, 0.2, 0.02, 60.0, -0.01, 0.001


class _Place(NamedTuple):
    """A passage that was looked at."""

    found: Found
    hit: Hit
    look: Look
    text: str
    score: float
    bonus: float

    @property
    def holds_all(self) -> bool:
        """Every term of a question of several."""
        needed = self.found.needed
        return len(needed) > 1 and needed <= self.look.counts.keys()


class _Scored(NamedTuple):
    score: float
    card: Card
    best: _Place
    fields: tuple[str, ...] = ()


def ranked_hits(
    asked: Asked, found: list[Found], cards: dict[int, Card], fresh: dict[int, float], limit: int
) -> list[SearchHit]:
    """`cards`: those that may be shown, by number; `fresh`: scores of those whose passages are still to come."""
    if not found:
        return _fresh_hits(asked, cards, fresh)[:limit]
    scorer = _scorer(found)
    places = {
        number: each
        for number, each in _places(found, cards, scorer).items()
        if any(place.bonus for place in each)
        or scorer.is_hit({term for place in each for term in place.look.counts})
    }
    best_passage = max((place.score for each in places.values() for place in each), default=0.0) or 1.0
    scores = {number: _record_score(each, scorer) for number, each in places.items()}
    best_record = max(scores.values(), default=0.0) or 1.0
    now = now_ms()
    hits = []
    for number, each in places.items():
        # A hit is a place: the card is shown where no passage says anything.
        inside = [place for place in each if place.hit.part != Part.CARD] or each
        best = max(inside, key=lambda place: (place.score / best_passage + place.bonus, -place.hit.at))
        score = (
            max(place.score for place in each) / best_passage
            + scores[number] / best_record
            + max(place.bonus for place in each)
            + (ALL_TERMS if number in best.found.complete else 0.0)
            + (ALL_HERE if any(place.holds_all for place in each) else 0.0)
        )
        card = cards[number]
        hits.append(_Scored(score, card, best))
    hits.sort(key=_order)
    # What the card adds moves a record by few places.
    hits[: 2 * limit] = [_with_card(hit, scorer, now) for hit in hits[: 2 * limit]]
    hits.sort(key=_order)
    answer = [_hit(hit, scorer, places[hit.card.number]) for hit in hits[:limit]]
    waiting = {number: score for number, score in fresh.items() if number not in places}
    return sorted([*answer, *_fresh_hits(asked, cards, waiting)], key=lambda hit: -hit.score)[:limit]


def _scorer(found: list[Found]) -> Scorer:
    """One measure for all pools that are searched, or those with less text would come last."""
    weights: dict[str, float] = {}
    aliases: dict[str, str] = {}
    frequencies: dict[str, tuple[int, int]] = {}
    for each in found:
        weights |= each.asked.weights
        aliases |= each.asked.aliases
        for term, (passages, records) in each.frequencies.items():
            before = frequencies.get(term, (0, 0))
            frequencies[term] = (before[0] + passages, before[1] + records)
    asked = replace(found[0].asked, weights=weights, aliases=aliases)
    return Scorer(asked, frequencies, Statistics.of_all([each.statistics for each in found]))


def _fresh_hits(asked: Asked, cards: dict[int, Card], fresh: dict[int, float]) -> list[SearchHit]:
    """By their cards alone."""
    best = max(fresh.values(), default=0.0) or 1.0
    spotter, reason = Spotter(asked.weights), Reason(("card",))
    shown = {
        number: snippet(cards[number].summary or cards[number].title, spotter, asked.exacts)
        for number in fresh.keys() & cards.keys()
    }
    return [SearchHit(cards[number], fresh[number] / best, shown[number], reason) for number in shown]


def _places(found: list[Found], cards: dict[int, Card], scorer: Scorer) -> dict[int, list[_Place]]:
    """The passages of records that may be shown, read and scored."""
    places: dict[int, list[_Place]] = {}
    with Texts(cards) as texts:
        for each in found:
            for hit in each.hits.values():
                text = texts.of(hit) if hit.record in cards else None
                place = _place(each, scorer, hit, text) if text is not None else None
                # Trigrams of a name may be there without the name.
                if place and (place.look.counts or place.bonus):
                    places.setdefault(hit.record, []).append(place)
    return places


def _place(found: Found, scorer: Scorer, hit: Hit, text: str) -> _Place:
    look = scorer.look(text)
    score, bonus = scorer.passage(look, hit.length), scorer.bonus(look.folded)
    return _Place(found, hit, look, text, score, bonus)


def _record_score(places: list[_Place], scorer: Scorer) -> float:
    together: Counter[str] = Counter()
    for place in places:
        together.update(place.look.counts)
    return scorer.record(together, max(place.hit.total for place in places))


def _fields(card: Card, scorer: Scorer) -> dict[str, float]:
    """Which fields of the card hold terms, and what share of the question these are."""
    given = card_fields(card._asdict())
    return {name: share for name, text in given.items() if text and (share := scorer.share(text))}


def _with_card(hit: _Scored, scorer: Scorer, now: int) -> _Scored:
    card = hit.card
    fields = _fields(card, scorer)
    bonus = _FIELDS_SCALE * sum(_FIELDS[name] * share for name, share in fields.items())
    if "tags" in fields and scorer.equals_one(card_fields(card._asdict())["tags"].split("\n")):
        bonus += _TAG_EQUAL
    age_days = max(0, now - card.updated_at) / 86_400_000
    bonus += _RECENT * _RECENT_DAYS / (_RECENT_DAYS + age_days)
    bonus += (_COLD if card.cold else 0.0) + (_PINNED if card.status == "pinned" else 0.0)
    return hit._replace(score=hit.score + bonus, fields=tuple(fields))


def _order(hit: _Scored) -> tuple[float, int, str]:
    return -hit.score, -hit.card.created_at, hit.card.id


def _hit(scored: _Scored, scorer: Scorer, places: list[_Place]) -> SearchHit:
    card, best = scored.card, scored.best
    asked = best.found.asked
    spans = [*asked.exacts, *filter(None, [asked.verbatim])]
    shown = snippet(best.text, scorer.spotter, spans)
    key: Key = (best.hit.record, best.hit.part, best.hit.at, best.hit.seq_start)
    legs = {("card" if best.hit.part == Part.CARD else leg) for leg in best.found.legs[key]}
    if asked.verbatim and asked.verbatim in best.look.folded:
        legs.add("verbatim")
    terms = tuple(term for term in asked.weights if term in best.look.counts)
    synonyms = asked.aliases
    reason = Reason(
        tuple(sorted(legs)),
        tuple(term for term in terms if term not in synonyms),
        scored.fields,
        tuple(term for term in terms if term in synonyms and term not in asked.similar),
        tuple(term for term in terms if term in asked.similar),
    )
    offset = best.hit.at if best.hit.part == Part.BODY else None
    relevance = max(scorer.relevance.of(_held(place, asked)) for place in places)
    return SearchHit(
        card, round(scored.score, 4), shown, reason, offset, best.hit.seq_start, best.hit.seq_end,
        round(relevance, 2),
    )  # fmt: skip


def _held(place: _Place, asked: Asked) -> Held:
    folded = place.look.folded
    return Held(
        place.look.counts,
        frozenset(exact for exact in asked.exacts if exact in folded),
        bool(asked.verbatim) and asked.verbatim in folded,
        place.look.nearness,
    )
