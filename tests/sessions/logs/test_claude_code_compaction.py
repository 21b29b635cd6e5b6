import pytest

from sessions_app.logs.claude_code import FORMAT
from sessions_app.logs.events import Shadowed
from tests.sessions.logs.claude_lines import (
    HEAD,
    OTHER_SESSION,
    SESSION,
    SUMMARY_TEXT,
    assistant,
    attachment,
    boundary,
    call,
    line,
    micro,
    result,
    rows_of,
    run,
    run_in_parts,
    summary,
    user,
)

TALK = [user("u1", "Start"), assistant("a1", "Ready"), user("u2", "Go on"), assistant("a2", "Done")]


def test_a_boundary_is_pending_until_its_summary_comes():
    read = run(*TALK, boundary("b"), summary("s", "b"), user("u3", "Next"))
    pending, ready = read.facts
    assert (pending.compaction_id, pending.state, pending.at_seq, pending.summary_seq) == (
        "b",
        "pending",
        4,
        None,
    )
    assert (ready.compaction_id, ready.state, ready.summary_seq, ready.confirmed) == ("b", "ready", 5, True)
    assert read.dropped(pending) == read.dropped(ready) == ["u1", "a1", "u2", "a2"]
    assert (ready.trigger, ready.tokens_before, ready.time) == ("auto", 150_000, 1769767200000)
    assert read.shadowed == [Shadowed([0, 1, 2, 3], by=5)]
    assert (read.event("s").source, read.event("s").surface) == ("summary", "current")
    assert read.event("b").surface == "log-only"
    kinds = [type(effect).__name__ for effect in read.effects]
    assert kinds.index("Shadowed") < len(kinds) - 1 - kinds[::-1].index("CompactionFact")


def test_the_summary_belongs_to_the_next_window():
    read = run(
        *TALK, boundary("b1"), summary("s1", "b1"), user("u3", "x"), boundary("b2"), summary("s2", "b2")
    )
    assert read.dropped(read.facts[-1]) == ["s1", "u3"]


def test_two_boundaries_with_a_window_of_three_lines_between_them():
    between = [user("u3", "x"), assistant("a3", "y"), line("system", "d", subtype="turn_duration")]
    read = run(*TALK, boundary("b1"), summary("s1", "b1"), *between, boundary("b2"), summary("s2", "b2"))
    assert [(fact.compaction_id, fact.state) for fact in read.facts] == [
        ("b1", "pending"),
        ("b1", "ready"),
        ("b2", "pending"),
        ("b2", "ready"),
    ]
    assert read.dropped(read.facts[-1]) == ["s1", "u3", "a3"]


def test_what_the_model_never_saw_is_not_dropped_but_unknown_things_are():
    read = run(
        user("u1", "Start"),
        line("progress", "p1", data={"type": "hook_progress"}),
        attachment("x1", "hook_cancelled", hookName="h"),
        attachment("x2", "brand_new_kind", note="hm"),
        line("brand-new", "x3", note="some text"),
        {"type": "queue-operation", "operation": "enqueue", "content": "later"},
        boundary("b"),
        summary("s", "b"),
    )
    assert read.dropped(read.facts[-1]) == ["u1", "x2", "x3"]


@pytest.mark.parametrize(
    ("metadata", "dropped"),
    [
        ({}, ["u1", "a1", "u2", "a2"]),
        ({"preservedMessages": {"uuids": ["u2", "a2"]}}, ["u1", "a1"]),
        ({"preservedMessages": {"uuids": ["u2"], "allUuids": ["u2", "a2", "nowhere"]}}, ["u1", "a1"]),
        ({"preserved_messages": {"all_uuids": ["a2"]}}, ["u1", "a1", "u2"]),
        ({"preservedSegment": {"headUuid": "a1", "tailUuid": "u2"}}, ["u1", "a2"]),
        ({"preserved_segment": {"head_uuid": "a1", "tail_uuid": "a2"}}, ["u1"]),
        ({"preservedSegment": {"headUuid": "u2", "tailUuid": "nowhere-yet"}}, ["u1", "a1"]),
        ({"preservedSegment": {"headUuid": "nowhere", "tailUuid": "a2"}}, ["u1", "a1", "u2", "a2"]),
        (
            {"preservedMessages": {"uuids": ["u1"]}, "preservedSegment": {"headUuid": "a1"}},
            ["a1", "u2", "a2"],
        ),
        ({"preservedMessages": ["odd"], "preservedSegment": 7}, ["u1", "a1", "u2", "a2"]),
    ],
)
def test_what_a_compaction_preserved_stays(metadata, dropped):
    read = run(*TALK, boundary("b", metadata), summary("s", "b"))
    assert read.dropped(read.facts[-1]) == dropped
    assert read.facts[-1].missing == []
    kept = [uid for uid in ("u1", "a1", "u2", "a2") if uid not in dropped]
    again = run(*TALK, boundary("b", metadata), summary("s", "b"), boundary("b2"), summary("s2", "b2"))
    assert again.dropped(again.facts[-1]) == [*kept, "s"]


