"""Browsing: from a workspace, a kind or a topic to records, by title and summary.

A path names what is looked at, step by step: `kind/decision`, `workspace/<key>/topic/deploy`. A path that ends
with the name of a step lists its values: `topic`, `workspace/<key>/kind`. Values are percent-encoded. A
record's id alone is that record.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple, Unpack
from urllib.parse import quote, unquote

from django.db.models import OuterRef, QuerySet, Subquery, Sum

from .ids import is_record_id
from .listing import (
    LIMIT_MAX,
    ORDERS,
    Filters,
    first_of,
    pools_of,
    record_count,
    records_passing,
    totals_filtered,
)
from .models import SHOWN_Q, PoolTotal, Record
from .models import Scope as Pool
from .scope import Scope

# Of tags, which no index holds: counted among so many of the newest records.
GROUPED_MAX = 5_000
TAG_STEPS = ("topic", "where", "tools", "source")
STEPS = ("workspace", "kind", *TAG_STEPS)


class BadPath(ValueError):
    """The message says what a path may look like."""


class NavEntry(NamedTuple):
    """`type`: a record's kind, or the step of which this is a value. `time`: last change, milliseconds UTC,
    None where it is not known without looking at every record."""

    id: str
    path: str
    type: str
    title: str
    summary: str
    time: int | None


@dataclass(frozen=True, slots=True)
class Nav:
    """`facets`: by step, how many records each value has here. `steps`: names that may follow the path.
    `is_partial`: only the newest GROUPED_MAX records were looked at."""

    entries: list[NavEntry] = field(default_factory=list)
    total: int = 0
    offset: int = 0
    limit: int = 50
    facets: dict[str, dict[str, int]] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    is_partial: bool = False

    @property
    def has_more(self) -> bool:
        return self.offset + len(self.entries) < self.total


class _Place(NamedTuple):
    """A path, read. `open_step`: the step whose values are asked for, "" when records are."""

    prefix: str
    filters: Filters
    taken: tuple[str, ...]
    open_step: str


def nav(
    scope: Scope,
    path: str = "",
    *,
    limit: int = 50,
    offset: int = 0,
    sort: str = "updated",
    **filters: Unpack[Filters],
) -> Nav:
    """What is at `path`. `limit` 1 to 500; `sort`: one of ORDERS, for records. BadPath, ValueError."""
    if sort not in ORDERS:
        raise ValueError(f"sort must be one of {', '.join(ORDERS)}, not {sort!r}.")
    limit, offset = max(1, min(limit, LIMIT_MAX)), max(0, offset)
    if is_record_id(path):
        entries = _entries(Record.objects.filter(scope.q(), pk=path))
        return Nav(entries, len(entries), 0, limit)
    place = _read(path, filters)
    if place.open_step:
        groups, is_partial = _groups(scope, place)
        return Nav(
            _with_folders(scope, groups[offset : offset + limit]), len(groups), offset, limit,
            is_partial=is_partial,
        )  # fmt: skip
    attribute, descending = ORDERS[sort]
    sign = "-" if descending else ""
    found, pools = records_passing(**place.filters), pools_of(scope, **place.filters)
    records = first_of(found, pools, (f"{sign}{attribute}", f"{sign}id"), offset + limit)[offset:]
    return Nav(
        _entries(records),
        record_count(scope, **place.filters),
        offset,
        limit,
        _facets(scope, place.filters),
        tuple(step for step in STEPS if step not in place.taken),
    )


def _read(path: str, filters: Filters) -> _Place:
    names = [unquote(part) for part in path.strip("/").split("/")] if path.strip("/") else []
    narrowed: Filters = {**filters}
    taken: list[str] = []
    for step, value in zip(names[::2], names[1::2], strict=False):
        _check(step, taken, path)
        taken += TAG_STEPS if step in TAG_STEPS else [step]
        if step == "workspace":
            narrowed["workspace_key"] = value
        elif step == "kind":
            narrowed["kinds"] = [value]
        else:
            narrowed["tag"] = f"{step}:{value}"
    open_step = names[-1] if len(names) % 2 else ""
    if open_step:
        _check(open_step, taken, path)
    whole = names[: len(names) - len(names) % 2]
    return _Place("".join(f"{quote(name, safe='')}/" for name in whole), narrowed, tuple(taken), open_step)


def _check(step: str, taken: list[str], path: str) -> None:
    if step not in STEPS or step in taken:
        free = ", ".join(name for name in STEPS if name not in taken)
        raise BadPath(
            f"{path!r} leads nowhere: {step!r} is no step here. A path is steps and values, such as "
            f"kind/decision; steps: {free}."
        )


def _entries(records: QuerySet[Record]) -> list[NavEntry]:
    rows = records.values_list("id", "kind", "title", "summary", "updated_at")
    return [NavEntry(row[0], row[0], row[1], row[2], row[3], row[4]) for row in rows]


def _facets(scope: Scope, filters: Filters) -> dict[str, dict[str, int]]:
    """From the running totals: by kind and by workspace, where filters of other sorts don't interfere."""
    if any(filters.get(name) is not None for name in ("session_id", "tag", "agent")):
        return {}
    counts: dict[str, Counter[str]] = {"workspace": Counter(), "kind": Counter()}
    rows = totals_filtered(scope, **filters).values_list("workspace_key", "kind").annotate(Sum("count"))
    for key, kind, count in rows:
        counts["workspace"][key] += count
        counts["kind"][kind] += count
    return {step: dict(counter.most_common()) for step, counter in counts.items()}


