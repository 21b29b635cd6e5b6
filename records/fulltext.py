"""The text of a record that its file doesn't hold: what was cut out of a very long body.

`provenance.cut` says which events of the body are not there in full. Who can read them registers as the
provider: this package knows nothing of sessions.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.db.models import Q

from .models import Record
from .secrets.policy import is_redacted
from .secrets.redaction import text_redacted

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OverflowText:
    """All the text of event `seq`. Its first `shown` characters stand in the record's body."""

    seq: int
    text: str
    shown: int = 0


# Told, in a sentence, what can't be read.
Warn = Callable[[str], None]
# Gives one event at a time, in order; all that were cut, or only this one. Of what is damaged or missing it
# warns; it doesn't raise.
Provider = Callable[[Record, Warn, int | None], Iterator[OverflowText]]

_provider: Provider | None = None
_least_bytes = 0


def overflow_provider_set(provider: Provider | None, *, least_bytes: int = 0) -> None:
    """`least_bytes`: no record from which something was cut has a smaller file."""
    global _provider, _least_bytes
    _provider, _least_bytes = provider, least_bytes


def overflow_q() -> Q:
    """A filter for records from which something was cut."""
    if _provider is None:
        return Q(pk__in=[])
    # Sizes first: looking into the JSON of every row costs more than the rest of a listing.
    return Q(bytes__gte=_least_bytes) & Q(provenance__has_key="cut")


def overflow_texts(
    record: Record, warn: Warn = logger.warning, *, seq: int | None = None
) -> Iterator[OverflowText]:
    """One event at a time, or only event `seq`; none without a provider, or when nothing was cut."""
    if _provider is not None and record.provenance.get("cut"):
        yield from _provider(record, warn, seq)


def overflow_shown(
    record: Record, warn: Warn = logger.warning, *, seq: int | None = None
) -> Iterator[OverflowText]:
    """The same as an index and answers may have it: without what was redacted."""
    hides = is_redacted(record.provenance)
    for event in overflow_texts(record, warn, seq=seq):
        if not hides:
            yield event
            continue
        shown = len(text_redacted(event.text[: event.shown]))
        text = text_redacted(event.text)
        yield OverflowText(event.seq, text, min(shown, len(text)))
