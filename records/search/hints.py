"""What to do next when nothing was found: a question that finds something, or a filter less.

Everything counted here is counted within the caller's scope. The work is bounded: one more search without
filters, else a look at the words and tags that resemble those of the question.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import Any

from records.listing import Filters, first_of, pools_of, record_count, records_filtered, records_passing
from records.scope import Scope

from .engine import Folder, IndexDamaged
from .folding import fold
from .pools import Visible, folder, pools_visible
from .query import Asked
from .results import SearchAnswer, Suggestion
from .terms import is_cjk

Search = Callable[..., SearchAnswer]

# How much is looked at.
_HITS, _TERMS, _POOLS, _WORDS, _TAGGED = 100, 4, 8, 1_000, 1_000
# How much is told.
_SHOWN = 3
_ALIKE = 0.75
_PREFIX = 2
# A longer text, or one of several lines, is nothing to look for as it stands.
_EXACT_MAX = 200
_TAG_MAX = 60

_FILTERS = ("kinds", "statuses", "workspace_key", "session_id", "cold", "tag", "agent")
_NAMES = {"kinds": "kind", "statuses": "status", "workspace_key": "workspace", "session_id": "session"}
_PART = re.compile(r"\w+")

NOTHING = (
    "There are no records to search yet: switch a folder on in the pages, or archive logs with "
    "`manage.py archive PATH --level l3`."
)


def no_hits(
    scope: Scope, text: str, asked: Asked, filters: Filters, pending: int, search: Search
) -> SearchAnswer:
    """The answer to a question that found nothing. `search`: to ask again with."""
    given = [name for name in _FILTERS if filters.get(name) not in (None, (), [])]
    if given:
        # With no filter left it ends; what that answer suggests holds here as well.
        wider = search(scope, text, limit=_HITS)
        if not wider.hits:
            return wider
        suggestions = list(_filters(scope, text, filters, given, wider))
    elif not record_count(scope):
        return SearchAnswer(hint=NOTHING, pending=pending)
    else:
        suggestions = [*_words(scope, asked), *_tags(scope, asked)]
    exact = " ".join(text.split())
    if exact == text.strip() and len(exact) <= _EXACT_MAX:
        suggestions.append(
            Suggestion("grep", "grep looks for exactly these characters in the full text", exact)
        )
    return SearchAnswer(hint=_sentence(suggestions, pending), pending=pending, suggestions=suggestions)


def _sentence(suggestions: Iterable[Suggestion], pending: int) -> str:
    told = ["Nothing was found."]
    if pending:
        told.append(f"The text of {pending:,} new records is not searched yet: ask again in a moment.")
    told += [f"{each.text[0].upper()}{each.text[1:]}." for each in suggestions]
    return " ".join(told)


def _filters(
    scope: Scope, text: str, filters: Filters, given: list[str], wider: SearchAnswer
) -> Iterator[Suggestion]:
    """Which filter, left out, lets hits through, and how many."""
    ids = [hit.card.id for hit in wider.hits]
    any_alone = False
    for name in given if len(given) > 1 else ():
        fewer: Any = {key: value for key, value in filters.items() if key != name}
        count = records_filtered(scope, **fewer).filter(pk__in=ids).count()
        if count:
            any_alone = True
            yield Suggestion("filter", f"without the {_named(name)} filter: {_records(count)}", text, name)
    if not any_alone:
        names = " and ".join(map(_named, given))
        filters_word = "filter" if len(given) == 1 else "filters"
        yield Suggestion(
            "filter", f"without the {names} {filters_word}: {_records(len(ids))}", text, " ".join(given)
        )
    if "workspace_key" in given:
        folders = {hit.card.workspace_key: hit.card.workspace for hit in wider.hits}
        counts = Counter(hit.card.workspace_key for hit in wider.hits)
        for key, count in counts.most_common(_SHOWN):
            if key != filters.get("workspace_key"):
                where = folders[key] or key
                yield Suggestion("workspace", f"in {where}: {_records(count)}", text, key)


def _named(name: str) -> str:
    return _NAMES.get(name, name)


def _records(count: int) -> str:
    return f"{count:,}{'+' if count >= _HITS else ''} record{'' if count == 1 else 's'}"


def _words(scope: Scope, asked: Asked) -> Iterator[Suggestion]:
    """Words of the texts in scope that are spelt nearly like those of the question."""
    terms = [term for term in asked.weights if term not in asked.aliases and _is_word(term)]
    visible = list(_folders(scope))
    for term in terms[:_TERMS]:
        near: Counter[str] = Counter()
        for known, _ in visible:
            near.update(_alike(term, known))
        for word, _ in sorted(near.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN]:
            if count := _records_with(scope, word, visible):
                yield Suggestion("words", f"“{word}” occurs in {_records(count)}", word, term)
                break


def _is_word(term: str) -> bool:
    return len(term) > _PREFIX + 1 and not is_cjk(term)


def _folders(scope: Scope) -> Iterator[tuple[Folder, Visible]]:
    for pool in islice(pools_visible(scope, None, None), _POOLS):
        try:
            known = folder(pool.pool)
        except (IndexDamaged, OSError):
            # A search reports it; here it is one place less to look.
            continue
        if known is not None:
            yield known, pool


def _alike(term: str, known: Folder) -> dict[str, int]:
    """Words and how near they come, the nearest with the highest number."""
    try:
        words = [
            word
            for word in known.with_prefix(term[:_PREFIX], _WORDS)
            if abs(len(word) - len(term)) <= _PREFIX
        ]
        return {
            word: _SHOWN - place
            for place, word in enumerate(get_close_matches(term, words, n=_SHOWN, cutoff=_ALIKE))
        }
    except IndexDamaged:
        return {}


def _records_with(scope: Scope, word: str, visible: list[tuple[Folder, Visible]]) -> int:
    """Records in scope that hold a word: a folder of private records has other sessions' as well."""
    numbers: set[int] = set()
    for known, pool in visible:
        only = known.of_sessions(pool.session_ids) if pool.session_ids is not None else None
        numbers.update(hit.record for hit in known.any_of({word: 1.0}, _HITS, only))
    return records_filtered(scope).filter(search_entry__number__in=numbers).count()


def _tags(scope: Scope, asked: Asked) -> Iterator[Suggestion]:
    """Tags in scope of which a part is spelt nearly like a word of the question."""
    order = ("-updated_at", "-id")
    newest = first_of(records_passing(), pools_of(scope), order, _TAGGED).values_list("tags", flat=True)
    counts = Counter(value for tags in newest for value in _values(tags))
    parts: dict[str, set[str]] = {}
    for value in counts:
        for part in {fold(value), *_PART.findall(fold(value))}:
            parts.setdefault(part, set()).add(value)
    words = [word for word in _PART.findall(asked.verbatim) if len(word) > 1][:_TERMS]
    near = [
        value
        for word in words
        for part in get_close_matches(word, parts, n=_SHOWN, cutoff=_ALIKE)
        for value in sorted(parts[part])
    ]
    for value in list(dict.fromkeys(near))[:_SHOWN]:
        yield Suggestion("tag", f"the tag “{value}” is on {_records(counts[value])}", value, value)


def _values(tags: object) -> set[str]:
    lists = tags.values() if isinstance(tags, dict) else ()
    return {
        value
        for values in lists
        if isinstance(values, list)
        for value in values
        # A whole command line or error message is nothing that one would look for.
        if isinstance(value, str) and len(value) <= _TAG_MAX
    }
