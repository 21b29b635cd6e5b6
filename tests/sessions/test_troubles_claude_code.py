"""What Claude Code's own writers get wrong, end to end."""

from pathlib import Path

import pytest

from records.models import Record
from sessions_app.counts import session_events
from sessions_app.models import AgentSession, ArchivedCompaction, Compaction, Event, L1Eviction

from .builders import (
    archive,
    assert_sound,
    body,
    compactions,
    encode,
    original,
    records,
    session,
    warnings,
    window,
    write,
)
from .logs.claude_lines import (
    OTHER_SESSION,
    SESSION,
    SUMMARY_TEXT,
    Line,
    assistant,
    attachment,
    boundary,
    call,
    line,
    micro,
    result,
    summary,
    user,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]
FORKED = "22222222-2222-4333-8444-555555555555"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "projects" / "-home-dev---"


@pytest.fixture
def log(folder: Path) -> Path:
    return folder / f"{SESSION}.jsonl"


TALK = [user("u1", "the first question"), assistant("a1", "the first answer")]
COMPACTED = [boundary("b1"), summary("s1", "b1")]


def owned(record: Record) -> list[str]:
    return list(Event.objects.filter(record_id=record.id).order_by("seq").values_list("uid", flat=True))


# --- written again --------------------------------------------------------------------------------

AGAIN: dict[str, tuple[list[Line], int]] = {
    "identical": (TALK, 0),
    "other metadata": ([{**row, "gitBranch": "other", "version": "2.1.99"} for row in TALK], 0),
    "other content": ([user("u1", "the first question, edited")], 1),
}


@pytest.mark.parametrize("name", AGAIN)
def test_a_uuid_that_comes_again(log, name):
    rows, news = AGAIN[name]
    data = write(log, [*TALK, *rows, *COMPACTED, user("u2", "on")])
    archive(log)
    assert Event.objects.count() == 5 + news
    (record,) = records()
    assert record.provenance["shadowedEventCount"] == 2 + news
    assert "the first question" in body(record, log.parents[2] / "home")
    assert_sound({SESSION: data}, [log])


def test_all_that_was_summarised_is_written_again_behind_the_second_compaction(log):
    more = [user("u2", "the second question"), assistant("a2", "the second answer")]
    again = [*TALK, *COMPACTED, *more]
    data = write(log, [*again, boundary("b2"), summary("s2", "b2"), *again, user("u3", "on")])
    assert archive(log).archived == 2
    first, second = records()
    assert owned(first) == ["u1", "a1"]
    assert owned(second) == ["s1", "u2", "a2"]
    assert window(SESSION) == [SUMMARY_TEXT, "on"]
    assert Event.objects.count() == 9
    assert_sound({SESSION: data}, [log])


def test_hooks_that_share_one_uuid(log):
    hooks = [attachment("h", "hook_additional_context", content=[f"context {n}"]) for n in range(20)]
    data = write(log, [*TALK, *hooks, *hooks, *COMPACTED])
    archive(log)
    assert Event.objects.filter(uid="h").count() == 20
    (record,) = records()
    assert record.provenance["shadowedEventCount"] == 22
    assert_sound({SESSION: data}, [log])


# --- compactions ----------------------------------------------------------------------------------


def test_a_boundary_without_a_summary_waits_for_three_turns(log):
    turns = [user(f"t{n}", f"turn {n}") for n in range(3)]
    write(log, [*TALK, boundary("b1", timestamp="2099-01-01T00:00:00.000Z"), *turns[:2]])
    assert archive(log).pending == 1
    assert not records()
    data = write(log, [*TALK, boundary("b1", timestamp="2099-01-01T00:00:00.000Z"), *turns])
    assert archive(log).archived == 1
    (record,) = records()
    assert record.provenance["unconfirmed"] is True
    assert owned(record) == ["u1", "a1"]
    assert_sound({SESSION: data}, [log])


def test_a_boundary_without_a_summary_is_archived_when_it_is_old(log):
    data = write(log, [*TALK, boundary("b1", timestamp="2025-01-30T10:00:00.000Z")])
    archive(log)
    (record,) = records()
    assert record.provenance["unconfirmed"] is True
    assert_sound({SESSION: data}, [log])


def test_a_summary_that_comes_late_confirms(log):
    write(log, [*TALK, boundary("b1", timestamp="2099-01-01T00:00:00.000Z")])
    assert archive(log).pending == 1
    data = write(log, [*TALK, boundary("b1", timestamp="2099-01-01T00:00:00.000Z"), summary("s1", "b1")])
    assert archive(log).archived == 1
    (record,) = records()
    assert not record.provenance.get("unconfirmed")
    assert_sound({SESSION: data}, [log])


def test_two_boundaries_with_three_rows_between(log):
    between = [user("u2", "quick"), call("c2", "toolu_2"), result("r2", "toolu_2")]
    data = write(log, [*TALK, *COMPACTED, *between, boundary("b2"), summary("s2", "b2"), user("u3", "on")])
    archive(log)
    first, second = records()
    assert owned(first) == ["u1", "a1"]
    assert owned(second) == ["s1", "u2", "c2", "r2"]
    assert_sound({SESSION: data}, [log])


