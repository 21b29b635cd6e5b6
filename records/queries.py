"""Every read of records. Each takes a Scope, and applies it in the query."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

from django.db.models import Q, QuerySet, Sum, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from . import places
from .header import to_json
from .models import PoolTotal, Record, Status
from .recordfile import body_of
from .rows import content_hash
from .scope import Scope
from .services import Unreadable, record_refresh

HIDDEN = (Status.SUPERSEDED, Status.SUGGESTED, Status.TRASHED)
LIMIT_MAX = 500
# Attribute and whether the greatest comes first; the id decides between equals.
ORDERS = {
    "updated": ("updated_at", True),
    "created": ("created_at", True),
    "oldest": ("created_at", False),
    "tokens": ("tokens", True),
    "read": ("read_count", True),
    "title": ("title", False),
}


class Filters(TypedDict, total=False):
    """Which records are meant. `tag`: a value, or `name:value`. Without `statuses`: all but superseded,
    suggested, trashed."""

    kinds: Collection[str]
    statuses: Collection[str]
    workspace_key: str | None
    session_id: str | None
    cold: bool | None
    tag: str | None
    agent: str | None


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


def records_filtered(scope: Scope, **filters: Unpack[Filters]) -> QuerySet[Record]:
    """Every record in scope that passes, in no order."""
    statuses = filters.get("statuses")
    found = Record.objects.filter(scope.q()).filter(
        Q(status__in=statuses) if statuses else ~Q(status__in=HIDDEN),
        **_equal(filters.get("workspace_key"), filters.get("session_id"), filters.get("cold")),
    )
    if kinds := filters.get("kinds"):
        found = found.filter(kind__in=kinds)
    if (agent := filters.get("agent")) is not None:
        found = found.filter(provenance__agent=agent)
    if (tag := filters.get("tag")) is not None:
        found = _tagged(found, tag)
    return found


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
    found = records_filtered(
        scope,
        kinds=kinds,
        statuses=statuses,
        workspace_key=workspace_key,
        session_id=session_id,
        cold=cold,
        tag=tag,
        agent=agent,
    )
    if text:
        found = found.filter(
            Q(title__icontains=text) | Q(summary__icontains=text) | Q(use_when__icontains=text)
        )
    return _page(found, order=order, after_cursor=after_cursor, offset=offset, limit=min(limit, LIMIT_MAX))


def facets(scope: Scope) -> Facets:
    """Counts of everything in scope, hidden statuses too. From the running totals: in constant time."""
    result = Facets()
    totals = (
        PoolTotal.objects.filter(scope.q())
        .values("kind", "status", "cold")
        .annotate(records=Sum("count"), all_tokens=Sum("tokens"), all_bytes=Sum("bytes"))
        .filter(records__gt=0)
        .order_by("kind", "status", "cold")
    )
    for total in totals:
        _add(result, total)
    created = Record.objects.filter(scope.q()).values_list("created_at", flat=True)
    result.oldest = created.order_by("created_at").first()
    result.newest = created.order_by("-created_at").first()
    return result


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


def _equal(workspace_key: str | None, session_id: str | None, cold: bool | None) -> dict[str, Any]:
    wanted = {
        "workspace_key": workspace_key,
        "session_id": session_id,
        "cold": None if cold is None else int(cold),
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _tagged(found: QuerySet[Record], tag: str) -> QuerySet[Record]:
    name, _, value = tag.partition(":")
    holds = _holds("all_tags", tag)
    if value:
        holds |= _holds("named_tags", value)
    return found.alias(all_tags=Cast("tags", TextField()), named_tags=KeyTextTransform(name, "tags")).filter(
        holds
    )


def _holds(lists: str, value: str) -> Q:
    """That a list in this JSON holds `value`; a name would be followed by a colon."""
    text = to_json(value)
    return Q(**{f"{lists}__contains": f"{text},"}) | Q(**{f"{lists}__contains": f"{text}]"})


def _page(found: QuerySet[Record], *, order: str, after_cursor: str | None, offset: int, limit: int) -> Page:
    attribute, descending = ORDERS[order]
    sign, beyond = ("-", "lt") if descending else ("", "gt")
    if after_cursor is not None:
        value, record_id = _position(after_cursor, attribute)
        found = found.filter(
            Q(**{f"{attribute}__{beyond}": value}) | Q(**{attribute: value, f"id__{beyond}": record_id})
        )
    records = list(found.order_by(f"{sign}{attribute}", f"{sign}id")[offset : offset + limit + 1])
    if len(records) <= limit:
        return Page(records, None)
    last = records[limit - 1]
    return Page(records[:limit], f"{getattr(last, attribute)}:{last.id}")


def _position(cursor: str, attribute: str) -> tuple[str | int, str]:
    value, colon, record_id = cursor.rpartition(":")
    if not colon:
        raise ValueError(f"{cursor!r} is no cursor.")
    return value if attribute == "title" else int(value), record_id
