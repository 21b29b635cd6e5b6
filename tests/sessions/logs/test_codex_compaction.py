"""What a compaction took out of the window, and what the person took back."""

import hashlib
import json

import pytest

from sessions_app.logs.codex import FORMAT

from .codex_lines import (
    CHILD_TURN,
    SEALED,
    call,
    compacted,
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

SUMMARY = "Another language model started to solve this problem and produced a summary: two files."


def talk() -> list[dict]:
    return [
        meta(),
        *turn(CHILD_TURN),
        message("developer", "Rules."),
        message("user", "List the files"),
        call("call_1"),
        output("call_1", "a.txt"),
        message("assistant", "One file."),
        tokens(224_722),
    ]


def test_a_remote_compaction_keeps_what_its_history_holds():
    history = [message("developer", "Other rules."), message("user", "List the files"), SEALED]
    story = read([*talk(), compacted(*history), event("context_compacted"), message("user", "Go on")])
    [fact] = story.compactions
    assert story.previews(fact.dropped) == ["Rules.", 'shell {"command":["ls"]}', "a.txt", "One file."]
    assert (fact.kind, fact.state, fact.opaque, fact.confirmed) == ("compaction", "ready", True, True)
    assert (fact.tokens_before, fact.provider, fact.model) == (224_722, "openai", "gpt-5.4")
    assert fact.at_seq == fact.summary_seq == 9
    assert (story.events[9].type, story.events[9].source, story.events[9].surface) == (
        "compacted",
        "summary",
        "current",
    )
    assert story.events[10].surface == "log-only"
    assert story.window() == ["List the files", "", "Go on"]


def test_a_local_compaction_says_its_summary():
    history = [message("user", "List the files"), message("user", SUMMARY)]
    story = read([*talk(), compacted(*history, text=SUMMARY)])
    [fact] = story.compactions
    assert not fact.opaque
    assert len(fact.dropped) == 4
    assert story.window() == ["List the files", SUMMARY]
    assert FORMAT.blocks(raw([compacted(*history, text=SUMMARY)]), 0)[0].text == SUMMARY


def test_a_readable_summary_may_stand_in_the_history_alone():
    story = read([*talk(), compacted(message("user", SUMMARY))])
    assert not story.compactions[0].opaque
    assert FORMAT.blocks(raw([compacted(message("user", SUMMARY))]), 0)[0].text == SUMMARY


def test_an_old_compaction_without_history_keeps_nothing():
    story = read([*talk(), row("compacted", {"message": "Two files."})])
    assert len(story.compactions[0].dropped) == 5
    assert story.window() == ["Two files."]


def test_a_compaction_that_brings_nothing_new_is_not_in_the_window_itself():
    story = read([*talk(), compacted(message("user", "List the files"))])
    assert story.window() == ["List the files"]
    assert story.compactions[0].opaque


def test_each_compaction_drops_what_came_since_and_what_the_one_before_kept():
    story = read(
        [
            *talk(),
            compacted(message("user", "List the files"), SEALED),
            message("user", "Go on"),
            message("assistant", "Done."),
            compacted(message("user", "Go on"), SEALED, window_id="w-3"),
        ]
    )
    first, second = story.compactions
    assert story.previews(second.dropped) == ["List the files", "", "Done."]
    assert first.at_seq in second.dropped
    assert not set(first.dropped) & set(second.dropped)
    assert story.window() == ["Go on", ""]


def test_of_equal_messages_the_latest_stay():
    story = read([meta(), *[message("user", "continue")] * 3, compacted(*[message("user", "continue")] * 2)])
    assert story.compactions[0].dropped == [1]


def test_an_id_tells_which_of_equal_messages_stays():
    rows = [message("user", "continue", id=f"msg_{number}") for number in range(3)]
    story = read([meta(), *rows, compacted(rows[0])])
    assert story.compactions[0].dropped == [2, 3]


def test_equal_text_in_another_role_is_another_message():
    story = read(
        [meta(), message("user", "yes"), message("assistant", "yes"), compacted(message("assistant", "yes"))]
    )
    assert story.compactions[0].dropped == [1]


def test_calls_and_results_may_be_kept_too():
    story = read([*talk(), compacted(call("call_1"), output("call_1", "a.txt"))])
    assert story.window() == ['shell {"command":["ls"]}', "a.txt"]


def test_history_by_reference():
    entries = [
        {"type": "reference", "item_id": "msg_1"},
        {"type": "reference", "item_id": "elsewhere"},
        {"type": "inline", "item": message("user", "two")["payload"]},
        {"type": "inline", "item": {"type": "ghost_snapshot", "ghost_commit": {"id": "abc"}}},
    ]
    story = read(
        [
            meta(),
            message("user", "one", id="msg_1"),
            message("user", "two"),
            message("assistant", "three"),
            row("compacted", {"message": "", "replacement_history_entries": entries}),
        ]
    )
    assert story.previews(story.compactions[0].dropped) == ["three"]
    assert story.window() == ["one", "two"]


def test_a_row_that_carries_other_things_is_no_compaction():
    story = read([*talk(), row("compacted", {"message": "", "guardian_history": []})])
    assert not story.compactions
    assert len(story.window()) == 5


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"compaction_response_id": "resp_1", "window_id": "w-2"}, "resp_1"),
        ({"window_id": "w-2"}, "w-2"),
        ({}, None),
    ],
)
def test_compaction_id(fields, expected):
    line = compacted(message("user", "Привет"), **fields)
    canonical = json.dumps(
        line["payload"], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    assert (
        read([meta(), line]).compactions[0].compaction_id == expected or hashlib.sha256(canonical).hexdigest()
    )


def test_a_compaction_id_can_be_had_of_any_payload():
    [fact] = read([meta(), compacted(message("user", "half an emoji \ud83d"))]).compactions
    assert len(fact.compaction_id) == 64


def test_the_same_compaction_written_twice_counts_once():
    again = compacted(message("user", "List the files"), SEALED)
    story = read([*talk(), again, again, message("user", "Go on")])
    assert len(story.compactions) == 1
    assert story.window() == ["List the files", "", "Go on"]


def test_images_in_a_history_cost_nothing():
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 1_000_000}
    shown = item("message", role="user", content=[{"type": "input_text", "text": "Look"}, picture])
    story = read([meta(), shown, message("assistant", "Nice."), compacted(shown, SEALED)])
    assert story.window() == ["Look", ""]
    assert story.events[3].tokens < 50


