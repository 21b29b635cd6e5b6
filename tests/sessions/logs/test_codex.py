"""Events, facts and warnings of a Codex log; compaction and lineage have files of their own."""

import json

import pytest

from sessions_app.logs.codex import FORMAT

from .codex_lines import (
    CHILD,
    CHILD_TURN,
    PARENT,
    call,
    event,
    item,
    message,
    meta,
    output,
    raw,
    read,
    row,
    tokens,
    turn,
)

ENVIRONMENT = "<environment_context>\n  <cwd>/home/dev/project</cwd>\n</environment_context>"


def test_a_turn():
    story = read(
        [
            meta(),
            *turn(CHILD_TURN),
            message("developer", "<permissions instructions>Read only.</permissions instructions>"),
            message("user", ENVIRONMENT),
            message("user", "List the files"),
            event("user_message", message="List the files"),
            item("reasoning", summary=[{"type": "summary_text", "text": "They want a list."}], content=None),
            call("call_1"),
            output("call_1", "a.txt\nb.txt"),
            event("exec_command_end", call_id="call_1", aggregated_output="a.txt\nb.txt", exit_code=0),
            message("assistant", "There are two."),
            event("agent_message", message="There are two."),
            event("task_complete", turn_id=CHILD_TURN, last_agent_message="There are two."),
        ]
    )
    assert [(each.type, each.role, each.source, each.surface) for each in story.events] == [
        ("session_meta", "", "harness", "log-only"),
        ("event_msg:task_started", "", "harness", "log-only"),
        ("turn_context", "", "harness", "log-only"),
        ("response_item:message", "developer", "harness", "current"),
        ("response_item:message", "user", "harness", "current"),
        ("response_item:message", "user", "person", "current"),
        ("event_msg:user_message", "", "harness", "log-only"),
        ("response_item:reasoning", "assistant", "model", "current"),
        ("response_item:function_call", "assistant", "model", "current"),
        ("response_item:function_call_output", "tool", "tool", "current"),
        ("event_msg:exec_command_end", "", "harness", "log-only"),
        ("response_item:message", "assistant", "model", "current"),
        ("event_msg:agent_message", "", "harness", "log-only"),
        ("event_msg:task_complete", "", "harness", "log-only"),
    ]
    assert [each.seq for each in story.events] == [each.row for each in story.events] == list(range(14))
    assert [each.ref for each in story.events if each.ref] == ["call_1"] * 3
    assert story.events[8].preview == 'shell {"command":["ls"]}'
    assert story.events[9].preview == "a.txt b.txt"
    assert story.events[6].tokens == 0 < story.events[5].tokens
    assert not any(each.inherited for each in story.events)
    assert story.facts == {"cwd": "/home/dev/project", "version": "0.118.0", "model": "gpt-5.4"}


@pytest.mark.parametrize(
    "kind", ["local_shell_call", "web_search_call", "tool_search_call", "custom_tool_call"]
)
def test_calls_are_in_the_window(kind):
    story = read([meta(), item(kind, call_id="call_1", action={"type": "search", "query": "x"})])
    assert (story.events[1].surface, story.events[1].uid) == ("current", "call_1")


def test_an_unknown_item_is_in_the_window_but_not_known_to_be_seen():
    story = read(
        [meta(), item("hologram", beam="blue"), row("new_family", {"words": "blue"}), item("ghost_snapshot")]
    )
    assert [each.surface for each in story.events] == ["log-only", None, None, "log-only"]
    assert "blue" in story.events[1].preview
    assert "blue" in story.events[2].preview


def test_what_a_person_typed_in_an_ide():
    text = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nRename it\n"
    story = read([meta(), message("user", text)])
    assert (story.events[1].source, story.events[1].preview) == ("person", "Rename it")


def test_the_user_of_a_sub_agent_is_an_agent():
    story = read(
        [meta(CHILD, parent_thread_id=PARENT), message("user", "Review it"), message("user", ENVIRONMENT)]
    )
    assert [each.source for each in story.events[1:]] == ["agent", "harness"]


