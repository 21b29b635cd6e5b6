import json

import pytest

from sessions_app.logs import registry
from sessions_app.logs.rows import Row

from .dsh_builder import story
from .dsh_run import rows_of


def rows(*values: object) -> list[Row]:
    return rows_of(b"".join(json.dumps(value).encode() + b"\n" for value in values))


CLAUDE_CODE = {
    "type": "user",
    "uuid": "6a1f0000-0000-4000-8000-000000000001",
    "parentUuid": None,
    "sessionId": "6a1f0000-0000-4000-8000-00000000000a",
    "timestamp": "2026-08-21T10:00:00.000Z",
    "cwd": "/home/dev/demo",
    "isSidechain": False,
    "message": {"role": "user", "content": "hello"},
}
CODEX = {
    "timestamp": "2026-08-21T10:00:00.000Z",
    "type": "session_meta",
    "payload": {
        "id": "0199a000-0000-7000-8000-000000000001",
        "cwd": "/home/dev/demo",
        "cli_version": "0.136.0",
    },
}


def test_each_agent_has_one_format_that_names_it():
    assert {agent: log_format.agent for agent, log_format in registry.FORMATS.items()} == {
        "claude-code": "claude-code",
        "codex": "codex",
        "dsh": "dsh",
    }
    assert registry.format_of("dsh") is registry.FORMATS["dsh"]
    with pytest.raises(KeyError):
        registry.format_of("nobody")


@pytest.mark.parametrize(
    ("agent", "first"),
    [("claude-code", CLAUDE_CODE), ("codex", CODEX), ("dsh", story().rows[0])],
)
def test_a_log_is_known_by_what_it_holds_and_claimed_by_one_format_only(agent, first):
    found = registry.sniff(rows(first), "/somewhere/log.jsonl")
    assert found is not None
    log_format, head = found
    assert (log_format.agent, head.agent) == (agent, agent)
    assert [
        name for name, other in registry.FORMATS.items() if other.head(rows(first), "/somewhere/log.jsonl")
    ] == [agent]


def test_damaged_rows_before_the_first_good_one_do_not_hide_a_log():
    junk = [Row(number, 0, b"\0\0{broken") for number in range(50)]
    found = registry.sniff(junk + rows_of(story().data()), "/somewhere/log.jsonl")
    assert found is not None
    assert found[1].session_id == "session-demo"


def test_only_so_many_rows_are_looked_at():
    def endless():
        while True:
            yield Row(0, 0, b'{"nothing": "known"}')

    assert registry.sniff(endless(), "/somewhere/log.jsonl") is None


@pytest.mark.parametrize(
    "values",
    [
        [],
        ["text", 5, None, []],
        [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}],
        [{"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}],
        [{"name": "someone", "value": 3}],
    ],
)
def test_what_is_no_log_is_nobodys(values):
    assert registry.sniff(rows(*values), "/somewhere/data.jsonl") is None


def test_a_named_agent_is_the_only_one_that_is_asked():
    assert registry.sniff(rows(CODEX), "/somewhere/log.jsonl", "dsh") is None
    found = registry.sniff(rows(CODEX), "/somewhere/log.jsonl", "codex")
    assert found is not None
    assert found[0].agent == "codex"
