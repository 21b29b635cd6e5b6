"""Which hits are worth telling unasked."""

from collections.abc import Sequence

from .results import SearchHit


def relevant(hits: Sequence[SearchHit]) -> list[SearchHit]:
    return list(hits)
