"""Which records are sensitive, for those that send texts elsewhere and for the review list."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from records.models import SENSITIVE_Q, Record

from . import policy
from .policy import Decision, decision_of

LISTED = 500


def is_sensitive(record: Record) -> bool:
    """Then nothing of it but its title is ever sent to a language model by Memex itself."""
    return policy.is_sensitive(record.tags)


def sensitive_records() -> QuerySet[Record]:
    return Record.objects.filter(SENSITIVE_Q)


def sensitive_ids(record_ids: Iterable[str]) -> frozenset[str]:
    """Of these few."""
    wanted = list(record_ids)
    if not wanted:
        return frozenset()
    return frozenset(sensitive_records().filter(pk__in=wanted).values_list("pk", flat=True))


@dataclass(frozen=True)
class Review:
    """A record with finds. `count`: of them; `places`: (rule, seq of its event or None) of those that are named."""

    record: Record
    decision: Decision

    @property
    def count(self) -> int:
        return len(self.decision.marks) + self.decision.unnamed

    @property
    def places(self) -> list[tuple[str, int | None]]:
        return list(dict.fromkeys((mark.rule, mark.seq) for mark in self.decision.marks))


def reviews(*, open_only: bool = False) -> list[Review]:
    """What is to be looked at first, then the newest first; LISTED at most. Never what was found itself."""
    found: list[Review] = []
    for record in sensitive_records().order_by("-created_at", "-id").iterator(200):
        decision = decision_of(record.provenance)
        if decision is None or (open_only and decision.state != policy.OPEN):
            continue
        found.append(Review(record, decision))
    found.sort(key=lambda review: review.decision.state != policy.OPEN)
    return found[:LISTED]
