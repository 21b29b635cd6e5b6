"""What people and agents write on purpose.

Data flow: the text is checked and its card completed (written) -> with the pool's lock for writing held: is it
there already (the hash of its normalised text, then similarity among what a search finds)? -> is something else
claimed about the same slot? -> record file and row. The lock makes two writers of one text one record.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from filelock import FileLock, Timeout

from . import ids, places
from .capacity.pools import CapacityPool, Level, PoolBusy, session_pool, workspace_pool
from .clock import now_ms
from .files import make_dir
from .header import HeaderError
from .home import locks_dir
from .models import WRITTEN_Q, Record, Status, TextHash, Trust
from .models import Scope as Tier
from .recordfile import RecordDraft, body_of
from .scope import Scope
from .search.search import search
from .secrets.gathering import CARD, Gatherer
from .secrets.policy import Decision
from .services import Unreadable, record_update, record_write
from .similarity import LEAST_SHARE, SAME, similarity, text_hash
from .written import KINDS, Checked, Written, checked

EXACT, SIMILAR = "exact", "similar"
# What may be the same as a new text: not what was replaced or thrown away.
_KNOWN = (Status.ACTIVE, Status.PINNED, Status.RESOLVED, Status.CONFLICT, Status.SUGGESTED)
# What a claim about the same slot can contradict.
_CLAIMED = (Status.ACTIVE, Status.PINNED, Status.CONFLICT)
_LOOKED_AT = 10
_QUESTION_CHARACTERS = 1_000
_WAIT_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Who writes, and where. `by_person`: then it is trusted and needs no confirmation. `joined`: keys of
    workspaces that share their pool with this one."""

    actor: str
    by_person: bool
    scope: str
    workspace_key: str
    workspace: str = ""
    session_id: str = ""
    agent: str = ""
    joined: Collection[str] = ()

    @property
    def pool(self) -> CapacityPool:
        if self.scope == Tier.SESSION:
            return session_pool(self.session_id)
        return workspace_pool([self.workspace_key, *self.joined])

    @property
    def source(self) -> dict[str, str]:
        kind = "user" if self.by_person else "session" if self.session_id else "plugin"
        return {"session_id": self.session_id, "kind": kind}


@dataclass(frozen=True)
class WriteAnswer:
    """`dedupe`: `exact` or `similar` when `id` is a record that was there already; `similarity`: then, from 0
    to 1; `conflicts_with`: records that claim something else about the same slot. `sensitive`: what looks like a
    secret in it; then `scope` may be `session` though the workspace was asked for."""

    id: str
    status: str
    dedupe: str | None = None
    similarity: float | None = None
    conflicts_with: tuple[str, ...] = ()
    scope: str = ""
    sensitive: tuple[str, ...] = ()


def memory_write(written: Written, writer: Writer) -> WriteAnswer:
    """Remembers a text, or finds that it is known: then the record gets this writer as a source.

    ValueError, written.TextTooLarge, PoolBusy, StoreFull, services.Conflict. Not inside a transaction.
    """
    if writer.scope not in Tier.values or not writer.workspace_key:
        raise ValueError("scope must be session or workspace, and a workspace is needed.")
    given = checked(written)
    given, decision = _looked_through(given, written.text)
    meant = writer.pool
    writer = replace(writer, scope=decision.scope_for(writer.scope))
    # A person's, who speaks for no session: nobody else sees it, in no pool.
    owners_own = writer.scope == Tier.SESSION and not writer.session_id
    pool = CapacityPool(Level.L2) if owners_own else writer.pool
    with pool_writing(meant, pool):
        _check_superseded(given, meant)
        known, dedupe, likeness = _known(written.text, given, pool)
        if known is not None:
            known = _seen_again(known, writer)
            others = _contradicted(known, pool, given, writer)
            if others and known.status in _CLAIMED:
                known = _in_conflict([known, *others], writer)[0]
            return WriteAnswer(
                known.id,
                known.status,
                dedupe,
                likeness,
                tuple(each.id for each in others),
                known.scope,
                tuple(decision.rules),
            )
        return _write(given, written.text, writer, pool, decision)


