"""Routes that change something."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from sessions_app.operations import changing
from sessions_app.principals import CAPACITY, LEVELS, WRITE

from . import inputs, outputs
from .door import enter
from .idempotency import once

router = Router(tags=["Changing"], by_alias=True)


@router.post("memory.write", response=outputs.WriteAnswer, summary="Remember something")
@once
def memory_write(request: HttpRequest, given: inputs.WriteBody) -> dict[str, Any]:
    access = enter(request, WRITE, given)
    return changing.write(access, **given.dict(exclude={"session_id", "cwd"}, by_alias=False))


@router.post(
    "memory.status", response=outputs.ChangedRecordAnswer, summary="Pin, resolve, supersede, reactivate"
)
@once
def memory_status(request: HttpRequest, given: inputs.StatusBody) -> dict[str, Any]:
    return changing.status(enter(request, WRITE, given), given.id, given.status)


@router.post("memory.level", response=outputs.LevelsAnswer, summary="Switch a level on; it stays on")
@once
def memory_level(request: HttpRequest, given: inputs.LevelBody) -> dict[str, Any]:
    return changing.level(enter(request, LEVELS, given), given.level)


@router.post("memory.compress", response=outputs.CompressAnswer, summary="Move records to the cold tier")
@once
def memory_compress(request: HttpRequest, given: inputs.CompressBody) -> dict[str, Any]:
    return changing.compress(
        enter(request, CAPACITY, given), level=given.level, strategy=given.strategy,
        target_ratio=given.target_ratio, min_age_ms=given.min_age_ms,
    )  # fmt: skip


@router.post("memory.restore", response=outputs.ChangedRecordAnswer, summary="Bring a cold record back")
@once
def memory_restore(request: HttpRequest, given: inputs.RestoreBody) -> dict[str, Any]:
    return changing.restore(enter(request, CAPACITY, given), given.id)


@router.post("memory.gc", response=outputs.GcAnswer, summary="Move the oldest cold records to the trash")
@once
def memory_gc(request: HttpRequest, given: inputs.GcBody) -> dict[str, Any]:
    return changing.gc(enter(request, CAPACITY, given), keep_tokens=given.keep_tokens)


@router.post(
    "memory.forget", response=outputs.ForgetAnswer, summary="Move records, or the session, to the trash"
)
@once
def memory_forget(request: HttpRequest, given: inputs.ForgetBody) -> dict[str, Any]:
    access = enter(request, CAPACITY, given)
    return changing.forget(access, ids=given.ids, session=given.session, dry_run=given.dry_run)
