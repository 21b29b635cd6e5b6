"""What a record's owner decides: what was suggested, what contradicts, and what is done with.

Data flow: an action and ids -> record by record, each with its own check -> what was changed, what it was
before and after, and why the others were not. From that an action can be undone, as long as nothing else has
changed the record since.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from .capacity.cold import record_cool, record_restore
from .capacity.pools import CapacityPool, Level, PoolBusy, session_pool, workspace_pool
from .models import Record, Status, Trust
from .models import Scope as Tier
from .recordfile import NewerSchemaError
from .services import Conflict, Unreadable, record_update
from .writing import claims_about, pool_writing

# Of one request.
AT_ONCE = 500
# What the owner may mark as done with, or take up again.
_OPEN = (Status.ACTIVE, Status.PINNED)
_DONE = (Status.RESOLVED, Status.SUPERSEDED)


class Action(StrEnum):
    PIN = "pin"
    UNPIN = "unpin"
    RESOLVE = "resolve"
    REOPEN = "reopen"
    COOL = "cool"
    RESTORE = "restore"
    CONFIRM = "confirm"
    KEEP = "keep"
    KEEP_ALL = "keep-all"


State = dict[str, Any]


@dataclass
class Done:
    """`changed`: ids of those that were asked for; `steps`: of them and of what changed along with them, what
    each `was` and is `now` (status, trust, tier); `skipped`: why a record was left as it is, by id."""

    changed: list[str] = field(default_factory=list)
    steps: dict[str, dict[str, State]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


class _Unfit(Exception):
    """The record is not in a state in which this can be done."""


JoinedOf = Callable[[str], Iterable[str]]


def records_decide(
    action: Action, record_ids: Sequence[str], *, actor: str, joined_of: JoinedOf = lambda key: ()
) -> Done:
    """`joined_of`: the workspaces that share their pool with one. Not inside a transaction."""
    done = Done()
    for record_id in dict.fromkeys(record_ids):
        _tried(done, record_id, lambda record: _decide(done, action, record, actor, joined_of))
    states = {record.id: _state(record) for record in Record.objects.filter(pk__in=list(done.steps))}
    # What was begun and failed may have changed nothing.
    done.steps = {
        record_id: {**step, "now": states[record_id]}
        for record_id, step in done.steps.items()
        if record_id in states and states[record_id] != step["was"]
    }
    return done


def decision_undo(steps: Mapping[str, Mapping[str, State]], *, actor: str) -> Done:
    """Puts each record back to what it was, unless something else has changed it since. Not inside a
    transaction."""
    done = Done()
    for record_id, step in steps.items():
        _tried(done, record_id, partial(_put_back, step=step, actor=actor))
    return done


def _tried(done: Done, record_id: str, work: Callable[[Record], None]) -> None:
    try:
        work(Record.objects.get(pk=record_id))
    except Record.DoesNotExist:
        done.skipped[record_id] = "it is gone"
    except (_Unfit, PoolBusy, Conflict, Unreadable, NewerSchemaError, OSError) as error:
        done.skipped[record_id] = str(error)
    else:
        done.changed.append(record_id)


def _put_back(record: Record, step: Mapping[str, State], actor: str) -> None:
    if _state(record) != step["now"]:
        raise _Unfit("it has changed since")
    was = step["was"]
    changes = {name: was[name] for name in ("status", "trust") if was[name] != step["now"][name]}
    if changes:
        record_update(record.id, expected_hash=None, changes=changes, actor=actor, verb="undo")
    if was["cold"] != step["now"]["cold"]:
        _move(record.id, cold=was["cold"], actor=actor)


def _state(record: Record) -> State:
    return {"status": record.status, "trust": record.trust, "cold": bool(record.cold)}


def _decide(done: Done, action: Action, record: Record, actor: str, joined_of: JoinedOf) -> None:
    if action in (Action.COOL, Action.RESTORE):
        cold = action is Action.COOL
        if bool(record.cold) == cold:
            raise _Unfit(f"it is {'cold' if cold else 'hot'} already")
        _note(done, record)
        _move(record.id, cold=cold, actor=actor)
    elif action in (Action.CONFIRM, Action.KEEP, Action.KEEP_ALL):
        pool = _pool_of(record, joined_of)
        with pool_writing(pool):
            # Another may have decided while the lock was waited for.
            record = Record.objects.get(pk=record.id)
            _CLAIMS[action](done, record, pool, actor)
    else:
        wanted, fit, why = _PLAIN[action]
        if record.status not in fit:
            raise _Unfit(
                why if record.status != wanted else f"it is {record.get_status_display().lower()} already"
            )
        _note(done, record)
        _set(record, actor, action, status=wanted)


# (the status it gets, those it may have, why not)
_PLAIN: dict[Action, tuple[Status, tuple[Status, ...], str]] = {
    Action.PIN: (Status.PINNED, (Status.ACTIVE, *_DONE), "what waits or contradicts is to be decided first"),
    Action.UNPIN: (Status.ACTIVE, (Status.PINNED,), "it is not pinned"),
    Action.RESOLVE: (Status.RESOLVED, _OPEN, "only what is current can be resolved"),
    Action.REOPEN: (Status.ACTIVE, _DONE, "it is not done with"),
}


def _confirm(done: Done, record: Record, pool: CapacityPool, actor: str) -> None:
    """What a person confirms holds like what they wrote: it replaces what it names, and contradicts others."""
    if record.status != Status.SUGGESTED:
        raise _Unfit("it does not wait for a confirmation")
    _note(done, record)
    named = record.links.get("supersedes", [])
    replaced = list(Record.objects.filter(pool.q(), pk__in=named if isinstance(named, list) else [named]))
    others = claims_about(record.slot, pool, [record.id, *(each.id for each in replaced)])
    _set(
        record,
        actor,
        Action.CONFIRM,
        status=Status.CONFLICT if others else Status.ACTIVE,
        trust=_vouched(record),
    )
    for each, status in [
        *((each, Status.SUPERSEDED) for each in replaced),
        *((each, Status.CONFLICT) for each in others),
    ]:
        _note(done, each)
        _set(each, actor, Action.CONFIRM, status=status)


def _keep(done: Done, record: Record, pool: CapacityPool, actor: str) -> None:
    """This one holds; what else is claimed about the same is superseded by it."""
    for each in _others(record, pool):
        _note(done, each)
        _set(each, actor, Action.KEEP, status=Status.SUPERSEDED)
    _note(done, record)
    _set(record, actor, Action.KEEP, status=Status.ACTIVE, trust=_vouched(record))


def _keep_all(done: Done, record: Record, pool: CapacityPool, actor: str) -> None:
    """They don't contradict each other after all."""
    for each in [record, *(each for each in _others(record, pool) if each.status == Status.CONFLICT)]:
        _note(done, each)
        _set(each, actor, Action.KEEP_ALL, status=Status.ACTIVE, trust=_vouched(each))