def test_preserved_lines_that_are_written_again_are_no_news():
    metadata = {"preservedMessages": {"uuids": ["u2", "a2", "a3"]}}
    late = assistant("a3", "Only written behind the boundary", parentUuid="s")
    read = run(
        *TALK, boundary("b", metadata), summary("s", "b"), {**TALK[2], "parentUuid": "s"}, TALK[3], late,
        boundary("b2"), summary("s2", "b2"),
    )  # fmt: skip
    assert len([event for event in read.events if event.uid == "u2"]) == 1
    assert read.event("a3").surface == "current"
    assert read.dropped(read.facts[-1]) == ["u2", "a2", "s", "a3"]


def test_a_second_compaction_that_writes_all_earlier_lines_again():
    first = [*TALK, boundary("b1"), summary("s1", "b1"), user("u3", "Next")]
    read = run(*first, *first, boundary("b2"), summary("s2", "b2"))
    assert [event.uid for event in read.events] == ["u1", "a1", "u2", "a2", "b1", "s1", "u3", "b2", "s2"]
    assert [(fact.compaction_id, fact.state) for fact in read.facts] == [
        ("b1", "pending"),
        ("b1", "ready"),
        ("b2", "pending"),
        ("b2", "ready"),
    ]
    assert read.dropped(read.facts[-1]) == ["s1", "u3"]


def test_a_boundary_written_twice_with_other_text_is_one_compaction():
    read = run(*TALK, boundary("b"), boundary("b", content="Compacted"), summary("s", "b"))
    assert [(fact.compaction_id, fact.state) for fact in read.facts] == [("b", "pending"), ("b", "ready")]


def test_the_output_streams_spelling_is_understood():
    item = boundary("b")
    del item["compactMetadata"]
    item["compact_metadata"] = {"trigger": "manual", "pre_tokens": 9000, "post_tokens": 700}
    ready = run(*TALK, item, summary("s", "b")).facts[-1]
    assert (ready.trigger, ready.tokens_before, ready.tokens_after) == ("manual", 9000, 700)


def test_without_a_summary_it_is_unconfirmed_after_three_turns():
    later = [user(f"l{n}", f"turn {n}") for n in range(3)]
    waiting = run(*TALK, boundary("b"), *later[:2], assistant("x", "yes"), result("r", "t"))
    assert [fact.state for fact in waiting.facts] == ["pending"]
    assert waiting.shadowed == []
    read = run(*TALK, boundary("b"), *later)
    assert [(fact.state, fact.confirmed) for fact in read.facts] == [("pending", True), ("ready", False)]
    assert read.shadowed == [Shadowed([0, 1, 2, 3], by=4)]
    assert read.facts[-1].summary_seq is None


def test_the_next_boundary_ends_the_wait_too():
    read = run(*TALK, boundary("b1"), user("u3", "x"), boundary("b2"), summary("s2", "b2"))
    assert [(fact.compaction_id, fact.state, fact.confirmed) for fact in read.facts] == [
        ("b1", "pending", True),
        ("b1", "ready", False),
        ("b2", "pending", True),
        ("b2", "ready", True),
    ]
    assert read.dropped(read.facts[-1]) == ["u3"]


def test_a_summary_that_comes_too_late_compacts_nothing_more():
    later = [user(f"l{n}", f"turn {n}") for n in range(3)]
    read = run(*TALK, boundary("b"), *later, summary("s", "b"))
    assert [fact.state for fact in read.facts] == ["pending", "ready"]
    assert len(read.shadowed) == 1


@pytest.mark.parametrize("old", [summary("s", None), user("s", SUMMARY_TEXT)])
def test_old_versions_write_a_summary_without_a_boundary(old):
    read = run(*TALK, old, user("u3", "Next"))
    (fact,) = read.facts
    assert (fact.compaction_id, fact.state, fact.at_seq, fact.summary_seq) == ("sum:s", "ready", 4, 4)
    assert read.dropped(fact) == ["u1", "a1", "u2", "a2"]
    assert read.shadowed == [Shadowed([0, 1, 2, 3], by=4)]


def test_a_log_that_begins_with_the_summary_of_another_dropped_nothing():
    read = run(user("s", SUMMARY_TEXT), assistant("a", "Going on"))
    assert read.facts == []
    assert read.event("s").source == "summary"


def test_a_pasted_summary_is_no_compaction_where_boundaries_are_written():
    read = run(*TALK, boundary("b"), summary("s", "b"), user("p", SUMMARY_TEXT), user("u3", "see above"))
    assert [fact.compaction_id for fact in read.facts] == ["b", "b"]


def test_an_unmarked_summary_behind_a_boundary_is_taken():
    read = run(*TALK, boundary("b"), user("s", SUMMARY_TEXT))
    assert (read.facts[-1].state, read.facts[-1].summary_seq) == ("ready", 5)


