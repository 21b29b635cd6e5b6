"""A fork or a sub-agent opens with its parent's history, re-stamped."""

from .codex_lines import (
    CHILD,
    CHILD_TURN,
    PARENT,
    PARENT_TURN,
    SEALED,
    compacted,
    event,
    message,
    meta,
    read,
    row,
    turn,
)

GRANDPARENT = "019d7000-0000-7000-8000-000000000001"
GRANDPARENT_TURN = "019d7000-1111-7000-8000-000000000002"
AT_THE_FORK = "2026-04-11T20:42:59.720Z"
LATER = "2026-04-11T20:43:05.559Z"


def inherited(story) -> list[str]:
    return [each.preview for each in story.events if each.inherited and each.preview]


def test_the_parents_history_is_inherited_until_the_first_own_turn():
    story = read(
        [
            meta(CHILD, forked_from_id=PARENT),
            meta(PARENT),
            *turn(PARENT_TURN),
            message("user", "of the parent"),
            event("thread_name_updated", thread_id=PARENT, thread_name="The parent's title"),
            *turn(CHILD_TURN, AT_THE_FORK),
            message("user", "of the child"),
            event("thread_name_updated", thread_id=CHILD, thread_name="The child's title"),
        ]
    )
    assert inherited(story) == ["of the parent", "The parent's title"]
    assert [each.inherited for each in story.events] == [False] + [True] * 5 + [False] * 4
    assert story.facts["title"] == "The child's title"
    assert (story.facts["parent_id"], story.facts["relation"]) == (PARENT, "fork")
    assert story.window() == ["of the parent", "of the child"]


def test_a_compaction_belongs_to_the_session_it_happened_in():
    parents = compacted(message("user", "of the parent"), SEALED)
    own = compacted(message("user", "of the child"), SEALED)
    story = read(
        [
            meta(CHILD, forked_from_id=PARENT),
            meta(PARENT),
            *turn(PARENT_TURN),
            message("user", "of the parent"),
            message("assistant", "answer"),
            parents,
            *turn(CHILD_TURN, AT_THE_FORK),
            message("user", "of the child"),
            own,
        ]
    )
    first, second = story.compactions
    assert (first.origin_session_id, second.origin_session_id) == (PARENT, "")
    assert story.previews(second.dropped) == ["of the parent", ""]
    parent = read(
        [
            meta(PARENT),
            *turn(PARENT_TURN),
            message("user", "of the parent"),
            message("assistant", "x"),
            parents,
        ]
    )
    assert parent.compactions[0].compaction_id == first.compaction_id


def test_a_fork_of_a_fork():
    story = read(
        [
            meta(CHILD, forked_from_id=PARENT),
            meta(PARENT, forked_from_id=GRANDPARENT),
            meta(GRANDPARENT),
            *turn(GRANDPARENT_TURN),
            compacted(message("user", "one")),
            *turn(PARENT_TURN),
            compacted(message("user", "two")),
            meta(PARENT, forked_from_id=GRANDPARENT),
            compacted(message("user", "three")),
            *turn(CHILD_TURN),
            compacted(message("user", "four")),
        ]
    )
    assert [each.origin_session_id for each in story.compactions] == [GRANDPARENT, PARENT, PARENT, ""]


def test_a_history_that_is_repeated_without_the_parents_meta():
    story = read([meta(CHILD, forked_from_id=PARENT), *turn(PARENT_TURN), message("user", "old"),
                  *turn(CHILD_TURN), message("user", "new")])  # fmt: skip
    assert inherited(story) == ["old"]


def test_a_child_that_was_not_given_the_history_owns_all_of_it():
    story = read([meta(CHILD, parent_thread_id=PARENT), message("user", "task"), *turn(CHILD_TURN)])
    assert inherited(story) == []


def test_a_child_that_is_resumed_before_its_first_turn():
    story = read([meta(CHILD, forked_from_id=PARENT), meta(PARENT), *turn(PARENT_TURN), message("user", "old"),
                  meta(CHILD, forked_from_id=PARENT), message("user", "new")])  # fmt: skip
    assert inherited(story) == ["old"]


def test_ordinals_say_where_a_sub_agent_begins():
    rows = [
        meta(CHILD, parent_thread_id=PARENT, subagent_history_start_ordinal=3),
        message("user", "old"),
        message("assistant", "older"),
        message("user", "new"),
    ]
    story = read([{**each, "ordinal": number} for number, each in enumerate(rows)])
    assert inherited(story) == ["old", "older"]


def test_without_ids_that_sort_the_burst_of_one_second_is_the_parents():
    story = read(
        [
            meta("child", forked_from_id="parent"),
            meta("parent"),
            *turn("1"),
            row("response_item", message("user", "old")["payload"], AT_THE_FORK),
            row("response_item", message("user", "new")["payload"], LATER),
            *turn("2", AT_THE_FORK),
        ]
    )
    assert inherited(story) == ["old"]


def test_a_slow_burst_does_not_end_the_parents_history():
    story = read([meta(CHILD, forked_from_id=PARENT), meta(PARENT), *turn(PARENT_TURN),
                  row("response_item", message("user", "old")["payload"], LATER)])  # fmt: skip
    assert inherited(story) == ["old"]


def test_the_meta_of_another_session_amid_the_log_changes_nothing():
    story = read([meta(CHILD), message("user", "one"), meta(PARENT, cwd="/other"), message("user", "two")])
    assert inherited(story) == []
    assert story.facts["cwd"] == "/home/dev/project"