def test_messages_between_agents():
    content = [
        {"type": "input_text", "text": "Done."},
        {"type": "encrypted_content", "encrypted_content": "gAA"},
    ]
    story = read([meta(), item("agent_message", author="/lead/a", recipient="/lead", content=content)])
    assert (story.events[1].source, story.events[1].surface) == ("agent", "current")


def test_facts_follow_the_log():
    story = read(
        [
            meta(),
            *turn(CHILD_TURN),
            event("thread_name_updated", thread_id=CHILD, thread_name="Files  and\nfolders"),
            tokens(11_908),
            event("token_count", info=None),
            tokens(12_345),
            meta(cwd="/elsewhere", cli_version="0.119.0"),
        ]
    )
    assert story.facts == {
        "cwd": "/home/dev/project",
        "version": "0.119.0",
        "model": "gpt-5.4",
        "title": "Files and folders",
        "used_tokens": 12_345,
        "context_window": 258_400,
    }


@pytest.mark.parametrize("odd", ["many", True, -1, 10**30, [1], None])
def test_counts_that_are_none_are_no_facts(odd):
    story = read([meta(), event("token_count", info={"last_token_usage": {"input_tokens": odd}})])
    assert set(story.facts) <= {"cwd", "version", "used_tokens"}
    assert story.facts.get("used_tokens", 1) == 1


def test_a_session_may_be_resumed_many_times():
    story = read(
        [meta(), message("user", "one"), meta(), message("user", "two"), meta(), message("user", "three")]
    )
    assert story.window() == ["one", "two", "three"]
    assert not any(each.inherited for each in story.events)


# Logs where the events are all there is.


def completed(kind: str, **fields) -> dict:
    return event("item_completed", thread_id=CHILD, turn_id=CHILD_TURN, item={"type": kind, **fields})


PAGINATED = [
    completed("UserMessage", id="i1", content=[{"type": "text", "text": "List the files"}]),
    completed("CommandExecution", id="i2", command=["ls"], aggregated_output="a.txt", exit_code=0),
    completed("AgentMessage", id="i3", content=[{"type": "Text", "text": "One file."}]),
]


def test_a_paginated_log_without_items_is_read_from_its_events():
    story = read(
        [meta(history_mode="paginated"), *PAGINATED, event("user_message", message="List the files")]
    )
    assert [(each.role, each.source, each.surface) for each in story.events[1:]] == [
        ("user", "person", "current"),
        ("tool", "tool", "current"),
        ("assistant", "model", "current"),
        ("", "harness", "log-only"),
    ]
    assert story.window() == ["List the files", "ls a.txt", "One file."]


def test_a_paginated_log_with_items_is_read_from_them():
    items = [message("user", "List the files"), call("call_1"), message("assistant", "One file.")]
    story = read([meta(history_mode="paginated"), *items, *PAGINATED])
    assert [each.surface for each in story.events[4:]] == ["log-only"] * 3


def test_other_logs_without_items_show_that_it_cannot_be_told():
    story = read([meta(), event("user_message", message="hello"), event("agent_message", message="good day")])
    assert [(each.role, each.surface) for each in story.events[1:]] == [("user", None), ("assistant", None)]
    assert story.window() == ["hello", "good day"]


