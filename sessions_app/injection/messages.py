"""What is said to an agent, and how it is marked as ours. Pure.

Whatever stands in a record was said by somebody else: it is put in as one line, with nothing in it that an
agent could take for a delimiter, below a line that says that it is a record and not an instruction.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

SOURCE_KIND = "memory-recall"
CHECKPOINT, CATALOG, NOTICE, RECALL, EVICTION = (
    "checkpoint",
    "catalog",
    "capacity-notice",
    "recall",
    "l1-eviction",
)
TAG = "memex-context"
# Where an agent keeps what we said in its log, the id tells which message it was.
_MESSAGE_ID = re.compile(rb"msg_[0-9a-f]{20}")
_MARKS = (TAG.encode(), SOURCE_KIND.encode())

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\s]+")
_TAG_LIKE = re.compile(r"<(?=[/!?A-Za-z])")
_LEAD = re.compile(r"\[(?=(?:MEMORY|EXTRA CONTEXT)\b)")


@dataclass(frozen=True)
class Message:
    """One addition. `text` stands alone; `wrapped` is for agents that put it into a conversation as text."""

    form: str
    text: str
    record_ids: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    seq_start: int | None = None
    seq_end: int | None = None
    id: str = field(default_factory=lambda: f"msg_{hashlib.sha256(secrets.token_bytes(32)).hexdigest()[:20]}")

    @property
    def wrapped(self) -> str:
        return f'<{TAG} form="{self.form}" id="{self.id}">\n{self.text}\n</{TAG}>'

    def as_json(self) -> dict[str, Any]:
        source = {
            "kind": SOURCE_KIND,
            "form": self.form,
            "version": 1,
            "recordIds": list(self.record_ids),
            "levels": list(self.levels),
            "seqStart": self.seq_start,
            "seqEnd": self.seq_end,
        }
        return {
            "id": self.id,
            "role": "user",
            "content": [{"type": "text", "text": self.text}],
            "durable": False,
            "source": {name: value for name, value in source.items() if value not in (None, [])},
        }


def one_line(text: str, limit: int) -> str:
    """`text` as it may stand in a message: at most `limit` characters of one line."""
    line = _CONTROL.sub(" ", text).strip()
    line = _LEAD.sub("(", _TAG_LIKE.sub("‹", line))
    return line if len(line) <= limit else line[: max(0, limit - 1)].rstrip() + "…"


def messages_in(log: bytes) -> list[str]:
    """The ids of our messages in a part of a log."""
    if not any(mark in log for mark in _MARKS):
        return []
    return [found.decode() for found in dict.fromkeys(_MESSAGE_ID.findall(log))]


def amount(tokens: int) -> str:
    """12,345 -> 12.3k."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 1_000_000:
        return f"{tokens / 1_000:.1f}k"
    return f"{tokens / 1_000_000:.1f}M"
