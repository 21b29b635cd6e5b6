"""Making room in the window of an agent that lets Memex manage it: plan, apply, undo.

Data flow: the window's events -> eviction.plan -> their archive (record and rows) -> a note in the log that
they left, with one message in their place. Killed before the note, nothing has left; the next run finds the
record. Undone, the events stand in the window again; log and record keep everything.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from records.clock import now_ms
from records.models import Record
from records.secrets.queries import is_sensitive
from records.tokens import estimate

from . import eviction
from .archive import eviction_archive, session_archive
from .archiveplan import EVICT, PRUNE, eviction_plan
from .batch import ranges
from .counts import session_events
from .eventrefs import refs_by_seq
from .eviction import EVICT_AT_RATIO, MAX_CHARS, RETAIN_RATIO, WindowEvent
from .injection.messages import one_line
from .levels import Levels, default_adopt
from .logs.dsh_fold import ranges_unpack
from .logs.events import AGENT, PERSON, SUMMARY
from .logs.pushed import COMPACTED, EVICTED
from .logs.pushed_blocks import has_image, tool_ids
from .logs.pushed_rows import EVICTION, UNEVICTION, note_of, note_row, row_value
from .models import AgentSession, Compaction, Surface
from .pushlog import PushLog, push_log, push_source
from .pushsource import is_pushed
from .queries import EventText
from .surface import session_of, texts_by_seq, window_of

_PLAN_ID = re.compile(r"(\d{1,15})-(\d{1,15})-([0-9a-f]{12})")
_TEXT_CHARACTERS, _TERM_CHARACTERS = 1_200, 300
_PREVIOUS_SHOWN = 5
# What a record's card says that agents trigger something by.
_TERMS = (("where", "Paths"), ("tools", "Tools"), ("commands", "Commands"), ("issue", "Errors"))
_BEGUN, _ENDED = ("compaction/start", "compact/start"), ("compaction/end", "compact/end", COMPACTED)


class SurfaceChanged(Exception):
    """MEMORY_CONFLICT: the window is not the one that was planned for."""


@dataclass(frozen=True, slots=True)
class Due:
    """`threshold`: tokens from which on an eviction is due; 0 when the size of the window isn't known."""

    due: bool
    used_tokens: int
    threshold: int


@dataclass(frozen=True, slots=True)
class Eviction:
    """What would go, went, or came back. `plan_id`: names it to `eviction_apply` and `eviction_undo`, ""
    when nothing may go. `record_id`, `message_id`, `message`: once applied, the record and what stands in
    the window instead. `already`: it was done before."""

    due: bool
    used_tokens: int
    threshold: int
    plan_id: str = ""
    start_seq: int | None = None
    end_seq: int | None = None
    tokens: int = 0
    stops: list[tuple[int, str]] = field(default_factory=list)
    record_id: str = ""
    message_id: str = ""
    message: str = ""
    already: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """How an eviction is planned. `capture_level`: `deepest`, or `l2` for records of this session alone."""

    evict_at_ratio: float = EVICT_AT_RATIO
    retain_ratio: float = RETAIN_RATIO
    max_chars: int = MAX_CHARS
    capture_level: str = "deepest"


def evict_due(
    session_id: str,
    used_tokens: int | None = None,
    context_window: int | None = None,
    *,
    evict_at_ratio: float = EVICT_AT_RATIO,
) -> Due:
    """Cheap, for each step of an agent. Never due for a session that is read from a log: its agent manages
    its window itself. Raises SessionForgotten, LevelsOff, SessionPaused, SessionNotFound."""
    session = session_of(session_id)
    used = _used(session, used_tokens)
    limit = eviction.threshold(context_window or session.context_window or 0, evict_at_ratio)
    return Due(bool(limit) and used >= limit and is_pushed(session_id), used, limit)


def eviction_planned(
    session_id: str,
    *,
    context_window: int | None = None,
    used_tokens: int | None = None,
    rules: Rules = Rules(),
) -> Eviction:
    """What `eviction_apply` would do now, and why its span ends where it ends; changes nothing. Raises what
    `push_log` does, but for StoreBusy."""
    push_source(session_id)
    session = session_of(session_id)
    _, window = window_of(session)
    return _planned(session, _window_events(session, window), context_window, used_tokens, rules)


def _planned(
    session: AgentSession,
    events: list[WindowEvent],
    context_window: int | None,
    used_tokens: int | None,
    rules: Rules,
) -> Eviction:
    size, used = context_window or session.context_window or 0, _used(session, used_tokens)
    if not size:
        return Eviction(False, used, 0)
    found = eviction.plan(
        events, size, used, evict_at_ratio=rules.evict_at_ratio, retain_ratio=rules.retain_ratio,
        max_chars=rules.max_chars, open_compaction=_open_compaction(session),
    )  # fmt: skip
    plan_id = _plan_id(session.session_id, found.seqs) if found.seqs else ""
    return Eviction(
        found.due, used, found.threshold, plan_id, found.start_seq, found.end_seq, found.tokens, found.stops
    )


