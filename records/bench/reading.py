"""The reading half of the bench: each way to find or open records, and the bare operation below it."""

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.db import connection

from records import places
from records.catalog import catalog
from records.home import bodies_dir, records_dir
from records.models import Record
from records.queries import facets, record_list, record_open
from records.scope import OWNER
from records.search.grep import grep
from records.search.search import search

from .clock import Pair
from .corpus import Corpus, Question, Text
from .raw import ripgrep
from .writing import WORKSPACE_KEY, record_id

QUESTIONS = 300
_WARM_UP = 20
_OPENED, _LISTED = 300, 100
_GREPPED = 4
_LIST = 50

# What the cards take in the database, without their text.
_CARDS_SIZE = "SELECT COALESCE(SUM(LENGTH(block)), 0) FROM search_cards_data"


def questions(corpus: Corpus, sample: Sequence[Text]) -> list[Question]:
    """Few of a small corpus."""
    count = _WARM_UP + min(QUESTIONS, 2 * len(sample))
    return [corpus.question(sample[turn % len(sample)], turn) for turn in range(count)]


def search_bench(asked: Sequence[Question]) -> Pair:
    """Against the bare queries to the engine that each search makes: it times them itself."""
    for question in asked[:_WARM_UP]:
        search(OWNER, question.text)
    pair = Pair()
    for question in asked[_WARM_UP:]:
        answer = pair.ours.time(search, OWNER, question.text)
        pair.raw.seconds.append(answer.engine_seconds)
    return pair


def open_bench(records: int) -> Pair:
    """Against reading the file, and one row by the ORM."""
    pair = Pair()
    for number in range(0, records, max(1, records // _OPENED)):
        name = record_id(number)
        pair.ours.time(record_open, OWNER, name)
        pair.raw.time(_file_and_row, name)
    return pair


def _file_and_row(name: str) -> tuple[bytes, Record]:
    path = places.place_of(name, WORKSPACE_KEY, cold=False).path
    return path.read_bytes(), Record.objects.get(pk=name)


def list_bench() -> Pair:
    return _read_bench(partial(record_list, OWNER, limit=_LIST))


def facets_bench() -> Pair:
    return _read_bench(partial(facets, OWNER))


def catalog_bench() -> Pair:
    return _read_bench(partial(catalog, OWNER))


def _read_bench(ours: Callable[[], object]) -> Pair:
    """Against the queries it makes, straight from the cursor."""
    statements = _statements(ours)
    pair = Pair()
    for _ in range(_LISTED):
        pair.ours.time(ours)
        pair.raw.time(_fetch, *statements)
    return pair


def _statements(ours: Callable[[], object]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        found.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        ours()
    return found


def _fetch(*statements: tuple[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of the last."""
    rows: list[tuple[Any, ...]] = []
    with connection.cursor() as cursor:
        for sql, params in statements:
            cursor.execute(sql, params)
            rows = cursor.fetchall()
    return rows


def grep_bench(sample: Sequence[Text], program: Path) -> Pair:
    """Against ripgrep over the same folder, with every line it finds."""
    pair = Pair()
    for pattern, literal in _patterns(sample):
        pair.ours.time(grep, OWNER, pattern, literal=literal)
        pair.raw.time(ripgrep, program, pattern, records_dir(), literal=literal)
    return pair


def _patterns(sample: Sequence[Text]) -> list[tuple[str, bool]]:
    """Names and phrases as they stand, and names of which the end is left open."""
    step = max(1, len(sample) // _GREPPED)
    found = []
    for text in sample[::step]:
        found += [(name, True) for name in text.names[-1:]]
        found += [(phrase[:8], True) for phrase in text.chinese[:1]]
        found += [(rf"{re.escape(name[:-2])}\w+", False) for name in text.names[-2:-1]]
    return found


def index_bytes() -> int:
    """Of the body index and of the cards."""
    folders = sum(
        (Path(folder) / name).stat().st_size for folder, _, names in os.walk(bodies_dir()) for name in names
    )
    ((cards,),) = _fetch((_CARDS_SIZE, None))
    return folders + int(cards)