def test_a_compaction_that_a_fork_brought_along_names_where_it_happened():
    copied = {"forkedFrom": {"sessionId": OTHER_SESSION, "messageUuid": "x"}}
    read = run(*[{**item, **copied} for item in (*TALK, boundary("b"), summary("s", "b"))], boundary("c"))
    assert [fact.origin_session_id for fact in read.facts] == [OTHER_SESSION, OTHER_SESSION, ""]


def test_a_subagent_compacts_its_own_window():
    side = {"isSidechain": True}
    read = run(
        user("u1", "Start"),
        user("aaaaaaaa-1", "Look", **side),
        assistant("aaaaaaaa-2", "ok", parentUuid="aaaaaaaa-1", **side),
        boundary("aaaaaaaa-b", logicalParentUuid="aaaaaaaa-2", **side),
        summary("aaaaaaaa-s", "aaaaaaaa-b", **side),
        assistant("a1", "still here"),
    )
    ready = read.facts[-1]
    assert ready.lane == "side-aaaaaaaa"
    assert read.dropped(ready) == ["aaaaaaaa-1", "aaaaaaaa-2"]
    assert read.shadowed == [Shadowed([0, 1], by=3, lane="side-aaaaaaaa")]


def test_a_summary_goes_where_one_is_awaited_whatever_it_says_of_its_chain():
    read = run(
        *TALK,
        user("aaaaaaaa-1", "Look", isSidechain=True),
        boundary("b"),
        summary("s", "aaaaaaaa-1", isSidechain=True),
    )
    assert (read.event("s").lane, read.facts[-1].state, read.facts[-1].compaction_id) == ("", "ready", "b")


# Microcompacts

TOOLS = [
    call("a1", "t1"),
    result("r1", "t1"),
    call("a2", "t2"),
    result("r2", "t2"),
    attachment("x", "file", filename="f"),
]


def test_a_microcompact_takes_results_and_attachments():
    read = run(*TOOLS, micro("m", ["t1", "gone"], ["x", "lost"]))
    (fact,) = read.facts
    assert (fact.kind, fact.state, fact.compaction_id) == ("microcompact", "ready", "m")
    assert read.dropped(fact) == ["r1", "x"]
    assert fact.missing == ["gone", "lost"]
    assert (fact.tokens_before, fact.tokens_after) == (78_000, 40_000)
    assert read.shadowed == [Shadowed([1, 4], by=5)]


def test_what_a_microcompact_took_is_dropped_with_the_rest_but_shadowed_once():
    read = run(*TOOLS, micro("m", ["t1"]), boundary("b"), summary("s", "b"))
    assert read.dropped(read.facts[-1]) == ["a1", "r1", "a2", "r2", "x"]
    assert read.shadowed == [Shadowed([1], by=5), Shadowed([0, 2, 3, 4], by=7)]


def test_a_second_microcompact_takes_only_what_is_still_there():
    read = run(*TOOLS, micro("m1", ["t1"]), micro("m2", ["t1", "t2"]))
    assert read.dropped(read.facts[-1]) == ["r2"]
    assert read.facts[-1].missing == []


def test_results_of_an_earlier_window_are_neither_taken_nor_missing():
    read = run(*TOOLS, boundary("b"), summary("s", "b"), micro("m", ["t1"]))
    assert (read.facts[-1].dropped, read.facts[-1].missing) == ([], [])


@pytest.mark.parametrize(
    "items",
    [
        [*TALK, boundary("b"), summary("s", "b"), user("u3", "x"), boundary("b2"), summary("s2", "b2")],
        [
            *TOOLS,
            micro("m", ["t1"], ["x"]),
            user("u", "x"),
            boundary("b"),
            summary("s", "b"),
            micro("m2", ["t2"]),
        ],
        [*TALK, boundary("b"), *[user(f"l{n}", f"turn {n}") for n in range(4)]],
        [
            *TALK,
            boundary("b", {"preservedMessages": {"uuids": ["u2"]}}),
            TALK[2],
            summary("s", "b"),
            boundary("c"),
        ],
        [
            user("aaaaaaaa-1", "Look", isSidechain=True),
            user("bbbbbbbb-1", "Look", isSidechain=True),
            assistant("cccccccc-1", "lost", isSidechain=True, parentUuid="never-written"),
        ],
        [
            {"type": "custom-title", "customTitle": "Chosen", "sessionId": SESSION},
            {"type": "ai-title", "aiTitle": "Made up", "sessionId": SESSION},
        ],
    ],
)
def test_a_log_read_row_by_row_gives_the_same(items):
    rows = rows_of(*items)
    assert run(*items).events
    assert run_in_parts(rows, range(1, len(rows))) == run(*items).effects


def test_the_state_holds_nothing_of_windows_that_are_gone():
    reader = FORMAT.reader(HEAD, None, [])
    for row in rows_of(*TOOLS, micro("m", ["t1", "t2"]), boundary("b"), summary("s", "b")):
        reader.feed(row)
    assert list(reader.state()["lanes"][""]) == ["said"]
