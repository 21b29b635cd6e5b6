"""A real server in a process of its own, and a real Chromium. No ORM here: the browser driver keeps an event
loop running in this process, so tests prepare data with `server.manage(…)` or files."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = ROOT / "test-artifacts"
START_SECONDS = 30


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.e2e)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        item.failed = True
    return report


@dataclass(frozen=True)
class Server:
    url: str
    home: Path
    environment: dict[str, str]

    def manage(self, *arguments: str) -> str:
        """What `manage.py …` prints, run on this server's store."""
        return _manage(self.environment, *arguments)

    def signin_link(self) -> str:
        return json.loads(self.manage("signin_link", "--json"))["url"]


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("memex")
    environment = _environment(home)
    _manage(environment, "migrate", "-v0")
    log = home / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--port", "0"],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Server(_wait_for_url(process, log), Path(environment["MEMEX_HOME"]), environment)
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if not executable:
        pytest.skip("There is no Chromium on this machine.")
    with sync_playwright() as playwright:
        # The sandbox needs rights that containers lack; only our own pages are opened.
        chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, server, request) -> Iterator[Page]:
    """A fresh browser profile, not signed in. Anything on the console fails the test."""
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    if getattr(request.node, "failed", False):
        ARTIFACTS.mkdir(exist_ok=True)
        page.screenshot(path=ARTIFACTS / f"{request.node.name}.png", full_page=True)
    context.close()
    assert complaints == []


@pytest.fixture
def owner_page(page, server) -> Page:
    """Signed in, on the first page."""
    page.goto(server.signin_link())
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(server.url)
    return page


def _environment(folder: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MEMEX_")}
    agents = {"CLAUDE_CONFIG_DIR": "claude", "CODEX_HOME": "codex", "DSH_HOME": "dsh"}
    return (
        clean
        | {variable: str(folder / name) for variable, name in agents.items()}
        | {"MEMEX_HOME": str(folder / "store"), "MEMEX_MIN_FREE_MB": "0", "PYTHONUNBUFFERED": "1"}
    )


def _manage(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _wait_for_url(process: subprocess.Popen, log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = re.search(r"Memex serves (\S+)", log.read_text())
        if found:
            return found[1]
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    raise AssertionError(f"The server did not start in {START_SECONDS} s:\n{log.read_text()}")
