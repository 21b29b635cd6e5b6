"""Looks through what was stored before."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from django.conf import settings

from records.header import HeaderError
from records.models import Record
from records.recordfile import NewerSchemaError
from records.search.cards import cards_purge
from records.search.indexing import pool_stale
from records.search.pools import PoolName
from records.services import Conflict, Unreadable, record_sensitivity_set

from .gathering import CARD, Gatherer
from .policy import OFF, Decision, decision_of
from .texts import record_texts


@dataclass(frozen=True)
class Scanned:
    """One record in which something was found. `is_new`: it was not known."""

    record: Record
    decision: Decision
    is_new: bool


def secrets_scan(
    *, actor: str, dry_run: bool = False, say: Callable[[str], None] = lambda _: None
) -> Iterator[Scanned]:
    """Looks through every record, as it is now, and tags those with finds; for whom a record is, it does not
    change. `say` gets what can't be read. Again it changes nothing."""
    if settings.MEMEX_SENSITIVE_POLICY == OFF:
        return
    pools: set[PoolName] = set()
    ids = Record.objects.order_by("-created_at", "-id").values_list("pk", flat=True)
    for record_id in list(ids):
        record = Record.objects.filter(pk=record_id).first()
        if record is None:
            continue
        try:
            scanned = _scanned(record, actor, dry_run=dry_run)
        except (Unreadable, Conflict, NewerSchemaError, HeaderError, OSError) as error:
            say(f"{record_id}: {error}")
            continue
        if scanned is None:
            continue
        if scanned.is_new and not dry_run:
            pools.add(PoolName(record.workspace_key, record.scope))
        yield scanned
    for pool in pools:
        # What was redacted, or stood in a card, is still in the indexes' files.
        pool_stale(pool)
    if pools:
        cards_purge()


def _scanned(record: Record, actor: str, *, dry_run: bool) -> Scanned | None:
    known = decision_of(record.provenance)
    secrets = Gatherer(known.policy if known else None)
    for text, seq in record_texts(record):
        secrets.text(text, seq)
    card = secrets.card({name: getattr(record, name) for name in CARD})
    lost = secrets.card({"lost": record.provenance.get("lost", {})})["lost"]
    decision = secrets.decision
    if not decision.marks:
        return None
    if known:
        decision = replace(decision, state=known.state, wanted=known.wanted)
    found = {mark.fingerprint for mark in decision.marks}
    is_new = known is None or bool(found - {mark.fingerprint for mark in known.marks} and not known.unnamed)
    if is_new and not dry_run:
        provenance = {**record.provenance, **({"lost": lost} if lost else {})}
        changes = {**card, "tags": decision.tags(card["tags"]), "provenance": decision.provenance(provenance)}
        record = record_sensitivity_set(record.id, changes, actor=actor, verb="find secrets")
    return Scanned(record, decision, is_new)
