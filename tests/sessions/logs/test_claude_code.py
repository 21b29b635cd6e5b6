import json

import pytest

from sessions_app.logs.claude_code import FORMAT
from sessions_app.logs.events import Block, Head, SessionFact
from tests.sessions.logs.claude_lines import (
    OTHER_SESSION,
    SESSION,
    assistant,
    attachment,
    call,
    line,
    result,
    rows_of,
    run,
    user,
)

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def raw_of(item) -> bytes:
    return rows_of(item)[0].raw


def blocks_of(item) -> list[Block]:
    return FORMAT.blocks(raw_of(item), 0)


def test_events_stand_in_the_order_of_the_file():
    read = run(
        user("u1", "端口是多少？"), call("a1", "t1"), result("u2", "t1", "8123"), assistant("a2", "8123")
    )
    assert [(e.seq, e.row, e.role, e.source, e.ref) for e in read.events] == [
        (0, 0, "user", "person", ""),
        (1, 1, "assistant", "model", "t1"),
        (2, 2, "tool", "tool", "t1"),
        (3, 3, "assistant", "model", ""),
    ]
    assert {e.surface for e in read.events} == {"current"}
    assert read.events[0].preview == "端口是多少？"
    assert read.events[1].preview == 'Bash {"command":"ls t1"}'
    assert read.events[0].time == 1769767200000


def test_an_event_points_to_its_bytes():
    rows = rows_of(user("u1", "one"), user("u2", "two"))
    event = run(user("u1", "one"), user("u2", "two")).event("u2")
    assert (event.row, event.offset, event.length) == (1, len(rows[0].raw) + 1, len(rows[1].raw))


@pytest.mark.parametrize(
    ("item", "source"),
    [
        (user("u", "Please fix it"), "person"),
        (user("u", [{"type": "text", "text": "<ide_opened_file>x</ide_opened_file>"}, "and this"]), "person"),
        (user("u", [PNG]), "person"),
        (user("u", "Please fix it", isMeta=True), "harness"),
        (user("u", "<system-reminder>be brief</system-reminder>"), "harness"),
        (user("u", "build failed", origin={"kind": "task-notification"}), "harness"),
        (user("u", "typed", origin={"kind": "human"}), "person"),
        (user("u", "<memex-context>notes</memex-context>"), "injected"),
        (user("u", "<memex-context>notes</memex-context>", isMeta=True), "injected"),
        (
            attachment("u", "hook_additional_context", content=["<memex-context>notes</memex-context>"]),
            "injected",
        ),
        (attachment("u", "hook_additional_context", content=["rules of the house"]), "harness"),
        (attachment("u", "queued_command", prompt="and the tests", commandMode="prompt"), "person"),
        (attachment("u", "queued_command", prompt="done", commandMode="task-notification"), "harness"),
        (assistant("u", "API Error", message={"model": "<synthetic>"}, isApiErrorMessage=True), "harness"),
        (user("u", "Look around", isSidechain=True), "agent"),
    ],
)
def test_whose_words_they_are(item, source):
    assert run(item).events[0].source == source


@pytest.mark.parametrize(
    ("item", "surface"),
    [
        (attachment("x", "edited_text_file", filename="/a.py", snippet="1 x"), "current"),
        (attachment("x", "plan_mode_reentry", planFilePath="/p.md"), "current"),
        (attachment("x", "hook_success", content="", stdout="{}"), "log-only"),
        (attachment("x", "hook_success", stdout="{}"), "log-only"),
        (attachment("x", "hook_success", content="printed for the model"), "current"),
        (attachment("x", "command_permissions", allowedTools=["Bash"]), "log-only"),
        (attachment("x", "brand_new_kind", note="hm"), None),
        (line("system", "x", subtype="turn_duration", durationMs=5), "log-only"),
        (line("progress", "x", data={"type": "hook_progress"}), "log-only"),
        (line("brand-new", "x", note="some text"), None),
        (line("brand-new", "x", count=3), "log-only"),
        (user("x", "shown to the person", isVisibleInTranscriptOnly=True), "log-only"),
        ({"type": "last-prompt", "lastPrompt": "go", "sessionId": SESSION}, "log-only"),
    ],
)
def test_what_the_model_sees(item, surface):
    assert run(item).events[0].surface == surface


def test_types_carry_the_subtype_and_the_kind_of_attachment():
    read = run(
        line("system", "s", subtype="api_error"),
        attachment("x", "file", filename="a"),
        {"type": "mode"},
        {"a": 1},
    )
    assert [e.type for e in read.events] == ["system:api_error", "attachment:file", "mode", "unknown"]


