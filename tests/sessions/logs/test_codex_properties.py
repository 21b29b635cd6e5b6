"""A log read in any number of runs says the same; and nothing that can be written makes a reader fail."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.logs.codex import FORMAT
from sessions_app.logs.events import Head
from sessions_app.logs.rows import Row

from .codex_lines import (
    CHILD,
    CHILD_TURN,
    PARENT,
    PARENT_TURN,
    SEALED,
    Story,
    call,
    compacted,
    event,
    item,
    message,
    meta,
    output,
    raw,
    row,
    tokens,
    turn,
)

WORDS = st.sampled_from(
    ["one", "two", "continue", "数据库", "<environment_context>x</environment_context>", ""]
)
IDS = st.sampled_from([{}, {}, {"id": "msg_1"}, {"id": "msg_2"}])
MESSAGES = st.builds(
    lambda role, text, named: message(role, text, **named),
    st.sampled_from(["user", "assistant", "developer"]),
    WORDS,
    IDS,
)
KEPT = st.lists(st.one_of(MESSAGES, st.just(SEALED)), max_size=4)
ROWS: st.SearchStrategy[Any] = st.one_of(
    MESSAGES,
    MESSAGES,
    st.builds(lambda kept, text: compacted(*kept, text=text), KEPT, st.sampled_from(["", "summary"])),
    st.builds(lambda text: row("compacted", {"message": text}), WORDS),
    st.builds(lambda count: event("thread_rolled_back", num_turns=count), st.integers(0, 4)),
    st.builds(tokens, st.integers(1, 300_000)),
    st.builds(lambda text: event("user_message", message=text), WORDS),
    st.builds(lambda text: event("thread_name_updated", thread_name=text), WORDS),
    st.builds(
        lambda kind, text: event("item_completed", item={"type": kind, "id": "i", "content": [{"text": text}]}),
        st.sampled_from(["UserMessage", "AgentMessage", "Plan"]),
        WORDS,
    ),
    st.builds(lambda number, text: call(f"call_{number}", text), st.integers(0, 2), WORDS),
    st.builds(lambda number, text: output(f"call_{number}", text), st.integers(0, 2), WORDS),
    st.builds(lambda text: item("hologram", beam=text), WORDS),
    st.builds(lambda turn_id, which: turn(turn_id)[which], st.sampled_from([PARENT_TURN, CHILD_TURN, "1"]), st.integers(0, 1)),
    st.builds(meta, st.sampled_from([CHILD, PARENT])),
    st.builds(lambda first, second: raw([first]).rstrip() + raw([second]).rstrip(), MESSAGES, MESSAGES),
    st.sampled_from([b"", b"\0\0", b'{"type":"resp', b"[]"]),
)  # fmt: skip
OPENINGS = st.sampled_from(
    [
        [],
        [meta()],
        [meta(history_mode="paginated")],
        [meta(forked_from_id=PARENT), meta(PARENT), *turn(PARENT_TURN)],
        [meta("child", forked_from_id="parent"), meta("parent")],
        [meta(parent_thread_id=PARENT, subagent_history_start_ordinal=4)],
    ]
)


@settings(max_examples=100, deadline=None)
@given(opening=OPENINGS, rows=st.lists(ROWS, max_size=25), cuts=st.lists(st.integers(1, 30), max_size=4))
def test_any_number_of_runs_says_the_same(opening, rows, cuts):
    data = raw([*opening, *rows])
    assert Story.of(data, cuts=cuts).effects == Story.of(data).effects


TURN = [message("user", "one"), call("call_0"), output("call_0", "x"), message("assistant", "two")]
ROLLBACK = event("thread_rolled_back", num_turns=1)
MIRRORED = [
    event("item_completed", item={"type": "UserMessage", "id": "i", "content": [{"text": "one"}]}),
    event("item_completed", item={"type": "AgentMessage", "id": "j", "content": [{"text": "two"}]}),
]
LOGS = {
    "an ordinary session": [
        meta(), *turn(CHILD_TURN), tokens(9), *TURN, *TURN, ROLLBACK, compacted(message("user", "one"), SEALED),
        meta(), *TURN, ROLLBACK, ROLLBACK, item("hologram"), compacted(SEALED, text="summary"), *TURN, ROLLBACK,
    ],
    "a sub-agent that replays its parent": [
        meta(parent_thread_id=PARENT), meta(PARENT), *turn(PARENT_TURN), *TURN, compacted(message("user", "one")),
        event("agent_message", "2026-04-11T20:43:09Z", message="late"), *turn(CHILD_TURN), *TURN, ROLLBACK, compacted(message("user", "one")),
    ],
    "a fork without ids that sort": [
        meta("child", forked_from_id="parent"), meta("parent"), *TURN, compacted(SEALED),
        event("task_started", "2026-04-11T20:43:09Z", turn_id="2"), *TURN, compacted(SEALED, window_id="w"),
    ],
    "ordinals": [
        {**each, "ordinal": number}
        for number, each in enumerate([meta(parent_thread_id=PARENT, subagent_history_start_ordinal=4), *TURN, *TURN])
    ],
    "a paginated log without items": [
        meta(history_mode="paginated"), *MIRRORED, ROLLBACK, *MIRRORED, compacted(message("user", "one")), *MIRRORED,
    ],
    "a log of events": [meta(), event("user_message", message="one"), event("agent_message", message="two"), ROLLBACK],
}  # fmt: skip


@pytest.mark.parametrize("rows", LOGS.values(), ids=LOGS)
def test_a_run_may_end_at_any_row(rows):
    data = raw(rows)
    whole = Story.of(data)
    assert Story.of(data, cuts=range(len(rows))).effects == whole.effects
    for cut in range(1, len(rows)):
        assert Story.of(data, cuts=[cut]).effects == whole.effects


@settings(max_examples=60, deadline=None)
@given(opening=OPENINGS, rows=st.lists(ROWS, max_size=25))
def test_what_is_dropped_was_in_the_window_and_is_dropped_once(opening, rows):
    story = Story.of(raw([*opening, *rows]))
    surfaces = {each.seq: each.surface for each in story.events}
    assert list(surfaces) == list(range(len(surfaces)))
    dropped = [seq for fact in story.compactions for seq in fact.dropped]
    assert len(dropped) == len(set(dropped))
    assert all(surfaces[seq] != "log-only" for seq in dropped)
    assert all(seq < fact.at_seq for fact in story.compactions for seq in fact.dropped)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "content", "text", "id"]), inner)
    ),
    max_leaves=8,
)
PAYLOADS = st.dictionaries(
    st.sampled_from(["type", "role", "content", "output", "item", "message", "replacement_history", "id", "info", "source",
                     "name", "call_id", "summary", "command", "result", "invocation", "images"]),
    JSON | st.sampled_from(["message", "reasoning", "function_call_output", "item_completed", "user_message"]),
)  # fmt: skip
LINES = st.builds(
    lambda kind, payload: json.dumps({"type": kind, "payload": payload}).encode(),
    st.sampled_from(["response_item", "event_msg", "compacted", "session_meta", "turn_context", "odd"]),
    PAYLOADS,
)


@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(
        st.one_of(LINES, st.binary(max_size=40), JSON.map(lambda value: json.dumps(value).encode()))
    )
)
def test_nothing_makes_a_reader_fail(lines):
    rows = [Row(number, 0, line) for number, line in enumerate(lines)]
    FORMAT.head(rows, "rollout.jsonl")
    reader = FORMAT.reader(Head("codex", CHILD), None, [])
    for each in rows:
        for effect in reader.feed(each):
            repr(effect).encode()
        for block in FORMAT.blocks(each.raw, 0):
            assert isinstance(block.text, str)
    json.dumps(reader.state())
