"""Reads passages again, where they stand: in the card, in the record's file, or in an event."""

import os
from collections.abc import Mapping

from records import places
from records.fulltext import overflow_texts
from records.home import home
from records.models import Record

from .cards import card_fields
from .engine import Hit, Part
from .results import Card

# Passages of events that a body cuts are in the mirror, and dear.
_OVERFLOW_MAX = 10


class Texts:
    """Of the records in `cards`, by number."""

    def __init__(self, cards: Mapping[int, Card]) -> None:
        self._cards = cards
        self._files: dict[int, int | None] = {}
        self._overflow_left = _OVERFLOW_MAX
        self._home = str(home())

    def __enter__(self) -> "Texts":
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._files.values():
            if descriptor is not None:
                os.close(descriptor)

    def of(self, hit: Hit) -> str | None:
        """None when it is no longer there."""
        card = self._cards[hit.record]
        if hit.part == Part.CARD:
            return "\n".join(filter(None, [*card_fields(card._asdict()).values(), card.id]))
        if hit.part == Part.OVERFLOW:
            return self._overflow(card, hit)
        descriptor = self._file(card)
        if descriptor is None:
            return None
        # The file may have been edited; what is read then is another text, and is scored as such.
        start = os.fstat(descriptor).st_size - hit.tail
        return os.pread(descriptor, hit.size, start).decode("utf-8", "replace") if start >= 0 else None

    def _file(self, card: Card) -> int | None:
        if card.number not in self._files:
            descriptor = self._open(card.path)
            if descriptor is None:  # it may have just moved between the tiers
                place = places.place_of(card.id, card.workspace_key, cold=not card.cold)
                descriptor = self._open(place.relative)
            self._files[card.number] = descriptor
        return self._files[card.number]

    def _open(self, relative: str) -> int | None:
        try:
            return os.open(f"{self._home}/{relative}", os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return None

    def _overflow(self, card: Card, hit: Hit) -> str | None:
        if self._overflow_left <= 0 or hit.seq_start is None:
            return None
        self._overflow_left -= 1
        record = Record.objects.filter(pk=card.id).first()
        for event in overflow_texts(record, seq=hit.seq_start) if record else ():
            data = event.text.encode("utf-8", "surrogatepass")
            return data[hit.at : hit.at + hit.size].decode("utf-8", "replace")
        return None
