"""Whose words a DSH event holds, and what it is about in a line. Pure."""

from typing import Any

from sessions_app.machine_text import classify

from .dsh_blocks import ROLES
from .dsh_packed import CHUNK
from .dsh_values import as_dict, as_list, as_name, as_text
from .events import AGENT, HARNESS, INJECTED, MODEL, PERSON, PREVIEW_CHARACTERS, SUMMARY, TOOL, Block
from .text import preview

_CHECKPOINT = "compact-checkpoint"
_SOURCES = {
    "model": MODEL,
    "tool": TOOL,
    _CHECKPOINT: SUMMARY,
    "memory-recall": INJECTED,
    "agent-message": AGENT,
    "subagent-settled": AGENT,
}
# For rows that do not say where they come from.
_SOURCES_BY_TYPE = {
    "assistant/message": MODEL,
    "tool/result": TOOL,
    "tool/call": MODEL,
    "tool/ptc-dispatch": TOOL,
    "tool/code-dispatch": TOOL,
    "compaction/summary": SUMMARY,
    "compact/summary": SUMMARY,
    CHUNK: MODEL,
}
_READ_AS = {"injected": INJECTED, "summary": SUMMARY, "agent-report": AGENT}
_ROLES = {"tool/call": "assistant", "tool/ptc-dispatch": "tool", "tool/code-dispatch": "tool", **ROLES}
# The fields of rows without content that say in a line what happened.
_NOTES = {
    "session/title": ("title",),
    "tool/call": ("name", "arguments"),
    "tool/ptc-dispatch-start": ("name",),
    "tool/code-dispatch-start": ("name",),
    "command/run": ("name", "args"),
    "command/done": ("text",),
    "compaction/end": ("error",),
    "compact/end": ("error",),
}
# Some more than a preview holds, for white space is squeezed.
_GIST_CHARACTERS = PREVIEW_CHARACTERS + 40
_GIST_ORDER = {"tool-call": 0, "tool-result": 1, "reasoning": 2, "file": 3, "image": 4}


def role_of(kind: str) -> str:
    return _ROLES.get(kind, "")


def default_source(kind: str) -> str:
    return _SOURCES_BY_TYPE.get(kind, HARNESS)


def message_source(kind: str, message: dict[str, Any], blocks: list[Block], *, asked_by_agent: bool) -> str:
    """`asked_by_agent`: what seems to be the person here is the parent of a sub-agent."""
    named = _source_kind(message)
    if named in _SOURCES:
        return _SOURCES[named]
    if ROLES.get(kind) != "user":
        return default_source(kind)
    read_as = classify("\n".join(block.text for block in blocks if block.kind == "text"))
    if read_as or named != "user":
        return _READ_AS.get(read_as, HARNESS)
    # A client's id is there only when a person's program sent it.
    is_asked_by_agent = asked_by_agent and "rpcId" not in as_dict(message.get("source"))
    return AGENT if is_asked_by_agent else PERSON


def is_checkpoint(message: dict[str, Any]) -> bool:
    return _source_kind(message) == _CHECKPOINT


def _source_kind(message: dict[str, Any]) -> str:
    """Up to format 3 one kind `plugin` stands for all producers, and the plugin's name for the kind."""
    source = as_dict(message.get("source"))
    kind = as_text(source.get("kind"))
    if kind != "plugin":
        return kind
    plugin = as_text(source.get("plugin"))
    return _CHECKPOINT if plugin == "compact" else plugin


def call_id(message: dict[str, Any]) -> str:
    """Of the call that a tool's message answers."""
    return (
        as_name(as_dict(message.get("source")).get("callId"))
        or as_name(message.get("toolCallId") or message.get("callId"))
        or next((as_name(as_dict(item).get("toolCallId")) for item in as_list(message.get("content"))), "")
    )


def note(kind: str, data: dict[str, Any]) -> str:
    if kind == "turn/end":
        return preview(as_text(as_dict(data.get("reason")).get("kind")))
    words = [as_text(data.get(key))[:PREVIEW_CHARACTERS] for key in _NOTES.get(kind, ())]
    return preview(" ".join(words)) if words else ""


def gist(blocks: list[Block]) -> str:
    """The text that tells best what an event is about, on one line."""
    best: Block | None = None
    for block in blocks:
        if block.kind == "text" and block.text:
            if not block.text.endswith("<compacted-summary>"):
                return preview(block.text[:_GIST_CHARACTERS])
        elif best is None or _GIST_ORDER.get(block.kind, 9) < _GIST_ORDER.get(best.kind, 9):
            best = block
    if best is None:
        return ""
    named = f"{best.name} {best.text[:PREVIEW_CHARACTERS]}"
    return preview(named if best.kind == "tool-call" else best.text[:_GIST_CHARACTERS])
