"""`memory list|open|forget|trash`."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from records import queries
from records import trash as bins
from records.models import Record
from records.scope import OWNER
from sessions_app.forget import ForgetPlan, forget_plan, forget_run, forget_undo
from sessions_app.operations.shapes import card_json
from sessions_app.originals import record_rows
from sessions_app.queries import session_get

from .answer import Answer, Refused, size, when
from .sessions import folder_key


def listing(options: dict[str, Any]) -> Answer:
    page = queries.record_list(
        OWNER,
        kinds=options["kind"] or (),
        statuses=options["status"] or (),
        workspace_key=folder_key(options["workspace"]) if options["workspace"] else None,
        session_id=session_get(options["session"]).pool_session_id if options["session"] else None,
        text=options["text"] or "",
        offset=options["offset"],
        limit=options["limit"],
    )
    found = [card(record) for record in page.records]
    lines = (
        f"{row['id']}  {row['kind']:<11} {row['scope']:<9} {size(row['tokens']):>7}  {when(row['createdAt'])}"
        f"  {row['title']}"
        for row in found
    )
    return Answer({"records": found, "hasMore": page.has_more}, lines if found else ["No records."])


def card(record: Record) -> dict[str, Any]:
    """A record without its body, as the commands say it."""
    return {
        **card_json(record),
        "workspaceKey": record.workspace_key,
        "provenance": record.provenance,
        "links": record.links,
    }


def opened(options: dict[str, Any]) -> Answer:
    """The body, or with --original the rows of the log, exactly as they were. Offset and limit count
    characters of the body, bytes of the original."""
    record_id, offset, limit = options["id"], options["offset"], options["limit"]
    if options["original"]:
        return Answer(raw=_window(record_rows(queries.record_get(OWNER, record_id)), offset, limit))
    found = queries.record_open(OWNER, record_id)
    body = found.body.decode("utf-8", "replace")
    text = body[offset : None if limit is None else offset + limit]
    data = {"record": card(found.record), "body": text, "bodyOffset": offset, "bodyTotalChars": len(body)}
    head = [
        f"# {found.record.title}",
        f"{found.record.id} · {found.record.kind} · {found.record.use_when}",
        "",
    ]
    return Answer(data, [*head, text] if not offset else [text])


def _window(pieces: Iterable[bytes], offset: int, limit: int | None) -> Iterator[bytes]:
    left = limit
    for piece in pieces:
        if offset >= len(piece):
            offset -= len(piece)
            continue
        part = piece[offset:] if left is None else piece[offset : offset + left]
        offset = 0
        yield part
        if left is not None:
            left -= len(part)
            if left <= 0:
                return


def forget(options: dict[str, Any]) -> Answer:
    plan = _plan(options)
    data: dict[str, Any] = {"plan": plan.as_json(), "done": False}
    lines = [*_plan_lines(plan)]
    if not options["yes"]:
        return Answer(data, [*lines, "Nothing was done yet: add --yes to move this to the trash."])
    bundle_id = forget_run(plan, actor="owner")
    return Answer(
        {**data, "done": True, "bundle": bundle_id},
        [
            *lines,
            f"Moved to the trash as {bundle_id}. `manage.py memory trash restore {bundle_id}` brings it back.",
        ],
    )


def _plan(options: dict[str, Any]) -> ForgetPlan:
    if bool(options["ids"]) == bool(options["session"]):
        raise Refused("Name record ids, or a session with --session ID.")
    if options["session"]:
        return forget_plan(session_ids=[session_get(options["session"]).session_id])
    return forget_plan(record_ids=options["ids"])


def _plan_lines(plan: ForgetPlan) -> Iterator[str]:
    for session_id in plan.session_ids:
        yield f"session {session_id}"
    for record in plan.records:
        yield f"record {record.id}  {record.title}"
    if plan.shared:
        yield f"{len(plan.shared)} shared records stay and lose this session as a source"
    yield (
        f"{len(plan.records)} records, {size(plan.tokens)} tokens; {len(plan.session_ids)} sessions, "
        f"{size(plan.mirror_bytes)} bytes of their logs. The agents' own files are not touched."
    )


def trash(options: dict[str, Any]) -> Answer:
    action, bundle_id = options["action"], options["bundle"]
    if action == "list":
        rows: list[dict[str, Any]] = [
            {
                "id": bundle.id,
                "kind": bundle.manifest.kind,
                "title": bundle.manifest.title,
                "createdAt": bundle.manifest.created_at,
            }
            for bundle in bins.bundle_list()
        ]
        lines = [f"{row['id']}  {_day(row['createdAt'])}  {row['title']}" for row in rows]
        return Answer({"bundles": rows}, lines or ["The trash is empty."])
    if not bundle_id:
        raise Refused(f"`memory trash {action}` needs a bundle: `memory trash list` shows them.")
    if action == "restore":
        forget_undo(bundle_id, actor="owner")
        return Answer({"restored": bundle_id}, [f"{bundle_id} is back."])
    if not options["yes"]:
        raise Refused(f"Purging {bundle_id} can't be undone: add --yes.")
    bins.bundle_purge(bundle_id, actor="owner")
    return Answer({"purged": bundle_id}, [f"{bundle_id} is gone for good."])


def _day(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%Y-%m-%d %H:%M")
