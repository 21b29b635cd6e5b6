"""The hooks of Claude Code and Codex, with payloads as these send them."""

import json

import pytest

from records.ids import workspace_key
from records.models import Record
from sessions_app import worker
from sessions_app.archiving import archive_run
from sessions_app.levels import level_enable
from sessions_app.models import AgentSession, Injection, OpenedSession, Receipt
from sessions_app.workspaces import workspace_default_set
from tests.sessions.stories import as_bytes, session_id, story, write_log

pytestmark = pytest.mark.django_db(transaction=True)
CWD = "/home/dev/demo"


@pytest.fixture
def log(agents):
    return write_log(agents / "claude-code", 1)


@pytest.fixture
def claude(caller, log):
    archive_run(level="l3")
    return caller("claude-code", agent="claude-code")


def payload(log, event, **more):
    return {
        "session_id": session_id(), "prompt_id": "p1", "transcript_path": str(log), "cwd": CWD,
        "permission_mode": "default", "hook_event_name": event, "effort": {"level": "high"},
    } | more  # fmt: skip


def send(caller, log, event, agent="claude-code", **more):
    return caller.hook(agent, event, **payload(log, event, **more))


def added(response):
    """What the agent would put into its context."""
    if response.status_code == 204:
        assert response.content == b""
        return ""
    assert response.status_code == 200, response.content
    answer = response.json()
    assert set(answer) == {"hookSpecificOutput"}, "Codex refuses a key that it doesn't know"
    assert set(answer["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    return answer["hookSpecificOutput"]["additionalContext"]


def test_a_session_that_starts_is_told_the_catalog_in_our_tags(claude, log):
    text = added(send(claude, log, "SessionStart", source="startup"))
    assert text.startswith('<memex-context form="checkpoint" id="msg_')
    assert text.count("<memex-context ") == text.count("</memex-context>") == 2
    assert "[MEMORY CATALOG]" in text and len(text) <= 9_500
    assert OpenedSession.objects.get().token_id is None, "it is the agent's, whichever token sent the hook"


def test_on_resume_nothing_is_repeated(claude, log):
    send(claude, log, "SessionStart", source="startup")
    Receipt.objects.update(delivered_at=1)
    assert added(send(claude, log, "SessionStart", source="resume")) == ""


def test_the_catalog_comes_once_a_window_with_hooks(claude, log):
    send(claude, log, "SessionStart", source="startup")
    Receipt.objects.update(delivered_at=1)
    from tests.records.drafts import write

    write("new", workspace_key=workspace_key(CWD, ""), workspace=CWD)
    assert added(send(claude, log, "UserPromptSubmit", prompt="go on")) == ""


def test_after_a_compaction_the_next_one_that_can_be_told_is_told(claude, log):
    send(claude, log, "SessionStart", source="startup")
    Receipt.objects.update(delivered_at=1)
    Injection.objects.update(injected_at=1)
    assert added(send(claude, log, "PreCompact", trigger="auto", custom_instructions="")) == ""
    log.write_bytes(as_bytes(story(1, compactions=3)))
    assert added(send(claude, log, "PostCompact", trigger="auto", compact_summary="…")) == ""
    archive_run()
    text = added(send(claude, log, "SessionStart", source="compact"))
    assert "[MEMORY CHECKPOINT]" in text and "[MEMORY CATALOG]" in text
    Receipt.objects.update(delivered_at=1)
    assert added(send(claude, log, "UserPromptSubmit", prompt="go on")) == ""


def test_a_compaction_told_of_before_its_log_line_counts_once(claude, log):
    send(claude, log, "SessionStart", source="startup")
    Receipt.objects.update(delivered_at=1)
    Injection.objects.update(injected_at=1)
    text = added(send(claude, log, "SessionStart", source="compact"))
    assert "[MEMORY CATALOG]" in text
    log.write_bytes(as_bytes(story(1, compactions=3)))
    archive_run()
    text = added(send(claude, log, "UserPromptSubmit", prompt="go on"))
    assert "[MEMORY CHECKPOINT]" in text and "[MEMORY CATALOG]" not in text


def test_several_starts_of_one_window_tell_it_once(claude, log):
    """Codex hands queued ones on together."""
    send(claude, log, "SessionStart", source="startup")
    Receipt.objects.update(delivered_at=1)
    assert added(send(claude, log, "SessionStart", source="compact")) == ""


def test_a_cleared_session_begins_anew(claude, log):
    send(claude, log, "SessionStart", source="startup")
    Receipt.objects.update(delivered_at=1)
    Injection.objects.update(injected_at=1)
    assert "[MEMORY CATALOG]" in added(send(claude, log, "SessionStart", source="clear"))


def test_a_new_session_in_a_workspace_that_is_on_is_told_what_is_shared(claude, log):
    workspace_default_set(workspace_key(CWD, ""), CWD, l2=False, l3=True)
    new = payload(log, "SessionStart", source="startup", session_id="99999999-0000-4000-8000-000000000000")
    new["transcript_path"] = str(log.parent / "not-written-yet.jsonl")
    text = added(claude.hook("claude-code", "SessionStart", **new))
    assert "[MEMORY CATALOG]" in text
    assert set(Record.objects.values_list("pk", flat=True)) <= set(text.replace(" ", "\n").split())


def test_an_off_session_leaves_nothing_behind(caller, log):
    claude = caller("claude-code", agent="claude-code")
    for event, more in (
        ("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": "zanzibarite"}),
        ("PostCompact", {"trigger": "auto", "compact_summary": "zanzibarite"}), ("SessionEnd", {"reason": "other"}),
    ):  # fmt: skip
        assert added(send(claude, log, event, **more)) == ""
    assert not OpenedSession.objects.exists()
    assert not Injection.objects.exists()
    assert not AgentSession.objects.exists()


def test_a_session_that_ended_is_closed_and_opened_again_by_the_next_hook(claude, log):
    send(claude, log, "SessionEnd", reason="other")
    assert AgentSession.objects.get().ended_at is not None
    archive_run()
    assert Record.objects.filter(provenance__source="session-end").count() == 1
    send(claude, log, "SessionStart", source="resume")
    assert AgentSession.objects.get().ended_at is None


def test_what_is_still_in_the_window_is_not_told_of(claude, log):
    send(claude, log, "SessionEnd", reason="other")
    archive_run()
    closing = Record.objects.get(provenance__source="session-end")
    text = added(send(claude, log, "SessionStart", source="resume"))
    assert "[MEMORY CATALOG]" in text and closing.id not in text


def nudged():
    return worker._nudged()


def test_every_event_hints_at_the_log(claude, log):
    nudged()
    for event in (
        "SessionStart",
        "UserPromptSubmit",
        "PreCompact",
        "PostCompact",
        "Stop",
        "SessionEnd",
        "Unheard",
    ):
        send(claude, log, event)
        assert nudged() == {log}, event


def test_only_this_sessions_own_log_below_its_agents_folder_is_read(claude, log, agents, tmp_path):
    outside = tmp_path / "elsewhere.jsonl"
    outside.write_bytes(log.read_bytes())
    other = write_log(agents / "claude-code", 2, word="lantern")
    link = log.parent / "link.jsonl"
    link.symlink_to(outside)
    pipe = log.parent / "pipe.jsonl"
    import os

    os.mkfifo(pipe)
    nudged()
    for path in (
        outside,
        other,
        link,
        pipe,
        log.parent,
        log.parent / ".." / ".." / "x",
        "/etc/passwd",
        "\0",
        "",
        7,
        None,
    ):
        response = claude.hook(
            "claude-code",
            "Stop",
            **payload(log, "Stop") | {"transcript_path": path if isinstance(path, int | None) else str(path)},
        )
        assert response.status_code == 204, (path, response.content)
        assert nudged() == set(), path


def test_the_log_of_a_sub_agent_is_read_and_nothing_is_injected_there(claude, log):
    response = send(
        claude, log, "UserPromptSubmit", prompt="the harbour", agent_id="a1", agent_type="Explore"
    )
    assert added(response) == ""


def test_codex_gets_no_more_than_it_takes(caller, agents, settings):

    codex = caller("codex", agent="codex")
    workspace_default_set(workspace_key(CWD, ""), CWD, l2=False, l3=True)
    settings.MEMEX_CATALOG_MAX_CHARS = 9_500
    from tests.records.drafts import write

    for number in range(40):
        write(
            f"c{number}", title="港口的灯塔在夜里发光" * 8, use_when="继续港口工作时阅读" * 12,
            workspace_key=workspace_key(CWD, ""), workspace=CWD, kind="open-thread" if number % 3 else "decision",
        )  # fmt: skip
    text = added(codex.hook("codex", "SessionStart", session_id="c-1", transcript_path=None, cwd=CWD,
                            hook_event_name="SessionStart", model="gpt-5.5", source="startup"))  # fmt: skip
    assert "[MEMORY CATALOG]" in text
    assert len(text.encode()) <= 2_300 * 4


def test_a_token_of_another_agent_sends_no_hook(caller, log):
    archive_run(level="l3")
    for token in (caller("codex", agent="codex"), caller("reader", rights=["read"], agent="claude-code")):
        response = send(token, log, "SessionStart", source="startup")
        assert response.status_code == 403 and response.json()["code"] == "MEMORY_FORBIDDEN"


def test_a_token_for_no_agent_in_particular_becomes_the_first_ones(caller, log):
    archive_run(level="l3")
    plain = caller("plain")
    assert added(send(plain, log, "SessionStart", source="startup"))
    assert plain.hook("codex", "SessionStart", session_id="c-1", cwd=CWD).status_code == 403
    assert plain.get("memory.index", sessionId=session_id()).status_code == 200
    busy = caller("busy")
    busy.post("session.open", sessionId="mine", agent="botty", cwd=CWD)
    assert send(busy, log, "SessionStart", source="startup").status_code == 403


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"cwd": "/x"}', b'{"session_id": 7}', b"\xff\xfe"]
)
def test_a_payload_that_is_none_is_refused(claude, body):
    response = claude.client.post(
        "/hooks/claude-code/Stop", body, content_type="application/json", headers=claude.headers()
    )
    assert response.status_code == 400 and response.json()["code"] == "MEMORY_INVALID_BODY"


def test_fields_that_nobody_has_heard_of_are_no_trouble(claude, log):
    response = send(
        claude, log, "Stop", novelty={"deep": [1, 2]}, stop_hook_active=False, last_assistant_message="x"
    )
    assert response.status_code == 204
    odd = json.dumps(payload(log, "UserPromptSubmit", prompt="\ud800 lone \x00 nul")).encode()
    response = claude.client.post(
        "/hooks/claude-code/UserPromptSubmit", odd, content_type="application/json", headers=claude.headers()
    )
    assert response.status_code in (200, 204)


def test_a_prompt_that_recalls(claude, log):
    level_enable(session_id(), "l2")
    send(claude, log, "SessionStart", source="startup")
    Receipt.objects.update(delivered_at=1)
    from tests.records.drafts import write

    wanted = write(
        "quokka", title="Quokka pipeline", body="Deploy with `make quokka-ship --region fjord`.\n",
        workspace_key=workspace_key(CWD, ""), workspace=CWD, kind="procedure",
    )  # fmt: skip
    text = added(
        send(claude, log, "UserPromptSubmit", prompt="deploy the quokka pipeline to the fjord region")
    )
    assert wanted in text and "[MEMORY RECALL]" in text and 'form="recall"' in text