def _groups(scope: Scope, place: _Place) -> tuple[list[NavEntry], bool]:
    """The values of a step, those with most records first."""
    step = place.open_step
    counts: Counter[str] = Counter()
    times: dict[str, int] = {}
    seen = 0
    if step in TAG_STEPS or any(
        place.filters.get(name) is not None for name in ("session_id", "tag", "agent")
    ):
        found = first_of(
            records_passing(**place.filters), pools_of(scope, **place.filters), ("-updated_at", "-id"),
            GROUPED_MAX + 1,
        )  # fmt: skip
        for row in found.values_list("workspace_key", "kind", "tags", "updated_at"):
            seen += 1
            for value in _values(step, *row[:3]):
                counts[value] += 1
                times.setdefault(value, row[3])
    else:
        counts.update(_facets(scope, place.filters)[step])
    entries = [
        NavEntry(
            value, f"{place.prefix}{step}/{quote(value, safe='')}", step, value,
            f"{count:,} record{'' if count == 1 else 's'}", times.get(value),
        )
        for value, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]  # fmt: skip
    return entries, seen > GROUPED_MAX


def _values(step: str, workspace_key: str, kind: str, tags: object) -> set[str]:
    if step in ("workspace", "kind"):
        return {workspace_key if step == "workspace" else kind}
    values = tags.get(step) if isinstance(tags, dict) else None
    return {value for value in values if isinstance(value, str)} if isinstance(values, list) else set()


def _with_folders(scope: Scope, entries: list[NavEntry]) -> list[NavEntry]:
    """Workspaces by the name of their folder and with the time of their newest record."""
    keys = [entry.id for entry in entries if entry.type == "workspace"]
    known = _newest(scope, keys) if keys else {}
    return [
        entry._replace(title=known[entry.id][1] or entry.id, time=known[entry.id][0])
        if entry.id in known
        else entry
        for entry in entries
    ]


def _newest(scope: Scope, keys: list[str]) -> dict[str, tuple[int, str]]:
    """(time, folder) of each workspace's newest record in scope: of whole pools off the index, of an agent's
    own sessions by reading their few records."""
    totals = PoolTotal.objects.filter(scope.totals_q(), workspace_key__in=keys)
    shown = Record.objects.filter(SHOWN_Q)
    columns = ("workspace_key", "updated_at", "workspace")
    rows: list[tuple[str, int, str]] = []
    if not scope.is_owner:
        totals = totals.filter(scope=Pool.WORKSPACE)
        private = shown.filter(scope.q(), scope=Pool.SESSION, session_id__in=sorted(scope.private_sessions))
        if scope.private_sessions:
            rows += private.values_list(*columns)
    of_pool = shown.filter(workspace_key=OuterRef("workspace_key"), scope=OuterRef("scope"))
    newest = Subquery(of_pool.order_by("-updated_at", "-id").values("pk")[:1])
    pools = totals.values("workspace_key", "scope").annotate(records=Sum("count"), newest=newest)
    ids = [pool["newest"] for pool in pools]
    rows += Record.objects.filter(pk__in=ids).values_list(*columns)
    known: dict[str, tuple[int, str]] = {}
    for key, time, folder in rows:
        known[key] = max(known.get(key, (0, "")), (time, folder))
    return known
