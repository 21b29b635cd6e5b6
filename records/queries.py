"""Every read of records. Each takes a Scope, and applies it in the query."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import Q, Sum

from . import places
from .catalog import Catalog, catalog
from .listing import (
    LIMIT_MAX,
    ORDERS,
    Filters,
    Sql,
    first_of,
    join,
    pools_of,
    pools_sql,
    record_count,
    records_filtered,
    records_passing,
)
from .models import PoolTotal, Record
from .nav import GROUPED_MAX, BadPath, Nav, NavEntry, nav
from .recordfile import body_of
from .rows import content_hash
from .scope import Scope
from .services import Unreadable, record_refresh

__all__ = [
    "GROUPED_MAX",
    "ORDERS",
    "BadPath",
    "Catalog",
    "Facets",
    "Filters",
    "Nav",
    "NavEntry",
    "OpenedRecord",
    "Page",
    "catalog",
    "facets",
    "nav",
    "record_count",
    "record_get",
    "record_list",
    "record_open",
    "records_filtered",
]


@dataclass(frozen=True)
class OpenedRecord:
    record: Record
    body: bytes


@dataclass(frozen=True)
class Page:
    records: list[Record]
    # For `after_cursor`; None at the end.
    next_cursor: str | None

    @property
    def has_more(self) -> bool:
        return self.next_cursor is not None


@dataclass
class Facets:
    count: int = 0
    tokens: int = 0
    bytes: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    by_kind_tokens: dict[str, int] = field(default_factory=dict)
    hot_by_kind: dict[str, int] = field(default_factory=dict)
    by_status: dict[str, int] = field(default_factory=dict)
    oldest: int | None = None
    newest: int | None = None
    hot_count: int = 0
    hot_tokens: int = 0
    cold_count: int = 0
    cold_tokens: int = 0


def record_get(scope: Scope, record_id: str) -> Record:
    """Record.DoesNotExist for what isn't there and for what may not be seen alike."""
    return Record.objects.filter(scope.q()).get(pk=record_id)


def record_open(scope: Scope, record_id: str) -> OpenedRecord:
    """The body as the file has it now; an edit by hand is indexed. Record.DoesNotExist, Unreadable."""
    record = record_get(scope, record_id)
    place = places.find(places.place_of(record.id, record.workspace_key, cold=bool(record.cold)))
    if place is None:
        raise Unreadable(f"The file of {record_id} is missing.")
    data = places.read(place).data
    if content_hash(data) != record.content_hash:
        record = record_refresh(record_id)
    return OpenedRecord(record, body_of(data))


def record_list(
    scope: Scope,
    *,
    kinds: Collection[str] = (),
    statuses: Collection[str] = (),
    workspace_key: str | None = None,
    session_id: str | None = None,
    cold: bool | None = None,
    tag: str | None = None,
    text: str | None = None,
    agent: str | None = None,
    order: str = "updated",
    after_cursor: str | None = None,
    offset: int = 0,
    limit: int = 50,
) -> Page:
    """A page of what Filters describes; `text`: in title, summary or use_when.

    ValueError for an order or cursor that doesn't exist.
    """
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, not {order!r}.")
    filters: Filters = {
        "kinds": kinds,
        "statuses": statuses,
        "workspace_key": workspace_key,
        "session_id": session_id,
        "cold": cold,
        "tag": tag,
        "agent": agent,
    }
    found = records_passing(**filters)
    if text:
        found = found.filter(
            Q(title__icontains=text) | Q(summary__icontains=text) | Q(use_when__icontains=text)
        )
    attribute, descending = ORDERS[order]
    sign, beyond = ("-", "lt") if descending else ("", "gt")
    if after_cursor is not None:
        value, record_id = _position(after_cursor, attribute)
        found = found.filter(
            Q(**{f"{attribute}__{beyond}": value}) | Q(**{attribute: value, f"id__{beyond}": record_id})
        )
    limit = min(limit, LIMIT_MAX)
    pools = pools_of(scope, **filters)
    first = first_of(found, pools, (f"{sign}{attribute}", f"{sign}id"), offset + limit + 1)
    records = list(first[offset:])
    if len(records) <= limit:
        return Page(records, None)
    last = records[limit - 1]
    return Page(records[:limit], f"{getattr(last, attribute)}:{last.id}")


def _position(cursor: str, attribute: str) -> tuple[str | int, str]:
    value, colon, record_id = cursor.rpartition(":")
    if not colon:
        raise ValueError(f"{cursor!r} is no cursor.")
    return value if attribute == "title" else int(value), record_id


def facets(scope: Scope) -> Facets:
    """Counts of everything in scope, hidden statuses too. From the running totals: in constant time."""
    result = Facets()
    totals = (
        PoolTotal.objects.filter(scope.totals_q())
        .values("kind", "status", "cold")
        .annotate(records=Sum("count"), all_tokens=Sum("tokens"), all_bytes=Sum("bytes"))
        .filter(records__gt=0)
        .order_by("kind", "status", "cold")
    )
    for total in totals:
        _add(result, total)
    result.oldest, result.newest = _created(scope)
    return result


def _created(scope: Scope) -> tuple[int | None, int | None]:
    """When the first and the last record was created: each end is one look at an index, pool by pool."""
    pools = pools_sql(scope)
    if not pools:
        return None, None
    ends = [
        Sql(f"(SELECT {end}(created_at) FROM records WHERE {pool.sql})", pool.params)  # noqa: S608
        for end in ("MIN", "MAX")
        for pool in pools
    ]
    both = join(ends, ", ")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {both.sql}", both.params)
        row = cursor.fetchone()
    first = [value for value in row[: len(pools)] if value is not None]
    last = [value for value in row[len(pools) :] if value is not None]
    return min(first, default=None), max(last, default=None)


def _add(result: Facets, total: Mapping[str, Any]) -> None:
    records, tokens = total["records"], total["all_tokens"]
    kind, status = total["kind"], total["status"]
    result.count += records
    result.tokens += tokens
    result.bytes += total["all_bytes"]
    result.by_kind[kind] = result.by_kind.get(kind, 0) + records
    result.by_kind_tokens[kind] = result.by_kind_tokens.get(kind, 0) + tokens
    result.by_status[status] = result.by_status.get(status, 0) + records
    if total["cold"]:
        result.cold_count += records
        result.cold_tokens += tokens
    else:
        result.hot_count += records
        result.hot_tokens += tokens
        result.hot_by_kind[kind] = result.hot_by_kind.get(kind, 0) + tokens
