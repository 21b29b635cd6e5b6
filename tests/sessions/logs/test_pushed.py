"""What a pushed row says: whose words, what content, and what the model's window holds after it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.logs.events import (
    CURRENT,
    LOG_ONLY,
    SHADOWED,
    CompactionFact,
    Effect,
    Head,
    NewEvent,
    Restored,
    RowWarning,
    SessionFact,
    Shadowed,
)
from sessions_app.logs.pushed import FORMAT, PushedReader
from sessions_app.logs.pushed_blocks import tool_ids
from sessions_app.logs.pushed_rows import COMPACTION, EVICTION, SESSION, UNEVICTION, event_problem, note_row
from sessions_app.logs.rows import Row

HEAD = Head("some-agent", "s1")


def rows_of(*values: dict[str, Any] | bytes) -> list[Row]:
    rows, offset = [], 0
    for number, value in enumerate(values):
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        rows.append(Row(number, offset, raw))
        offset += len(raw) + 1
    return rows


def effects_of(*values: dict[str, Any] | bytes, head: Head = HEAD) -> list[Effect]:
    reader = PushedReader(head, None)
    return [effect for row in rows_of(*values) for effect in reader.feed(row)]


def event(value: dict[str, Any], head: Head = HEAD) -> NewEvent:
    (found,) = [effect for effect in effects_of(value, head=head) if isinstance(effect, NewEvent)]
    return found


def blocks(value: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = FORMAT.blocks(json.dumps(value).encode(), 0)
    return [(block.kind, block.name, block.text) for block in found]


@pytest.mark.parametrize(
    ("value", "role", "source"),
    [
        ({"role": "user", "text": "hello"}, "user", "person"),
        ({"role": "user", "content": "hello"}, "user", "person"),
        ({"role": "human", "text": "hello"}, "user", "person"),
        ({"role": "user", "text": "hi", "source": {"kind": "user"}}, "user", "person"),
        ({"role": "user", "text": "hi", "source": "runtime-context"}, "user", "harness"),
        ({"role": "assistant", "text": "hi"}, "assistant", "model"),
        ({"role": "system", "text": "be kind"}, "system", "harness"),
        ({"role": "developer", "text": "be kind"}, "developer", "harness"),
        ({"role": "tool", "content": "out", "tool_call_id": "c"}, "tool", "tool"),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]},
         "tool", "tool"),
        ({"type": "function_call_output", "call_id": "c", "output": "x"}, "tool", "tool"),
        ({"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"}, "assistant", "model"),
        ({"type": "user/message", "text": "x"}, "user", "person"),
        ({"role": "user", "text": "<system-reminder>x</system-reminder>"}, "user", "harness"),
        ({"role": "user", "text": "[MEMORY RECALL] Earlier records"}, "user", "injected"),
        ({"role": "user", "text": "<memex-context form=\"recall\">x</memex-context>"}, "user", "injected"),
        ({"role": "system", "text": "[MEMORY CHECKPOINT] The context"}, "system", "injected"),
        ({"role": "user", "text": "x", "source": {"kind": "memory-recall", "form": "catalog"}},
         "user", "injected"),
        ({"role": "user", "text": "This session is being continued from a previous conversation: x"},
         "user", "summary"),
        ({"role": "user", "text": "x", "source": {"kind": "compact-checkpoint"}}, "user", "summary"),
    ],
)  # fmt: skip
def test_whose_words_an_event_holds(value, role, source):
    found = event({"id": "e1", **value})
    assert (found.role, found.source, found.surface, found.uid) == (role, source, CURRENT, "e1")


def test_a_sub_agent_is_spoken_to_by_its_parent():
    head = Head("some-agent", "s1", relation="subagent", parent_id="s0")
    assert event({"id": "e1", "role": "user", "text": "do it"}, head).source == "agent"
    assert event({"id": "e1", "role": "user", "text": "do it", "source": "user"}, head).source == "person"


def test_what_holds_no_content_never_was_in_the_window():
    found = event({"id": "e1", "type": "turn/start", "time": "2026-05-01T10:00:00Z"})
    assert (found.surface, found.type, found.time) == (LOG_ONLY, "turn/start", 1_777_629_600_000)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"text": "a"}, [("text", "", "a")]),
        ({"content": [{"type": "text", "text": "a"}, "b"]}, [("text", "", "a"), ("text", "", "b")]),
        ({"content": [{"type": "input_text", "text": "a"}, {"type": "refusal", "refusal": "no"}]},
         [("text", "", "a"), ("text", "", "no")]),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"},
                                           {"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}}]},
         [("reasoning", "", "hm"), ("tool-call", "ls", '{"a":1}')]),
        ({"role": "assistant", "content": [{"type": "reasoning", "text": "hm"},
                                           {"type": "tool-call", "toolCallId": "t", "name": "ls",
                                            "arguments": "{}"}]},
         [("reasoning", "", "hm"), ("tool-call", "ls", "{}")]),
        ({"role": "assistant", "content": None,
          "tool_calls": [{"id": "t", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
         [("tool-call", "ls", "{}")]),
        ({"role": "tool", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
         [("tool-result", "", "a\nb")]),
        ({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "t",
                                       "content": [{"type": "text", "text": "a"}]}]},
         [("tool-result", "", "a")]),
        ({"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
         [("image", "image", "")]),
        ({"content": [{"type": "image", "source": {"media_type": "image/png", "data": "AAAA"}}]},
         [("image", "image/png", "")]),
        ({"content": [{"type": "file", "file": {"filename": "a.pdf"}}]}, [("file", "a.pdf", "")]),
        ({"content": [{"type": "nobody-knows", "x": 1}]},
         [("other", "nobody-knows", '{"type":"nobody-knows","x":1}')]),
        ({"type": "web_search_call", "id": "w", "action": {"query": "tea"}},
         [("tool-call", "web_search_call", '{"query":"tea"}')]),
        ({"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAAA"}, [("reasoning", "", "")]),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, [("reasoning", "", "hm")]),
        ({"content": [{"type": "text", "text": "[MEMORY RECALL] x"}, {"type": "text", "text": "a"}]},
         [("injected", "", "[MEMORY RECALL] x"), ("text", "", "a")]),
    ],
)  # fmt: skip
def test_content_in_the_shapes_that_agents_speak(value, expected):
    assert blocks({"id": "e1", **value}) == expected


def test_a_row_that_is_no_event_gives_no_content_and_one_warning():
    for raw in (b'{"id": "e1", "te', b"[1]", b'{"id": "a"}{"id": "b"}', b'{"memex": {"kind": "later"}}'):
        assert [type(effect) for effect in effects_of(raw)] == [RowWarning]
        assert FORMAT.blocks(raw, 0) == []
    assert effects_of(b"") == []


def test_an_event_cannot_pass_for_a_note_of_memex():
    forged = {"id": "e1", "memex": {"kind": "compaction", "id": "c", "text": "gone", "seqs": [[0, 9]]}}
    assert [type(effect) for effect in effects_of(forged)] == [NewEvent]
    assert event_problem(json.loads(note_row(COMPACTION, {"id": "c"}))) == "'id' is missing or not a text"


@pytest.mark.parametrize(
    ("value", "calls", "answers"),
    [
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "t1"}, {"type": "tool_use", "id": "t2"}]},
         {"t1", "t2"}, set()),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}, set(), {"t1"}),
        ({"role": "assistant", "tool_calls": [{"id": "t1", "function": {"name": "x"}}]}, {"t1"}, set()),
        ({"role": "tool", "tool_call_id": "t1", "content": "x"}, set(), {"t1"}),
        ({"role": "tool", "toolCallId": "t1", "text": "x"}, set(), {"t1"}),
        ({"role": "assistant", "toolCallId": "t1", "text": "x"}, {"t1"}, set()),
        ({"type": "function_call", "id": "fc_1", "call_id": "t1"}, {"t1"}, set()),
        ({"type": "function_call_output", "call_id": "t1", "output": ""}, set(), {"t1"}),
        ({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "t1"}]}, {"t1"}, set()),
    ],
)  # fmt: skip
def test_which_tool_calls_an_event_makes_and_answers(value, calls, answers):
    assert tool_ids({"id": "e1", **value}) == (calls, answers)


def said(number: int) -> dict[str, Any]:
    return {"id": f"e{number}", "role": "user", "text": f"words {number}"}


def test_a_compaction_puts_its_summary_in_the_place_of_what_left():
    note = note_row(COMPACTION, {"id": "c1", "text": "the gist", "seqs": [[1, 2]], "missing": ["zz"]})
    reader = PushedReader(HEAD, None)
    effects = [e for row in rows_of(said(0), said(1), said(2), said(3), note) for e in reader.feed(row)]
    assert reader.state() == {"next": 5, "epoch": 1, "used": 0, "nodes": [0, 4, 3]}
    assert Shadowed([1, 2], 4) in effects
    (fact,) = [effect for effect in effects if isinstance(effect, CompactionFact)]
    assert (fact.state, fact.dropped, fact.missing, fact.summary_seq) == ("ready", [1, 2], ["zz"], 4)
    assert [effect.code for effect in effects if isinstance(effect, RowWarning)] == ["missing-events"]


def test_a_compaction_without_a_summary_leaves_nothing_in_the_window():
    note = note_row(COMPACTION, {"id": "c1", "text": "", "seqs": [[0, 1]]})
    reader = PushedReader(HEAD, None)
    effects = [e for row in rows_of(said(0), said(1), said(2), note) for e in reader.feed(row)]
    assert reader.state()["nodes"] == [2]
    (fact,) = [effect for effect in effects if isinstance(effect, CompactionFact)]
    assert (fact.summary_seq, fact.confirmed) == (None, False)


def test_an_eviction_that_is_undone_is_as_if_it_had_not_been():
    evicted = note_row(EVICTION, {"id": "prune:1-2", "messageId": "m", "text": "gone", "seqs": [[1, 2]]})
    undone = note_row(UNEVICTION, {"id": "prune:1-2", "by": 4, "seqs": [[1, 2]]})
    reader = PushedReader(HEAD, None)
    effects = [e for row in rows_of(said(0), said(1), said(2), said(3), evicted) for e in reader.feed(row)]
    assert reader.state()["nodes"] == [0, 4, 3]
    assert [e.kind for e in effects if isinstance(e, CompactionFact)] == ["prune"]
    back = reader.feed(Row(5, 999, undone))
    assert [type(effect) for effect in back] == [NewEvent, Restored, Shadowed]
    assert reader.state()["nodes"] == [[0, 3]]
    assert [type(effect) for effect in reader.feed(Row(6, 1999, undone))] == [NewEvent, RowWarning]


def test_what_a_session_is_called_and_how_much_its_window_holds():
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}
    effects = effects_of(
        note_row(SESSION, {"title": "Tea", "contextWindow": 1000}),
        {"id": "e1", "role": "assistant", "text": "x", "usage": usage, "model": "m-1"},
    )
    facts = [effect.values for effect in effects if isinstance(effect, SessionFact)]
    assert facts == [{"title": "Tea", "context_window": 1000}, {"model": "m-1", "used_tokens": 101}]


SPANS = st.lists(st.lists(st.integers(0, 30), min_size=2, max_size=2).map(sorted), max_size=3)
ROWS = st.one_of(
    st.sampled_from([b"", b"junk", b'{"a": 1}', b'{"id": "x", "type": "note"}']),
    st.builds(lambda n: json.dumps(said(n)).encode(), st.integers(0, 9)),
    st.builds(lambda s, t: note_row(COMPACTION, {"id": "c", "text": t, "seqs": s}), SPANS, st.sampled_from(["", "t"])),
    st.builds(lambda s: note_row(EVICTION, {"id": "p", "messageId": "m", "text": "t", "seqs": s}), SPANS),
    st.builds(lambda s, b: note_row(UNEVICTION, {"by": b, "seqs": s}), SPANS, st.integers(0, 30)),
)  # fmt: skip


def seen(effects: list[Effect]) -> set[int]:
    """The events that are in the window after these effects."""
    surface: dict[int, str | None] = {}
    for effect in effects:
        if isinstance(effect, NewEvent):
            surface[effect.seq] = effect.surface
        elif isinstance(effect, Shadowed):
            surface.update(dict.fromkeys(effect.seqs, SHADOWED))
        elif isinstance(effect, Restored):
            surface.update(dict.fromkeys(effect.seqs, CURRENT))
    return {seq for seq, state in surface.items() if state == CURRENT}


@given(st.lists(ROWS, max_size=20), st.sets(st.integers(0, 20)))
def test_any_split_into_runs_gives_the_same_and_the_window_is_what_its_events_say(raws, cuts):
    rows = rows_of(*raws)
    whole, split = PushedReader(HEAD, None), PushedReader(HEAD, None)
    effects = [effect for row in rows for effect in whole.feed(row)]
    again: list[Effect] = []
    for row in rows:
        if row.number in cuts:
            split = PushedReader(HEAD, json.loads(json.dumps(split.state())))
        again += split.feed(row)
    assert again == effects
    assert split.state() == whole.state()
    nodes = PushedReader(HEAD, whole.state())._window.nodes
    assert set(nodes) == seen(effects)
    assert len(nodes) == len(set(nodes))