def test_the_whole_window_of_a_paginated_log_without_items():
    said = event(
        "item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": "hello"}]}
    )
    reply = event(
        "item_completed", item={"type": "AgentMessage", "content": [{"type": "Text", "text": "good day"}]}
    )
    story = read([meta(history_mode="paginated"), said, reply, compacted(message("user", "hello"), SEALED)])
    assert story.previews(story.compactions[0].dropped) == ["good day"]


# Rollback.


def turns(*texts: str) -> list[dict]:
    return [each for text in texts for each in (message("user", text), message("assistant", f"Re: {text}"))]


@pytest.mark.parametrize(
    ("count", "left"),
    [
        (1, ["Rules.", "one", "Re: one", "two", "Re: two"]),
        (2, ["Rules.", "one", "Re: one"]),
        (9, ["Rules."]),
        (0, ["Rules.", "one", "Re: one", "two", "Re: two", "three", "Re: three"]),
    ],
)
def test_turns_that_were_taken_back_leave_the_window(count, left):
    rolled_back = event("thread_rolled_back", num_turns=count)
    story = read([meta(), message("developer", "Rules."), *turns("one", "two", "three"), rolled_back])
    assert story.window() == left
    assert not story.compactions
    assert story.events[-1].surface == "log-only"


def test_what_was_taken_back_is_not_dropped_again():
    story = read(
        [
            meta(),
            *turns("one", "two"),
            event("thread_rolled_back", num_turns=1),
            *turns("three"),
            event("thread_rolled_back", num_turns=1),
            compacted(SEALED),
        ]
    )
    assert story.previews(story.compactions[0].dropped) == ["one", "Re: one"]


def test_only_turns_that_are_in_the_window_can_be_taken_back():
    story = read(
        [
            meta(),
            *turns("one", "two"),
            compacted(message("user", "two"), SEALED),
            *turns("three"),
            event("thread_rolled_back", num_turns=2),
        ]
    )
    assert story.window() == []


def test_two_compactions_without_an_id_that_say_the_same_are_two():
    nothing = {"message": ""}
    story = read([
        meta(), message("user", "first"), message("assistant", "one"), row("compacted", nothing),
        message("user", "second"), message("assistant", "two"), row("compacted", nothing),
    ])  # fmt: skip
    first, second = story.compactions
    assert first.compaction_id != second.compaction_id
    assert second.compaction_id == f"{first.compaction_id}-2"
    assert not set(first.dropped) & set(second.dropped)
