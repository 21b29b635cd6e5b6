"""Sessions of agents that have no log and push their events: opening one, its events, its compactions.

Who may use a session is decided before: here a session id is one that the caller may write to. (A parent's
id opens its pool: that has to be checked as well.)
"""

import logging
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from records.clock import now_ms
from records.files import StoreFull
from records.tokens import estimate

from .archive import session_archive
from .batch import ranges
from .levels import Levels, LevelsOff, SessionPaused, levels_of
from .logs.json_slices import loads, members_and_elements
from .logs.pushed_rows import COMPACTION, SESSION, event_problem, id_problem, note_row
from .logs.rows import clean
from .mirror import MirrorDamaged
from .models import Compaction, Event, Source
from .pushlog import GENERATION, PushLog, log_path, push_log, push_source, refuse_forgotten
from .pushsource import has_log_format, is_pushed, push_path
from .sessionfile import workspace_key_of
from .sourcepass import pool_of

log = logging.getLogger(__name__)

MAX_BODY = 16 * 1024 * 1024
AGENT = re.compile(r"[a-z0-9-]{1,32}")
_ID_CHARACTERS, _TEXT_CHARACTERS = 200, 2_000
_BOM = b"\xef\xbb\xbf"


class PushRefused(ValueError):
    """MEMORY_INVALID…: what was pushed can't be taken, and nothing of it was. `index`: of the event that
    is wrong, None when it is the request itself."""

    def __init__(self, problem: str, index: int | None = None) -> None:
        super().__init__(problem if index is None else f"Event {index}: {problem}.")
        self.index = index


class PushTooLarge(PushRefused):
    """MEMORY_TOO_LARGE: a request of more than MAX_BODY bytes."""


@dataclass(frozen=True, slots=True)
class Opened:
    """`log`: the agent's own log that the session is read from, "" when it is pushed."""

    session_id: str
    agent: str
    levels: Levels
    workspace_key: str
    log: str = ""


@dataclass(frozen=True, slots=True)
class Pushed:
    stored: int
    duplicates: int
    next_seq: int


@dataclass(frozen=True, slots=True)
class CompactionPushed:
    """`state`: archived, already (it was there before) or pending (kept, archived by the next pass).
    `record_id`: "" when nothing was removed, or its record was forgotten. `missing`: ids that were never
    pushed."""

    record_id: str
    state: str
    missing: tuple[str, ...] = ()


def session_open(
    session_id: str,
    agent: str,
    *,
    cwd: str = "",
    title: str = "",
    parent_session_id: str = "",
    context_window: int | None = None,
) -> Opened:
    """Prepares a session to be pushed; again, it brings title and window up to date. With both levels off
    only what discovery keeps of a log is kept. Of a session that is read from a log nothing changes. Raises
    PushRefused, SessionForgotten, StoreBusy."""
    _open_check(session_id, agent, (cwd, title, parent_session_id), context_window)
    refuse_forgotten(session_id, parent_session_id)
    path = "" if is_pushed(session_id) else log_path(session_id)
    if not path:
        source, _ = Source.objects.get_or_create(
            path=push_path(session_id),
            defaults={
                "agent": agent, "session_id": session_id, "cwd": cwd, "size": 0, "read_size": 0, "mtime_ns": time.time_ns(),
                "started_at": now_ms(), "parent_id": parent_session_id,
                "relation": "subagent" if parent_session_id else "",
            },
        )  # fmt: skip
        # Agents with logs open sessions too: the log will say all about them, unless they push.
        if source.size or not has_log_format(source.agent):
            with suppress(LevelsOff, SessionPaused):
                _facts_note(source, title, context_window)
    else:
        source = Source.objects.get(path=path)
    pool = pool_of(source)
    key = workspace_key_of(pool, source.cwd)
    return Opened(session_id, source.agent, levels_of(pool, key), key, path)


def _open_check(session_id: str, agent: str, texts: tuple[str, ...], context_window: int | None) -> None:
    if not session_id or len(session_id) > _ID_CHARACTERS or clean(session_id) != session_id:
        raise PushRefused(f"A session's id is a text of 1 to {_ID_CHARACTERS} characters.")
    if not AGENT.fullmatch(agent):
        raise PushRefused(f"{agent!r} is no name of an agent: 1 to 32 of a-z, 0-9 and -.")
    for text in texts:
        if len(text) > _TEXT_CHARACTERS or clean(text) != text:
            raise PushRefused(f"cwd, title and parentSessionId hold at most {_TEXT_CHARACTERS} characters.")
    if context_window is not None and not 0 < context_window < 2**53:
        raise PushRefused("contextWindow is a number of tokens above 0.")


def _facts_note(source: Source, title: str, context_window: int | None) -> None:
    push_source(source.session_id)
    with push_log(source.session_id) as opened:
        session = opened.session
        given = {"title": title or session.title, "contextWindow": context_window or session.context_window}
        known = {"title": session.title, "contextWindow": session.context_window}
        if given != known or not opened.generation.parsed_rows:
            about = {"sessionId": session.session_id, "agent": session.agent, "time": now_ms()}
            opened.append([note_row(SESSION, {**about, **given})])


