"""A real server of a store of its own, for tests that go over the wire."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Server:
    port: int
    environment: dict[str, str]
    process: subprocess.Popen[str]

    @property
    def home(self) -> Path:
        return Path(self.environment["MEMEX_HOME"])

    def manage(self, *arguments: str) -> str:
        return manage(self.environment, *arguments)

    def token(self, name: str, *arguments: str) -> str:
        return json.loads(self.manage("agent_token", "create", name, "--json", *arguments))["token"]

    def request(
        self, method: str, path: str, body: Any = None, token: str = "", **headers: str
    ) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            given["Authorization"] = f"Bearer {token}"
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            given.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, data, given)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()


def environment_of(folder: Path, **more: str) -> dict[str, str]:
    """Of a store below `folder`, with agents that keep their logs there as well."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MEMEX_")}
    agents = {
        "CLAUDE_CONFIG_DIR": str(folder / "claude-code"),
        "CODEX_HOME": str(folder / "codex"),
        "DSH_HOME": str(folder / "dsh"),
    }
    return clean | agents | {"MEMEX_HOME": str(folder / "store"), "PYTHONUNBUFFERED": "1"} | more


def manage(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def serving(environment: dict[str, str], port: int = 0) -> Iterator[Server]:
    """Migrated, serving, and stopped at the end."""
    manage(environment, "migrate", "-v0")
    process = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", str(port)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert "Memex serves" in first, first + process.stdout.read()
        # Whatever it says later must not fill the pipe.
        drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
        yield Server(int(first.split()[2].rsplit(":", 1)[1].strip("/")), environment, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        drain.wait(5)


def until(condition: Any, seconds: float = 20.0) -> Any:
    """What `condition` gives once it is true. The wait is for the slowest machine; it decides nothing."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError("It did not come to that.")
