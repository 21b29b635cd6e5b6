"""What an agent is told before its next step: receipts, catalog, capacity notice, recall, in this order.

Data flow: the state of the session's window -> what there is to say, as far as it fits -> the state as it will
be, written only if nobody else has said something meanwhile. A step with nothing to say writes nothing.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from django.conf import settings

from records.clock import now_ms
from records.services import record_mark_read
from sessions_app.access import Access
from sessions_app.figures import pool_figures
from sessions_app.opening import KnownSession, session_handle
from sessions_app.workspaces import is_paused

from .budget import UNLIMITED, Budget
from .listing import catalog_message
from .messages import CHECKPOINT, RECALL, Message
from .notice import notice_message
from .recall import digest, recall_query, recalled
from .receipts import Pending, receipts_delivered, receipts_offered, receipts_pending
from .state import State, state_of, state_save
from .texts import recall_text, receipt_text

# How often what there is to say is worked out anew because another request has said something meanwhile.
ATTEMPTS = 3
LOG_LAG_MS = 60_000


@dataclass
class _Draft:
    """`state`: as it will be when these messages have been said."""

    state: State
    messages: list[Message] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)

    def say(self, message: Message | None, state: State, budget: Budget) -> None:
        """What doesn't fit is not said, and counts as not said."""
        if message is None:
            self.state = state
        elif budget.holds([*self.messages, message]):
            self.messages.append(message)
            self.state = replace(state.showing(message.record_ids), injected_at=now_ms())


def prestep(
    access: Access,
    *,
    text: str = "",
    ack: Collection[str] = (),
    dry_run: bool = False,
    budget: Budget = UNLIMITED,
    keeps_all: bool = False,
) -> list[Message]:
    """`text`: what a person typed last. `ack`: ids of messages that have reached the agent. `dry_run` changes
    nothing. `keeps_all`: the agent keeps what it is told, and its log shows so a little later: the catalog comes
    once a window and not at each change, a receipt not again within a minute."""
    session = access.session
    if session is None or not access.levels.any or _is_paused(session):
        return []
    if ack and not dry_run:
        receipts_delivered(ack, session_id=session.session_id)
    for _ in range(ATTEMPTS):
        before = state_of(session.session_id)
        draft = _draft(access, session, before, text, budget, keeps_all=keeps_all)
        if dry_run or (not draft.messages and draft.state == before):
            return draft.messages
        if state_save(before, draft.state):
            _note_said(draft)
            return draft.messages
    return []


def _is_paused(session: KnownSession) -> bool:
    return is_paused((session.session_id, session.pool_id), session.workspace_key)


def _draft(
    access: Access, session: KnownSession, before: State, text: str, budget: Budget, *, keeps_all: bool
) -> _Draft:
    handle = session_handle(session)
    pools = pool_figures(access)
    draft = _Draft(before)
    since = now_ms() - LOG_LAG_MS if keeps_all else None
    draft.pending = receipts_pending(session.session_id, offered_before=since)
    if draft.pending:
        draft.say(_receipt(draft.pending, handle), draft.state, budget)
    query = recall_query(text, before) if settings.MEMEX_AUTO_RECALL else ""
    if before.is_fresh or not keeps_all:
        # What answers to a prompt is worth more than the end of a list.
        reserved = settings.MEMEX_RECALL_MAX_CHARS if query else 0
        room = budget.room(draft.messages, reserved)
        listed, state = catalog_message(access, pools, draft.state, handle, room)
        draft.say(listed, replace(state, is_fresh=False) if listed else state, budget)
    draft.say(*notice_message(pools, draft.state, handle), budget)
    if query:
        draft.say(*_recall(access, draft.state, query, handle), budget)
    return draft


def _receipt(pending: list[Pending], handle: str) -> Message:
    lines = [each.line for each in pending]
    starts = [line.seq_start for line in lines if line.seq_start is not None]
    ends = [line.seq_end for line in lines if line.seq_end is not None]
    return Message(
        CHECKPOINT,
        receipt_text(lines, handle),
        tuple(line.record_id for line in lines),
        seq_start=min(starts, default=None),
        seq_end=max(ends, default=None),
    )


def _recall(access: Access, state: State, query: str, handle: str) -> tuple[Message | None, State]:
    state = replace(state, last_recall=digest(query))
    text, ids = recall_text(recalled(access, query, state), handle, settings.MEMEX_RECALL_MAX_CHARS)
    return (Message(RECALL, text, tuple(ids)) if ids else None), state


def _note_said(draft: _Draft) -> None:
    for message in draft.messages:
        if message.form == CHECKPOINT:
            receipts_offered(draft.pending, message.id)
        elif message.form == RECALL:
            record_mark_read(message.record_ids)