_CLAIMS: dict[Action, Callable[[Done, Record, CapacityPool, str], None]] = {
    Action.CONFIRM: _confirm,
    Action.KEEP: _keep,
    Action.KEEP_ALL: _keep_all,
}


def _others(record: Record, pool: CapacityPool) -> list[Record]:
    if record.status != Status.CONFLICT:
        raise _Unfit("nothing contradicts it")
    return claims_about(record.slot, pool, [record.id])


def _pool_of(record: Record, joined_of: JoinedOf) -> CapacityPool:
    if record.scope == Tier.SESSION:
        # One that was hidden, and that no session owns, is seen by its owner alone: in no pool.
        return session_pool(record.session_id) if record.session_id else CapacityPool(Level.L2)
    return workspace_pool([record.workspace_key, *joined_of(record.workspace_key)])


def _vouched(record: Record) -> str:
    """What an agent claimed is its owner's word from now on; what was archived stays what it is."""
    return Trust.TRUSTED if record.trust == Trust.AGENT else record.trust


def _note(done: Done, record: Record) -> None:
    done.steps.setdefault(record.id, {"was": _state(record)})


def _set(record: Record, actor: str, action: Action, **values: str) -> None:
    changes = {name: str(value) for name, value in values.items() if getattr(record, name) != value}
    if changes:
        record_update(record.id, expected_hash=None, changes=changes, actor=actor, verb=str(action))


def _move(record_id: str, *, cold: bool, actor: str) -> None:
    if not cold:
        record_restore(record_id, actor=actor)
        return
    moved = record_cool([record_id], actor=actor)
    if record_id in moved.skipped:
        raise _Unfit(moved.skipped[record_id])
