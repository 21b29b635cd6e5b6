"""What the owner decides of records with finds.

Data flow: the record's front matter says what was found and whom it was meant for (policy) -> the decision is
written there, and in `dismissed` -> the file, its row and the pool it lies in follow from it.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from records.models import Record
from records.models import Scope as Tier
from records.recordfile import NewerSchemaError
from records.search.indexing import pool_leave
from records.search.pools import PoolName
from records.services import Conflict, Unreadable, record_sensitivity_set

from .dismissed import dismiss as fingerprints_dismiss
from .dismissed import dismissed, fingerprint
from .gathering import CARD, put_back
from .policy import KEPT, OPEN, SENSITIVE, SHARED, UNSCANNED, Decision, decision_of, without
from .queries import sensitive_records
from .texts import found_in

logger = logging.getLogger(__name__)


class NotSensitive(ValueError):
    """Nothing was found in this record, or its finds were dismissed."""


class NotMeantToBeShared(ValueError):
    """It is private for another reason than what was found in it."""


def secret_keep(record_id: str, *, actor: str) -> Record:
    """It is a secret: the record becomes, or stays, private. One without a session is its owner's alone.
    Record.DoesNotExist, NotSensitive, services.Conflict, services.Unreadable."""
    record, decision = _decided(record_id)
    wanted = decision.wanted or (str(Tier.WORKSPACE) if record.scope == Tier.WORKSPACE else "")
    return _settle(
        record, replace(decision, state=KEPT, wanted=wanted), str(Tier.SESSION), actor, "keep private"
    )


def secret_share(record_id: str, *, actor: str) -> Record:
    """Shared in its workspace all the same. What is redacted stays so. NotMeantToBeShared, and as above."""
    record, decision = _decided(record_id)
    if Tier.WORKSPACE not in (record.scope, decision.wanted):
        raise NotMeantToBeShared(f"{record_id} is private to its session: L3 was off.")
    return _settle(record, replace(decision, state=SHARED), str(Tier.WORKSPACE), actor, "share")


def secret_dismiss(record_id: str, *, actor: str) -> list[Record]:
    """No secret, in this record and wherever else it stands: it is not raised again. A record that has no find
    left goes where it would have gone, and its card says again what it said. Others that the owner chose to
    keep private stay as they are. The records that have none left. As secret_keep; a record that can't be
    changed now doesn't keep the others from it."""
    record, decision = _decided(record_id)
    values = found_in(record)
    named = {mark.fingerprint for mark in decision.marks if mark.rule != UNSCANNED}
    if decision.unnamed:
        named |= {fingerprint(value) for value, _ in values}
    fingerprints_dismiss(sorted(named))
    cleared = [_cleared(record, Decision(decision.policy, wanted=decision.wanted), actor)]
    others = sensitive_records().exclude(pk=record_id)
    for other in list(others):
        before = decision_of(other.provenance)
        if before is None or before.state == KEPT:
            continue
        after = without(before, dismissed())
        if len(after.marks) == len(before.marks):
            continue
        try:
            changed = _cleared(other, after, actor)
        except (Record.DoesNotExist, Conflict, Unreadable, NewerSchemaError, OSError) as error:
            logger.warning("%s keeps its mark for now: %s", other.id, error)
            continue
        if not after.marks and not after.unnamed:
            cleared.append(changed)
    return cleared


def _cleared(record: Record, left: Decision, actor: str) -> Record:
    """Takes the finds that were dismissed out of a record's front matter."""
    values = [(value, rule) for value, rule in found_in(record) if fingerprint(value) in dismissed()]
    lost = record.provenance.get("lost")
    card = put_back({name: getattr(record, name) for name in CARD} | {"lost": lost}, values)
    lost = card.pop("lost")
    provenance = left.provenance({**record.provenance, **({"lost": lost} if lost else {})})
    is_clear = SENSITIVE not in provenance
    others = {name: given for name, given in card["tags"].items() if name != SENSITIVE}
    changes = {**card, "tags": others if is_clear else left.tags(others), "provenance": provenance}
    scope = left.wanted if is_clear and left.wanted and left.state == OPEN else record.scope
    return _moved(record, changes, scope, actor, "dismiss")


def _decided(record_id: str) -> tuple[Record, Decision]:
    record = Record.objects.get(pk=record_id)
    decision = decision_of(record.provenance)
    if decision is None:
        raise NotSensitive(f"Nothing that looks like a secret is known of {record.id}.")
    return record, decision


def _settle(record: Record, decision: Decision, scope: str, actor: str, verb: str) -> Record:
    return _moved(record, {"provenance": decision.provenance(record.provenance)}, scope, actor, verb)


def _moved(record: Record, changes: Mapping[str, Any], scope: str, actor: str, verb: str) -> Record:
    before = PoolName(record.workspace_key, record.scope)
    moved = record_sensitivity_set(record.id, changes, actor=actor, verb=verb, scope=scope)
    if before.scope != moved.scope:
        pool_leave(before, record.id)
    return moved
