"""`memory sessions|read|levels|level|pause|status`."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db.models import Count

from records.ids import workspace_key
from records.queries import facets
from records.scope import OWNER
from sessions_app.counts import generation_events
from sessions_app.levels import LevelSticky, level_enable
from sessions_app.models import AgentSession, Compaction, Event, Source
from sessions_app.overview import WorkspaceRow, store_status, workspaces_found
from sessions_app.queries import (
    SessionNotFound,
    events_read,
    rows_read,
    session_generation,
    session_get,
    session_levels,
)
from sessions_app.workspaces import pause_set, workspace_default_set, workspaces_read

from .answer import Answer, Refused, size, span, when


def sessions(options: dict[str, Any]) -> Answer:
    rows = AgentSession.objects.order_by("-last_event_at", "session_id")
    if options["workspace"]:
        rows = rows.filter(workspace_key=folder_key(options["workspace"]))
    counts = dict(
        Compaction.objects.filter(kind="compaction").values_list("session_id").annotate(Count("pk"))
    )
    found = [_session_json(row, counts.get(row.session_id, 0)) for row in rows[: options["limit"]]]
    lines = (
        f"{row['sessionId']}  {row['agent']:<11}  {row['levels']:<5}  {when(row['lastEventAt'])}  "
        f"{row['compactions']} compactions  {size(row['currentTokens'])} in window  {row['title']}"
        for row in found
    )
    return Answer({"sessions": found}, lines if found else [_nothing_read()])


def _session_json(row: AgentSession, compactions: int) -> dict[str, Any]:
    return {
        "sessionId": row.session_id,
        "agent": row.agent,
        "title": row.title,
        "cwd": row.cwd,
        "workspaceKey": row.workspace_key,
        "parentId": row.parent_id,
        "relation": row.relation,
        "levels": str(session_levels(row)),
        "model": row.model,
        "events": row.event_count,
        "currentEvents": row.current_count,
        "currentTokens": row.current_tokens,
        "compactions": compactions,
        "generation": row.view_generation,
        "startedAt": row.started_at,
        "lastEventAt": row.last_event_at,
        "sources": list(Source.objects.filter(session_id=row.session_id).values_list("path", flat=True)),
        "sample": row.is_sample,
    }


def _nothing_read() -> str:
    return (
        "No session has been read. `manage.py memory levels` lists the folders found in this machine's "
        "agent logs; `manage.py memory level --workspace DIR l3` switches one on."
    )


def read(options: dict[str, Any]) -> Answer:
    """Rows as they stood in the log, or events with their text."""
    session = session_get(options["session"])
    if bool(options["rows"]) == bool(options["seq"]):
        raise Refused("Give either --rows A-B (lines of the log) or --seq A-B (events).")
    generation = session_generation(session, options["session"], options["generation"])
    if options["rows"]:
        first, last = span(options["rows"])
        raw = _at_least_one(rows_read(session, first, last, generation), session, f"row {first}")
        if options["raw"]:
            return Answer(raw=raw)
        rows = [
            {"row": number, "text": line.decode("utf-8", "replace").rstrip("\n")}
            for number, line in zip(itertools.count(first), raw, strict=False)
        ]
        return Answer({"rows": rows}, (f"[{row['row']}] {row['text']}" for row in rows))
    first, last = span(options["seq"])
    if options["raw"]:
        events = _event_rows(session, first, last, generation)
        return Answer(raw=_at_least_one(events, session, f"event #{first}"))
    found = [_event_json(text) for text in events_read(session, first, last, generation)]
    if not found:
        raise SessionNotFound(f"Session {session.session_id} has no event #{first}.")
    return Answer({"events": found}, _event_lines(found))


def _at_least_one(pieces: Iterator[bytes], session: AgentSession, what: str) -> Iterator[bytes]:
    first = next(pieces, None)
    if first is None:
        raise SessionNotFound(f"Session {session.session_id} has no {what}.")
    return itertools.chain((first,), pieces)


def _event_rows(session: AgentSession, first: int, last: int, generation: int) -> Iterator[bytes]:
    events = generation_events(session, generation).filter(seq__range=(first, last))
    for row in events.order_by("row").values_list("row", flat=True).distinct():
        yield from rows_read(session, row, row, generation)


def _event_json(text: Any) -> dict[str, Any]:
    event: Event = text.event
    return {
        "seq": event.seq,
        "row": event.row,
        "generation": event.generation,
        "role": event.role,
        "type": event.type,
        "source": event.source,
        "surface": event.surface,
        "shadowedBy": event.shadowed_by,
        "recordId": event.record_id,
        "time": event.time,
        "text": "\n".join(block.text for block in text.blocks if block.text),
    }


def _event_lines(events: list[dict[str, Any]]) -> Iterator[str]:
    for event in events:
        state = event["surface"] or "unknown"
        yield f"[#{event['seq']} row {event['row']}] {event['role'] or event['type']} · {state} · {when(event['time'])}"
        if event["text"]:
            yield event["text"]


def levels(options: dict[str, Any]) -> Answer:
    found = workspaces_found()
    return Answer({"workspaces": [row.as_json() for row in found]}, _workspace_lines(found))


def _workspace_lines(found: list[WorkspaceRow]) -> Iterator[str]:
    for row in found:
        yield f"{row.levels:<5}  {row.sessions} sessions, {row.on} on  {','.join(row.agents)}  {row.cwd or row.key}"
    if not found:
        yield "No agent logs found. `manage.py archive PATH` looks elsewhere."


def level(options: dict[str, Any]) -> Answer:
    if options["workspace"] and options["session"] in ("l2", "l3", "off"):
        # `--workspace DIR l2 l3`: the parser takes the first of several levels for a session.
        options = {**options, "session": None, "levels": [options["session"], *options["levels"]]}
    names = [name for name in ("l2", "l3") if name in options["levels"]]
    _one_of(options)
    if options["workspace"]:
        path = folder(options["workspace"])
        key = workspace_key(path, "")
        off = "off" in options["levels"]
        workspace_default_set(key, path, l2="l2" in names and not off, l3="l3" in names and not off)
        state = "off for new sessions" if off else f"{'+'.join(names).upper()} for every session in it"
        return Answer({"workspace": path, "levels": [] if off else names}, [f"{path}: {state}."])
    if "off" in options["levels"]:
        raise LevelSticky(
            "MEMORY_LEVEL_STICKY: a session's level stays on. `memory pause` stops reading it; "
            "`memory forget --session` removes what was kept."
        )
    pool = _pool(options["session"])
    now = level_enable(pool, *names)
    return Answer(
        {"sessionId": pool, "levels": str(now)},
        [f"{pool}: {now}. `manage.py archive` reads it now; a running server does so by itself."],
    )


def _one_of(options: dict[str, Any]) -> None:
    if bool(options["session"]) == bool(options["workspace"]):
        raise Refused("Name a session, or a folder with --workspace DIR, and not both.")


def _pool(name: str) -> str:
    """The pool of a session that was read, or that is known by its log only."""
    try:
        return session_get(name).pool_session_id
    except SessionNotFound:
        from sessions_app.levels import pool_session_id

        found = list(Source.objects.filter(session_id__startswith=name).order_by("session_id")[:2])
        if len({source.session_id for source in found}) != 1:
            raise
        return pool_session_id(found[0].session_id, found[0].parent_id, found[0].relation)


def pause(options: dict[str, Any]) -> Answer:
    paused = not options["resume"]
    if options["session"] is not None or options["workspace"] is not None:
        _one_of(options)
    if options["workspace"]:
        kind, value = "workspaces", workspace_key(folder(options["workspace"]), "")
    elif options["session"]:
        kind, value = "sessions", _pool(options["session"])
    else:
        kind, value = "all", ""
    pause_set(kind, value, paused=paused)
    what = options["workspace"] or value or "everything"
    state = "paused: nothing more is read or archived until `--resume`" if paused else "resumed"
    return Answer({"paused": workspaces_read()["paused"]}, [f"{what}: {state}."])


def status(options: dict[str, Any]) -> Answer:
    data = store_status()
    hot = facets(OWNER)
    data["records"] = {
        "count": hot.count, "hotTokens": hot.hot_tokens, "coldTokens": hot.cold_tokens, "bytes": hot.bytes,
    }  # fmt: skip
    return Answer(data, [
        f"Store: {data['home']} ({size(data['mirrorBytes'])} bytes of logs kept"
        f"{', over MEMEX_MIRROR_MAX_GB: `memory forget --session` frees some' if data['mirrorOver'] else ''})",
        f"Records: {hot.count:,}, {size(hot.hot_tokens)} tokens hot, {size(hot.cold_tokens)} cold",
        f"Sessions: {data['sessions']} read, {data['sources']} log files known, {data['sessionsOn']} switched on",
        f"Compactions: {data['archived']} archived, {data['waiting']} waiting; "
        f"{data['receipts']} receipts queued; {data['warnings']} import warnings",
        "Paused." if data["paused"]["all"] else "Running.",
    ])  # fmt: skip


def folder(text: str) -> str:
    return str(Path(text).expanduser().absolute())


def folder_key(text: str) -> str:
    return workspace_key(folder(text), "")
