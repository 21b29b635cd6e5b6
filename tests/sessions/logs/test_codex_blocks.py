"""The content of a row, complete."""

import json

import pytest

from sessions_app.logs.codex import FORMAT
from sessions_app.logs.events import Block

from .codex_lines import SEALED, call, compacted, event, item, message, meta, output, raw, row

PNG = "data:image/png;base64," + "A" * 4_000


def blocks(line, part: int = 0) -> list[Block]:
    return FORMAT.blocks(raw([line]).rstrip(b"\n"), part)


def test_messages():
    assert blocks(message("user", "hello")) == [Block("text", "hello")]
    content = [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": PNG},
        {"type": "odd", "n": 1},
    ]
    assert blocks(item("message", role="user", content=content)) == [
        Block("text", "Look"),
        Block("image", name="image/png"),
        Block("other", '{"type":"odd","n":1}'),
    ]
    assert blocks(item("message", role="user", content="plain")) == [Block("text", "plain")]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"summary": [], "encrypted_content": "gAAAA"}, ""),
        ({"summary": [{"type": "summary_text", "text": "First."}], "content": None}, "First."),
        (
            {"summary": [{"type": "summary_text", "text": "First."}, {"text": "Second."}],
             "content": [{"type": "reasoning_text", "text": "In full."}]},
            "First.\nSecond.\n\nIn full.",
        ),
    ],
)  # fmt: skip
def test_reasoning(fields, text):
    assert blocks(item("reasoning", **fields)) == [Block("reasoning", text)]


def test_calls_are_verbatim():
    arguments = '{"command": ["bash", "-lc", "echo  a"],\n "timeout": 5}'
    patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch\n"
    assert blocks(call("call_1", arguments)) == [Block("tool-call", arguments, "shell")]
    assert blocks(item("custom_tool_call", name="apply_patch", input=patch)) == [
        Block("tool-call", patch, "apply_patch")
    ]
    search = {"type": "search", "query": "codex"}
    assert blocks(item("web_search_call", action=search)) == [
        Block("tool-call", json.dumps(search, separators=(",", ":")), "web_search")
    ]


@pytest.mark.parametrize(
    ("value", "text", "failed"),
    [
        ("a.txt", "a.txt", False),
        ('{"output":"a.txt\\n","metadata":{"exit_code":0}}', "a.txt\n", False),
        ('{"output":"no such file","metadata":{"exit_code":1}}', "no such file", True),
        ('{"outputs":"a.txt"}', '{"outputs":"a.txt"}', False),
        ('{"output":', '{"output":', False),
        (
            "Exit code: 0\nWall time: 0 seconds\nOutput:\nok",
            "Exit code: 0\nWall time: 0 seconds\nOutput:\nok",
            False,
        ),
        (
            "Chunk ID: ab\nProcess exited with code 2\nOutput:\nno",
            "Chunk ID: ab\nProcess exited with code 2\nOutput:\nno",
            True,
        ),
        ("Exit code: 0\nOutput:\nExit code: 7", "Exit code: 0\nOutput:\nExit code: 7", False),
        ({"content": "denied", "success": False}, "denied", True),
        ({"type": "input_text", "text": "a.txt"}, "a.txt", False),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", False),
        (None, "", False),
    ],
)
def test_results(value, text, failed):
    assert blocks(output("call_1", value)) == [Block("tool-result", text, is_error=failed)]


def test_an_image_among_results_is_a_placeholder():
    found = blocks(
        output("call_1", [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": PNG}])
    )
    assert found == [Block("tool-result", "seen"), Block("image", name="image/png")]


@pytest.mark.parametrize(
    "line",
    [
        item("image_generation_call", revised_prompt="a cat", result="A" * 4_000),
        event("image_generation_end", revised_prompt="a cat", result="A" * 4_000),
        event("user_message", message="Look", images=[PNG], local_images=["/tmp/a.png"]),
        event("mcp_tool_call_end", invocation={"server": "s", "tool": "t", "arguments": {}},
              result={"Ok": {"content": [{"type": "image", "data": "A" * 4_000, "mimeType": "image/png"}]}}),
    ],
)  # fmt: skip
def test_no_image_is_spelled_out(line):
    found = blocks(line)
    assert any(block.kind == "image" for block in found)
    assert all("AAAA" not in block.text + block.name for block in found)


def test_sealed_summaries():
    [block] = blocks(compacted(message("user", "not shown"), SEALED))
    assert block.kind == "opaque"
    assert "not shown" not in block.text
    assert [each.kind for each in blocks(SEALED)] == ["opaque"]


def test_events():
    assert blocks(event("agent_message", message="Done.")) == [Block("text", "Done.")]
    assert blocks(event("exec_command_end", command=["ls", "-l"], aggregated_output="a", exit_code=2)) == [
        Block("tool-call", "ls -l", "shell"),
        Block("tool-result", "a", is_error=True),
    ]
    mcp = {
        "invocation": {"server": "files", "tool": "read", "arguments": {"path": "a"}},
        "result": {"Err": "gone"},
    }
    assert blocks(event("mcp_tool_call_end", **mcp)) == [
        Block("tool-call", '{"path":"a"}', "files.read"),
        Block("tool-result", "gone", is_error=True),
    ]
    said = {"type": "AgentMessage", "content": [{"type": "Text", "text": "Done."}]}
    assert blocks(event("item_completed", item=said)) == [Block("text", "Done.")]
    thought = {"type": "Reasoning", "summary_text": ["First."], "raw_content": ["In full."]}
    assert blocks(event("item_completed", item=thought)) == [Block("reasoning", "First.\n\nIn full.")]


def test_what_is_not_known_is_shown_as_it_is():
    assert blocks(item("hologram", beam="blue")) == [Block("other", '{"type":"hologram","beam":"blue"}')]
    assert "0.118.0" in blocks(meta())[0].text
    assert blocks(row("odd", {"a": 1})) == [Block("other", '{"a":1}')]


@pytest.mark.parametrize("line", [b"", b"not json", b"[1]", b'"text"'])
def test_a_row_without_content_has_no_blocks(line):
    assert blocks(line) == []
    assert blocks(message("user", "hello"), part=1) == []
