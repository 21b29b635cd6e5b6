"""What a reader of an agent's log says: the neutral vocabulary of all importers. Pure.

A reader is fed rows in order and answers each with effects. It knows nothing of files, databases or
Memex's records; whoever feeds it carries the effects out.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from .rows import Row

CURRENT, SHADOWED, LOG_ONLY = "current", "shadowed", "log-only"
PREVIEW_CHARACTERS = 200

# Whose words an event holds (Event.source).
PERSON, MODEL, TOOL, HARNESS, SUMMARY, INJECTED, AGENT = (
    "person", "model", "tool", "harness", "summary", "injected", "agent",
)  # fmt: skip


@dataclass(slots=True)
class NewEvent:
    """An event not seen before. `lane` is "" for the session itself, else the id of an inline
    sub-agent. `surface` None = it cannot be told whether the model sees it. `uid` is the agent's id of
    the event, `ref` a tool call's id, `digest` a 32-bit checksum of its content."""

    seq: int
    row: int
    offset: int
    length: int
    type: str
    part: int = 0
    lane: str = ""
    role: str = ""
    source: str = ""
    time: int | None = None
    tokens: int = 0
    uid: str = ""
    ref: str = ""
    digest: int = 0
    surface: str | None = LOG_ONLY
    inherited: bool = False
    preview: str = ""
    # Filled by whoever carries the effects out, when what replaced it is known before it is written.
    shadowed_by: int | None = None


@dataclass(slots=True)
class Shadowed:
    """These events are no longer in the window: event `by` replaced them."""

    seqs: list[int]
    by: int
    lane: str = ""


@dataclass(slots=True)
class Restored:
    """These events are back in the window: what had replaced them was undone."""

    seqs: list[int]
    lane: str = ""


@dataclass(slots=True)
class CompactionFact:
    """A compaction (or microcompact, or prune), as far as it is known; said again when more is.

    `state`: `ready`, `pending` (summary or replacement not seen yet), `failed`. `dropped`: every event
    that left the window by it, in order, also those an earlier microcompact had cleared.
    `origin_session_id`: where it happened, if a replayed prefix brought it here."""

    compaction_id: str
    kind: str  # compaction | microcompact | prune
    state: str
    at_seq: int
    dropped: list[int] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    summary_seq: int | None = None
    origin_session_id: str = ""
    trigger: str = ""
    tokens_before: int | None = None
    tokens_after: int | None = None
    provider: str = ""
    model: str = ""
    confirmed: bool = True
    opaque: bool = False
    time: int | None = None
    lane: str = ""


@dataclass(slots=True)
class SessionFact:
    """What a row says of the session itself; later facts win, field by field. Keys: title, cwd, model,
    context_window, used_tokens, parent_id, relation (subagent | fork), version."""

    values: dict[str, Any]
    lane: str = ""


@dataclass(slots=True)
class FileRef:
    """A file the log points to, absolute or relative to the agent's home."""

    path: str
    row: int


@dataclass(slots=True)
class RowWarning:
    row: int
    code: str
    message: str


Effect = NewEvent | Shadowed | Restored | CompactionFact | SessionFact | FileRef | RowWarning


@dataclass(slots=True)
class Known:
    """An event that was read in an earlier run: all that a reader needs to go on."""

    seq: int
    uid: str
    ref: str
    digest: int
    lane: str
    surface: str | None
    type: str
    role: str


@dataclass(slots=True)
class Head:
    """What the first rows of a file tell, enough to list a session without reading it."""

    agent: str
    session_id: str = ""
    cwd: str = ""
    started_at: int | None = None
    parent_id: str = ""
    relation: str = ""
    version: str = ""


class Reader(Protocol):
    """One reads one generation of one session, from its first row or from where `state` was taken.

    Feeding the same rows in any number of runs gives the same effects, so that an import that was
    killed, one that follows a growing log, and a rebuild end in the same rows."""

    agent: ClassVar[str]

    def feed(self, row: Row) -> list[Effect]: ...

    def state(self) -> dict[str, Any]:
        """JSON-able, small: what cannot be had again from the known events."""
        ...


@dataclass(slots=True)
class Block:
    """A piece of an event's content. `kind`: text | reasoning | tool-call | tool-result | image | file |
    opaque | injected | other. `text` is complete, never clipped. `name`: tool name, media type, file name."""

    kind: str
    text: str = ""
    name: str = ""
    is_error: bool = False


class LogFormat(Protocol):
    """One agent's log format; the registry holds one a format."""

    agent: str

    def head(self, rows: Iterable[Row], path: str) -> Head | None:
        """None unless the rows carry this format's positive signature. `path` helps with ids only."""
        ...

    def reader(self, head: Head, state: dict[str, Any] | None, known: Iterable[Known]) -> Reader: ...

    def blocks(self, raw: bytes, part: int) -> list[Block]:
        """The content of part `part` of a row; [] when there is none or it is damaged."""
        ...
