"""Running totals of the pools, changed in the transaction that changes the records."""

from collections.abc import Iterable
from typing import NamedTuple

from django.db import connection, transaction

from .models import PoolTotal
from .models import Scope as Pool


class Key(NamedTuple):
    workspace_key: str
    scope: str
    # Empty for shared records: else a workspace's totals would be as many rows as it had sessions.
    session_id: str
    kind: str
    status: str
    cold: int


class Amount(NamedTuple):
    records: int
    tokens: int
    bytes: int


UPSERT = """
    INSERT INTO pool_totals (workspace_key, scope, session_id, kind, status, cold, count, tokens, bytes)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (workspace_key, scope, session_id, kind, status, cold) DO UPDATE SET
        count = pool_totals.count + excluded.count,
        tokens = pool_totals.tokens + excluded.tokens,
        bytes = pool_totals.bytes + excluded.bytes
"""
COUNTED = """
    SELECT workspace_key, scope, CASE scope WHEN %s THEN session_id ELSE '' END AS session, kind, status, cold,
        COUNT(*), SUM(tokens), SUM(bytes)
    FROM records GROUP BY workspace_key, scope, session, kind, status, cold
"""


def total_key(*, workspace_key: str, scope: str, session_id: str, kind: str, status: str, cold: int) -> Key:
    return Key(workspace_key, scope, session_id if scope == Pool.SESSION else "", kind, status, cold)


def totals_apply(changes: Iterable[tuple[Key, int, int, int]]) -> None:
    """Adds (key, records, tokens, bytes); takes part in the caller's transaction."""
    sums: dict[Key, Amount] = {}
    for key, count, tokens, size in changes:
        before = sums.get(key, Amount(0, 0, 0))
        sums[key] = Amount(before.records + count, before.tokens + tokens, before.bytes + size)
    changed = [(*key, *amount) for key, amount in sums.items() if any(amount)]
    if changed:
        with connection.cursor() as cursor:
            cursor.executemany(UPSERT, changed)


def totals_counted() -> dict[Key, Amount]:
    """What the totals should be."""
    with connection.cursor() as cursor:
        cursor.execute(COUNTED, [Pool.SESSION])
        return {Key(*row[:6]): Amount(*row[6:]) for row in cursor.fetchall()}


def totals_stored() -> dict[Key, Amount]:
    rows = PoolTotal.objects.exclude(count=0, tokens=0, bytes=0).values_list(
        *Key._fields, "count", "tokens", "bytes"
    )
    return {Key(*row[:6]): Amount(*row[6:]) for row in rows}


def totals_recount() -> None:
    with transaction.atomic():
        PoolTotal.objects.all().delete()
        totals_apply((key, *amount) for key, amount in totals_counted().items())
