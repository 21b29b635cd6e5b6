"""Whose words DSH's events hold, what they are known by, and what a log says of its session."""

import json

import pytest

from sessions_app.logs.events import AGENT, HARNESS, INJECTED, MODEL, PERSON, SUMMARY, TOOL, FileRef

from .dsh_builder import DshLog, story, text
from .dsh_run import run


def test_whose_words_an_event_holds():
    log = DshLog()
    log.system("You are a demo agent.")
    log.user("port?")
    log.user("port?", rpcId="r1")
    log.user("<system-reminder>be brief</system-reminder>")
    log.user("a checkpoint", kind="compact-checkpoint")
    log.user("from memory", kind="memory-recall")
    log.user("from a child", kind="agent-message", senderSessionId="x")
    log.user("a child is done", kind="subagent-settled", senderSessionId="x")
    log.user("skills", kind="skill-catalog")
    log.user("v0", kind="plugin", plugin="tools-code-mode")
    log.user("v0", kind="plugin", plugin="compact")
    log.assistant("9000")
    log.result("c1", "ok")
    log.event("command/run", {"name": "compact", "source": {"kind": "user"}})
    log.event(
        "tool/ptc-dispatch", {"subCallId": "s1", "name": "bash", "arguments": {}, "content": text("out")}
    )
    assert [event.source for event in run(log).events] == [
        HARNESS, PERSON, PERSON, HARNESS, SUMMARY, INJECTED, AGENT, AGENT, HARNESS, HARNESS, SUMMARY, MODEL, TOOL,
        HARNESS, TOOL,
    ]  # fmt: skip


def test_what_a_sub_agent_is_asked_comes_from_an_agent():
    log = DshLog(parentSession="p", origin="subagent")
    log.user("Count the tests.")
    log.user("typed into the child", rpcId="r1")
    assert [event.source for event in run(log).events] == [AGENT, PERSON]


def test_ids_that_later_rows_and_records_go_by():
    log = DshLog()
    log.user("port?")
    log.assistant("", calls={"c1": "ls"})
    log.event("tool/call", {"callId": "c1", "name": "bash", "arguments": "{}"})
    log.result("c1", "ok")
    log.event("compaction/start", {"compactionId": "k1"})
    log.event("tool/ptc-dispatch", {"subCallId": "s1"})
    assert [(event.uid, event.ref) for event in run(log).events] == [
        ("m0", ""), ("a1", ""), ("", "c1"), ("r-c1", "c1"), ("k1", ""), ("", "s1"),
    ]  # fmt: skip
    assert [event.role for event in run(log).events] == ["user", "assistant", "assistant", "tool", "", "tool"]


def test_the_call_of_a_result_is_found_in_every_version():
    for version in range(6):
        log = DshLog(version=version)
        log.result("c1", "ok")
        del log.rows[1]["data"]["message"]["source"]
        assert run(log).events[0].ref == "c1"


def test_what_the_session_says_of_itself():
    assert run(story(parentSession="p")).session == {
        "cwd": "/home/dev/demo",
        "version": "4",
        "parent_id": "p",
        "relation": "fork",
        "title": "查找结账测试失败原因",
        "model": "demo-1",
        "context_window": 128_000,
        "used_tokens": 1100,
    }


def test_attachments_are_named_relative_to_the_agents_home():
    found = run(story())
    assert [reference.path for reference in found.of(FileRef)] == [
        f"attachments/v1/objects/2a/{'2a' * 32}",
        f"attachments/v1/objects/25/{'25' * 32}",
    ]


@pytest.mark.parametrize(
    "attachment", ["sha256:../../etc/passwd", "sha256:2a", "md5:" + "2a" * 16, "", 5, None]
)
def test_an_attachment_without_a_proper_hash_is_no_file(attachment):
    log = DshLog()
    log.user([{"type": "image", "attachment": {"attachmentId": attachment}}])
    assert run(log).of(FileRef) == []


def test_previews_say_what_an_event_is_about():
    log = DshLog()
    log.assistant("", calls={"c1": "pytest -k T4711"})
    log.result("c1", "E   refused\n" * 100)
    log.checkpoint("k1", 0, 1, "## Current  Work")
    log.event("session/title", {"title": "结账"})
    log.event("turn/end", {"reason": {"kind": "aborted"}})
    previews = [event.preview for event in run(log).events]
    assert previews[0] == 'bash {"command": "pytest -k T4711"}'
    assert previews[1].startswith("E refused E refused")
    assert previews[2:] == ["## Current Work", "结账", "aborted"]
    assert max(map(len, previews)) <= 200


def test_inherited_events_end_at_the_seed_length_in_old_formats():
    log = DshLog(version=0, parentSession="p", seedLength=3)
    asked = log.user("port?")
    log.summary("k1", [asked], "…")
    log.checkpoint("k1", asked, asked, "…")
    mine = log.user("and mine?")
    log.compaction("k2", [mine], "…")
    found = run(log)
    assert [event.seq for event in found.events if event.inherited] == [0, 1, 2]
    assert found.facts["k1"].origin_session_id == "p"
    assert found.facts["k2"].origin_session_id == ""


def test_inherited_events_end_at_the_row_that_says_so_in_new_formats():
    log = DshLog(parentSession="p", isSeeded=True)
    log.compaction("k1", [log.user("port?")], "…")
    log.event("session/end-seed", {})
    cut = log.event("session/end-seed", {"inherited": True})
    log.compaction("k2", [log.user("and mine?")], "…")
    found = run(log)
    assert [event.seq for event in found.events if event.inherited] == list(range(cut))
    assert {key: fact.origin_session_id for key, fact in found.facts.items()} == {"k1": "p", "k2": ""}


def test_a_fork_of_a_fork_inherits_what_its_parent_said_after_its_own_seed():
    log = DshLog(parentSession="p", isSeeded=True)
    log.user("grandparent")
    log.event("session/end-seed", {"inherited": True})
    log.compaction("k1", [log.user("parent")], "…")
    cut = log.event("session/end-seed", {"inherited": True})
    log.rows[0]["createdAt"] = log.rows[-1]["time"]
    log.compaction("k2", [log.user("child")], "…")
    found = run(log)
    assert [event.seq for event in found.events if event.inherited] == list(range(cut))
    assert {key: fact.origin_session_id for key, fact in found.facts.items()} == {"k1": "p", "k2": ""}


def test_a_session_that_is_no_fork_inherits_nothing():
    log = story(parentSession="p", origin="subagent")
    log.event("session/end-seed", {"inherited": True})
    assert not any(event.inherited for event in run(log).events)


def test_strings_that_no_database_takes_are_cleaned():
    log = DshLog()
    log.user("port?")
    log.event("session/title", {"title": "half \ud83d of it"})
    log.rows[1]["data"]["id"] = "m\ud800"
    raw = b"".join(json.dumps(row).encode() + b"\n" for row in log.rows)
    found = run(raw)
    assert (found.events[0].uid, found.session["title"]) == ("m?", "half ? of it")
