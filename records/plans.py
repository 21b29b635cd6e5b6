"""What becomes of each draft of a write: whether its id is free, and under which it is written."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from . import places
from .header import HeaderError
from .ids import MAX_LENGTH
from .models import Record
from .places import Place
from .recordfile import RecordDraft
from .rows import Row, chunks, project
from .tombstones import is_forgotten

# The lengths of hash that are tried when an id is taken.
LONGER = range(14, MAX_LENGTH + 1, 2)


class Fate(Enum):
    NEW = auto()
    # The same record is there already, row and file.
    KEPT = auto()
    # Its file is there without a row: a write was cut short, or the index is being rebuilt.
    ADOPTED = auto()
    FORGOTTEN = auto()


@dataclass
class Plan:
    draft: RecordDraft
    place: Place
    fate: Fate
    # What is to be inserted.
    row: Row | None = None


def plan_writes(drafts: Sequence[RecordDraft]) -> list[Plan]:
    """ValueError when an id is taken by something else and can't be made longer."""
    taken = _provenances([draft.id for draft in drafts])
    plans = []
    for draft in drafts:
        plan = _plan(draft, taken)
        taken[plan.draft.id] = plan.draft.provenance
        plans.append(plan)
    return plans


def _plan(draft: RecordDraft, taken: dict[str, Mapping[str, Any]]) -> Plan:
    for candidate in _candidates(draft):
        place = places.place_of(candidate.id, candidate.workspace_key, cold=False)
        if is_forgotten("record", candidate.id):
            return Plan(candidate, place, Fate.FORGOTTEN)
        if candidate.id not in taken and candidate.id != draft.id:
            taken |= _provenances([candidate.id])
        if candidate.id in taken:
            if _same_origin(taken[candidate.id], draft.provenance):
                return Plan(candidate, place, Fate.KEPT)
            continue
        found = places.find(place)
        if found is None:
            return Plan(candidate, place, Fate.NEW)
        row = _readable_row(found)
        if row is not None and _same_origin(row["provenance"], draft.provenance):
            return Plan(candidate, found, Fate.ADOPTED, row)
    raise ValueError(f"{draft.id} is the id of another record.")


def _candidates(draft: RecordDraft) -> Iterator[RecordDraft]:
    yield draft
    if draft.id_at is not None:
        for length in LONGER:
            longer = copy(draft)
            longer.id = draft.id_at(length)
            yield longer


def _provenances(ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    return {
        record_id: provenance
        for chunk in chunks(ids)
        for record_id, provenance in Record.objects.filter(pk__in=chunk).values_list("id", "provenance")
    }


def _readable_row(place: Place) -> Row | None:
    try:
        return project(place, places.read(place), None).row
    except (HeaderError, OSError):
        return None


def _same_origin(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    names = ["source", "sessionId", "compactionId"]
    if one.get("compactionId") is None:
        names += ["seqStart", "seqEnd"]
    return all(one.get(name) == other.get(name) for name in names)
