"""`memory evict`."""

from dataclasses import asdict
from typing import Any

from sessions_app.evicting import Eviction, eviction_apply, eviction_planned, eviction_undo
from sessions_app.queries import session_get

from .answer import Answer, visible


def evict(options: dict[str, Any]) -> Answer:
    session_id = session_get(options["session"]).session_id
    figures = {"context_window": options["window"], "used_tokens": options["used"]}
    if options["undo"]:
        done = eviction_undo(session_id, options["plan_id"])
        return Answer(_as_json(done), [f"{_span(done)} is back in the window; {done.record_id} stays."])
    if options["apply"]:
        done = eviction_apply(session_id, options["plan_id"], **figures)
        if done.record_id:
            lines = [
                f"{_span(done)} left the window: {done.record_id}.",
                visible(done.message, keep_lines=True),
            ]
            return Answer(_as_json(done), lines)
        return Answer(_as_json(done), _plan_lines(done))
    planned = eviction_planned(session_id, **figures)
    return Answer(_as_json(planned), _plan_lines(planned))


def _as_json(done: Eviction) -> dict[str, Any]:
    names = {"used_tokens": "usedTokens", "plan_id": "planId", "start_seq": "startSeq", "end_seq": "endSeq",
             "record_id": "recordId", "message_id": "messageId"}  # fmt: skip
    values = {names.get(name, name): value for name, value in asdict(done).items()}
    return {**values, "stops": [{"seq": seq, "why": why} for seq, why in done.stops]}


def _span(done: Eviction) -> str:
    return f"#{done.start_seq}–#{done.end_seq} (~{done.tokens:,} tokens)"


def _plan_lines(planned: Eviction) -> list[str]:
    if not planned.threshold:
        return ["How much the window holds isn't known: give --window N."]
    figures = f"{planned.used_tokens:,} tokens used, {planned.threshold:,} is the threshold"
    stops = [f"  stops before #{seq}: {why}" for seq, why in planned.stops]
    if not planned.due:
        return [f"Nothing is due: {figures}."]
    if not planned.plan_id:
        return [f"Due ({figures}), but nothing may go.", *stops]
    return [f"Due ({figures}): {_span(planned)} would go, as plan {planned.plan_id}.", *stops]
