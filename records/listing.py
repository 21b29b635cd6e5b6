"""Pages of records in an order, at a cost that doesn't grow with the store.

A scope is the union of pools (a workspace's shared records, a session's private ones), and no index is in
order over a union. So each pool gives its own first records, read off an index in order, and the page is
taken from these few.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict, Unpack

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db.models import Q, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from .header import to_json
from .models import HIDDEN, SHOWN_Q, PoolTotal, Record
from .models import Scope as Pool
from .scope import Scope

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
# With more pools than this one query over all of them is cheaper.
_POOLS_MAX = 16


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


def records_filtered(scope: Scope, **filters: Unpack[Filters]) -> QuerySet[Record]:
    """Every record in scope that passes, in no order."""
    return records_passing(**filters).filter(scope.q())


def records_passing(**filters: Unpack[Filters]) -> QuerySet[Record]:
    """Whoever may see them: a scope is still to be applied."""
    statuses = filters.get("statuses")
    found = Record.objects.filter(
        Q(status__in=statuses) if statuses else SHOWN_Q,
        **_equal(filters.get("workspace_key"), filters.get("session_id"), filters.get("cold")),
    )
    if kinds := filters.get("kinds"):
        found = found.filter(kind__in=kinds)
    if (agent := filters.get("agent")) is not None:
        found = found.filter(provenance__agent=agent)
    if (tag := filters.get("tag")) is not None:
        found = _tagged(found, tag)
    return found


def pools_of(scope: Scope, **filters: Unpack[Filters]) -> list[Q]:
    """The scope as disjoint parts, each of which an index serves in order; none when nothing may be seen."""
    if filters.get("session_id") is not None:
        return [scope.q()]
    pools = scope.pools_q()
    if scope.is_owner and filters.get("workspace_key") is not None:
        pools = [scope.q() & Q(scope=pool) for pool in (Pool.WORKSPACE, Pool.SESSION)]
    if kinds := sorted(set(filters.get("kinds") or ())):
        pools = [pool & Q(kind=kind) for pool in pools for kind in kinds]
    return pools if len(pools) <= _POOLS_MAX else [scope.q()]


def first_of(found: QuerySet[Record], pools: list[Q], order: tuple[str, ...], count: int) -> QuerySet[Record]:
    """The first `count` of what passes and is in one of the pools, as one query."""
    if not pools:
        return found.none()
    if len(pools) == 1:
        return found.filter(pools[0]).order_by(*order)[:count]
    condition = where(found)
    ids = [first_sql("id", pool, condition, _order_sql(order), count) for pool in map(_where_of, pools)]
    together = join([part for part in ids if part], " UNION ALL ")
    chosen = Record.objects.filter(pk__in=RawSQL(*together)) if together.sql else found.none()  # noqa: S611
    return chosen.order_by(*order)[:count]


class Sql(NamedTuple):
    """A piece of a statement; `sql` "" for a condition that nothing meets."""

    sql: str
    params: tuple[Any, ...] = ()


def first_sql(columns: str, pool: Sql, condition: Sql, order: str, count: int) -> Sql | None:
    """The first records of a pool that meet a condition, as a SELECT. (The ORM can do it as well, and takes
    ten times as long to write it.)"""
    if not pool.sql or not condition.sql:
        return None
    inner = (
        f"SELECT {columns} FROM records WHERE ({pool.sql}) AND ({condition.sql}) "  # noqa: S608
        f"ORDER BY {order} LIMIT {int(count)}"
    )
    return Sql(f"SELECT * FROM ({inner})", (*pool.params, *condition.params))  # noqa: S608


def join(parts: Sequence[Sql], separator: str) -> Sql:
    return Sql(separator.join(part.sql for part in parts), tuple(v for part in parts for v in part.params))


def where(found: QuerySet[Record]) -> Sql:
    """What the ORM makes of a queryset's filters."""
    try:
        sql, params = found.query.get_compiler(found.db).compile(found.query.where)
    except FullResultSet:
        return Sql("1")
    except EmptyResultSet:
        return Sql("")
    return Sql(sql, tuple(params))


def _where_of(pool: Q) -> Sql:
    return where(Record.objects.filter(pool))


@lru_cache(maxsize=256)
def pools_sql(scope: Scope) -> tuple[Sql, ...]:
    """A scope's pools as conditions; none when nothing may be seen."""
    return tuple(sql for sql in map(_where_of, pools_of(scope)) if sql.sql)


def _order_sql(order: tuple[str, ...]) -> str:
    return ", ".join(f"{name[1:]} DESC" if name[0] == "-" else name for name in order)


def record_count(scope: Scope, **filters: Unpack[Filters]) -> int:
    """How many pass. From the running totals where these tell kinds, statuses, workspace and tier apart."""
    if any(filters.get(name) is not None for name in ("session_id", "tag", "agent")):
        return records_filtered(scope, **filters).count()
    return sum(totals_filtered(scope, **filters).values_list("count", flat=True))


def totals_filtered(scope: Scope, **filters: Unpack[Filters]) -> QuerySet[PoolTotal]:
    """The running totals of what passes; filters that these don't tell apart are passed over."""
    totals = PoolTotal.objects.filter(scope.totals_q(), count__gt=0)
    statuses = filters.get("statuses")
    totals = totals.filter(status__in=statuses) if statuses else totals.exclude(status__in=HIDDEN)
    if kinds := filters.get("kinds"):
        totals = totals.filter(kind__in=kinds)
    return totals.filter(**_equal(filters.get("workspace_key"), None, filters.get("cold")))


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
