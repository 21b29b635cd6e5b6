"""Whether a page or call needs the same number of queries however many rows there are."""

from collections.abc import Callable

from django.db import connection
from django.test.utils import CaptureQueriesContext


def assert_flat_queries(
    make_rows: Callable[[int], object], call: Callable[[], object], *, rows: int = 10
) -> None:
    """`make_rows(n)` adds n rows that `call()` shows."""
    make_rows(rows)
    call()  # whatever is cached at the first call
    few = _queries(call)
    make_rows(rows)
    many = _queries(call)
    assert len(many) == len(few), "\n".join(
        [f"{len(few)} queries for {rows} rows, {len(many)} for {2 * rows}. The latter:", *many]
    )


def _queries(call: Callable[[], object]) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        call()
    return [query["sql"] for query in captured.captured_queries]
