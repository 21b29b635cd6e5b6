import pytest

from sessions_app.logs.claude_code import FORMAT
from sessions_app.logs.events import Head
from tests.sessions.logs.claude_lines import OTHER_SESSION, SESSION, assistant, line, rows_of, user

BOOKKEEPING = [
    {"type": "last-prompt", "lastPrompt": "go", "leafUuid": "u1", "sessionId": SESSION},
    {"type": "mode", "mode": "normal", "sessionId": SESSION},
    {"type": "summary", "summary": "Another session", "leafUuid": "elsewhere"},
]
AGENT_LINE = user("u1", "Search the repository", isSidechain=True, agentId="a1b2")


def head_of(path: str, *items) -> Head | None:
    return FORMAT.head(rows_of(*items), path)


def test_a_session_that_opens_with_bookkeeping_lines():
    head = head_of(f"/home/dev/.claude/projects/-home-dev/{SESSION}.jsonl", *BOOKKEEPING, user("u1", "Start"))
    assert head == Head("claude-code", SESSION, "/home/dev/项目", 1769767200000, version="2.1.20")


def test_a_file_with_another_name_takes_the_first_session_its_lines_name():
    lines = user("u1", "Start"), user("u2", "More", sessionId=OTHER_SESSION)
    assert head_of("copy of a log.jsonl", *lines).session_id == SESSION


def test_the_file_name_outranks_the_session_that_its_lines_name():
    assert head_of(f"C:\\Users\\dev\\{OTHER_SESSION}.jsonl", user("u1", "Start")).session_id == OTHER_SESSION


@pytest.mark.parametrize(
    "path",
    [
        f"/p/{OTHER_SESSION}/subagents/agent-a1b2.jsonl",
        f"/p/{OTHER_SESSION}/subagents/workflows/wf_1/agent-a1b2.jsonl",
        f"C:\\p\\{OTHER_SESSION}\\subagents\\agent-a1b2.jsonl",
    ],
)
def test_a_subagent_in_its_parents_folder(path):
    head = head_of(path, AGENT_LINE)
    assert (head.session_id, head.relation, head.parent_id) == ("agent-a1b2", "subagent", OTHER_SESSION)


def test_a_subagent_beside_the_sessions_names_its_parent_in_its_lines():
    head = head_of("/p/agent-a1b2.jsonl", AGENT_LINE)
    assert (head.session_id, head.relation, head.parent_id) == ("agent-a1b2", "subagent", SESSION)


def test_a_subagent_that_names_itself_has_no_known_parent():
    head = head_of("/p/subagents/agent-a1b2.jsonl", {**AGENT_LINE, "sessionId": "agent-a1b2"})
    assert (head.session_id, head.parent_id) == ("agent-a1b2", "")


def test_a_fork_names_its_origin():
    copied = user("u1", "Start", forkedFrom={"sessionId": OTHER_SESSION, "messageUuid": "u0"})
    head = head_of(f"/p/{SESSION}.jsonl", copied)
    assert (head.session_id, head.relation, head.parent_id) == (SESSION, "fork", OTHER_SESSION)


def test_odd_rows_before_the_first_line_do_not_hide_a_session():
    head = head_of("x.jsonl", b"\0\0\0", b"{torn", b"", b"[1]", user("u1", "Start"))
    assert head.session_id == SESSION


def test_a_session_without_messages_yet():
    head = head_of("x.jsonl", line("system", "s1", subtype="session_start"))
    assert (head.session_id, head.cwd) == (SESSION, "/home/dev/项目")


@pytest.mark.parametrize(
    "items",
    [
        [],
        [b"not json"],
        BOOKKEEPING,
        [{"type": "summary", "summary": "Only a title", "leafUuid": "u1"}],
        [{"type": "started", "key": "v2:k", "agentId": "a"}, {"type": "result", "key": "v2:k", "result": {}}],
        [{"type": "user", "message": {"role": "user", "content": "any chat log"}}],
        [{"type": "user", "sessionId": "s", "message": {"role": "user", "content": "any chat log"}}],
        [{"role": "user", "content": "hello", "sessionId": "s", "uuid": "u"}],
        [{"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "x", "cwd": "/w"}}],
        [{"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": {"type": "message"}}],
        [
            {"sessionId": "g", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z", "kind": "main"},
            {"id": "g1", "timestamp": "2026-01-01T00:00:00Z", "type": "user", "content": [{"text": "hi"}]},
        ],
        [
            {"type": "session", "version": 4, "id": "session-demo", "createdAt": 1790000000000, "cwd": "/w"},
            {"type": "user/message", "seq": 3, "time": 1, "data": {"role": "user", "content": []}},
        ],
    ],
)
def test_other_files_are_not_claimed(items):
    assert head_of(f"/p/{SESSION}.jsonl", *items) is None


def test_a_relative_of_the_format_is_not_claimed():
    parts = line("user", "u1", message={"role": "user", "parts": [{"text": "hi"}]})
    reply = assistant("a1", "hello")
    assert head_of("x.jsonl", parts, reply) is None