KEPT = {
    "messages": {"preservedMessages": {"anchorUuid": "s1", "uuids": ["u2", "a2"], "allUuids": ["u2", "a2"]}},
    "messages, as the stream says it": {"preserved_messages": {"anchor_uuid": "s1", "uuids": ["u2", "a2"]}},
    "segment only": {"preservedSegment": {"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "a2"}},
    "messages before a wrong segment": {
        "preservedMessages": {"uuids": ["u2", "a2"]},
        "preservedSegment": {"headUuid": "u1", "tailUuid": "a1"},
    },
    "none": {},
}


@pytest.mark.parametrize("rewritten", [False, True], ids=["kept in place", "written again"])
@pytest.mark.parametrize("name", KEPT)
def test_what_a_compaction_keeps_word_for_word(log, name, rewritten):
    last = [user("u2", "keep this"), assistant("a2", "kept")]
    again = last if rewritten else []
    data = write(
        log,
        [*TALK, *last, boundary("b1", KEPT[name]), summary("s1", "b1"), *again, user("u3", "on"),
         boundary("b2"), summary("s2", "b2")],
    )  # fmt: skip
    archive(log)
    first, second = records()
    kept = ["u2", "a2"] if KEPT[name] else []
    assert owned(first) == ["u1", "a1", *(["u2", "a2"] if not kept else [])]
    assert sorted(owned(second)) == sorted([*kept, "s1", "u3"])
    assert_sound({SESSION: data}, [log])


def test_a_microcompact_gives_a_record_of_its_own(log):
    outputs = [call("c1", "toolu_1"), result("r1", "toolu_1", "PORT=8123"), call("c2", "toolu_2")]
    outputs += [result("r2", "toolu_2", "kept")]
    data = write(log, [*TALK, *outputs, micro("m1", ["toolu_1", "toolu_gone"]), user("u2", "on"), *COMPACTED])
    done = archive(log)
    assert (done.archived, done.micro) == (1, 1)
    (evicted,), (record,) = records("microcompact"), records()
    assert b"PORT=8123" in original(evicted)
    assert L1Eviction.objects.get().record_id == evicted.id
    assert "r1" not in owned(record)
    assert record.links["previous"] == [evicted.id]
    assert b"PORT=8123" in original(record)
    assert compactions(SESSION, "microcompact")[0].missing == ["toolu_gone"]
    assert_sound({SESSION: data}, [log])


def test_a_compaction_of_old_versions_has_no_boundary(log):
    data = write(log, [*TALK, user("s1", f"{SUMMARY_TEXT} It was about caches."), user("u2", "on")])
    assert archive(log).archived == 1
    assert compactions(SESSION)[0].compaction_id == "sum:s1"
    assert_sound({SESSION: data}, [log])


# --- the chain ------------------------------------------------------------------------------------


def test_parents_that_were_never_written(log):
    rows = [user(f"u{n}", f"question {n}", parentUuid=f"nowhere{n}") for n in range(1, 5)]
    data = write(log, [*rows, boundary("b1", logicalParentUuid="nowhere"), summary("s1", "b1")])
    archive(log)
    (record,) = records()
    assert owned(record) == ["u1", "u2", "u3", "u4"]
    assert warnings(log) == []
    assert_sound({SESSION: data}, [log])


def test_parallel_tools_hang_under_one_message(log):
    one = {"id": "msg_1", "usage": {"input_tokens": 70, "cache_read_input_tokens": 900}}
    calls = [call(f"c{n}", f"toolu_{n}", parentUuid="u1", message=one) for n in range(3)]
    results = [result(f"r{n}", f"toolu_{n}", f"output {n}", parentUuid=f"c{n}") for n in range(3)]
    data = write(log, [TALK[0], *calls, *results, *COMPACTED])
    archive(log)
    (record,) = records()
    assert owned(record) == ["u1", "c0", "c1", "c2", "r0", "r1", "r2"]
    assert session(SESSION).used_tokens == 970
    assert_sound({SESSION: data}, [log])


# --- sub-agents -----------------------------------------------------------------------------------


def test_a_sub_agent_inline(log):
    side = [
        user("x1", "look into the cache", isSidechain=True),
        assistant("x2", "it is cold", isSidechain=True, parentUuid="x1"),
    ]
    data = write(log, [*TALK, *side, *COMPACTED, user("u2", "on")])
    archive(log)
    (record,) = records()
    assert owned(record) == ["u1", "a1"]
    child = AgentSession.objects.get(parent_id=SESSION, relation="subagent")
    assert [event.uid for event in session_events(child).order_by("seq")] == ["x1", "x2"]
    assert (child.pool_session_id, child.workspace_key) == (SESSION, session(SESSION).workspace_key)
    assert_sound({SESSION: data}, [log])


@pytest.mark.parametrize("place", ["agent-7c01.jsonl", f"{SESSION}/subagents/agent-7c01.jsonl"])
def test_a_sub_agent_in_a_file_of_its_own(folder, log, place):
    parent = write(log, [*TALK, *COMPACTED])
    side = {"isSidechain": True, "agentId": "7c01"}
    rows = [user("x1", "look", **side), assistant("x2", "found", **side), boundary("xb", **side)]
    child = write(folder / place, [*rows, summary("xs", "xb", **side)])
    assert archive(folder).archived == 2
    found = session("agent-7c01")
    assert (found.parent_id, found.relation, found.pool_session_id) == (SESSION, "subagent", SESSION)
    assert compactions("agent-7c01")[0].state == Compaction.State.ARCHIVED
    assert Event.objects.filter(session_id=SESSION).count() == 4
    assert_sound({SESSION: parent, "agent-7c01": child}, [folder])


# --- ids ------------------------------------------------------------------------------------------


def test_several_session_ids_in_one_file(log):
    moved = [{**row, "sessionId": OTHER_SESSION} for row in [user("u2", "resumed"), assistant("a2", "yes")]]
    data = write(log, [*TALK, *moved, *COMPACTED])
    archive(log)
    (record,) = records()
    assert owned(record) == ["u1", "a1", "u2", "a2"]
    assert AgentSession.objects.get().pk == SESSION
    assert_sound({SESSION: data}, [log])


@pytest.mark.parametrize("with_parent", [True, False])
def test_a_fork_repeats_its_parents_compaction(folder, log, with_parent):
    history = [*TALK, *COMPACTED]
    copied = [
        {**row, "sessionId": FORKED, "forkedFrom": {"sessionId": SESSION, "messageUuid": row["uuid"]}}
        for row in history
    ]
    logs = {FORKED: write(folder / f"{FORKED}.jsonl", [*copied, user("f1", "another way")])}
    if with_parent:
        logs[SESSION] = write(log, history)
    archive(folder)
    (record,) = records()
    assert record.provenance["sessionId"] == SESSION
    assert set(ArchivedCompaction.objects.values_list("session_id", "record_id")) == {
        (SESSION, record.id), (FORKED, record.id),
    }  # fmt: skip
    assert session(FORKED).relation == "fork"
    assert_sound(logs, [folder])


def test_the_slugs_of_two_chinese_folders_collide(tmp_path):
    slug = tmp_path / "projects" / "-home-dev---"
    tea = write(slug / f"{SESSION}.jsonl", [{**row, "cwd": "/home/dev/茶馆"} for row in TALK])
    inn = [{**row, "cwd": "/home/dev/客栈", "sessionId": OTHER_SESSION} for row in TALK]
    inn = write(slug / f"{OTHER_SESSION}.jsonl", inn)
    archive(slug)
    first, second = session(SESSION), session(OTHER_SESSION)
    assert (first.cwd, second.cwd) == ("/home/dev/茶馆", "/home/dev/客栈")
    assert first.workspace_key != second.workspace_key
    assert_sound({SESSION: tea, OTHER_SESSION: inn}, [slug])


# --- our own words --------------------------------------------------------------------------------

RECALLED = "<memex-context>\nRecord mem_0123456789: the port is 8123.\n</memex-context>"
OURS: dict[str, Line] = {
    "from a hook": attachment("x1", "hook_additional_context", content=[RECALLED]),
    "as a meta message": user("x1", RECALLED, isMeta=True),
    "in a person's place": user("x1", RECALLED),
    "an older form": user("x1", "[MEMORY RECALL] the port is 8123."),
}


@pytest.mark.parametrize("name", OURS)
def test_what_we_injected_is_not_archived_again(log, memex_home, name):
    data = write(log, [OURS[name], assistant("a0", "All right."), *TALK, *COMPACTED])
    archive(log)
    (record,) = records()
    assert "8123" not in body(record, memex_home)
    assert record.title == "the first question"
    assert Event.objects.get(uid="x1").source == "injected"
    assert_sound({SESSION: data}, [log])


def test_what_we_injected_beside_a_persons_words(log, memex_home):
    both = f"what is next?\n{RECALLED}"
    data = write(log, [user("x1", both), assistant("a0", "The port."), *COMPACTED])
    archive(log)
    (record,) = records()
    assert record.title == "what is next?"
    assert "mem_0123456789" not in record.title + record.summary + record.use_when
    assert encode([user("x1", both)]) in original(record)
    assert_sound({SESSION: data}, [log])


def test_kinds_of_rows_that_nobody_knows_yet(log):
    odd = [
        line("levitation", "x1", text="unheard of"),
        {"type": "unthreaded-novelty", "note": "no uuid"},
        line("system", "x2", subtype="novelty", content="new"),
        assistant("x3", {"type": "hologram", "payload": {"text": "a new kind of block"}}),
    ]
    data = write(log, [*TALK, *odd, *COMPACTED])
    assert archive(log).warnings == 0
    (record,) = records()
    assert b"a new kind of block" in original(record)
    assert_sound({SESSION: data}, [log])
