"""Routes that only read."""

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from sessions_app.operations import reading
from sessions_app.principals import READ

from . import inputs, outputs
from .door import enter

router = Router(tags=["Reading"], by_alias=True)


@router.get("memory.index", response=outputs.IndexAnswer, summary="Figures of the pools, newest records")
def memory_index(request: HttpRequest, given: Query[inputs.IndexQuery]) -> dict[str, Any]:
    return reading.index(enter(request, READ, given), limit=given.limit, cursor=given.cursor)


@router.get("memory.record", response=outputs.RecordAnswer, summary="A window of a record's text")
def memory_record(request: HttpRequest, given: Query[inputs.RecordQuery]) -> dict[str, Any]:
    return reading.record(enter(request, READ, given), given.id, offset=given.offset, limit=given.limit)


@router.get("memory.search", response=outputs.SearchAnswer, summary="Records by what they say")
def memory_search(request: HttpRequest, given: Query[inputs.SearchQuery]) -> dict[str, Any]:
    return reading.search(enter(request, READ, given), given.q, limit=given.limit, **given.filters)


@router.get("memory.grep", response=outputs.GrepAnswer, summary="Lines that match an expression (RE2)")
def memory_grep(request: HttpRequest, given: Query[inputs.GrepQuery]) -> dict[str, Any]:
    return _grep(request, given)


@router.post("memory.grep", response=outputs.GrepAnswer, summary="The same, for long expressions")
def memory_grep_posted(request: HttpRequest, given: inputs.GrepBody) -> dict[str, Any]:
    return _grep(request, given)


def _grep(request: HttpRequest, given: inputs.GrepQuery | inputs.GrepBody) -> dict[str, Any]:
    return reading.grep(
        enter(request, READ, given), given.pattern, ignore_case=not given.case_sensitive,
        literal=given.literal, context=given.context, limit=given.limit, **given.filters,
    )  # fmt: skip


@router.get("memory.nav", response=outputs.NavAnswer, summary="Browse from workspaces, kinds and topics")
def memory_nav(request: HttpRequest, given: Query[inputs.NavQuery]) -> dict[str, Any]:
    return _nav(request, given)


@router.post("memory.nav", response=outputs.NavAnswer, summary="The same")
def memory_nav_posted(request: HttpRequest, given: inputs.NavBody) -> dict[str, Any]:
    return _nav(request, given)


def _nav(request: HttpRequest, given: inputs.NavQuery | inputs.NavBody) -> dict[str, Any]:
    access = enter(request, READ, given)
    return reading.nav(access, given.path, limit=given.limit, offset=given.offset, sort=given.sort)


@router.get("memory.assemble", response=outputs.AssembleAnswer, summary="The passages to read for a task")
def memory_assemble(request: HttpRequest, given: Query[inputs.AssembleQuery]) -> dict[str, Any]:
    return _assemble(request, given)


@router.post("memory.assemble", response=outputs.AssembleAnswer, summary="The same, for long tasks")
def memory_assemble_posted(request: HttpRequest, given: inputs.AssembleBody) -> dict[str, Any]:
    return _assemble(request, given)


def _assemble(request: HttpRequest, given: inputs.AssembleQuery | inputs.AssembleBody) -> dict[str, Any]:
    return reading.assemble(enter(request, READ, given), given.task, budget=given.budget, **given.filters)


@router.get("memory.metrics", response=outputs.MetricsAnswer, summary="Figures alone, for monitoring")
def memory_metrics(request: HttpRequest, given: Query[inputs.SessionQuery]) -> dict[str, Any]:
    return reading.metrics(enter(request, READ, given))