# Duplicates and lineage


def test_an_identical_copy_and_one_with_other_surroundings_are_no_events():
    first = user("u1", "Start")
    read = run(
        first, first, {**first, "cwd": "/elsewhere", "version": "2.1.21", "promptId": "p"}, user("u2", "Go")
    )
    assert [(e.uid, e.row) for e in read.events] == [("u1", 0), ("u2", 3)]
    assert not read.warnings


def test_the_same_uuid_with_other_content_is_an_event_of_its_own():
    hooks = [attachment("shared", "hook_additional_context", content=[f"context {n}"]) for n in (1, 2, 2, 3)]
    assert [e.preview for e in run(*hooks).events] == ["context 1", "context 2", "context 3"]


def test_lines_of_several_sessions_in_one_file_are_all_read():
    read = run(user("u1", "a"), user("u2", "b", sessionId=OTHER_SESSION), user("u3", "c"))
    assert len(read.events) == 3


def test_a_forks_copied_lines_are_inherited():
    copied = user("u1", "Start", forkedFrom={"sessionId": OTHER_SESSION, "messageUuid": "u0"})
    read = run(copied, user("u2", "New"))
    assert [e.inherited for e in read.events] == [True, False]
    assert (read.session["relation"], read.session["parent_id"]) == ("fork", OTHER_SESSION)


def test_dangling_parents_and_parallel_tools_lose_nothing():
    read = run(
        call("a1", "t1", parentUuid="never-written", message={"id": "m"}),
        call("a2", "t2", parentUuid="a1", message={"id": "m"}),
        result("u1", "t1", parentUuid="a1"),
        result("u2", "t2", parentUuid="a2"),
    )
    assert [(e.uid, e.ref) for e in read.events] == [("a1", "t1"), ("a2", "t2"), ("u1", "t1"), ("u2", "t2")]


# Sub-agents


def test_inline_subagents_have_lanes_of_their_own():
    side = {"isSidechain": True}
    read = run(
        user("u1", "Start"),
        user("aaaaaaaa-1", "Look here", **side),
        assistant("aaaaaaaa-2", "ok", parentUuid="aaaaaaaa-1", **side),
        user("bbbbbbbb-1", "Look there", **side),
        assistant("aaaaaaaa-3", "found", parentUuid="aaaaaaaa-2", **side),
        assistant("cccccccc-1", "lost", parentUuid="never-written", **side),
        user("dddddddd-1", "From the main line", parentUuid="u1", **side),
        assistant("a1", "Done"),
    )
    assert [(e.lane, e.seq) for e in read.events] == [
        ("", 0),
        ("side-aaaaaaaa", 0),
        ("side-aaaaaaaa", 1),
        ("side-bbbbbbbb", 0),
        ("side-aaaaaaaa", 2),
        ("side-aaaaaaaa", 3),
        ("side-dddddddd", 0),
        ("", 1),
    ]
    lanes = {e.lane: e.values for e in read.effects if isinstance(e, SessionFact) and "relation" in e.values}
    assert lanes["side-bbbbbbbb"]["relation"] == "subagent"
    assert lanes["side-bbbbbbbb"]["parent_id"] == SESSION


def test_two_subagents_whose_ids_begin_alike_stay_apart():
    side = {"isSidechain": True}
    read = run(user("aaaaaaaa-1", "One", **side), user("aaaaaaaa-2", "Two", **side))
    assert len({e.lane for e in read.events}) == 2


def test_the_lines_of_a_subagents_own_file_are_its_main_lane():
    head = Head("claude-code", "agent-a1", relation="subagent", parent_id=SESSION)
    read = run(user("u1", "Look", isSidechain=True), assistant("a1", "ok", isSidechain=True), head=head)
    assert [(e.lane, e.seq, e.source) for e in read.events] == [("", 0, "agent"), ("", 1, "model")]


# Facts of the session


def test_titles_a_persons_choice_outranks_a_made_up_one():
    read = run(
        {"type": "summary", "summary": "Title of another session", "leafUuid": "elsewhere"},
        {"type": "ai-title", "aiTitle": "Made up", "sessionId": SESSION},
        {"type": "custom-title", "customTitle": "Chosen", "sessionId": SESSION},
        {"type": "ai-title", "aiTitle": "Made up again", "sessionId": SESSION},
    )
    assert read.session["title"] == "Chosen"


