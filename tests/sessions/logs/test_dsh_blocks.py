import json

import pytest

from sessions_app.logs.dsh import FORMAT
from sessions_app.logs.events import Block

from .dsh_builder import DshLog, Json, text

HASH = "2a" * 32


def blocks(kind: str, data: Json) -> list[Block]:
    return FORMAT.blocks(json.dumps({"type": kind, "seq": 0, "data": data}).encode(), 0)


def test_an_answer_with_thought_words_and_a_call():
    content = [
        {"type": "reasoning", "text": "look"},
        *text("Looking."),
        {"type": "tool-call", "id": "c1", "name": "bash", "arguments": '{"command": broken'},
    ]
    assert blocks("assistant/message", {"message": {"content": content}}) == [
        Block("reasoning", "look"),
        Block("text", "Looking."),
        Block("tool-call", '{"command": broken', "bash"),
    ]


@pytest.mark.parametrize("version", [0, 3, 4, 5])
def test_a_tool_result_is_the_same_in_every_version(version):
    log = DshLog(version=version)
    log.result("c1", "PORT=8123")
    assert FORMAT.blocks(log.lines()[1], 0) == [Block("tool-result", "PORT=8123")]


def test_the_oldest_tool_result_stands_in_the_data_itself():
    data = {"callId": "c1", "content": text("no such file"), "isError": True}
    assert blocks("tool/result", data) == [Block("tool-result", "no such file", is_error=True)]


def test_texts_of_a_tool_result_are_joined_and_its_image_follows():
    image = {"type": "image", "attachment": {"attachmentId": f"sha256:{HASH}", "mediaType": "image/png"}}
    content = [*text("a"), image, *text("b")]
    assert blocks("tool/result", {"message": {"content": content}, "error": {"name": "Timeout"}}) == [
        Block("tool-result", "a\nb", is_error=True),
        Block("image", f"image/png sha256:{HASH}", "image/png"),
    ]


def test_attachments_say_what_they_are():
    file = {
        "type": "file",
        "attachment": {"attachmentId": f"sha256:{HASH}", "name": "notes.txt", "bytes": 12},
    }
    assert blocks("user/message", {"content": [file, {"type": "image"}]}) == [
        Block("file", f"notes.txt sha256:{HASH}", "notes.txt"),
        Block("image"),
    ]


def test_an_encrypted_compaction_item_is_opaque():
    item = {"type": "compaction", "item": {"encrypted_content": "QUJD"}}
    assert blocks("user/message", {"content": [item]}) == [Block("opaque", name="compaction")]


def test_a_summary_and_the_calls_of_a_program_have_content():
    assert blocks("compaction/summary", {"summary": text("## Next Step"), "rawOutput": text("x")}) == [
        Block("text", "## Next Step")
    ]
    call = {"name": "bash", "arguments": {"command": "ls"}, "content": text("a.txt"), "isError": False}
    for kind in ("tool/ptc-dispatch", "tool/code-dispatch"):
        assert blocks(kind, call) == [
            Block("tool-call", '{"command":"ls"}', "bash"),
            Block("tool-result", "a.txt"),
        ]


def test_what_is_not_known_is_given_as_it_stands():
    odd = {"type": "plugin:chart", "points": [1, 2]}
    assert blocks("user/message", {"content": [odd, "loose", {"type": "text"}]}) == [
        Block("other", '{"type":"plugin:chart","points":[1,2]}', "plugin:chart"),
        Block("other", '"loose"'),
        Block("other", '{"type":"text"}', "text"),
    ]
    assert blocks("todo/write", {"todos": [{"content": "端口"}]}) == [
        Block("other", '{"todos":[{"content":"端口"}]}', "todo/write")
    ]


def test_content_is_never_clipped():
    long = "line of noise\n" * 100_000
    assert blocks("user/message", {"content": text(long)}) == [Block("text", long)]


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"5", b'{"type":"user/message"', b'"text"'],
)
def test_a_damaged_row_has_no_content(raw):
    assert FORMAT.blocks(raw, 0) == []


def test_an_odd_row_is_read_without_a_crash():
    deep = "[" * 600 + "]" * 600
    assert (
        FORMAT.blocks(f'{{"type":"user/message","data":{{"content":{deep}}}}}'.encode(), 0)[0].kind == "other"
    )
    nested = '{"type":"tool-result","content":[' * 400 + "]}" * 400
    assert FORMAT.blocks(f'{{"type":"tool/result","data":{{"content":[{nested}]}}}}'.encode(), 0)
    big = b'{"type":"x/y","data":{"n":123456789012345678901234567890,"s":"\\ud800"}}'
    assert "123456789012345678901234567890" in FORMAT.blocks(big, 0)[0].text
