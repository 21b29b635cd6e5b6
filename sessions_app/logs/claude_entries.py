"""What one line of a Claude Code log is, taken by itself. Pure."""

import re
from dataclasses import dataclass
from typing import Any

from sessions_app.machine_text import classify

from .claude_blocks import as_dict, as_text, content_blocks, entry_blocks, leaves, message_content, short_id
from .events import (
    AGENT,
    CURRENT,
    HARNESS,
    INJECTED,
    LOG_ONLY,
    MODEL,
    PERSON,
    PREVIEW_CHARACTERS,
    SUMMARY,
    TOOL,
    Block,
)
from .rows import clean

CONTINUATION = "This session is being continued from a previous conversation"
SYNTHETIC = "<synthetic>"

# Lines outside the conversation, and where the text of those that have one stands.
BOOKKEEPING = {
    "summary": "summary",
    "custom-title": "customTitle",
    "ai-title": "aiTitle",
    "agent-name": "agentName",
    "last-prompt": "lastPrompt",
    "queue-operation": "content",
    "pr-link": "prUrl",
    "frame-link": "frameUrl",
    **dict.fromkeys(
        ("permission-mode", "mode", "file-history-snapshot", "file-history-delta", "worktree-state",
         "relocated", "bridge-session", "atis-latch", "started", "result"),
        "",
    ),
}  # fmt: skip
_SEEN_BY_MODEL = frozenset(
    ("hook_additional_context", "hook_blocking_error", "queued_command", "edited_text_file", "file",
     "directory", "compact_file_reference", "nested_memory", "todo_reminder", "task_reminder", "task_status",
     "skill_listing", "invoked_skills", "diagnostics", "opened_file_in_ide", "selected_lines_in_ide",
     "date_change", "mcp_instructions_delta", "agent_listing_delta", "deferred_tools_delta",
     "read_truncation_notice", "total_tokens_reminder", "batching_reminder_sent", "silent_turn_reminder")
)  # fmt: skip
_SEEN_BY_MODEL_PREFIXES = ("plan_mode", "auto_mode", "ultra_effort")
_NEVER_SEEN = frozenset(
    ("hook_system_message", "hook_cancelled", "hook_non_blocking_error", "command_permissions", "budget_usd")
)
_FOLDER = "tool-results"
_PATH = re.compile(r"[^\n]*[/\\]tool-results[/\\][^\s\"'<>]+")
_SPILLED = re.compile(r"saved to:?\s+([^\n]*?[/\\]tool-results[/\\][^\s\"'<>]*[^\s\"'<>.,:;)])")
# The sentence that names the file opens the result; what follows is a preview that may name others.
_SPILLED_WITHIN = 1_000
_MAX_PATH = 1_024
_MAX_TYPE = 80


@dataclass(slots=True)
class Entry:
    """`glance`: what the preview is cut from. `is_summary`: marked as what replaces the conversation so
    far. `is_turn`: somebody asks for something, which starts a turn."""

    type: str
    role: str = ""
    source: str = HARNESS
    surface: str | None = LOG_ONLY
    text: str = ""
    glance: str = ""
    ref: str = ""
    is_summary: bool = False
    is_turn: bool = False


def describe(fields: dict[str, Any], in_subagent: bool) -> Entry:
    """`in_subagent`: the line belongs to a sub-agent, whose prompts no person typed."""
    kind = fields.get("type")
    if kind == "assistant":
        return _assistant(fields)
    if kind == "user":
        return _user(fields, in_subagent)
    if kind == "attachment":
        return _attachment(fields, in_subagent)
    if kind == "system":
        text = as_text(fields.get("content"))
        return Entry(_type("system", fields.get("subtype")), "system", text=text, glance=text)
    if kind == "progress":
        # Most lines of some logs, repeating at length what other lines say.
        text = as_text(as_dict(fields.get("data")).get("type"))
        return Entry("progress", text=text, glance=text)
    if isinstance(kind, str) and kind in BOOKKEEPING:
        text = as_text(fields.get(BOOKKEEPING[kind]))
        return Entry(kind, text=text, glance=text)
    text = leaves(fields)
    return Entry(_type(kind, None), surface=None if text else LOG_ONLY, text=text, glance=text)


def _type(kind: Any, detail: Any) -> str:
    name = clean(as_text(kind)) or "unknown"
    return (f"{name}:{clean(detail)}" if isinstance(detail, str) else name)[:_MAX_TYPE]


