"""Finds records again, in any words.

Data flow: the question is taken apart (query) -> the body index gives the best passages of each pool in
several ways (candidates) -> their records are looked up, which is where the scope and the filters decide ->
the passages are read and scored exactly (scoring) -> the best records, each with its best place.
"""

import logging
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Unpack

from django.db import OperationalError
from filelock import Timeout

from records.clock import now_ms
from records.home import home
from records.models import SearchEntry
from records.queries import Filters, records_filtered
from records.scope import Scope

from .aliases import Aliases, aliases_read
from .candidates import Found, Key, gather
from .cards import card_fields, cards_pending
from .engine import Hit, IndexDamaged, Part
from .grep import grep
from .hints import no_hits
from .indexing import bodies_sync, pool_discard
from .pools import Visible, folder, layout_is_current, pools_visible
from .query import Asked, ask
from .reading import Texts
from .results import Card, Reason, SearchAnswer, SearchHit, Snippet
from .scoring import ALL_TERMS, VERBATIM, Look, Scorer, Spotter
from .snippets import snippet

logger = logging.getLogger(__name__)

LIMIT_MAX = 100
# Of the cards of records whose passages are still to be written.
_LOOKED_AT = 100
_LITERAL_MAX, _LITERAL_HITS, _LITERAL_SECONDS = 80, 5, 1.0
# With so few records passing the filters, the engine looks at their passages only.
_NARROW = 2_000
# What is not in the body index yet and can be brought in without keeping the caller waiting.
_SYNC_RECORDS, _SYNC_BYTES, _SYNC_SECONDS = 200, 4_000_000, 0.5
_FILTERED = ("kinds", "statuses", "session_id", "cold", "tag", "agent")

# On the scale of scoring: shares of a best score, 0 to 1. Card fields as the original store weighed them.
_FIELDS = {"title": 3.0, "tags": 1.6, "summary": 1.4, "use_when": 1.2, "abstract": 0.9}
_FIELDS_SCALE, _TAG_EQUAL, _RECENT, _RECENT_DAYS, _COLD, _PINNED = 0.02, 0.2, 0.02, 60.0, -0.01, 0.001

EMPTY = "There is nothing to search for in this: give a word, a name, a path or a number."


class _Place(NamedTuple):
    """A passage that was looked at."""

    found: Found
    hit: Hit
    look: Look
    text: str
    score: float
    bonus: float


class _Scored(NamedTuple):
    score: float
    card: Card
    best: _Place
    fields: tuple[str, ...] = ()


def search(scope: Scope, text: str, *, limit: int = 10, **filters: Unpack[Filters]) -> SearchAnswer:
    """The best records in scope that pass the filters. Any text is a question; none is an error."""
    asked = ask(text)
    if asked.is_empty:
        return SearchAnswer(hint=EMPTY)
    pending = _freshen()
    asked = _aliases().expanded(asked)
    numbers = _narrow(scope, filters)
    visible = list(pools_visible(scope, filters.get("workspace_key"), filters.get("session_id")))
    found, damaged = _gathered(visible, asked, numbers)
    if damaged:
        pending = _freshen()
        found += _gathered(damaged, asked, numbers)[0]
    fresh = _pending_cards(asked) if pending else {}
    cards = _cards(
        scope, filters, {hit.record for each in found for hit in each.hits.values()} | fresh.keys()
    )
    limit = max(1, min(limit, LIMIT_MAX))
    ranked = _ranked(asked, found, cards, fresh, limit)
    if _needs_literal(asked) and not any("verbatim" in hit.reason.legs for hit in ranked):
        ranked = _with_literal(_literal(scope, text, filters), ranked)[:limit]
    if not ranked:
        return no_hits(scope, text, asked, filters, pending, search)
    return SearchAnswer(ranked, "", pending, sum(each.seconds for each in found))


def _needs_literal(asked: Asked) -> bool:
    """That signs are what it is about: "#[test]" is not "test"."""
    text = asked.verbatim
    return 2 <= len(text) <= _LITERAL_MAX and " " not in text and not text.isalnum()


