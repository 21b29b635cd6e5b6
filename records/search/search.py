"""Finds records again, in any words.

Data flow: the question is taken apart (query) -> the body index gives the best passages of each pool in
several ways (candidates) -> their records are looked up, which is where the scope and the filters decide ->
the passages are read and scored exactly (scoring) -> the best records, each with its best place.
"""

import json
import logging
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Unpack

from django.db import OperationalError, connection
from filelock import Timeout

from records.home import home
from records.listing import where
from records.models import SearchEntry
from records.queries import Filters, records_filtered
from records.scope import Scope

from .aliases import Aliases, aliases_read
from .candidates import Found, gather
from .cards import cards_pending
from .engine import Folder, IndexDamaged
from .grep import grep
from .hints import no_hits
from .indexing import bodies_sync, pool_discard
from .pools import Visible, folder, layout_is_current, pools_visible
from .query import Asked, ask
from .ranking import ranked_hits
from .results import Card, Reason, SearchAnswer, SearchHit, Snippet
from .scoring import VERBATIM

logger = logging.getLogger(__name__)

LIMIT_MAX = 100
# Of the cards of records whose passages are still to be written.
_LOOKED_AT = 100
_LITERAL_MAX, _LITERAL_HITS, _LITERAL_SECONDS = 80, 5, 1.0
# With so few records passing the filters, the engine looks at their passages only.
_NARROW = 2_000
# What is not in the body index yet and can be brought in without keeping the caller waiting.
_SYNC_RECORDS, _SYNC_BYTES, _SYNC_SECONDS = 200, 4_000_000, 0.5
_TOGETHER = 500
_FILTERED = ("kinds", "statuses", "session_id", "cold", "tag", "agent")

EMPTY = "There is nothing to search for in this: give a word, a name, a path or a number."


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
    fresh = dict(cards_pending(asked.weights, _LOOKED_AT)) if pending else {}
    cards = _cards(
        scope, filters, {hit.record for each in found for hit in each.hits.values()} | fresh.keys()
    )
    limit = max(1, min(limit, LIMIT_MAX))
    ranked = ranked_hits(asked, found, cards, fresh, limit)
    if _needs_literal(asked) and not any("verbatim" in hit.reason.legs for hit in ranked):
        ranked = _with_literal(_literal(scope, text, filters), ranked)[:limit]
    if not ranked:
        return no_hits(scope, text, asked, filters, pending, search)
    return SearchAnswer(ranked, "", pending, sum(each.seconds for each in found))


def _needs_literal(asked: Asked) -> bool:
    """That signs are what it is about, and such as no index has: "#[test]" is not "test"."""
    text = asked.verbatim
    return (
        2 <= len(text) <= _LITERAL_MAX
        and text.isascii()
        and " " not in text
        and not text.strip(".,;:!?").isalnum()
        and asked.exacts != (text,)
    )


def _with_literal(literal: list[SearchHit], ranked: list[SearchHit]) -> list[SearchHit]:
    ids = {hit.card.id for hit in literal}
    return [*literal, *(hit for hit in ranked if hit.card.id not in ids)]


def _literal(scope: Scope, text: str, filters: Filters) -> list[SearchHit]:
    """Records that hold a text as it stands, looked for in their files: for what no index of words has."""
    found = grep(
        scope, text.strip().encode("utf-8", "replace").decode(), literal=True, max_hits=_LITERAL_HITS, max_hits_per_record=1,
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
    opened: list[tuple[Visible, Folder]] = []
    unknown = set(asked.weights)
    for visible in pools:
        try:
            if known := folder(visible.pool):
                unknown = {term for term in unknown if not known.frequency(term)}
                opened.append((visible, known))
        except (IndexDamaged, OSError) as error:
            _discard(visible, error)
            damaged.append(visible)
    for visible, known in opened:
        try:
            found.append(gather(known, asked, visible.session_ids, numbers, unknown))
        except (IndexDamaged, OSError) as error:
            _discard(visible, error)
            damaged.append(visible)
    return found, damaged


def _discard(visible: Visible, error: Exception) -> None:
    logger.warning("A part of the body index can't be read and is written anew: %s", error)
    pool_discard(visible.pool)


def _narrow(scope: Scope, filters: Filters) -> list[int] | None:
    """The numbers of the records that pass, if there are few; None: look at all, and leave out afterwards."""
    if not any(filters.get(name) not in (None, (), []) for name in _FILTERED):
        return None
    passing = records_filtered(scope, **filters).values_list("search_entry__number", flat=True)
    numbers = [number for number in passing[: _NARROW + 1] if number is not None]
    return numbers if len(numbers) <= _NARROW else None


# As the table names them.
_STORED = {"tags": "tags_json", "entities": "entities_json"}
_COLUMNS = ", ".join(f"records.{_STORED.get(name, name)}" for name in Card._fields if name != "number")
_JSON = tuple(Card._fields.index(name) for name in _STORED)


def _cards(scope: Scope, filters: Filters, numbers: set[int]) -> dict[int, Card]:
    """Here scope and filters decide what may be shown. (Written out: by the ORM it took a third of a search.)"""
    condition = where(records_filtered(scope, **filters))
    if not numbers or not condition.sql:
        return {}
    found: dict[int, Card] = {}
    wanted = sorted(numbers)
    with connection.cursor() as cursor:
        for start in range(0, len(wanted), _TOGETHER):
            chunk = wanted[start : start + _TOGETHER]
            cursor.execute(
                f"SELECT search_entries.number, {_COLUMNS} FROM search_entries "  # noqa: S608
                "CROSS JOIN records ON records.id = search_entries.record_id "
                f"WHERE search_entries.number IN ({', '.join(['%s'] * len(chunk))}) AND ({condition.sql})",
                (*chunk, *condition.params),
            )
            for row in cursor.fetchall():
                values = list(row)
                for index in _JSON:
                    values[index] = json.loads(values[index])
                found[row[0]] = Card(*values)
    return found


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
