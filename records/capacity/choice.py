"""Which records go cold, and in which order. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

# What is done with goes before what still counts.
DONE = frozenset({"superseded", "resolved"})


class Candidate(NamedTuple):
    """A hot record that may go: not pinned, and old enough. Times in ms."""

    id: str
    status: str
    tokens: int
    created_at: int
    last_read_at: int | None


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The first to go first: superseded and resolved ones, then the least recently read (never before
    ever), then the oldest; the id decides between equals."""
    return sorted(
        candidates,
        key=lambda each: (each.status not in DONE, each.last_read_at or 0, each.created_at, each.id),
    )


def chosen(candidates: Sequence[Candidate], excess: int, most: int | None = None) -> Sequence[Candidate]:
    """The fewest from the beginning that hold `excess` tokens, `most` at most; all when they don't."""
    total = 0
    for count, candidate in enumerate(candidates):
        if total >= excess or count == most:
            return candidates[:count]
        total += candidate.tokens
    return candidates