def test_a_summary_line_titles_this_session_only_if_it_points_into_it():
    other = {"type": "summary", "summary": "Another", "leafUuid": "elsewhere"}
    own = {"type": "summary", "summary": "This one", "leafUuid": "a1"}
    assert "title" not in run(other).session
    assert run(other, assistant("a1", "hi"), own).session["title"] == "This one"


def test_the_folder_is_the_first_and_the_usage_the_latest():
    usage = {"input_tokens": 10, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 90}
    side = {"isSidechain": True, "parentUuid": None}
    read = run(
        user("u1", "Start", cwd="/first"),
        assistant("a1", "hm", message={"usage": {"input_tokens": 5}}, cwd="/second"),
        assistant("a2", "hm", message={"usage": usage}),
        assistant("a3", "still the same answer", message={"usage": usage}),
        assistant("s1", "side", message={"usage": {"input_tokens": 7}, "model": "claude-small"}, **side),
        assistant("a4", "Error", message={"usage": {"input_tokens": 0}, "model": "<synthetic>"}),
    )
    assert read.session == {"cwd": "/first", "version": "2.1.20", "model": "claude-test", "used_tokens": 1100}


def test_files_that_hold_a_tools_whole_output():
    text = "<persisted-output>\nOutput too large (2 MB). Full output saved to: /h/.claude/p/x y/tool-results/b1.txt\n"
    mcp = "Error: result exceeds maximum. Output has been saved to /h/p/tool-results/m1.txt.\nFormat: JSON"
    read = run(
        result(
            "u1", "t1", text, toolUseResult={"persistedOutputPath": "/h/.claude/p/x y/tool-results/b1.txt"}
        ),
        result("u2", "t2", mcp),
        result("u3", "t3", "ls\n/h/p/tool-results/other.txt"),
        result("u4", "t4", "cut", toolUseResult={"persistedOutputPath": "/h/p/tool-results/b4.txt", "n": 1}),
    )
    assert read.files == [
        "/h/.claude/p/x y/tool-results/b1.txt",
        "/h/p/tool-results/m1.txt",
        "/h/p/tool-results/b4.txt",
    ]


# Damage


def test_two_objects_on_one_line_are_two_events():
    glued = raw_of(assistant("a1", "kept")) + raw_of({"type": "summary", "summary": "T", "leafUuid": "a1"})
    read = run(user("u1", "Start"), glued)
    assert [(e.row, e.part, e.type) for e in read.events] == [
        (0, 0, "user"),
        (1, 0, "assistant"),
        (1, 1, "summary"),
    ]
    assert read.warnings == [(1, "glued")]
    assert FORMAT.blocks(glued, 0) == [Block("text", "kept")]
    assert json.loads(FORMAT.blocks(glued, 1)[0].text) == {
        "type": "summary",
        "summary": "T",
        "leafUuid": "a1",
    }
    assert FORMAT.blocks(glued, 2) == []


@pytest.mark.parametrize(
    ("raw", "events", "warnings"),
    [
        (b"", 0, []),
        (b"\r", 0, []),
        (b"\0" * 512, 0, [(1, "nul")]),
        (b"\0\0" + raw_of(user("u9", "after a crash")), 1, [(1, "nul")]),
        (raw_of(user("u9", "torn"))[:40], 0, [(1, "damaged")]),
        (raw_of(user("u9", "whole")) + b'{"type":"us', 1, [(1, "damaged")]),
        (b"[1, 2]", 0, [(1, "damaged")]),
        (b"\xef\xbb\xbf" + raw_of(user("u9", "BOM")) + b"\r", 1, []),
        (raw_of(user("u9", "a\u2028b\u0085c")), 1, []),
        (raw_of(user("u9", "x")).replace(b'"x"', b'"cut \\ud83d"'), 1, []),
        (raw_of(user("u9", "long " * 1_000_000)), 1, []),
    ],
)
def test_a_bad_row_costs_no_other(raw, events, warnings):
    read = run(user("u1", "before"), raw, user("u2", "behind"))
    assert [e.uid for e in read.events] == ["u1", *["u9"] * events, "u2"]
    assert read.warnings == warnings
    for event in read.events:
        event.preview.encode()
        event.uid.encode()


