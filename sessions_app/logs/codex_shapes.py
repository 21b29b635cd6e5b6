"""The kinds of Codex's rows and items: who speaks, and whether the model sees it. Pure."""

from functools import lru_cache
from typing import Any, NamedTuple

from .codex_compaction import digest_seed
from .codex_items import kind_of
from .events import AGENT, CURRENT, HARNESS, INJECTED, LOG_ONLY, MODEL, PERSON, SUMMARY, TOOL
from .rows import clean

_TYPE_LENGTH = 80

# Rows about the conversation, not in it.
BOOKKEEPING = frozenset({
    "session_meta", "turn_context", "world_state", "token_usage_record", "retained_context",
    "security_risk_score", "inter_agent_communication_metadata", "realtime_item", "state",
})  # fmt: skip
ENVELOPES = BOOKKEEPING | {"response_item", "event_msg", "compacted", "inter_agent_communication"}


class Shape(NamedTuple):
    """What the kind of an item decides. `family`: items that the same events repeat. `seed`: of its
    digest."""

    type: str
    role: str
    source: str
    surface: str | None
    family: str
    seed: int


def _shape(kind: str, role: str, source: str, surface: str | None = CURRENT, family: str = "other") -> Shape:
    seed = digest_seed(kind, role if kind == "message" else "")
    return Shape(event_type("response_item", kind), role, source, surface, family, seed)


@lru_cache(maxsize=256)
def event_type(family: str, kind: str) -> str:
    return clean(f"{family}:{kind}")[:_TYPE_LENGTH]


_MESSAGES = {
    "user": _shape("message", "user", PERSON, family="user"),
    "assistant": _shape("message", "assistant", MODEL, family="assistant"),
    "developer": _shape("message", "developer", HARNESS),
}
_CALLS = (
    "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
    "image_generation_call",
)  # fmt: skip
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
_SUMMARIES = ("compaction", "compaction_summary", "context_compaction")
_ITEMS = {
    **{kind: _shape(kind, "assistant", MODEL, family="tool") for kind in _CALLS},
    **{kind: _shape(kind, "tool", TOOL, family="tool") for kind in _OUTPUTS},
    **{kind: _shape(kind, "", SUMMARY) for kind in _SUMMARIES},
    "reasoning": _shape("reasoning", "assistant", MODEL, family="reasoning"),
    "agent_message": _shape("agent_message", "user", AGENT),
    "ghost_snapshot": _shape("ghost_snapshot", "", HARNESS, LOG_ONLY),
}
_RESULT = _ITEMS["function_call_output"]
# The items of `item_completed`, in the shape of what they repeat.
_COMPLETED = {
    "UserMessage": _MESSAGES["user"],
    "AgentMessage": _MESSAGES["assistant"],
    "Reasoning": _ITEMS["reasoning"],
    "CommandExecution": _RESULT,
    "FileChange": _RESULT,
    "McpToolCall": _RESULT,
    "Extension": _RESULT,
}
SPOKEN = {"user_message": _MESSAGES["user"], "agent_message": _MESSAGES["assistant"]}
MIRRORS = frozenset({*SPOKEN, "item_completed"})

# Where an event has a line worth showing.
PREVIEWED = {
    "user_message": "message",
    "agent_message": "message",
    "agent_reasoning": "text",
    "agent_reasoning_raw_content": "text",
    "task_complete": "last_agent_message",
    "turn_complete": "last_agent_message",
    "turn_aborted": "reason",
    "thread_name_updated": "thread_name",
    "web_search_end": "query",
    "patch_apply_end": "stdout",
    "error": "message",
}
# What a text is, told from its wording, says who wrote it.
SOURCE_OF_REASON = {"injected": INJECTED, "agent-report": AGENT, "summary": SUMMARY}


def item_shape(item: dict[str, Any]) -> Shape:
    """The shape of a response_item; whether the model sees one of an unknown kind is not known."""
    kind = kind_of(item)
    if kind != "message":
        return _ITEMS.get(kind) or _shape(kind, "", "", None)
    role = item.get("role")
    role = role if isinstance(role, str) else ""
    return _MESSAGES.get(role) or _shape(kind, role, "", None)


def completed_shape(item: dict[str, Any]) -> Shape | None:
    return _COMPLETED.get(kind_of(item))


def envelope(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The kind of a row and what it holds; rows of before the envelope are put into one."""
    kind, payload = kind_of(value), value.get("payload")
    if isinstance(payload, dict):
        return kind or "unknown", payload
    if kind in _ITEMS or kind == "message":
        return "response_item", value
    if "record_type" in value:
        return "state", value
    if is_bare_header(value):
        return "session_meta", value
    return kind or "unknown", value


def is_bare_header(value: dict[str, Any]) -> bool:
    """The first row of a log of before the envelope."""
    return "type" not in value and "id" in value and "timestamp" in value and "instructions" in value
