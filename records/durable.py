"""Writes that must survive power loss although no file holds them; and what a database says when it is busy."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction


@contextmanager
def durable_write() -> Iterator[None]:
    """A transaction that is on disk when it ends: the write-ahead log is fsynced, as it is not otherwise
    (synchronous=NORMAL). Not inside another transaction, except in tests that wrap everything in one."""
    is_nested = connection.in_atomic_block
    with connection.cursor() as cursor:
        if not is_nested:
            cursor.execute("PRAGMA synchronous=FULL")
        try:
            with transaction.atomic():
                yield
        finally:
            if not is_nested:
                cursor.execute("PRAGMA synchronous=NORMAL")


def is_busy(error: OperationalError) -> bool:
    """Somebody else is writing; anything else that SQLite says is a fault."""
    return "locked" in str(error) or "busy" in str(error)