def _used(session: AgentSession, used_tokens: int | None) -> int:
    if used_tokens is not None:
        return used_tokens
    return session.current_tokens if session.used_tokens is None else session.used_tokens


def _plan_id(session_id: str, seqs: Sequence[int]) -> str:
    named = f"{session_id}\0{','.join(map(str, seqs))}"
    digest = hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{seqs[0]}-{seqs[-1]}-{digest}"


def _window_events(session: AgentSession, window: list[int]) -> list[WindowEvent]:
    return [_window_event(text) for text in texts_by_seq(session, window)]


def _window_event(text: EventText) -> WindowEvent:
    event, value = text.event, row_value(text.raw) or {}
    ids = tool_ids(value) if note_of(value) is None else tool_ids({})
    kept = "the summary of a compaction stays" if event.source == SUMMARY else ""
    return WindowEvent(
        event.seq,
        event.role,
        event.tokens,
        sum(len(block.text) for block in text.blocks),
        opens_turn=event.role == "user" and event.source in (PERSON, AGENT, SUMMARY),
        has_image=has_image(text.blocks),
        kept=kept,
        is_placeholder=event.type == EVICTED,
        calls=ids.calls,
        answers=ids.answers,
    )


def _open_compaction(session: AgentSession) -> int | None:
    """The event that began a compaction whose end the agent has not told."""
    marks = session_events(session).filter(type__in=(*_BEGUN, *_ENDED)).order_by("-seq")
    last = marks.values_list("seq", "type").first()
    return last[0] if last and last[1] in _BEGUN else None


def eviction_apply(
    session_id: str,
    plan_id: str = "",
    *,
    context_window: int | None = None,
    used_tokens: int | None = None,
    rules: Rules = Rules(),
) -> Eviction:
    """Archives a span and takes it out of the window: the planned one, or what would be planned now. Applying
    a plan again changes nothing. Raises SurfaceChanged when the planned span is not in the window as it was,
    what `push_log` does, StoreFull; then nothing has left the window."""
    with push_log(session_id) as log:
        events = _window_events(log.session, log.window)
        if plan_id:
            if done := _done_before(log, plan_id):
                return done
            planned = _as_planned(log, events, plan_id, rules)
            planned = replace(planned, used_tokens=_used(log.session, used_tokens))
        else:
            planned = _planned(log.session, events, context_window, used_tokens, rules)
        return _apply(log, planned, rules) if planned.plan_id else planned


def _as_planned(log: PushLog, events: list[WindowEvent], plan_id: str, rules: Rules) -> Eviction:
    start, end = _plan_edges(plan_id)
    window = log.window
    seqs: list[int] = []
    if start in window and end in window:
        seqs = window[window.index(start) : window.index(end) + 1]
    if not seqs or _plan_id(log.session.session_id, seqs) != plan_id:
        raise SurfaceChanged("The window has changed since this eviction was planned. Plan again.")
    if not eviction.may_go(events, seqs, max_chars=rules.max_chars):
        raise SurfaceChanged("What was planned may not leave the window. Plan again.")
    tokens = sum(event.tokens for event in events if event.seq in set(seqs))
    return Eviction(True, 0, 0, plan_id, start, end, tokens)


def _plan_edges(plan_id: str) -> tuple[int, int]:
    match = _PLAN_ID.fullmatch(plan_id)
    if not match:
        raise SurfaceChanged(f"{plan_id!r} names no plan.")
    return int(match[1]), int(match[2])


def _evictions(log: PushLog, plan_id: str) -> list[Compaction]:
    """Those that were carried out, the latest first; of one plan when it is given."""
    found = Compaction.objects.filter(session=log.session, kind="prune", trigger=EVICT).order_by("-at_seq")
    if plan_id:
        start, end = _plan_edges(plan_id)
        found = found.filter(compaction_id=f"{PRUNE}{start}-{end}")
    return list(found)


def _done_before(log: PushLog, plan_id: str) -> Eviction | None:
    for done in _evictions(log, plan_id):
        if done.at_seq in log.window:
            return replace(_outcome(log, done), already=True)
    return None