def _with_literal(literal: list[SearchHit], ranked: list[SearchHit]) -> list[SearchHit]:
    ids = {hit.card.id for hit in literal}
    return [*literal, *(hit for hit in ranked if hit.card.id not in ids)]


def _literal(scope: Scope, text: str, filters: Filters) -> list[SearchHit]:
    """Records that hold a text as it stands, looked for in their files: for what no index of words has."""
    found = grep(
        scope, text.strip(), literal=True, max_hits=_LITERAL_HITS, max_hits_per_record=1,
        timeout_s=_LITERAL_SECONDS, **filters,
    )  # fmt: skip
    entries = dict(
        SearchEntry.objects.filter(record_id__in=[hit.record_id for hit in found.hits]).values_list(
            "record_id", "number"
        )
    )
    cards = _cards(scope, filters, set(entries.values()))
    reason = Reason(("verbatim",))
    return [
        SearchHit(
            cards[entries[hit.record_id]], VERBATIM,
            Snippet(hit.line, hit.spans, hit.cut_before, hit.cut_after), reason, hit.offset, hit.seq, hit.seq,
        )
        for hit in found.hits
        if entries.get(hit.record_id) in cards
    ]  # fmt: skip


def _freshen() -> int:
    """Brings in what was written a moment ago; how many records are still missing."""
    waiting = SearchEntry.objects.filter(pending=1)
    sizes = list(waiting.values_list("record__bytes", flat=True)[: _SYNC_RECORDS + 1])
    if not sizes and layout_is_current():
        return 0
    if len(sizes) <= _SYNC_RECORDS and sum(filter(None, sizes)) <= _SYNC_BYTES:
        with suppress(Timeout, OperationalError, OSError):
            bodies_sync(timeout=_SYNC_SECONDS, most_records=_SYNC_RECORDS)
    return waiting.count()


def _gathered(
    pools: list[Visible], asked: Asked, numbers: list[int] | None
) -> tuple[list[Found], list[Visible]]:
    """What the pools gave, and those that can't be read, which are to be written anew."""
    found: list[Found] = []
    damaged: list[Visible] = []
    for visible in pools:
        try:
            known = folder(visible.pool)
            if known:
                found.append(gather(known, asked, visible.session_ids, numbers))
        except (IndexDamaged, OSError) as error:
            logger.warning("A part of the body index can't be read and is written anew: %s", error)
            pool_discard(visible.pool)
            damaged.append(visible)
    return found, damaged


def _narrow(scope: Scope, filters: Filters) -> list[int] | None:
    """The numbers of the records that pass, if there are few; None: look at all, and leave out afterwards."""
    if not any(filters.get(name) not in (None, (), []) for name in _FILTERED):
        return None
    passing = records_filtered(scope, **filters).values_list("search_entry__number", flat=True)
    numbers = [number for number in passing[: _NARROW + 1] if number is not None]
    return numbers if len(numbers) <= _NARROW else None


def _pending_cards(asked: Asked) -> dict[int, float]:
    return dict(cards_pending(asked.weights, _LOOKED_AT))


def _cards(scope: Scope, filters: Filters, numbers: set[int]) -> dict[int, Card]:
    """Here scope and filters decide what may be shown."""
    if not numbers:
        return {}
    entries = dict(SearchEntry.objects.filter(number__in=numbers).values_list("record_id", "number"))
    shown = records_filtered(scope, **filters).filter(pk__in=entries).values_list(*Card._fields[1:])
    return {entries[row[0]]: Card(entries[row[0]], *row) for row in shown}


@lru_cache(maxsize=4)
def _aliases_of(path: str, stamp: int) -> Aliases:
    return Aliases(aliases_read(Path(path)))


def _aliases() -> Aliases:
    path = home() / "aliases.json"
    try:
        stamp = path.stat().st_mtime_ns
    except OSError:
        stamp = 0
    return _aliases_of(str(path), stamp)