def test_a_log_of_before_the_envelope():
    story = read(
        [
            {"id": PARENT, "timestamp": "2025-05-07T17:24:21.000Z", "instructions": None},
            {"record_type": "state"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "call_1"},
            {"type": "function_call_output", "call_id": "call_1", "output": '{"output":"done"}'},
            {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"},
        ]
    )
    assert [each.type for each in story.events] == [
        "session_meta",
        "state",
        "response_item:message",
        "response_item:function_call",
        "response_item:function_call_output",
        "response_item:reasoning",
    ]
    assert [each.surface for each in story.events] == ["log-only"] * 2 + ["current"] * 4
    assert not story.warnings


# Rows written again.


def test_only_the_same_item_under_the_same_id_is_a_duplicate():
    once = message("user", "hello", id="msg_1")
    story = read(
        [meta(), once, once, message("user", "hello again", id="msg_1"), message("user", "hello", id="msg_2")]
    )
    assert story.window() == ["hello", "hello again", "hello"]
    assert [each.row for each in story.events] == [0, 1, 3, 4]
    assert [each.seq for each in story.events] == [0, 1, 2, 3]


def test_equal_items_without_an_id_are_all_kept():
    story = read(
        [meta(), message("user", "continue"), message("user", "continue"), output("c", "x"), output("c", "x")]
    )
    assert len(story.window()) == 4


# Damage.


def test_glued_rows_give_an_event_each():
    glued = raw([message("user", "one")]).rstrip() + raw([tokens(5)]).rstrip()
    story = read([meta(), glued, message("user", "two")])
    assert [(each.seq, each.row, each.part) for each in story.events] == [
        (0, 0, 0),
        (1, 1, 0),
        (2, 1, 1),
        (3, 2, 0),
    ]
    assert [(each.row, each.code) for each in story.warnings] == [(1, "glued")]
    assert FORMAT.blocks(glued, 0)[0].text == "one"


def test_damaged_rows_cost_a_warning_each():
    story = read(
        [
            meta(),
            b"\0\0\0\0",
            b'{"timestamp":"2026-04-11T20:42:59Z","type":"respo',
            b"[1, 2]",
            b"",
            b"\xef\xbb\xbf" + raw([message("user", "with a BOM")]).rstrip() + b"\r",
            b"\0\0" + raw([message("user", "after a crash")]).rstrip(),
        ]
    )
    assert [(each.row, each.code) for each in story.warnings] == [
        (1, "nul"),
        (2, "damaged"),
        (3, "damaged"),
        (6, "nul"),
    ]
    assert story.window() == ["with a BOM", "after a crash"]


def test_text_that_stores_refuse_is_made_fit():
    story = read(
        [
            meta(),
            message("user", "broken \ud83d emoji", id="msg_\ud83d"),
            message("user", "line\u2028separator\u0085and\x00nul"),
            row("odd\ud83d", {"a": "\ud83d"}),
            item("odd\ud83d"),
            event("odd\ud83d"),
        ]
    )
    for each in story.events:
        "".join((each.preview, each.uid, each.type, each.role, each.ref)).encode()
        assert "\0" not in each.preview
    assert len(story.events) == 6
    assert json.dumps(story.facts)


def test_a_row_of_many_megabytes():
    story = read([meta(), output("call_1", "x" * 5_000_000), message("user", "after")])
    assert story.events[1].length > 5_000_000
    assert len(story.events[1].preview) <= 200
    assert len(FORMAT.blocks(raw([output("call_1", "x" * 5_000_000)]), 0)[0].text) == 5_000_000


@pytest.mark.parametrize("odd", [None, 3, "text", [], {}, [None], {"type": ["x"]}])
def test_fields_of_another_type_do_no_harm(odd):
    story = read([
        meta(CHILD, source=odd, forked_from_id=odd, history_mode=odd),
        *(row(kind, {"type": "message", "role": odd, "content": odd, "id": odd}) for kind in ("response_item", "odd")),
        *(item(kind, **dict.fromkeys(("arguments", "input", "output", "summary", "content", "name"), odd))
          for kind in ("function_call", "function_call_output", "reasoning", "custom_tool_call", "agent_message")),
        event("item_completed", item=odd),
        event("token_count", info=odd),
        event("thread_rolled_back", num_turns=odd),
        row("response_item", {"type": odd}),
        row("event_msg", {"type": odd, "message": odd}),
        {"timestamp": odd, "type": odd, "payload": odd},
        {"timestamp": odd, "type": "turn_context", "payload": {"model": odd}},
        row("compacted", {"message": odd, "replacement_history": odd, "window_id": odd}),
    ])  # fmt: skip
    assert len(story.events) == 16
    assert not story.warnings


def test_nesting_of_any_depth():
    deep = b"[" * 1010 + b"]" * 1010
    story = read(
        [
            meta(),
            *(
                b'{"type":"%s","payload":{"type":"odd","x":%s}}' % (kind, deep)
                for kind in (b"odd", b"compacted")
            ),
            b'{"type":"response_item","payload":{"type":"odd","x":%s}}' % (b"[" * 100_000),
        ]
    )
    assert [each.type for each in story.events] == ["session_meta", "odd", "compacted"]
    assert [each.code for each in story.warnings] == ["damaged"]
