"""Reads passages again, where they stand: in the card, in the record's file, or in an event."""

import os
from collections.abc import Mapping

from records import places
from records.fulltext import overflow_shown
from records.home import home
from records.models import Record
from records.recordfile import body_of
from records.secrets.policy import is_redacted, is_sensitive, part_redacted
from records.secrets.redaction import body_finds

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
        self._redacted: dict[int, bool] = {}
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
        size = os.fstat(descriptor).st_size
        start = size - hit.tail
        if start < 0:
            return None
        data = os.pread(descriptor, hit.size, start)
        if self._is_redacted(card):
            body = body_of(os.pread(descriptor, size, 0))
            at = len(body) - hit.tail
            data = part_redacted(data, body_finds(body), at, at + len(data))
        return data.decode("utf-8", "replace")

    def _is_redacted(self, card: Card) -> bool:
        if not is_sensitive(card.tags):
            return False
        if card.number not in self._redacted:
            given = Record.objects.filter(pk=card.id).values_list("provenance", flat=True).first()
            self._redacted[card.number] = is_redacted(given or {})
        return self._redacted[card.number]

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
        for event in overflow_shown(record, seq=hit.seq_start) if record else ():
            data = event.text.encode("utf-8", "surrogatepass")
            return data[hit.at : hit.at + hit.size].decode("utf-8", "replace")
        return None
