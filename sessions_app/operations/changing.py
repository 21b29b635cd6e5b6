"""What can be changed: status, level, compress, restore, gc, forget, write."""

from collections.abc import Mapping, Sequence
from typing import Any

from records import queries
from records.capacity.cold import record_restore
from records.capacity.compress import COLD
from records.capacity.compress import compress as compress_pools
from records.capacity.gc import gc as gc_pool
from records.capacity.pools import CapacityPool
from records.models import Record, Status, Trust
from records.models import Scope as Tier
from records.services import record_set_status
from records.writing import Writer, memory_write
from records.written import Written
from sessions_app.access import Access, Forbidden, session_access
from sessions_app.figures import compression, pools_of
from sessions_app.forget import ForgetPlan, forget_plan, forget_run
from sessions_app.levels import LevelsOff, LevelSticky, level_enable
from sessions_app.opening import UnknownSession
from sessions_app.reading_soon import read_soon

from .shapes import compression_json, levels_json, record_json

# What only the owner lifts: an agent never confirms what it wrote itself.
_UNDECIDED = (Status.SUGGESTED, Status.CONFLICT, Status.TRASHED)


class NotCold(Exception):
    """MEMORY_NOT_COLD: the record is hot already."""


def status(access: Access, record_id: str, wanted: str) -> dict[str, Any]:
    """Record.DoesNotExist, Forbidden."""
    record = queries.record_get(access.scope, record_id)
    if not access.principal.is_owner and record.status in _UNDECIDED:
        raise Forbidden(f"{record_id} is {record.status}: its owner decides.")
    if not access.principal.is_owner and record.trust == Trust.TRUSTED:
        raise Forbidden(f"A person wrote or confirmed {record_id}: its owner decides.")
    return {"record": record_json(record_set_status(record_id, wanted, actor=access.principal.actor))}


def level(access: Access, name: str) -> dict[str, Any]:
    """Switches a level of a session on. LevelSticky, UnknownSession without one."""
    if access.session is None:
        raise UnknownSession("A level is a session's: name it with sessionId.")
    if name not in ("l2", "l3"):
        raise LevelSticky(f"'{name[:20]}' is no level: l2 and l3 can be switched on, and stay on.")
    level_enable(access.session.pool_id, name)
    read_soon(access.session.session_id)
    now = session_access(access.principal, access.session)
    return {"levels": levels_json(now.levels), "captureScope": now.levels.capture_scope}


def compress(
    access: Access,
    *,
    level: str = "auto",
    strategy: str = COLD,
    target_ratio: float | None = None,
    min_age_ms: int | None = None,
) -> dict[str, Any]:
    """LevelsOff, PoolBusy, DigestRequiresModel, ValueError."""
    reports = compress_pools(
        _pools(access, level),
        actor=access.principal.actor,
        strategy=strategy,
        target_ratio=target_ratio,
        min_age_ms=min_age_ms,
        session_id=access.session.session_id if access.session else "",
    )
    return {
        "reports": [compression_json(report) for report in reports],
        "compression": compression(access),
    }


def _pools(access: Access, level: str = "auto") -> list[CapacityPool]:
    """Those that are on, of which `level` is meant. LevelsOff for none."""
    wanted = ("l2", "l3") if level == "auto" else (level,)
    named = pools_of(access)
    found = [named[name] for name in wanted if name in named and getattr(access.levels, name)]
    if not found:
        if access.is_everything:
            raise UnknownSession("Name whose pools are meant: a session (sessionId) or a folder (cwd).")
        raise LevelsOff("No such level is on here.")
    return found


def restore(access: Access, record_id: str) -> dict[str, Any]:
    """Record.DoesNotExist, NotCold."""
    record = queries.record_get(access.scope, record_id)
    if not record.cold:
        raise NotCold(f"{record_id} is hot: it can be read as it is.")
    return {"record": record_json(record_restore(record_id, actor=access.principal.actor))}


