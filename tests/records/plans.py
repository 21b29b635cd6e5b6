"""How SQLite answers the queries of a call."""

from collections.abc import Callable

from django.db import connection


def plans(call: Callable[[], object]) -> list[str]:
    """Of every query of `call`, how SQLite answers it: with its parameters bound, as it is run."""
    asked = []

    def note(execute, sql, params, many, context):
        asked.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        call()
    found = []
    with connection.cursor() as cursor:
        for sql, params in asked:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            found.append("\n".join(row[3] for row in cursor.fetchall()))
    return found