def _ranked(
    asked: Asked, found: list[Found], cards: dict[int, Card], fresh: dict[int, float], limit: int
) -> list[SearchHit]:
    places = _places(found, cards)
    best_passage = max((place.score for each in places.values() for place in each), default=0.0) or 1.0
    scores = {number: _record_score(each) for number, each in places.items()}
    best_record = max(scores.values(), default=0.0) or 1.0
    now = now_ms()
    hits = []
    for number, each in places.items():
        best = max(each, key=lambda place: (place.score / best_passage + place.bonus, -place.hit.at))
        score = (
            max(place.score for place in each) / best_passage
            + scores[number] / best_record
            + max(place.bonus for place in each)
            + (ALL_TERMS if number in best.found.complete else 0.0)
        )
        card = cards[number]
        hits.append(_Scored(score, card, best))
    hits.sort(key=_order)
    # What the card adds moves a record by few places.
    hits[: 2 * limit] = [_with_card(hit, now) for hit in hits[: 2 * limit]]
    hits.sort(key=_order)
    answer = [_hit(asked, hit) for hit in hits[:limit]]
    best_fresh = max(fresh.values(), default=0.0) or 1.0
    for number in fresh.keys() & cards.keys() - places.keys():
        card = cards[number]
        shown = snippet(card.summary or card.title, Spotter(asked.weights), asked.exacts)
        answer.append(SearchHit(card, fresh[number] / best_fresh, shown, Reason(("card",))))
    return sorted(answer, key=lambda hit: -hit.score)[:limit]


def _places(found: list[Found], cards: dict[int, Card]) -> dict[int, list[_Place]]:
    """The passages of records that may be shown, read and scored."""
    places: dict[int, list[_Place]] = {}
    with Texts(cards) as texts:
        for each in found:
            for hit in each.hits.values():
                text = texts.of(hit) if hit.record in cards else None
                if text is not None:
                    places.setdefault(hit.record, []).append(_place(each, hit, text))
    return places


def _place(found: Found, hit: Hit, text: str) -> _Place:
    look = found.scorer.look(text)
    score, bonus = found.scorer.passage(look, hit.length), found.scorer.bonus(look.folded)
    return _Place(found, hit, look, text, score, bonus)


def _record_score(places: list[_Place]) -> float:
    together: Counter[str] = Counter()
    for place in places:
        together.update(place.look.counts)
    return places[0].found.scorer.record(together, max(place.hit.total for place in places))


def _fields(card: Card, scorer: Scorer) -> dict[str, float]:
    """Which fields of the card hold terms, and what share of the question these are."""
    given = card_fields(card._asdict())
    return {name: share for name, text in given.items() if text and (share := scorer.share(text))}


def _with_card(hit: _Scored, now: int) -> _Scored:
    card, scorer = hit.card, hit.best.found.scorer
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


def _hit(asked: Asked, scored: _Scored) -> SearchHit:
    card, best = scored.card, scored.best
    spans = [*asked.exacts, *filter(None, [asked.verbatim])]
    shown = snippet(best.text, best.found.scorer.spotter, spans)
    key: Key = (best.hit.record, best.hit.part, best.hit.at, best.hit.seq_start)
    legs = {("card" if best.hit.part == Part.CARD else leg) for leg in best.found.legs[key]}
    if asked.verbatim and asked.verbatim in best.look.folded:
        legs.add("verbatim")
    terms = tuple(term for term in best.found.asked.weights if term in best.look.counts)
    synonyms = best.found.asked.aliases
    reason = Reason(
        tuple(sorted(legs)),
        tuple(term for term in terms if term not in synonyms),
        scored.fields,
        tuple(term for term in terms if term in synonyms),
    )
    offset = best.hit.at if best.hit.part == Part.BODY else None
    return SearchHit(
        card, round(scored.score, 4), shown, reason, offset, best.hit.seq_start, best.hit.seq_end
    )
