"""Claude Code from connecting to opening what its compaction dropped, with every process as it really runs."""

import json
import re
from pathlib import Path

import pytest

from tests.servers import environment_of, manage, serving, until
from tests.sessions.stories import as_bytes, session_id, story

from .wired import connected

FILLERS = 12


class Session:
    """A session of Claude Code in a folder: its log, and what it hands to hooks."""

    def __init__(self, environment, folder: Path, number: int = 1, **how) -> None:
        self.folder, self.number = folder, number
        self.lines = story(number, cwd=str(folder), **how)
        name = str(folder).replace("/", "-")
        self.log = Path(environment["CLAUDE_CONFIG_DIR"]) / "projects" / name / f"{session_id(number)}.jsonl"
        self.log.parent.mkdir(parents=True, exist_ok=True)

    def writes(self, lines) -> bytes:
        data = as_bytes(lines)
        with self.log.open("ab") as file:
            file.write(data)
        return data

    def until_boundary(self):
        """The lines before the first compaction, and those from it on."""
        at = next(n for n, line in enumerate(self.lines) if line.get("subtype") == "compact_boundary")
        return self.lines[:at], self.lines[at:]

    def payload(self, **more):
        return {
            "session_id": session_id(self.number), "transcript_path": str(self.log), "cwd": str(self.folder),
            "permission_mode": "default", "prompt_id": "p", "effort": {"level": "high"},
        } | more  # fmt: skip

    def injected(self, text):
        """As Claude Code notes in its log what a hook has added."""
        return [
            {
                "type": "attachment", "uuid": "0e5a0a3e-0000-4000-8000-00000000000a", "cwd": str(self.folder),
                "sessionId": session_id(self.number), "timestamp": "2026-03-01T20:00:00.000Z",
                "attachment": {
                    "type": "hook_additional_context", "hookName": "SessionStart", "hookEvent": "SessionStart",
                    "content": [text],
                },
            }
        ]  # fmt: skip


@pytest.fixture
def environment(tmp_path):
    return environment_of(tmp_path)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def records(server):
    return json.loads(server.manage("memory", "list", "--json", "--limit", "50"))["records"]


def test_from_a_compaction_to_the_exact_bytes(environment, folder):
    with serving(environment) as server:
        server.manage("memory", "level", "--workspace", str(folder), "l3")
        wanted = remembered(server, folder)
        agent = connected("claude-code", environment, folder)
        session = Session(environment, folder, compactions=1)
        before, after = session.until_boundary()

        first = agent.hook("SessionStart", **session.payload(source="startup"))
        assert "[MEMORY CATALOG]" in first and "[MEMORY CHECKPOINT]" not in first
        assert wanted not in first, "the catalog lists the newest"

        dropped = session.writes(before + session.injected(first)[:0])
        assert agent.hook("UserPromptSubmit", **session.payload(prompt="Please look at the harbour")) == ""
        agent.hook("Stop", **session.payload(stop_hook_active=False, last_assistant_message="Done."))

        assert agent.hook("PreCompact", **session.payload(trigger="auto", custom_instructions="")) == ""
        session.writes(after[:2])
        assert agent.hook("PostCompact", **session.payload(trigger="auto", compact_summary="…")) == ""
        until(lambda: any(r["provenance"]["source"] == "compaction-archive" for r in records(server)))

        told = agent.hook("SessionStart", **session.payload(source="compact"))
        archived = next(r for r in records(server) if r["provenance"]["source"] == "compaction-archive")
        assert told.count("[MEMORY CHECKPOINT]") == 1 and archived["id"] in told
        assert told.count("[MEMORY CATALOG]") == 1
        session.writes(session.injected(told) + after[2:])
        until(lambda: json.loads(server.manage("memory", "status", "--json"))["receipts"] == 0)
        assert agent.hook("UserPromptSubmit", **session.payload(prompt="go on")) == "", "once is enough"

        recalled = agent.hook(
            "UserPromptSubmit",
            **session.payload(prompt="How do we deploy the quokka pipeline to the fjord region?"),
        )
        assert recalled.count("[MEMORY RECALL]") == 1 and wanted in recalled

        handle = re.search(r"mxs_[a-z0-9]+", recalled)[0]
        body = agent.tool("memory_open", session=handle, id=wanted)
        assert "make quokka-ship --region fjord" in body
        assert opened_raw(agent, handle, archived["id"]) == dropped.decode()