def _assistant(fields: dict[str, Any]) -> Entry:
    content = message_content(fields)
    blocks = content_blocks(content)
    model = as_dict(fields.get("message")).get("model")
    source = HARNESS if model == SYNTHETIC or fields.get("isApiErrorMessage") is True else MODEL
    surface, ref = _message_surface(fields), _first(content, "tool_use", "id")
    return Entry("assistant", "assistant", source, surface, _text(blocks), _glance(blocks), ref)


def _user(fields: dict[str, Any], in_subagent: bool) -> Entry:
    content = message_content(fields)
    blocks = content_blocks(content)
    surface, text, glance = _message_surface(fields), _text(blocks), _glance(blocks)
    if "tool-result" in [block.kind for block in blocks]:
        return Entry(
            "user", "tool", TOOL, surface, text, glance, _first(content, "tool_result", "tool_use_id")
        )
    entry = Entry("user", "user", HARNESS, surface, text, glance)
    entry.is_summary = fields.get("isCompactSummary") is True
    if entry.is_summary or entry.text.startswith(CONTINUATION):
        entry.source = SUMMARY
    elif fields.get("isMeta") is True or _other_origin(fields):
        entry.source = _machine(entry.text)
    else:
        entry.source = _author(blocks, in_subagent)
    entry.is_turn = entry.source in (PERSON, AGENT)
    return entry


def _attachment(fields: dict[str, Any], in_subagent: bool) -> Entry:
    attachment = as_dict(fields.get("attachment"))
    kind = as_text(attachment.get("type"))
    blocks = entry_blocks(fields)
    entry = Entry(_type("attachment", kind), "system")
    entry.text, entry.glance = _text(blocks), _glance(blocks)
    entry.surface = _attachment_surface(kind, attachment)
    if kind == "queued_command":
        entry.role = "user"
        machine = attachment.get("commandMode", "prompt") != "prompt" or attachment.get("isMeta") is True
        if machine or fields.get("isMeta") is True or _other_origin(attachment):
            entry.source = _machine(entry.text)
        else:
            entry.source = _author(blocks, in_subagent)
        entry.is_turn = entry.source in (PERSON, AGENT)
    elif kind.startswith("hook_"):
        entry.source = _machine(entry.text)
    return entry


def _attachment_surface(kind: str, attachment: dict[str, Any]) -> str | None:
    if kind in _SEEN_BY_MODEL or kind.startswith(_SEEN_BY_MODEL_PREFIXES):
        return CURRENT
    if kind == "hook_success":
        # Only what the hook printed for the model stands in its content.
        return CURRENT if attachment.get("content") else LOG_ONLY
    return LOG_ONLY if kind in _NEVER_SEEN else None


def _message_surface(fields: dict[str, Any]) -> str:
    only_shown = (
        fields.get("isVisibleInTranscriptOnly") is True and fields.get("isCompactSummary") is not True
    )
    return LOG_ONLY if only_shown else CURRENT


def _other_origin(fields: dict[str, Any]) -> bool:
    kind = as_dict(fields.get("origin")).get("kind")
    return isinstance(kind, str) and kind != "human"


def _machine(text: str) -> str:
    return INJECTED if classify(text) == "injected" else HARNESS


def _author(blocks: list[Block], in_subagent: bool) -> str:
    """Editors and hooks put their own text next to what a person typed: one block of hers is enough."""
    if not blocks:
        return HARNESS
    reasons = [classify(block.text) for block in blocks if block.text.strip()]
    if not reasons or "" in reasons:
        return AGENT if in_subagent else PERSON
    return INJECTED if "injected" in reasons else HARNESS


def _text(blocks: list[Block]) -> str:
    if len(blocks) == 1:
        return blocks[0].text
    return "\n".join([block.text for block in blocks if block.text])


def _glance(blocks: list[Block]) -> str:
    parts = []
    for block in blocks:
        if block.name:
            parts.append(block.name)
        parts.append(block.text[: PREVIEW_CHARACTERS * 2])
    return " ".join(parts)


def _first(content: Any, kind: str, key: str) -> str:
    for item in content if isinstance(content, list) else ():
        if isinstance(item, dict) and item.get("type") == kind and item.get(key):
            return short_id(item[key])
    return ""


def spilled_files(fields: dict[str, Any], text: str) -> list[str]:
    """Files that hold a tool's output in full, where the line has its beginning only."""
    paths = [
        value
        for value in as_dict(fields.get("toolUseResult")).values()
        if isinstance(value, str) and len(value) <= _MAX_PATH and _FOLDER in value and _PATH.fullmatch(value)
    ]
    if text.find(_FOLDER, 0, _SPILLED_WITHIN) >= 0:
        paths += _SPILLED.findall(text, 0, _SPILLED_WITHIN)
    return [clean(path) for path in dict.fromkeys(paths)]
