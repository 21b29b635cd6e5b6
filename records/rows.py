"""The row that stands for a record file, and its way into the database.

Rows are written in raw batches: bulk import must not cost much more than the writing of the files.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from django.db import connection, models

from .abstracts import abstract_of, first_text
from .fields import FIELDS, SCHEMA, TITLE_MAX
from .header import to_json
from .home import safe_segment
from .models import Record
from .models import Scope as Pool
from .places import Content, Place
from .recordfile import ParsedFile, RecordDraft, parse
from .search.cards import cards_enter, cards_leave
from .secrets.policy import is_redacted
from .secrets.redaction import body_redacted
from .tokens import estimate_bytes
from .totals import Key, total_key, totals_apply

# Values by the names that Record's attributes have.
Row = dict[str, Any]
T = TypeVar("T")

# SQLite takes 32,766 variables a statement at most.
CHUNK = 500

ATTRIBUTES = tuple(field.attname for field in Record._meta.concrete_fields)
JSON_ATTRIBUTES = frozenset(
    field.attname for field in Record._meta.concrete_fields if isinstance(field, models.JSONField)
)
# Not in the file, and not to be had from it.
KEPT = frozenset({"read_count", "last_read_at"})
IDENTITY = ("id", "workspace_key", "scope", "session_id")
COUNTED = ("workspace_key", "scope", "session_id", "kind", "status", "cold")

_columns = [str(field.column) for field in Record._meta.concrete_fields]
INSERT = (
    f"INSERT INTO {Record._meta.db_table} ({', '.join(_columns)}) "  # noqa: S608 - names from the model
    f"VALUES ({', '.join(['%s'] * len(_columns))})"
)
UPSERT = f"{INSERT} ON CONFLICT (id) DO UPDATE SET " + ", ".join(
    f"{column} = excluded.{column}" for column in _columns if column not in {*KEPT, "id"}
)


class Projection(NamedTuple):
    row: Row
    problems: list[str]
    # Where the file contradicts its place, or the row, which decide.
    identity_edits: list[str]
    has_header: bool


def content_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def row_of_draft(draft: RecordDraft, *, place: Place, data: bytes) -> Row:
    """`data`: the draft, rendered."""
    return _row({name: getattr(draft, name) for name in FIELDS}, place=place, data=data, abstract="")


def project(place: Place, content: Content, known: Row | None) -> Projection:
    """The row of a file as it is now; `known`: as it is in the database. header.HeaderError."""
    parsed = parse(content.data)
    if parsed.has_header or known is None:
        fields = _with_defaults(parsed, place, content, known)
    else:
        fields = {name: known[name] for name in FIELDS} | {"tokens": _tokens(parsed.body)}
    fields |= _identity(parsed, place, known)
    abstract = ""
    if place.cold:
        hides = is_redacted(fields["provenance"])
        body = body_redacted(parsed.body) if hides else parsed.body
        kept = "" if hides else (known or {}).get("abstract")
        abstract = kept or abstract_of(fields["provenance"], body.decode("utf-8", "replace"))
    row = _row(fields, place=place, data=content.data, abstract=abstract)
    return Projection(row, parsed.problems, _identity_edits(parsed, row), parsed.has_header)


def _with_defaults(parsed: ParsedFile, place: Place, content: Content, known: Row | None) -> Row:
    given = parsed.draft_fields
    body = "" if {"title", "tokens"} <= given.keys() else parsed.body.decode("utf-8", "replace")
    created_at = given.get("created_at") or (known["created_at"] if known else content.mtime_ms)
    defaults: Row = {
        "schema": SCHEMA,
        "kind": "note",
        "workspace": "",
        "title": first_text(body, TITLE_MAX).split("\n")[0] or place.record_id,
        "summary": "",
        "use_when": "",
        "status": "active",
        # What nobody vouches for is data.
        "trust": "derived",
        "confidence": None,
        "slot": "",
        "tokens": _tokens(parsed.body),
        "tags": {},
        "entities": [],
        "sources": [],
        "links": {},
        "provenance": {},
        "created_at": created_at,
        "updated_at": created_at,
    }
    fields: Row = {name: given.get(name, default) for name, default in defaults.items()}
    return fields | {"title": fields["title"][:TITLE_MAX] or place.record_id}


def _identity(parsed: ParsedFile, place: Place, known: Row | None) -> Row:
    given = parsed.draft_fields
    key = given.get("workspace_key", "")
    if known is not None:
        scope, session_id = known["scope"], known["session_id"]
    elif given.get("scope") == Pool.WORKSPACE:
        scope, session_id = Pool.WORKSPACE, given.get("session_id", "")
    else:
        # A file that doesn't say stays private: without a session, to the owner.
        scope, session_id = Pool.SESSION, given.get("session_id", "")
    return {
        "id": place.record_id,
        "workspace_key": key if key and safe_segment(key) == place.segment else place.segment,
        "scope": str(scope),
        "session_id": session_id,
    }


def _identity_edits(parsed: ParsedFile, row: Row) -> list[str]:
    given = parsed.draft_fields
    return [
        f"{name} is {given[name]!r} in the file and {row[name]!r} in the store"
        for name in IDENTITY
        if name in given and given[name] != row[name]
    ]


def _row(fields: Mapping[str, Any], *, place: Place, data: bytes, abstract: str) -> Row:
    return {
        **fields,
        "bytes": len(data),
        "cold": int(place.cold),
        "abstract": abstract,
        "path": place.relative,
        "content_hash": content_hash(data),
        "read_count": 0,
        "last_read_at": None,
    }


def _tokens(body: bytes) -> int:
    return max(1, estimate_bytes(body))


def rows_known(ids: Iterable[str]) -> dict[str, Row]:
    rows = (row for chunk in chunks(ids) for row in Record.objects.filter(pk__in=chunk).values(*ATTRIBUTES))
    return {row["id"]: dict(row) for row in rows}


def rows_differ(row: Row, known: Row) -> bool:
    return any(row[name] != known[name] for name in row.keys() - KEPT)


def rows_present(ids: Iterable[str]) -> set[str]:
    return {
        record_id
        for chunk in chunks(ids)
        for record_id in Record.objects.filter(pk__in=chunk).values_list("pk", flat=True)
    }


def rows_insert(rows: Sequence[Row]) -> None:
    """New rows, the totals, what search needs; takes part in the caller's transaction, as all that follow do."""
    _execute(INSERT, rows)
    totals_apply(_amounts(rows, sign=1))
    cards_enter(rows)


