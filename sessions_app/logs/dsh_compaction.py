"""Joins the rows that make up a DSH compaction or prune to one fact. Pure.

A summary says what is going to leave the window; the message that replaces it (the checkpoint) comes
later, or never. A prune has no id: it is known by the message that took the pruned one's place.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .dsh_blocks import content
from .dsh_fold import ranges_pack, ranges_unpack
from .dsh_values import as_count, as_dict, as_name
from .events import CompactionFact, NewEvent


@dataclass(slots=True)
class Named:
    """The events a row names as leaving the window, and those that the log does not hold."""

    seqs: list[int] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


class Compactions:
    def __init__(self, state: dict[str, Any]) -> None:
        facts = (CompactionFact(**fields) for fields in state.get("pending", ()))
        self._pending = {
            fact.compaction_id: replace(fact, dropped=ranges_unpack(fact.dropped)) for fact in facts
        }
        self._prune = CompactionFact(**state["prune"]) if state.get("prune") else None
        self._done = str(state.get("done", ""))

    def state(self) -> dict[str, Any]:
        return {
            "pending": [
                asdict(fact) | {"dropped": ranges_pack(fact.dropped)} for fact in self._pending.values()
            ],
            "prune": asdict(self._prune) if self._prune else None,
            "done": self._done,
        }

    def summary(self, event: NewEvent, data: dict[str, Any], named: Named, *, origin: str) -> CompactionFact:
        blocks = content(event.type, data)
        fact = CompactionFact(
            compaction_id=as_name(data.get("compactionId")) or f"summary:{event.seq}",
            kind="compaction",
            state="pending",
            at_seq=event.seq,
            dropped=named.seqs,
            missing=named.missing,
            summary_seq=event.seq,
            origin_session_id=origin,
            trigger=_trigger(data),
            tokens_before=as_count(data.get("shadowedTokenCount")),
            provider=as_name(data.get("provider")),
            model=as_name(data.get("model")),
            opaque=bool(blocks) and not any(block.text.strip() for block in blocks),
            time=event.time,
        )
        self._pending[fact.compaction_id] = fact
        return fact

    def end(self, event: NewEvent, data: dict[str, Any], *, origin: str) -> CompactionFact | None:
        """The fact of a compaction that was given up; None if it was not."""
        compaction_id = as_name(data.get("compactionId"))
        if not data.get("error") or not compaction_id or compaction_id == self._done:
            return None
        self._pending.pop(compaction_id, None)
        return CompactionFact(
            compaction_id=compaction_id,
            kind="compaction",
            state="failed",
            at_seq=event.seq,
            origin_session_id=origin,
            trigger=_trigger(data),
            time=event.time,
        )

    def prune(self, event: NewEvent, data: dict[str, Any], named: Named) -> None:
        self._prune = CompactionFact(
            compaction_id="",
            kind="prune",
            state="pending",
            at_seq=event.seq,
            dropped=named.seqs,
            missing=named.missing,
            trigger="auto",
            tokens_before=as_count(data.get("shadowedTokenCount")),
        )

    def prune_over(self) -> None:
        """A message that replaces nothing came: the prune was never carried out."""
        self._prune = None

    def cause(
        self, event: NewEvent, message: dict[str, Any], *, is_checkpoint: bool, origin: str
    ) -> CompactionFact:
        """What `event`, which replaces others, completes. `dropped` is what was announced to go."""
        prune, self._prune = self._prune, None
        if not is_checkpoint:
            fact = prune or CompactionFact("", "prune", "pending", event.seq, trigger="auto")
            compaction_id = f"prune:{event.uid or event.seq}"
        else:
            source = as_dict(message.get("source"))
            last = next(reversed(self._pending), "")
            compaction_id = (
                as_name(source.get("compactionId")) or last or f"checkpoint:{event.uid or event.seq}"
            )
            fact = self._pending.get(compaction_id) or CompactionFact(
                compaction_id,
                "compaction",
                "pending",
                event.seq,
                summary_seq=event.seq,
                trigger=_trigger(source),
            )
        return replace(
            fact, compaction_id=compaction_id, at_seq=event.seq, origin_session_id=origin, time=event.time
        )

    def done(self, fact: CompactionFact, dropped: list[int]) -> CompactionFact:
        """`fact`, now that its replacement stands in the window."""
        self._pending.pop(fact.compaction_id, None)
        if fact.kind == "compaction":
            self._done = fact.compaction_id
        return replace(fact, state="ready", dropped=dropped)


def _trigger(fields: dict[str, Any]) -> str:
    return "manual" if fields.get("sourceCommandId") else "auto"
