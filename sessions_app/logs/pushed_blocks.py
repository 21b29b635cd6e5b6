"""The content of pushed events, in whatever shape an agent's maker chose. Pure.

Agents pass on what their model's API speaks: a string, or blocks as Anthropic, OpenAI (chat and
responses) and DSH name them. What isn't known is kept as it is and costs nothing.
"""

from typing import Any, NamedTuple

from sessions_app.machine_text import classify

from .claude_blocks import as_dict, as_list, as_text, compact_json
from .events import Block

_TEXTS = frozenset(("text", "input_text", "output_text", "summary_text", "refusal", "markdown"))
_REASONING = frozenset(("reasoning", "thinking", "redacted_thinking", "reasoning_text"))
CALLS = frozenset(
    ("tool-call", "tool_call", "tool_use", "function_call", "custom_tool_call", "server_tool_use",
     "local_shell_call", "web_search_call", "tool_search_call", "image_generation_call", "mcp_call")
)  # fmt: skip
RESULTS = frozenset(
    ("tool-result", "tool_result", "function_call_output", "custom_tool_call_output", "tool_search_output",
     "tool_output")
)  # fmt: skip
_IMAGES = frozenset(("image", "image_url", "input_image"))
_FILES = frozenset(("file", "input_file", "document", "input_audio", "audio", "video"))
_CALL_IDS = ("toolCallId", "tool_call_id", "call_id", "callId", "id")
_RESULT_IDS = ("toolCallId", "tool_call_id", "tool_use_id", "call_id", "callId")
_ARGUMENTS = ("arguments", "input", "args", "parameters", "action")
_OUTPUTS = ("content", "output", "result", "text")


class ToolIds(NamedTuple):
    """The tool calls that an event makes, and those that it answers."""

    calls: frozenset[str]
    answers: frozenset[str]


def event_blocks(event: dict[str, Any]) -> list[Block]:
    kind = as_text(event.get("type"))
    if kind in CALLS and event.get("content") is None:
        return [_call(event)]
    if is_result(event):
        return _result(event)
    if kind == "reasoning" and event.get("content") is None and event.get("text") is None:
        return [Block("reasoning", _joined(_blocks(event.get("summary"))))]
    content = event.get("content")
    blocks = _blocks(event.get("text") if content is None else content)
    for name in ("reasoning_content", "reasoning"):
        if isinstance(event.get(name), str) and event[name]:
            blocks.insert(0, Block("reasoning", event[name]))
    blocks += [_call(as_dict(call)) for call in _own_calls(event)]
    return blocks


def is_result(event: dict[str, Any]) -> bool:
    """The event as a whole is what a tool gave."""
    kind, role = as_text(event.get("type")), event.get("role")
    return kind in RESULTS or kind == "tool/result" or role in ("tool", "function")


def has_content(event: dict[str, Any]) -> bool:
    """Whether there is anything in it that somebody said, or that was called or given."""
    if any(event.get(name) not in (None, "", []) for name in ("content", "text", "tool_calls")):
        return True
    return as_text(event.get("type")) in CALLS | RESULTS | {"reasoning"}


def tool_ids(event: dict[str, Any]) -> ToolIds:
    calls: set[str] = set()
    answers: set[str] = set()
    if as_text(event.get("type")) in CALLS:
        calls.add(_id(event, _CALL_IDS[:-1]) or _id(event, ("id",)))
    if is_result(event):
        answers.add(_id(event, _RESULT_IDS))
    for item in (*as_list(event.get("content")), *_own_calls(event)):
        fields = as_dict(item)
        kind = fields.get("type")
        if kind in RESULTS or "tool_use_id" in fields:
            answers.add(_id(fields, _RESULT_IDS))
        elif kind in CALLS or "function" in fields:
            calls.add(_id(fields, _CALL_IDS))
    named = as_text(event.get("toolCallId"))
    if named and not answers and event.get("role") == "assistant":
        calls.add(named)
    return ToolIds(frozenset(calls - {""}), frozenset(answers - {""}))


