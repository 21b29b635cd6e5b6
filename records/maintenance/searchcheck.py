"""Do the search indexes hold what the records do?"""

from collections.abc import Iterator

from django.db import connection

from records.models import Record, SearchEntry
from records.search.engine import IndexDamaged
from records.search.indexing import bodies_sync, pool_discard
from records.search.pools import PoolName, folder
from records.search.sums import sums_wrong

from .doctor import Finding


def search_findings(*, repair: bool) -> Iterator[Finding]:
    yield from _entries(repair)
    yield from _cards(repair)
    if repair:
        bodies_sync(purge=True)
    yield from _bodies(repair)


def _entries(repair: bool) -> Iterator[Finding]:
    missing = list(Record.objects.filter(search_entry=None).order_by("pk"))
    for record in missing:
        yield Finding("not-searchable", record.id, "Search does not know it.", repair)
    if repair:
        SearchEntry.objects.bulk_create(
            SearchEntry(
                record=record,
                workspace_key=record.workspace_key,
                scope=record.scope,
                session_id=record.session_id,
            )
            for record in missing
        )
    orphans = SearchEntry.objects.filter(pending=0).exclude(record_id__in=Record.objects.values("pk"))
    for record_id in orphans.order_by("record_id").values_list("record_id", flat=True):
        yield Finding("searchable-without-record", record_id, "Search knows it, and it is gone.", repair)
    if repair:
        orphans.update(pending=1)


def _cards(repair: bool) -> Iterator[Finding]:
    """An entry that is not pending has a card; writing its passages writes that as well."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT record_id FROM search_entries WHERE pending = 0 "
            "AND number NOT IN (SELECT rowid FROM search_cards) ORDER BY record_id"
        )
        missing = [record_id for (record_id,) in cursor.fetchall()]
    for record_id in missing:
        yield Finding("card-not-searchable", record_id, "Its card is not in the index.", repair)
    if repair:
        for record_id in missing:
            SearchEntry.objects.filter(record_id=record_id).update(pending=1)


def _bodies(repair: bool) -> Iterator[Finding]:
    entries = SearchEntry.objects.filter(pending=0)
    for pool in sorted(entries.values_list("workspace_key", "scope").distinct()):
        name = PoolName(*pool)
        of_pool = SearchEntry.objects.filter(workspace_key=pool[0], scope=pool[1])
        wanted = set(of_pool.filter(pending=0).values_list("number", flat=True))
        # Those that have changed since are in the index as they were, or not yet.
        pending = set(of_pool.filter(pending=1).values_list("number", flat=True))
        wrong = sums_wrong(name.path) if name.path.is_dir() else []
        there = _numbers(name)
        if not wrong and there is not None and there - pending == wanted:
            continue
        if repair:
            pool_discard(name)
            bodies_sync()
        message = f"{wrong[0]} is damaged; `doctor --repair` writes it anew." if wrong else _BEHIND
        yield Finding("body-index", f"bodies/{name.path.parent.name}/{name.path.name}", message, repair)


_BEHIND = (
    "It does not hold the same records as the store, or can't be read; `doctor --repair` writes it anew."
)


def _numbers(pool: PoolName) -> set[int] | None:
    try:
        known = folder(pool)
        return known.numbers() if known else set()
    except (IndexDamaged, OSError):
        return None