def rows_put(rows: Sequence[Row]) -> None:
    """Rows that may be there already; read counts stay."""
    old = _counted([row["id"] for row in rows])
    _execute(UPSERT, rows)
    totals_apply([*_amounts(old, sign=-1), *_amounts(rows, sign=1)])
    cards_enter(rows)


def rows_drop(ids: Sequence[str]) -> None:
    totals_apply(_amounts(_counted(ids), sign=-1))
    cards_leave(ids)
    for chunk in chunks(ids):
        Record.objects.filter(pk__in=chunk).delete()


def _counted(ids: Iterable[str]) -> list[Row]:
    wanted = (*COUNTED, "tokens", "bytes")
    return [dict(row) for chunk in chunks(ids) for row in Record.objects.filter(pk__in=chunk).values(*wanted)]


def _amounts(rows: Iterable[Row], *, sign: int) -> Iterator[tuple[Key, int, int, int]]:
    for row in rows:
        key = total_key(**{name: row[name] for name in COUNTED})
        yield key, sign, sign * row["tokens"], sign * row["bytes"]


def _execute(statement: str, rows: Sequence[Row]) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(statement, [_values(row) for row in rows])


def _values(row: Row) -> list[Any]:
    return [to_json(row[name]) if name in JSON_ATTRIBUTES else row[name] for name in ATTRIBUTES]
