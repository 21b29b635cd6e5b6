"""`memory compress|restore|gc|write|pin|status-set`."""

import sys
from collections.abc import Iterator
from typing import Any

from records.capacity.cold import record_restore
from records.capacity.compress import (
    CompressionPreview,
    CompressionReport,
    DigestRequiresModel,
    compress_preview,
)
from records.capacity.compress import compress as compress_pools
from records.capacity.gc import GcReport, gc_preview
from records.capacity.gc import gc as gc_pool
from records.capacity.pools import CapacityPool, PoolBusy, session_pool, workspace_pool
from records.files import StoreFull
from records.recordfile import NewerSchemaError
from records.services import Conflict, record_pin, record_set_status
from records.writing import Writer, memory_write
from records.written import TEXT_MAX_BYTES, Written
from sessions_app.operations.shapes import compression_json
from sessions_app.owner import ACTOR, writer_of_session, writer_of_workspace
from sessions_app.queries import session_get
from sessions_app.workspaces import workspace_joined

from .answer import Answer, Refused, size, visible
from .records import card
from .sessions import folder, folder_key

_HOUR_MS = 60 * 60 * 1000


def compress(options: dict[str, Any]) -> Answer:
    pool = _pool(options)
    hours = options["min_age_hours"]
    how = {
        "target_ratio": options["target_ratio"],
        "min_age_ms": None if hours is None else round(hours * _HOUR_MS),
    }
    try:
        if options["dry_run"]:
            preview = compress_preview(pool, **how)
            return Answer(_preview_json(preview), _preview_lines(preview))
        (report,) = compress_pools([pool], actor=ACTOR, strategy=options["strategy"], **how)
    except (ValueError, PoolBusy, DigestRequiresModel) as error:
        raise Refused(str(error)) from error
    return Answer(_report_json(report), _report_lines(report))


def _pool(options: dict[str, Any]) -> CapacityPool:
    if bool(options["session"]) == bool(options["workspace"]):
        raise Refused("Name a pool: --workspace DIR (shared, L3) or --session ID (private, L2), not both.")
    if options["session"]:
        return session_pool(session_get(options["session"]).pool_session_id)
    return workspace_pool(workspace_joined(folder_key(options["workspace"])))


def _preview_json(preview: CompressionPreview) -> dict[str, Any]:
    return {
        "dryRun": True,
        "level": str(preview.pool.level),
        "capacityTokens": preview.figures.capacity_tokens,
        "targetTokens": preview.target_tokens,
        "beforeHot": preview.figures.hot_tokens,
        "afterHot": preview.after_hot,
        "records": preview.ids,
        "freedTokens": preview.tokens,
    }


def _preview_lines(preview: CompressionPreview) -> Iterator[str]:
    figures = preview.figures
    yield (
        f"{preview.pool.level.upper()}: {size(figures.hot_tokens)} of {size(figures.capacity_tokens)} tokens hot, "
        f"the target is {size(preview.target_tokens)}."
    )
    if not preview.ids:
        yield "Nothing would move."
        return
    yield f"{len(preview.ids):,} records, {size(preview.tokens)} tokens would go cold; {size(preview.after_hot)} stay hot."
    yield "Nothing was changed. Without --dry-run it is done; `manage.py memory restore RECORD` brings one back."


def _report_json(report: CompressionReport) -> dict[str, Any]:
    gone = None if report.gc is None else _gc_json(report.gc)
    return {**compression_json(report), "runId": report.run_id, "gc": gone}


def _report_lines(report: CompressionReport) -> Iterator[str]:
    yield (
        f"{report.cold_moved:,} records, {size(report.freed_tokens)} tokens went cold: "
        f"{size(report.before_hot)} -> {size(report.after_hot)} hot, the target was {size(report.target_tokens)}."
    )
    if report.after_hot > report.target_tokens:
        yield "What is left is pinned or too young: --min-age-hours 0 takes that as well."
    yield from (visible(error) for error in report.errors[:20])
    if report.gc is not None and report.gc.ids:
        yield from _gc_lines(report.gc)


def restore(options: dict[str, Any]) -> Answer:
    try:
        record = record_restore(options["id"], actor=ACTOR)
    except Conflict as error:
        raise Refused(str(error)) from error
    return Answer({"record": card(record)}, [f"{record.id} is hot: {visible(record.title)}"])