def remembered(server, folder):
    """A record that is asked for later, and enough newer ones to push it out of the catalog."""
    said = server.manage(
        "memory", "write", "--workspace", str(folder), "--kind", "procedure", "--json",
        "The quokka pipeline is deployed with `make quokka-ship --region fjord`, never by hand.",
    )  # fmt: skip
    for number in range(FILLERS):
        server.manage(
            "memory", "write", "--workspace", str(folder), "--kind", "note",
            f"{WORDS[number]} is what note number {number} is about, and nothing else at all.",
        )  # fmt: skip
    return json.loads(said)["id"]


WORDS = [
    "Basalt",
    "Copper",
    "Dahlia",
    "Ember",
    "Flint",
    "Gravel",
    "Heron",
    "Indigo",
    "Jasper",
    "Kelp",
    "Lotus",
    "Moss",
]


def opened_raw(agent, handle, record_id):
    """All pages of a record's original rows, as the agent gets them."""
    from tests.mcp.conftest import in_fence

    async def talk(client):
        read, offset = "", 0
        while True:
            result = await client.call_tool(
                "memory_open", {"session": handle, "id": record_id, "raw": True, "offset": offset, "max_chars": 60_000}
            )  # fmt: skip
            text = result.content[0].text
            assert not result.is_error, text
            read += in_fence(text)
            following = re.search(r"offset=(\d+) for the rest", text)
            if not following:
                return read
            offset = int(following[1])

    text = agent.ask(talk)
    return text if text.endswith("\n") else text + "\n"


def test_with_the_server_down_the_agent_is_unharmed_and_nothing_is_lost(environment, folder):
    with serving(environment) as server:
        server.manage("memory", "level", "--workspace", str(folder), "l3")
        agent = connected("claude-code", environment, folder)
    session = Session(environment, folder, compactions=1)
    for event, more in (
        ("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": "go on"}),
        ("PreCompact", {"trigger": "auto"}), ("PostCompact", {"trigger": "auto"}), ("SessionEnd", {"reason": "other"}),
    ):  # fmt: skip
        assert agent.hook(event, **session.payload(**more)) == ""
    session.writes(session.lines)
    manage(environment, "archive")
    assert "mem_" in agent.tool("memory_search", query="harbour of step 0.1"), (
        "MCP over stdio needs no server"
    )


def test_off_means_that_nothing_is_said_or_kept(environment, folder):
    with serving(environment) as server:
        agent = connected("claude-code", environment, folder)
        session = Session(environment, folder, compactions=1)
        session.writes(session.lines)
        for event, more in (
            ("SessionStart", {"source": "compact"}), ("UserPromptSubmit", {"prompt": "zanzibarite harbour"}),
            ("PostCompact", {"trigger": "auto", "compact_summary": "zanzibarite"}), ("Stop", {}),
        ):  # fmt: skip
            assert agent.hook(event, **session.payload(**more)) == ""
        server.manage("archive")
        assert records(server) == []
        kept = b"".join(path.read_bytes() for path in server.home.rglob("*") if path.is_file())
        assert b"zanzibarite" not in kept and b"row of output" not in kept


def test_without_hooks_the_watcher_archives_all_the_same(environment, folder):
    with serving(environment) as server:
        server.manage("memory", "level", "--workspace", str(folder), "l3")
        session = Session(environment, folder, compactions=2)
        session.writes(session.lines)
        found = until(
            lambda: [r for r in records(server) if r["provenance"]["source"] == "compaction-archive"]
        )
        assert len(found) <= 2
        until(lambda: len(records(server)) == 2)