@pytest.mark.parametrize("value", [None, 7, True, "text", [], [1, "a"], {}, {"x": {"y": 1}}, 1e300, 2**70])
@pytest.mark.parametrize(
    "field",
    ["type", "uuid", "parentUuid", "timestamp", "message", "attachment", "isSidechain", "cwd", "version", "subtype",
     "compactMetadata", "microcompactMetadata", "forkedFrom", "origin", "toolUseResult", "isCompactSummary"],
)  # fmt: skip
def test_a_field_of_another_type_does_not_cost_the_line(field, value):
    for item in (
        user("u2", "x"),
        result("u2", "t1"),
        assistant("u2", "x"),
        attachment("u2", "file", filename="a"),
        line("system", "u2", subtype="compact_boundary", compactMetadata={}),
        line("system", "u2", subtype="microcompact_boundary", microcompactMetadata={}),
    ):
        read = run(user("u1", "before"), {**item, field: value})
        assert len(read.events) == 2
        FORMAT.blocks(raw_of({**item, field: value}), 0)


# Content


def test_blocks_of_an_answer():
    use = {"type": "tool_use", "id": "t", "name": "Write", "input": {"text": "中文", "n": 1}}
    thinking = {"type": "thinking", "thinking": "let me see", "signature": "s"}
    item = assistant(
        "a", thinking, {"type": "redacted_thinking", "data": "x"}, "Here", use, {"type": "new", "v": 1}
    )
    assert blocks_of(item) == [
        Block("reasoning", "let me see"),
        Block("reasoning"),
        Block("text", "Here"),
        Block("tool-call", '{"text":"中文","n":1}', "Write"),
        Block("other", '{"type":"new","v":1}'),
    ]


def test_blocks_of_a_tool_result_are_complete():
    long = "x" * 300_000
    content = [{"type": "text", "text": long}, PNG, {"type": "text", "text": "end"}]
    item = user("u", [{"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": content}])
    assert blocks_of(item) == [
        Block("tool-result", f"{long}\nend", is_error=True),
        Block("image", name="image/png"),
    ]
    assert blocks_of(result("u", "t", "plain")) == [Block("tool-result", "plain")]
    assert blocks_of(result("u", "t", None)) == [Block("tool-result")]


def test_blocks_of_documents():
    plain = {
        "type": "document",
        "title": "Plan",
        "source": {"type": "text", "media_type": "text/plain", "data": "A"},
    }
    pdf = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
    }
    assert blocks_of(user("u", [plain, pdf])) == [
        Block("file", "A", "Plan"),
        Block("file", "", "application/pdf"),
    ]


def test_blocks_of_attachments():
    reminder = [{"id": "1", "subject": "write tests", "status": "pending"}]
    file = {"type": "text", "file": {"filePath": "/a.py", "content": "x = 1", "numLines": 1}}
    image = {"type": "image", "file": {"base64": "AAAA", "type": "image/png"}}
    memory = {"path": "/p/CLAUDE.md", "content": {"type": "Project", "content": "Use tabs"}}
    assert blocks_of(attachment("x", "task_reminder", content=reminder)) == [
        Block("text", "1\nwrite tests\npending")
    ]
    assert blocks_of(attachment("x", "file", filename="/a.py", content=file)) == [
        Block("file", "x = 1", "/a.py")
    ]
    assert blocks_of(attachment("x", "file", filename="/a.png", content=image)) == [
        Block("file", "", "/a.png")
    ]
    assert blocks_of(attachment("x", "nested_memory", **memory)) == [Block("text", "/p/CLAUDE.md\nUse tabs")]
    assert blocks_of(attachment("x", "queued_command", prompt=["go", PNG])) == [
        Block("text", "go"),
        Block("image", name="image/png"),
    ]


def test_lines_without_content_show_themselves_in_full():
    item = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {"files": {}}}
    (block,) = blocks_of(item)
    assert (block.kind, json.loads(block.text)) == ("other", item)
    assert FORMAT.blocks(b"{torn", 0) == []
    assert FORMAT.blocks(b"[1]", 0) == []


def test_what_orjson_cannot_write_is_kept_all_the_same():
    deep: object = "bottom"
    for _ in range(600):
        deep = [deep]
    for value in ({"x": "\ud83d"}, {"x": 2**80}, {"x": deep}):
        use = {"type": "tool_use", "id": "t", "name": "Odd", "input": value}
        raw = json.dumps(assistant("a", use)).encode()
        (block,) = FORMAT.blocks(raw, 0)
        assert (block.kind, block.name) == ("tool-call", "Odd")
        assert block.text.encode()
        assert len(run(raw).events) == 1
