"""The original rows behind a record, byte for byte."""

from collections.abc import Iterator

from records.models import Record

from .mirror import Mirror
from .queries import mirror_of, rows_exactly


class NoOriginal(LookupError):
    """The record was not made from a log."""


def record_rows(record: Record) -> Iterator[bytes]:
    """Every row whose events left the window by what the record archives, each once and in order, with
    its line end; also those that an earlier record owns."""
    given = record.provenance
    if "rows" not in given:
        raise NoOriginal(f"{record.id} was written, not archived from a log: it has no original rows.")
    mirror: Mirror = mirror_of(given.get("mirrorSessionId") or given["sessionId"], given["generation"])
    spans = sorted((*given["rows"], *given.get("earlierRows", ())))
    for first, last in _merged(spans):
        yield from rows_exactly(mirror, first, last)


def _merged(spans: list[list[int]]) -> Iterator[tuple[int, int]]:
    # A row of several events may be named twice, once by each record that owns one of them.
    current: tuple[int, int] | None = None
    for first, last in spans:
        if current and first <= current[1] + 1:
            current = (current[0], max(current[1], last))
            continue
        if current:
            yield current
        current = (first, last)
    if current:
        yield current
