"""The content of Codex's items: text for search and checksums, blocks for reading. Pure.

An item is the payload of a `response_item` row, an entry of a compaction's replacement history, or the
`item` of an `item_completed` event.
"""

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

import orjson

from .events import Block
from .rows import clean

# How a shell result reports its end, above the line "Output:".
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
_EXIT_CODE_WITHIN = 2_000
_IDENTIFIER_LENGTH = 120


def as_text(value: Any) -> str:
    """A string as it is; None as ""; anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return compact_json(value)


def compact_json(value: Any, *, sort_keys: bool = False) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
    except RecursionError:  # orjson reads a little deeper than json writes
        return "(nested too deeply)"


def kind_of(item: dict[str, Any]) -> str:
    kind = item.get("type")
    return kind if isinstance(kind, str) else ""


def identifier(value: Any) -> str:
    """An id as the store keeps it; "" if it is none."""
    if not value or not isinstance(value, str):
        return ""
    text = clean(value)
    if len(text) <= _IDENTIFIER_LENGTH:
        return text
    # Cut, two long ids with one beginning would be one.
    return f"{text[: _IDENTIFIER_LENGTH - 65]}:{hashlib.sha256(text.encode()).hexdigest()}"


def content_text(content: Any) -> str:
    """The text parts of a message's `content`, a line break between them."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts)


def item_text(item: dict[str, Any]) -> str:
    """All text of an item, by which it is counted, previewed and told from others."""
    kind = kind_of(item)
    if kind == "message":
        return content_text(item.get("content"))
    if kind == "reasoning":
        return _thought(item)
    text = item.get(_TEXT_KEYS.get(kind, ""))
    if isinstance(text, str):
        return text
    return "\n".join(block.text for block in item_blocks(item) if block.text)


# Where the text of the frequent kinds is.
_TEXT_KEYS = {
    "function_call": "arguments",
    "function_call_output": "output",
    "custom_tool_call": "input",
    "custom_tool_call_output": "output",
}


def item_blocks(item: dict[str, Any]) -> list[Block]:
    """The complete content of an item; of a kind that is not known, its JSON."""
    return _READERS.get(kind_of(item), _other)(item)


def event_blocks(event: dict[str, Any]) -> list[Block]:
    """The content of an `event_msg` payload."""
    kind, item = event.get("type"), event.get("item")
    if kind == "item_completed" and isinstance(item, dict):
        return item_blocks(item)
    if kind in ("user_message", "agent_message"):
        images = [*_list(event.get("images")), *_list(event.get("local_images"))]
        return [*_text_block(event.get("message")), *map(_image, images)]
    if kind in ("agent_reasoning", "agent_reasoning_raw_content"):
        return [Block("reasoning", as_text(event.get("text")))]
    if kind == "exec_command_end":
        return _command(event)
    if kind == "mcp_tool_call_end":
        return _mcp_end(event)
    if kind == "image_generation_end":
        return _generated_image(event)
    return _other(event)


def _parts(content: Any) -> list[Block]:
    if isinstance(content, str):
        return _text_block(content)
    return [block for part in _list(content) for block in _part(part)]


def _part(part: Any) -> list[Block]:
    if not isinstance(part, dict):
        return [Block("other", as_text(part))]
    if isinstance(part.get("text"), str):
        return _text_block(part["text"])
    kind = part.get("type")
    if kind in ("input_image", "image", "local_image"):
        return [_image(part.get("image_url") or part.get("path") or part.get("data"), part.get("mimeType"))]
    if kind == "encrypted_content":
        return [Block("opaque", "Encrypted by the provider.")]
    return [Block("other", as_text(part))]


def _text_block(text: Any) -> list[Block]:
    return [Block("text", as_text(text))] if text else []


def _image(source: Any, media_type: Any = None) -> Block:
    """Never the image itself: a data URL is megabytes of base64. A path or a link is its text."""
    source = source.get("url") if isinstance(source, dict) else source
    if not isinstance(source, str) or media_type:
        return Block("image", name=as_text(media_type) or "image")
    if source.startswith("data:"):
        return Block("image", name=source[5:100].partition(";")[0] or "image")
    return Block("image", source, "image") if len(source) < 2_000 else Block("image", name="image")


def _message(item: dict[str, Any]) -> list[Block]:
    return _parts(item.get("content"))


def _reasoning(item: dict[str, Any]) -> list[Block]:
    return [Block("reasoning", _thought(item))]


def _thought(item: dict[str, Any]) -> str:
    summary, content = content_text(item.get("summary")), content_text(item.get("content"))
    return f"{summary}\n\n{content}" if summary and content else summary or content


