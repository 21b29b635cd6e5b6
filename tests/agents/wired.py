"""An agent as it is wired after `connect`: runs the hooks and starts the MCP server that its settings name."""

import asyncio
import json
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from tests.servers import ROOT


@dataclass
class Wired:
    """`hooks`: by event, the command that the settings name; `server`: of MCP."""

    hooks: Mapping[str, list[str]]
    server: Mapping[str, Any]
    environment: Mapping[str, str]
    folder: Path

    def hook(self, event: str, **payload: Any) -> str:
        """What the agent would put into its context: it looks at the output of a hook that ends with 0."""
        done = subprocess.run(
            self.hooks[event], input=json.dumps(payload | {"hook_event_name": event}), cwd=self.folder,
            env=dict(self.environment), capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), (event, done)
        if not done.stdout:
            return ""
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        assert answer["hookEventName"] == event
        return str(answer["additionalContext"])

    def ask(self, talk: Callable[[Client], Awaitable[Any]]) -> Any:
        """Over the MCP server that the settings name, started in the agent's folder."""
        parameters = StdioServerParameters(
            command=self.server["command"], args=list(self.server["args"]),
            env={"PATH": self.environment["PATH"], **self.server["env"]}, cwd=str(self.folder),
        )  # fmt: skip

        async def run() -> Any:
            async with Client(parameters) as client:
                return await talk(client)

        return asyncio.run(asyncio.wait_for(run(), 60))

    def tool(self, name: str, **arguments: Any) -> str:
        async def talk(client: Client) -> str:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result.content[0].text
            return str(result.content[0].text)

        return str(self.ask(talk))


def connected(agent: str, environment: Mapping[str, str], folder: Path) -> Wired:
    for home in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        Path(environment[home]).mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "manage.py", "connect", agent, "--yes"], cwd=ROOT, env=dict(environment), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return (_claude_code if agent == "claude-code" else _codex)(environment, folder)


def _claude_code(environment: Mapping[str, str], folder: Path) -> Wired:
    home = Path(environment["CLAUDE_CONFIG_DIR"])
    hooks = json.loads((home / "settings.json").read_text())["hooks"]
    server = json.loads((home / ".claude.json").read_text())["mcpServers"]["memex"]
    commands = {}
    for event, groups in hooks.items():
        (handler,) = groups[0]["hooks"]
        commands[event] = [handler["command"], *handler["args"]]
    return Wired(commands, server, environment, folder)


def _codex(environment: Mapping[str, str], folder: Path) -> Wired:
    settings = tomllib.loads((Path(environment["CODEX_HOME"]) / "config.toml").read_text())
    commands = {
        event: shlex.split(groups[0]["hooks"][0]["command"]) for event, groups in settings["hooks"].items()
    }
    return Wired(commands, settings["mcp_servers"]["memex"], environment, folder)