def session_events_push(session_id: str, body: bytes) -> Pushed:
    """Stores the events of a request, `body` as it came: {"sessionId", "events": [{"id", …}, …]}. Each is
    kept as the bytes that it has there. One that is wrong refuses them all. Raises what `push_log` does,
    PushRefused, StoreFull."""
    push_source(session_id)
    events = _events_of(body, session_id)
    with push_log(session_id) as opened:
        known = opened.ids_known([event_id for event_id, _ in events])
        rows: list[bytes] = []
        for event_id, raw in events:
            if event_id not in known:
                known.add(event_id)
                rows.append(raw)
        opened.append(rows)
        return Pushed(len(rows), len(events) - len(rows), opened.next_seq)


def _events_of(body: bytes, session_id: str) -> list[tuple[str, bytes]]:
    """Id and bytes of each event of a request. Raises PushRefused."""
    if len(body) > MAX_BODY:
        raise PushTooLarge(f"A request holds at most {MAX_BODY:,} bytes; this one has {len(body):,}.")
    body = body.removeprefix(_BOM)
    found: list[tuple[str, bytes]] = []
    try:
        spans, slices = members_and_elements(body, "events")
        if unknown := spans.keys() - {"sessionId", "events"}:
            raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
        if slices is None:
            raise ValueError("'events' is missing")
        if "sessionId" in spans and loads(body[slice(*spans["sessionId"])]) != session_id:
            raise ValueError("it is of another session")
    except ValueError as error:
        raise PushRefused(f"The request is no list of events: {error}.") from error
    for index, (start, end) in enumerate(slices):
        # Between tokens only: within a text a line end is no JSON.
        raw = body[start:end].replace(b"\n", b" ")
        found.append((_event_id(body[start:end], index), raw))
    return found


def _event_id(raw: bytes, index: int) -> str:
    try:
        event = loads(raw)
    except ValueError as error:
        raise PushRefused(str(error), index) from error
    if problem := event_problem(event):
        raise PushRefused(problem, index)
    return str(event["id"])


def session_compaction_push(
    session_id: str,
    compaction_id: str,
    *,
    summary: str,
    removed_ids: list[str],
    trigger: str = "",
    tokens_before: int | None = None,
    tokens_after: int | None = None,
) -> CompactionPushed:
    """Takes the events that an agent's compaction removed out of the window, puts its summary there (under
    the compaction's id) and archives them. Once for each compaction id. Raises what `push_log` does,
    PushRefused, StoreFull before anything was kept."""
    if problem := id_problem(compaction_id):
        raise PushRefused(problem.replace("'id'", "'compactionId'"))
    with push_log(session_id) as opened:
        known = _compaction(opened, compaction_id)
        was_there = known is not None
        missing: tuple[str, ...] = tuple(known.missing) if known else ()
        if not was_there:
            values, missing = _compaction_note(opened, summary, removed_ids)
            values |= {"id": compaction_id, "trigger": trigger[:16], "time": now_ms()}
            values |= {"tokensBefore": tokens_before, "tokensAfter": tokens_after}
            if tokens_after is not None:
                values["usedAfter"] = tokens_after
            opened.append([note_row(COMPACTION, values)])
        if not was_there or (known and known.state == Compaction.State.READY):
            was_there = False
            try:
                session_archive(opened.session, now=now_ms(), idle_since=opened.source.mtime_ns // 1_000_000)
            except (StoreFull, MirrorDamaged, OSError):
                log.exception("Compaction %s of %s is archived later", compaction_id, session_id)
        done = _compaction(opened, compaction_id)
    if done is None or done.state in (Compaction.State.READY, Compaction.State.PENDING):
        return CompactionPushed("", "pending", missing)
    return CompactionPushed(done.record_id, "already" if was_there else "archived", missing)


def _compaction(opened: PushLog, compaction_id: str) -> Compaction | None:
    return Compaction.objects.filter(session=opened.session, compaction_id=compaction_id).first()


def _compaction_note(
    opened: PushLog, summary: str, removed_ids: list[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What is noted of a compaction, and which of its ids were never pushed."""
    seqs = dict.fromkeys(removed_ids)  # type: dict[str, list[int] | None]
    # What can't be an event's id is none; the database would not take it.
    for uid, seq in _seqs_of(opened, [name for name in seqs if not id_problem(name)]):
        seqs[uid] = [*(seqs[uid] or ()), seq]
    missing = tuple(name for name, found in seqs.items() if found is None)
    window = set(opened.window)
    gone = sorted(seq for found in seqs.values() for seq in found or () if seq in window)
    values: dict[str, Any] = {"text": summary, "seqs": ranges(gone), "missing": list(missing)}
    if (used := opened.session.used_tokens) is not None:
        values["usedAfter"] = max(0, used - opened.tokens_of(gone) + estimate(summary))
    return values, missing


def _seqs_of(opened: PushLog, ids: list[str]) -> Iterator[tuple[str, int]]:
    events = Event.objects.filter(session=opened.session, generation=GENERATION)
    for start in range(0, len(ids), 500):
        yield from events.filter(uid__in=ids[start : start + 500]).values_list("uid", "seq")
