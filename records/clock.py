"""Time as the store keeps it: integer milliseconds UTC. Pure."""

import time
from datetime import UTC, datetime


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def iso_to_ms(text: str) -> int:
    """A date or time in ISO 8601; without a zone it is UTC. ValueError when it is neither."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