def gc(access: Access, *, keep_tokens: int) -> dict[str, Any]:
    """LevelsOff, PoolBusy."""
    reports = [
        gc_pool(pool, keep_tokens=keep_tokens, actor=access.principal.actor) for pool in _pools(access)
    ]
    return {
        "reports": [
            {
                "level": str(report.pool.level),
                "removed": len(report.ids),
                "freedTokens": report.tokens,
                "bundle": report.bundle_id or None,
            }
            for report in reports
        ]
    }


def forget(
    access: Access, *, ids: Sequence[str] = (), session: bool = False, dry_run: bool = False
) -> dict[str, Any]:
    """To the trash. An agent's own session, or records that are private to it or that it wrote.
    Record.DoesNotExist, Forbidden, UnknownSession, ValueError."""
    if bool(ids) == session:
        raise ValueError("Name records (ids), or the session itself (session: true).")
    if session:
        if access.session is None:
            raise UnknownSession("Name the session with sessionId.")
        plan = forget_plan(session_ids=[access.session.session_id])
    else:
        plan = _records_plan(access, list(dict.fromkeys(ids)))
    if dry_run:
        return {"plan": plan.as_json(), "done": False, "bundle": None}
    return {"plan": plan.as_json(), "done": True, "bundle": forget_run(plan, actor=access.principal.actor)}


def _records_plan(access: Access, ids: list[str]) -> ForgetPlan:
    for record_id in ids:
        record = queries.record_get(access.scope, record_id)
        if not (access.principal.is_owner or _is_own(access, record)):
            raise Forbidden(f"{record_id} is shared, and was not written by this session: its owner decides.")
    return forget_plan(record_ids=ids)


def _is_own(access: Access, record: Record) -> bool:
    if access.session is None:
        return False
    is_private = record.scope == Tier.SESSION and record.session_id == access.session.pool_id
    given = record.provenance
    holders = {source.get("session_id") for source in record.sources} - {None, ""}
    mine = {access.session.session_id, access.session.pool_id}
    wrote = given.get("source") == "write" and given.get("sessionId") in mine and holders <= mine
    return is_private or wrote


def write(
    access: Access,
    *,
    kind: str,
    text: str,
    title: str | None = None,
    summary: str | None = None,
    use_when: str | None = None,
    tags: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
    entities: Sequence[str] | None = None,
    slot: str | None = None,
    confidence: float | None = None,
    scope: str | None = None,
    links: Mapping[str, str | Sequence[str]] | None = None,
) -> dict[str, Any]:
    """LevelsOff, ValueError, PoolBusy, StoreFull, Conflict."""
    given = Written(
        kind=kind,
        text=text,
        title=title or "",
        summary=summary or "",
        use_when=use_when or "",
        tags=tags or (),
        entities=entities or (),
        slot=slot or "",
        confidence=confidence,
        links=links or {},
    )
    answer = memory_write(given, _writer(access, scope))
    return {
        "id": answer.id,
        "status": answer.status,
        "dedupe": answer.dedupe,
        "similarity": answer.similarity,
        "conflictsWith": list(answer.conflicts_with) or None,
        "scope": answer.scope,
        "sensitive": list(answer.sensitive) or None,
    }


def _writer(access: Access, scope: str | None) -> Writer:
    if access.is_everything:
        raise UnknownSession("Name where it belongs: a session (sessionId) or a folder (cwd).")
    levels, session = access.levels, access.session
    if not levels.any:
        raise LevelsOff("Both levels are off here: nothing is kept.")
    scope = scope or levels.capture_scope
    if scope == Tier.WORKSPACE and not levels.l3:
        raise LevelsOff("L3 is off: what is written stays private to the session (scope session).")
    if scope == Tier.SESSION and (session is None or not levels.l2):
        raise LevelsOff("L2 is off: what is written is shared in the workspace (scope workspace).")
    return Writer(
        actor=access.principal.actor,
        by_person=access.principal.is_owner,
        scope=scope,
        workspace_key=access.workspace_key,
        workspace=access.cwd,
        session_id=session.pool_id if session else "",
        agent=session.agent if session else access.principal.agent,
        joined=access.keys,
    )
