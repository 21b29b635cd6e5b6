"""What is recognised as a Codex log, and what its first rows tell."""

import pytest

from sessions_app.logs.codex import FORMAT
from sessions_app.logs.events import Head
from sessions_app.logs.rows import RowSplitter

from .codex_lines import CHILD, PARENT, START, event, message, meta, raw, row

NAME = f"/home/dev/.codex/sessions/2026/04/11/rollout-2026-04-11T22-42-59-{CHILD}.jsonl"


def head(*rows, path: str = "rollout.jsonl") -> Head | None:
    return FORMAT.head(RowSplitter().feed(raw(rows)), path)


def test_head_of_an_ordinary_session():
    found = head(meta(PARENT), message("user", "hello"))
    assert found == Head(
        agent="codex",
        session_id=PARENT,
        cwd="/home/dev/project",
        started_at=1_775_940_179_706,
        version="0.118.0",
    )


def test_a_fork_names_its_parent():
    found = head(meta(CHILD, forked_from_id=PARENT), meta(PARENT))
    assert (found.session_id, found.parent_id, found.relation) == (CHILD, PARENT, "fork")


@pytest.mark.parametrize(
    "fields",
    [
        {"parent_thread_id": PARENT},
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}},
        {"source": {"subagent": "review"}, "forked_from_id": PARENT},
    ],
)
def test_a_sub_agent_names_its_parent(fields):
    found = head(meta(CHILD, session_id=PARENT, **fields))
    assert (found.session_id, found.parent_id, found.relation) == (CHILD, PARENT, "subagent")


def test_the_session_meta_need_not_come_first():
    assert head(row("world_state", {"full": True}), meta(CHILD)).session_id == CHILD


@pytest.mark.parametrize("suffix", ["", ".zst"])
def test_a_chunk_without_session_meta_is_named_by_its_file(suffix):
    found = head(message("user", "hello"), path=NAME + suffix)
    assert (found.session_id, found.started_at) == (CHILD, 1_775_940_179_706)


def test_a_file_of_a_reverted_thread_is_named_by_the_thread():
    assert head(message("user", "hello"), path=NAME.replace(".jsonl", f"_{PARENT}.jsonl")).session_id == CHILD


def test_a_file_that_was_renamed_is_named_by_its_stem():
    assert head(message("user", "hello"), path="/backup/my old log.jsonl.zst").session_id == "my old log"


def test_logs_of_before_the_envelope():
    header = {"id": PARENT, "timestamp": "2025-05-07T17:24:21.000Z", "instructions": None}
    bare = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    assert head(header, {"record_type": "state"}, bare).session_id == PARENT
    assert head(bare, path=NAME).session_id == CHILD


@pytest.mark.parametrize(
    "foreign",
    [
        {"type": "thread.started", "thread_id": CHILD},
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "hello"}},
        {"type": "turn.completed", "usage": {"input_tokens": 10}},
        {"type": "user", "uuid": "u1", "sessionId": CHILD, "message": {"role": "user", "content": "hello"}},
        {"type": "summary", "summary": "A title", "leafUuid": "u1"},
        {"sessionId": "s", "projectHash": "0b7d", "startTime": START},
        {"id": "g-user-1", "timestamp": START, "type": "user", "content": [{"text": "hello"}]},
        {"type": "message", "role": "user", "content": [{"type": "text", "text": "hello"}]},
        {"type": "message", "id": "m1", "parentId": None, "message": {"role": "user", "content": "hello"}},
        {"seq": 1, "type": "event_msg", "payload": "hello"},
        {"type": "response_item", "payload": {}},
        ["session_meta"],
        "session_meta",
    ],
)
def test_other_logs_are_not_claimed(foreign):
    assert head(foreign) is None


def test_damaged_rows_do_not_hide_the_signature():
    assert head(b"\0\0\0", b'{"half', event("user_message", message="hello"), path=NAME).session_id == CHILD
    assert head(b"", b"not json") is None
