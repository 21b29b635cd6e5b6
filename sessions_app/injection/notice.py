"""The notice that a pool is nearly full: an agent asks its user, and compresses only after a yes."""

from dataclasses import replace

from django.conf import settings

from records.clock import now_ms
from sessions_app.figures import PoolFigures

from .messages import NOTICE, Message
from .state import State
from .texts import PoolLine, notice_text

_DAY_MS = 24 * 60 * 60 * 1000
# After a no the same notice comes again when it has become so much worse, or after a day.
_WORSE_POINTS = 5


def notice_message(
    pools: tuple[PoolFigures, PoolFigures], state: State, handle: str
) -> tuple[Message | None, State]:
    full = [
        pool
        for pool in pools
        if pool.is_on and pool.hot_tokens >= settings.MEMEX_CAPACITY_NOTICE_RATIO * pool.capacity
    ]
    now = now_ms()
    if not full or not _is_due(full, state, now):
        return None, state
    lines = [
        PoolLine(pool.level, pool.percent, pool.hot_tokens, pool.capacity, pool.cold_count) for pool in full
    ]
    percent = {pool.level: pool.percent for pool in full}
    message = Message(NOTICE, notice_text(lines, handle), levels=tuple(percent))
    return message, replace(state, noticed_at=now, noticed_percent=percent)


def _is_due(full: list[PoolFigures], state: State, now: int) -> bool:
    if state.noticed_at is None:
        return True
    since = now - state.noticed_at
    if since < settings.MEMEX_CAPACITY_NOTICE_COOLDOWN_MINUTES * 60_000:
        return False
    known = state.noticed_percent
    return since >= _DAY_MS or any(
        pool.level not in known or pool.percent >= known[pool.level] + _WORSE_POINTS for pool in full
    )
