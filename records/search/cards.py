"""The cards of records in SQLite's FTS5, written in the transaction that writes the row: exact and at once.

The body index answers questions; the cards answer while that one is behind, and everywhere else that a word
in a title must be found immediately. Terms are extracted as everywhere, so both indexes agree on them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import connection

from .extraction import extract

FIELDS = ("title", "tags", "summary", "use_when", "abstract")
# bm25()'s weights, in the order of the columns.
_WEIGHTS = "3.0, 1.6, 1.4, 1.2, 0.9"
# SQLite takes 32,766 variables a statement at most.
_CHUNK = 500

_ENTER = """
    INSERT INTO search_entries (record_id, workspace_key, scope, session_id, version, pending)
    VALUES (%s, %s, %s, %s, 1, 1)
    ON CONFLICT (record_id) DO UPDATE SET workspace_key = excluded.workspace_key, scope = excluded.scope,
        session_id = excluded.session_id, version = search_entries.version + 1, pending = 1
"""
_INSERT = f"INSERT INTO search_cards (rowid, {', '.join(FIELDS)}) VALUES (%s, %s, %s, %s, %s, %s)"  # noqa: S608


def card_fields(row: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a card, by field. A row as `rows.Row`; a file edited by hand may hold anything."""
    tags = row["tags"] if isinstance(row["tags"], dict) else {}
    entities = row["entities"] if isinstance(row["entities"], list) else []
    values = [value for values in tags.values() if isinstance(values, list) for value in values]
    return {
        "title": row["title"],
        "tags": "\n".join(str(value) for value in (*values, *entities)),
        "summary": row["summary"],
        "use_when": row["use_when"],
        "abstract": row["abstract"],
    }


def cards_enter(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows that are new or have changed: their cards, and that their passages are to be written."""
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.executemany(
            _ENTER,
            [(row["id"], row["workspace_key"], str(row["scope"]), row["session_id"]) for row in rows],
        )
    cards_write(rows)


def cards_write(rows: Sequence[Mapping[str, Any]]) -> None:
    """Of records that have an entry."""
    numbers = _numbers(row["id"] for row in rows)
    values: list[tuple[Any, ...]] = [
        (numbers[row["id"]], *(extract(text).terms for text in card_fields(row).values()))
        for row in rows
        if row["id"] in numbers
    ]
    with connection.cursor() as cursor:
        cursor.executemany("DELETE FROM search_cards WHERE rowid = %s", [value[:1] for value in values])
        cursor.executemany(_INSERT, values)


def cards_leave(record_ids: Iterable[str]) -> None:
    """Records that go: their cards at once, their passages when the entry's turn comes."""
    numbers = list(_numbers(record_ids).values())
    with connection.cursor() as cursor:
        cursor.executemany("DELETE FROM search_cards WHERE rowid = %s", [(number,) for number in numbers])
        cursor.executemany(
            "UPDATE search_entries SET pending = 1, version = version + 1 WHERE number = %s",
            [(number,) for number in numbers],
        )


def cards_pending(terms: Iterable[str], limit: int) -> list[tuple[int, float]]:
    """(number, score) of the best cards with any of these terms whose passages are still to be written."""
    wanted = [f'"{term}"' for term in terms if '"' not in term and any(map(str.isalnum, term))]
    if not wanted:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT search_cards.rowid, bm25(search_cards, {_WEIGHTS}) AS score FROM search_cards
            JOIN search_entries ON search_entries.number = search_cards.rowid AND search_entries.pending = 1
            WHERE search_cards MATCH %s ORDER BY score LIMIT %s
            """,  # noqa: S608 - the weights above
            [" OR ".join(wanted), limit],
        )
        return [(number, -score) for number, score in cursor.fetchall()]


def _numbers(record_ids: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for chunk in _chunks(list(record_ids)):
        marks = ", ".join(["%s"] * len(chunk))
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT record_id, number FROM search_entries WHERE record_id IN ({marks})",  # noqa: S608
                chunk,
            )
            found.update(cursor.fetchall())
    return found


def _chunks(items: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(items), _CHUNK):
        yield items[at : at + _CHUNK]


def cards_purge() -> None:
    """Takes the words of cards that have left out of the index: it keeps them until it merges."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO search_cards (search_cards) VALUES ('optimize')")
