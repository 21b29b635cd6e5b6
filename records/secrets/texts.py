"""The whole text of a record that was stored before, to look through it again."""

from collections.abc import Iterator
from itertools import pairwise

from records import places
from records.fulltext import overflow_texts
from records.models import Record
from records.recordfile import body_of
from records.search.passages import EVENT
from records.services import Unreadable

from . import detector


def record_texts(record: Record) -> Iterator[tuple[str, int | None]]:
    """(text, seq): its body by event, then whole what that cuts. services.Unreadable, OSError."""
    place = places.find(places.place_of(record.id, record.workspace_key, cold=bool(record.cold)))
    if place is None:
        raise Unreadable(f"The file of {record.id} is missing.")
    body = body_of(places.read(place).data).decode("utf-8", "replace")
    starts = [(0, None), *((found.start(), int(found[1])) for found in EVENT.finditer(body))]
    for (start, seq), (end, _) in pairwise([*starts, (len(body), None)]):
        if end > start:
            yield body[start:end], seq
    for event in overflow_texts(record):
        yield event.text, event.seq


def found_in(record: Record) -> list[tuple[str, str]]:
    """(secret, rule) of everything that is found in it now, dismissed or not. Stays in memory."""
    return list(
        dict.fromkeys(
            (text[find.start : find.end], find.rule)
            for text, _ in record_texts(record)
            for find in detector.secrets_in(text).finds
        )
    )
