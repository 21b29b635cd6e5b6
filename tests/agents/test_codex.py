"""The same for Codex: its own settings, payloads and log."""

import json
import re
from pathlib import Path

import pytest

from tests.servers import environment_of, serving, until
from tests.sessions.logs.codex_lines import call, compacted, event, message, meta, output, raw, tokens, turn

from .test_claude_code import opened_raw, records, remembered
from .wired import connected

ID = "019d7e48-96e2-77a0-b4ce-607c7aba4b96"


@pytest.fixture
def environment(tmp_path):
    return environment_of(tmp_path)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def spoken(number):
    """One turn, with a tool call."""
    return [
        *turn(f"turn-{number}"),
        event("user_message", message=f"Look at the harbour of step {number}"),
        message("user", f"Look at the harbour of step {number}"),
        call(f"call-{number}"),
        output(f"call-{number}", f"harbour {number}: " + "row of output; " * 60),
        message("assistant", f"The harbour of step {number} is fine."),
        tokens(9_000 + number),
    ]


def test_from_a_compaction_to_the_exact_bytes(environment, folder):
    log = Path(environment["CODEX_HOME"]) / "sessions/2026/04/11" / f"rollout-2026-04-11T20-42-59-{ID}.jsonl"
    log.parent.mkdir(parents=True)

    def writes(rows):
        data = raw(rows)
        with log.open("ab") as file:
            file.write(data)
        return data

    def payload(**more):
        return {"session_id": ID, "transcript_path": str(log), "cwd": str(folder), "model": "gpt-5.5"} | more

    with serving(environment) as server:
        server.manage("memory", "level", "--workspace", str(folder), "l3")
        wanted = remembered(server, folder)
        agent = connected("codex", environment, folder)
        writes([meta(ID, cwd=str(folder))])
        first = agent.hook("SessionStart", **payload(source="startup"))
        assert "[MEMORY CATALOG]" in first and len(first.encode()) <= 9_200
        for number in range(6):
            writes(spoken(number))
        turn_scoped = {"turn_id": "turn-5", "permission_mode": "default"}
        assert agent.hook("UserPromptSubmit", **payload(prompt="Look at the harbour", **turn_scoped)) == ""
        assert agent.hook("PreCompact", **payload(trigger="auto", **turn_scoped)) == ""
        kept = [
            message("user", "Look at the harbour of step 5"),
            message("user", "Summary: the harbour is fine."),
        ]
        writes([compacted(*kept, text="Summary: the harbour is fine.")])
        writes(spoken(6))
        assert agent.hook("PostCompact", **payload(trigger="auto", **turn_scoped)) == ""
        until(lambda: any(r["provenance"]["source"] == "compaction-archive" for r in records(server)))

        told = agent.hook("SessionStart", **payload(source="compact"))
        archived = next(r for r in records(server) if r["provenance"]["source"] == "compaction-archive")
        assert told.count("[MEMORY CHECKPOINT]") == 1 and archived["id"] in told
        assert agent.hook("SessionStart", **payload(source="compact")).count("[MEMORY CATALOG]") == 0, (
            "queued twice"
        )
        writes([message("developer", told)])
        until(lambda: json.loads(server.manage("memory", "status", "--json"))["receipts"] == 0)
        assert agent.hook("UserPromptSubmit", **payload(prompt="go on", **turn_scoped)) == ""

        recalled = agent.hook(
            "UserPromptSubmit", **payload(prompt="deploy the quokka pipeline to the fjord region")
        )
        assert wanted in recalled
        handle = re.search(r"mxs_[a-z0-9]+", recalled)[0]
        rows = opened_raw(agent, handle, archived["id"])
        assert "harbour 0: row of output" in rows
        original = log.read_text()
        assert all(line in original for line in rows.splitlines())
        assert "make quokka-ship" in agent.tool("memory_open", session=handle, id=wanted)
        assert archived["id"] in agent.tool("memory_search", session=handle, query="harbour of step 2")