def _looked_through(given: Checked, text: str) -> tuple[Checked, Decision]:
    """The card without secrets, of which the text may hold some: it is seen by more than those who open it."""
    secrets = Gatherer()
    secrets.text(text)
    card = secrets.card({name: getattr(given, name) for name in CARD})
    decision = secrets.decision
    return replace(given, **{**card, "tags": decision.tags(card["tags"])}), decision


def _write(given: Checked, text: str, writer: Writer, pool: CapacityPool, decision: Decision) -> WriteAnswer:
    draft = _draft(given, text, writer)
    draft.provenance = decision.provenance(draft.provenance)
    # What only some see takes the place of nothing that others see.
    superseded = [each for each in _superseded(given, writer) if each.scope == writer.scope]
    others = claims_about(given.slot, pool, [draft.id, *(each.id for each in superseded)])
    waits = settings.MEMEX_REQUIRE_CONFIRMATION and not writer.by_person
    if waits:
        # What nobody has confirmed changes nothing that is known.
        draft = replace(draft, status=str(Status.SUGGESTED))
    elif others:
        draft = replace(draft, status=str(Status.CONFLICT))
    record_write(draft, actor=writer.actor, verb="write")
    if not waits:
        for each in superseded:
            _status(each, Status.SUPERSEDED, writer)
        _in_conflict(others, writer)
    return WriteAnswer(
        draft.id,
        draft.status,
        conflicts_with=tuple(each.id for each in others),
        scope=draft.scope,
        sensitive=tuple(decision.rules),
    )


def _draft(given: Checked, text: str, writer: Writer) -> RecordDraft:
    provenance = {
        "source": "write",
        "agent": writer.agent,
        "sessionId": writer.session_id,
        "cwd": writer.workspace,
        "textHash": text_hash(text),
    }
    return RecordDraft(
        id=ids.random_id(),
        kind=given.kind,
        scope=writer.scope,
        workspace=writer.workspace,
        workspace_key=writer.workspace_key,
        session_id=writer.session_id,
        title=given.title,
        summary=given.summary,
        use_when=given.use_when,
        trust=str(Trust.TRUSTED if writer.by_person else Trust.AGENT),
        confidence=given.confidence,
        slot=given.slot,
        tags=given.tags,
        entities=list(given.entities),
        sources=[writer.source],
        links=dict(given.links),
        provenance={name: value for name, value in provenance.items() if value},
        created_at=now_ms(),
        body=given.body,
    )


def _known(text: str, given: Checked, pool: CapacityPool) -> tuple[Record | None, str | None, float | None]:
    same = Record.objects.alias(hash=TextHash()).filter(WRITTEN_Q, pool.q(), hash=text_hash(text))
    for record in _oldest_first(same.filter(status__in=_KNOWN)):
        # The hash is of the text as it was written; the file may have been edited since.
        if (body := _body(record)) is not None and ids.normalise(body) == ids.normalise(text):
            return record, EXACT, 1.0
    best = max(_likenesses(text, given, pool), key=lambda pair: pair[0], default=None)
    if best is not None and best[0] >= SAME:
        return best[1], SIMILAR, round(best[0], 3)
    return None, None, None


def _likenesses(text: str, given: Checked, pool: CapacityPool) -> Iterator[tuple[float, Record]]:
    """Of what a search for the text finds in the pool and was written as well."""
    written = Record.objects.filter(WRITTEN_Q, pool.q(), status__in=_KNOWN)
    if not written.exists():
        return
    # A pool is what may be seen here: nothing else is looked at.
    scope = Scope(
        frozenset(pool.workspace_keys),
        frozenset({Tier.WORKSPACE if pool.workspace_keys else Tier.SESSION}),
        frozenset({pool.session_id} - {""}),
    )
    found = search(
        scope,
        text[:_QUESTION_CHARACTERS],
        limit=_LOOKED_AT,
        kinds=sorted(KINDS),
        statuses=[*map(str, _KNOWN)],
    )
    for record in written.filter(pk__in=[hit.card.id for hit in found.hits]):
        if given.slot and record.slot and given.slot != record.slot:
            continue
        body = _body(record)
        if body is not None and min(len(body), len(text)) >= LEAST_SHARE * max(len(body), len(text)):
            yield similarity(text, body), record