def _completed_reasoning(item: dict[str, Any]) -> list[Block]:
    texts = [*_list(item.get("summary_text")), *_list(item.get("raw_content"))]
    return [Block("reasoning", "\n\n".join(map(as_text, texts)))]


def _call(input_key: str, name: str = "") -> Callable[[dict[str, Any]], list[Block]]:
    def read(item: dict[str, Any]) -> list[Block]:
        return [Block("tool-call", as_text(item.get(input_key)), as_text(item.get("name")) or name)]

    return read


def _output(item: dict[str, Any]) -> list[Block]:
    output = item.get("output")
    if isinstance(output, str):
        text, failed = _result_text(output)
        return [Block("tool-result", text, is_error=failed)]
    failed = isinstance(output, dict) and output.get("success") is False
    if isinstance(output, dict):
        output = output.get("content", output)
    content = [output] if isinstance(output, dict) else output
    blocks = _parts(content)
    text = "\n".join(block.text for block in blocks if block.kind != "image")
    return [
        Block("tool-result", text, is_error=failed),
        *(block for block in blocks if block.kind == "image"),
    ]


def _result_text(output: str) -> tuple[str, bool]:
    """The text of a result and whether it failed; older shells wrap both in JSON."""
    if output.startswith('{"'):
        try:
            wrapped = orjson.loads(output)
        except ValueError:
            wrapped = {}
        if isinstance(wrapped.get("output"), str):
            metadata = wrapped.get("metadata")
            return wrapped["output"], isinstance(metadata, dict) and metadata.get("exit_code") not in (
                0,
                None,
            )
    code = _EXIT_CODE.search(output[:_EXIT_CODE_WITHIN].partition("\nOutput:")[0])
    return output, code is not None and int(code[1]) != 0


def _tools(item: dict[str, Any]) -> list[Block]:
    return [Block("tool-result", as_text(item.get("tools")))]


def _generated_image(item: dict[str, Any]) -> list[Block]:
    return [
        Block("tool-call", as_text(item.get("revised_prompt")), "image_generation"),
        Block("image", name="image/png"),
    ]


def _command(item: dict[str, Any]) -> list[Block]:
    command = item.get("command")
    return [
        Block(
            "tool-call",
            " ".join(map(as_text, command)) if isinstance(command, list) else as_text(command),
            "shell",
        ),
        Block(
            "tool-result",
            as_text(item.get("aggregated_output") or item.get("formatted_output")),
            is_error=item.get("exit_code") not in (0, None),
        ),
    ]


def _mcp_call(item: dict[str, Any]) -> list[Block]:
    result, error = item.get("result"), item.get("error")
    blocks = _parts(result.get("content")) if isinstance(result, dict) else []
    text = "\n".join(block.text for block in blocks if block.kind != "image") or as_text(error)
    failed = bool(error) or (isinstance(result, dict) and result.get("isError") is True)
    name = f"{as_text(item.get('server'))}.{as_text(item.get('tool'))}"
    return [
        Block("tool-call", as_text(item.get("arguments")), name),
        Block("tool-result", text, is_error=failed),
        *(block for block in blocks if block.kind == "image"),
    ]


def _mcp_end(event: dict[str, Any]) -> list[Block]:
    invocation, result = event.get("invocation"), event.get("result")
    call = dict(invocation) if isinstance(invocation, dict) else {}
    if isinstance(result, dict):
        call |= {"result": result.get("Ok"), "error": result.get("Err")}
    return _mcp_call(call)


def _sealed(_item: dict[str, Any]) -> list[Block]:
    return [Block("opaque", "A summary that only the provider can read.")]


def _plan(item: dict[str, Any]) -> list[Block]:
    return _text_block(item.get("text"))


def _other(item: dict[str, Any]) -> list[Block]:
    return [Block("other", as_text(item))]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_READERS: dict[str, Callable[[dict[str, Any]], list[Block]]] = {
    "message": _message,
    "agent_message": _message,
    "reasoning": _reasoning,
    "function_call": _call("arguments"),
    "custom_tool_call": _call("input"),
    "local_shell_call": _call("action", "local_shell"),
    "web_search_call": _call("action", "web_search"),
    "tool_search_call": _call("arguments", "tool_search"),
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "tool_search_output": _tools,
    "image_generation_call": _generated_image,
    "compaction": _sealed,
    "compaction_summary": _sealed,
    "context_compaction": _sealed,
    # Items of `item_completed` events.
    "UserMessage": _message,
    "AgentMessage": _message,
    "Reasoning": _completed_reasoning,
    "CommandExecution": _command,
    "McpToolCall": _mcp_call,
    "Plan": _plan,
}