def gc(options: dict[str, Any]) -> Answer:
    pool = _pool(options)
    try:
        if options["dry_run"]:
            preview = gc_preview(pool, keep_tokens=options["keep_tokens"])
            lines = [
                f"{len(preview.ids):,} of the oldest cold records, {size(preview.tokens)} tokens would go to the "
                f"trash; {size(preview.after_cold)} stay. Nothing was changed."
            ]
            return Answer({"dryRun": True, **_gc_json(preview)}, lines)
        report = gc_pool(pool, keep_tokens=options["keep_tokens"], actor=ACTOR)
    except (ValueError, PoolBusy) as error:
        raise Refused(str(error)) from error
    return Answer(_gc_json(report), _gc_lines(report))


def _gc_json(report: GcReport) -> dict[str, Any]:
    return {
        "records": report.ids,
        "tokens": report.tokens,
        "beforeCold": report.before_cold,
        "afterCold": report.after_cold,
        "bundle": report.bundle_id,
    }


def _gc_lines(report: GcReport) -> Iterator[str]:
    if not report.ids:
        yield f"Nothing went: {size(report.after_cold)} tokens are cold."
        return
    yield (
        f"{len(report.ids):,} of the oldest cold records, {size(report.tokens)} tokens went to the trash as "
        f"{report.bundle_id}; {size(report.after_cold)} stay cold."
    )
    yield f"`manage.py memory trash restore {report.bundle_id}` brings them back."


def write(options: dict[str, Any]) -> Answer:
    written = Written(
        kind=options["kind"],
        text=_text(options["text"]),
        title=options["title"],
        summary=options["summary"],
        use_when=options["use_when"],
        tags=options["tag"] or (),
        entities=options["entity"] or (),
        slot=options["slot"],
        confidence=options["confidence"],
        links={"supersedes": options["supersedes"]} if options["supersedes"] else {},
    )
    try:
        answer = memory_write(written, _writer(options))
    except (ValueError, PoolBusy, StoreFull, Conflict) as error:
        raise Refused(str(error)) from error
    data = {
        "id": answer.id,
        "status": answer.status,
        "dedupe": answer.dedupe,
        "similarity": answer.similarity,
        "conflictsWith": list(answer.conflicts_with),
        "scope": answer.scope,
        "sensitive": list(answer.sensitive),
    }
    known = f" It was known already ({answer.dedupe})." if answer.dedupe else ""
    lines = [f"{answer.id}: {answer.status}.{known}"]
    lines += [f"It contradicts {each}: `manage.py memory open {each}`." for each in answer.conflicts_with]
    if answer.sensitive:
        lines.append(
            f"It holds what looks like a secret ({', '.join(answer.sensitive)}), and its scope is {answer.scope}: "
            "`manage.py memory secrets`."
        )
    return Answer(data, lines)


def _text(given: str) -> str:
    """What stands on the command line, or with `-` on stdin, byte for byte."""
    if given != "-":
        return given
    data = sys.stdin.buffer.read(TEXT_MAX_BYTES + 1)
    if len(data) > TEXT_MAX_BYTES:
        raise Refused(f"The text has more than {TEXT_MAX_BYTES:,} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"What stands on stdin is no UTF-8: {error.reason} at byte {error.start}.") from None


def _writer(options: dict[str, Any]) -> Writer:
    if bool(options["session"]) == bool(options["workspace"]):
        raise Refused("Say where: --workspace DIR (shared) or --session ID (private to it), not both.")
    if options["session"]:
        return writer_of_session(session_get(options["session"]))
    return writer_of_workspace(folder_key(options["workspace"]), folder(options["workspace"]))


def pin(options: dict[str, Any]) -> Answer:
    try:
        record = record_pin(options["id"], pinned=not options["unpin"], actor=ACTOR)
    except (Conflict, NewerSchemaError) as error:
        raise Refused(str(error)) from error
    return Answer({"record": card(record)}, [f"{record.id} is {record.status}: {visible(record.title)}"])


def status_set(options: dict[str, Any]) -> Answer:
    try:
        record = record_set_status(options["id"], options["status"], actor=ACTOR)
    except (Conflict, NewerSchemaError) as error:
        raise Refused(str(error)) from error
    return Answer({"record": card(record)}, [f"{record.id} is {record.status}: {visible(record.title)}"])