def _body(record: Record) -> str | None:
    place = places.find(places.place_of(record.id, record.workspace_key, cold=bool(record.cold)))
    if place is None:
        return None
    with suppress(OSError, HeaderError):
        return body_of(places.read(place).data).decode("utf-8", "replace")
    return None


def _seen_again(known: Record, writer: Writer) -> Record:
    """Adds the source; what a person says as well is confirmed by that."""
    changes: dict[str, Any] = {}
    if writer.source not in known.sources:
        changes["sources"] = [*known.sources, writer.source]
    if writer.by_person and known.trust == Trust.AGENT:
        changes["trust"] = str(Trust.TRUSTED)
    if writer.by_person and known.status == Status.SUGGESTED:
        changes["status"] = str(Status.ACTIVE)
    if not changes:
        return known
    return record_update(known.id, expected_hash=None, changes=changes, actor=writer.actor, verb="write")


def _contradicted(known: Record, pool: CapacityPool, given: Checked, writer: Writer) -> list[Record]:
    """Also of a write that was cut short before it said so."""
    superseded = [each.id for each in _superseded(given, writer)]
    return claims_about(known.slot, pool, [known.id, *superseded])


def claims_about(slot: str, pool: CapacityPool, besides: Sequence[str]) -> list[Record]:
    """What a pool says of a slot and still holds or is disputed, the oldest first."""
    if not slot:
        return []
    claims = Record.objects.exclude(slot="").filter(pool.q(), slot=slot, status__in=_CLAIMED)
    return _oldest_first(claims.exclude(pk__in=besides))


def _oldest_first(records: Iterable[Record]) -> list[Record]:
    """Sorted here: asked for an order, SQLite reads the whole pool in it rather than the few in the index."""
    return sorted(records, key=lambda each: (each.created_at, each.id))


def _in_conflict(records: Sequence[Record], writer: Writer) -> list[Record]:
    """What a person vouches for stays in force when an agent claims something else; only that claim is disputed."""
    return [
        record
        if record.trust == Trust.TRUSTED and not writer.by_person
        else _status(record, Status.CONFLICT, writer)
        for record in records
    ]


def _status(record: Record, status: Status, writer: Writer) -> Record:
    if record.status == status:
        return record
    try:
        return record_update(
            record.id,
            expected_hash=None,
            changes={"status": str(status)},
            actor=writer.actor,
            verb=str(status),
        )
    except (Record.DoesNotExist, Unreadable):
        # Forgotten or lost meanwhile: nothing is left to contradict.
        return record


def _check_superseded(given: Checked, pool: CapacityPool) -> None:
    wanted = set(given.links.get("supersedes", ()))
    there = set(Record.objects.filter(pool.q(), pk__in=wanted).values_list("pk", flat=True))
    if missing := sorted(wanted - there):
        raise ValueError(f"links.supersedes names {missing[0]}, which is not in this pool.")


def _superseded(given: Checked, writer: Writer) -> list[Record]:
    """What a person vouches for is only replaced by a person; an agent's claim contradicts it."""
    wanted = Record.objects.filter(pk__in=given.links.get("supersedes", ()))
    return list(wanted if writer.by_person else wanted.exclude(trust=Trust.TRUSTED))


@contextmanager
def pool_writing(*pools: CapacityPool) -> Iterator[None]:
    """One writer a pool at a time. Not the lock of a compression, which may take minutes."""
    make_dir(locks_dir())
    with ExitStack() as held:
        for part in sorted({part for pool in pools for part in pool.parts}):
            name = hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:24]
            try:
                held.enter_context(FileLock(locks_dir() / f"write-{name}.lock", timeout=_WAIT_SECONDS))
            except Timeout:
                raise PoolBusy(f"Others keep writing to {pools[0]}; try again later.") from None
        yield