def has_image(blocks: list[Block]) -> bool:
    return any(block.kind == "image" for block in blocks)


def _own_calls(event: dict[str, Any]) -> list[Any]:
    return as_list(event.get("tool_calls")) or as_list(event.get("toolCalls"))


def _id(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := as_text(fields.get(name)))), "")


def _blocks(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [_text(content)] if content else []
    items = content if isinstance(content, list) else [content]
    blocks: list[Block] = []
    for item in items:
        if item is not None:
            _block_add(blocks, item)
    return blocks


def _text(text: str) -> Block:
    # A whole block that Memex put there; beside a person's words it stands in a block of its own.
    return Block("injected", text) if classify(text) == "injected" else Block("text", text)


def _block_add(blocks: list[Block], item: Any) -> None:
    if isinstance(item, str):
        blocks.append(_text(item))
        return
    fields = as_dict(item)
    kind, text = as_text(fields.get("type")), fields.get("text", fields.get("refusal"))
    if isinstance(text, str) and (kind in _TEXTS or not kind):
        blocks.append(_text(text))
    elif kind in _REASONING:
        written = text if isinstance(text, str) else as_text(fields.get("thinking"))
        blocks.append(Block("reasoning", written or _joined(_blocks(fields.get("summary")))))
    elif kind in RESULTS or "tool_use_id" in fields:
        blocks += _result(fields)
    elif kind in CALLS or isinstance(fields.get("function"), dict):
        blocks.append(_call(fields))
    elif kind in _IMAGES:
        blocks.append(Block("image", name=_media(fields) or "image"))
    elif kind in _FILES:
        blocks.append(_file(fields, kind))
    else:
        blocks.append(Block("other", compact_json(item), kind))


def _call(fields: dict[str, Any]) -> Block:
    function = as_dict(fields.get("function"))
    fields = function or fields
    arguments = next((fields[name] for name in _ARGUMENTS if name in fields), "")
    text = arguments if isinstance(arguments, str) else compact_json(arguments)
    names = (fields.get("name"), fields.get("toolName"), fields.get("type"))
    return Block("tool-call", text, next((as_text(name) for name in names if as_text(name)), ""))


def _result(fields: dict[str, Any]) -> list[Block]:
    """One block of all the text, then what is no text."""
    given = next((fields[name] for name in _OUTPUTS if fields.get(name) is not None), None)
    is_error = any(fields.get(name) is True for name in ("isError", "is_error"))
    if isinstance(given, list) and any(as_dict(item).get("type") in RESULTS for item in given):
        blocks = _blocks(given)
        for block in blocks:
            block.is_error = block.is_error or is_error
        return blocks
    parts = _blocks(given)
    text = _joined([part for part in parts if part.kind not in ("image", "file")])
    rest = [part for part in parts if part.kind in ("image", "file")]
    return [Block("tool-result", text, as_text(fields.get("name")), is_error), *rest]


def _joined(blocks: list[Block]) -> str:
    return "\n".join([block.text for block in blocks])


def _file(fields: dict[str, Any], kind: str) -> Block:
    source = as_dict(fields.get("source"))
    text = as_text(source.get("data")) if source.get("type") == "text" else ""
    inner = as_dict(fields.get("attachment")) or as_dict(fields.get("file")) or fields
    names = (inner.get("title"), inner.get("name"), inner.get("filename"))
    name = next((as_text(value) for value in names if as_text(value)), "")
    return Block("file", text, name or _media(fields) or kind)


def _media(fields: dict[str, Any]) -> str:
    source, attachment = as_dict(fields.get("source")), as_dict(fields.get("attachment"))
    found = (source.get("media_type"), attachment.get("mediaType"), fields.get("mediaType"))
    return next((as_text(value) for value in found if as_text(value)), "")