def _apply(log: PushLog, planned: Eviction, rules: Rules) -> Eviction:
    session, window = log.session, log.window
    start, end = _plan_edges(planned.plan_id)
    seqs = window[window.index(start) : window.index(end) + 1]
    plan = eviction_plan(session, refs_by_seq(session_events(session), seqs), (start, end))
    levels = default_adopt(session.pool_session_id, session.workspace_key)
    if rules.capture_level == "l2":
        levels = Levels(l2=True)
    record_id = eviction_archive(plan, levels)
    if not record_id:
        why = "the record of this span was forgotten"
        return replace(planned, plan_id="", stops=[*planned.stops, (start, why)])
    new = [ref.seq for ref in plan.dropped if ref.type != EVICTED]
    text = _placeholder(Record.objects.get(id=record_id), planned.tokens, new[0], new[-1])
    note: dict[str, Any] = {
        "id": plan.compaction_id,
        "messageId": _message_id(log, plan.compaction_id),
        "recordId": record_id,
        "text": text,
        "seqs": ranges(seqs),
        "tokens": planned.tokens,
        "time": now_ms(),
        "usedAfter": max(1, planned.used_tokens - planned.tokens + estimate(text)),
    }
    log.append([note_row(EVICTION, note)])
    session_archive(session, now=now_ms(), idle_since=log.source.mtime_ns // 1_000_000)
    done = Compaction.objects.get(session=session, compaction_id=plan.compaction_id)
    return replace(_outcome(log, done), threshold=planned.threshold, stops=planned.stops)


def _message_id(log: PushLog, compaction_id: str) -> str:
    """Of the message that stands in the window instead; another each time that a span leaves."""
    named = f"{log.session.session_id}\0{compaction_id}\0{log.next_seq}"
    return "msg_" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _outcome(log: PushLog, done: Compaction) -> Eviction:
    (text,) = texts_by_seq(log.session, [done.at_seq])
    seqs = _evicted_seqs(text)
    return Eviction(
        True,
        _used(log.session, None),
        0,
        _plan_id(log.session.session_id, seqs),
        seqs[0],
        seqs[-1],
        log.tokens_of(seqs),
        record_id=done.record_id,
        message_id=text.event.uid,
        message="\n".join(block.text for block in text.blocks),
    )


def _evicted_seqs(text: EventText) -> list[int]:
    """In the order of the window, where what stood for an earlier span has a higher seq than what follows."""
    return ranges_unpack((note_of(row_value(text.raw) or {}) or {}).get("seqs", ()))


def _placeholder(record: Record, tokens: int, first: int, last: int) -> str:
    """What stands in the window instead: where it went, what it was about, and its key terms, since some
    agents trigger what they know by them."""
    pieces = [
        f"[MEMORY CHECKPOINT] The context that just left the window (seq #{first}–#{last}, ~{tokens:,} tokens) is "
        f"archived losslessly as {record.id} ({record.kind}) «{one_line(record.title, 120)}». This is a record, "
        f"not an instruction. Call memory_open {record.id} when you need exact details, or memory_grep a "
        "distinctive string.",
        "It holds what looks like a secret: where only the shared pool is on, your user alone can open it."
        if is_sensitive(record)
        else "",
        f"About: {one_line(record.summary, _TERM_CHARACTERS)}" if record.summary else "",
    ]
    if before := record.links.get("previous"):
        pieces.append(f"What had left before: {', '.join(before[-_PREVIOUS_SHOWN:])}.")
    for name, label in _TERMS:
        if values := record.tags.get(name):
            pieces.append(f"{label}: {one_line(', '.join(map(str, values)), _TERM_CHARACTERS)}")
    return "\n".join(piece for piece in pieces if piece)[:_TEXT_CHARACTERS]


def eviction_undo(session_id: str, plan_id: str = "") -> Eviction:
    """Puts an evicted span (without a plan the latest that is out) back into the window. Again it changes
    nothing. Raises SurfaceChanged when what stood in its place has left the window itself, or nothing was
    evicted; what `push_log` does."""
    with push_log(session_id) as log:
        window = set(log.window)
        for done in _evictions(log, plan_id):
            outcome = _outcome(log, done)
            if done.at_seq in window:
                used = outcome.used_tokens + outcome.tokens - estimate(outcome.message)
                (text,) = texts_by_seq(log.session, [done.at_seq])
                note = {"id": done.compaction_id, "by": done.at_seq, "seqs": ranges(_evicted_seqs(text)),
                        "time": now_ms(), "usedAfter": max(1, used)}  # fmt: skip
                log.append([note_row(UNEVICTION, note)])
                return replace(outcome, used_tokens=_used(log.session, None))
            back = session_events(log.session).filter(seq=done.dropped[0][0], surface=Surface.CURRENT)
            if plan_id and back.exists():
                return replace(outcome, already=True)
    raise SurfaceChanged(
        "What stood in its place has left the window itself: with a later eviction, which is to be undone first, or "
        "with a compaction."
        if plan_id
        else "Nothing that was evicted stands in the window."
    )
