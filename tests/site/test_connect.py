"""`manage.py connect` on real files and a real database."""

import io
import json
import os
import re
import socket
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from memex_site.connect import services
from memex_site.connect.errors import EditRefused
from memex_site.connect.services import connect_plan, disconnect_plan, plan_apply, token_path
from memex_site.models import AgentToken
from memex_site.tokens import token_revoke, token_verify

from .test_hook_client import ANSWER, PAYLOAD, announce, plain, request_of, serving

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("memex_home")]
SETTINGS = b'{\n  // mine\n  "model": "opus",\n}\n'
STATE = b'{"numStartups": 3}'
CONFIG = b'model = "gpt" # mine'


@pytest.fixture
def agents(settings, tmp_path) -> Path:
    """The homes of three agents, two with settings."""
    settings.AGENT_HOMES = {name: tmp_path / name for name in ("claude-code", "codex", "dsh")}
    for home in settings.AGENT_HOMES.values():
        home.mkdir()
    (tmp_path / "claude-code" / "settings.json").write_bytes(SETTINGS)
    (tmp_path / ".claude.json").write_bytes(STATE)
    (tmp_path / "codex" / "config.toml").write_bytes(CONFIG)
    return tmp_path


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("connect", *arguments, stdout=out)
    return out.getvalue()


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below but the database's."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(("index.db", "ledger"))
    }


def test_connecting_claude_code_and_taking_it_back(agents, memex_home):
    before = contents(agents)
    said = run("claude-code", "--yes")
    assert '+  "hooks": {' in said
    assert "Claude Code is connected" in said
    text = (agents / "claude-code" / "settings.json").read_text()
    assert "// mine" in text
    assert text.count("hook_client.py") == 7
    assert json.loads((agents / ".claude.json").read_text())["mcpServers"]["memex"]["command"]

    token = token_path("claude-code")
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    principal = token_verify(token.read_text().strip())
    assert principal.agent == "claude-code"
    assert principal.rights == {"read", "write", "capacity"}
    assert token.read_text().strip() not in said + text + (agents / ".claude.json").read_text()
    backups = {path.read_bytes() for path in (memex_home / "agents" / "backups").iterdir()}
    assert backups == {SETTINGS, STATE}
    assert all(
        stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (memex_home / "agents" / "backups").iterdir()
    )

    connected = contents(agents)
    assert "Claude Code is already connected." in run("claude-code", "--yes")
    assert contents(agents) == connected

    assert "Revoked the token." in run("claude-code", "--undo", "--yes")
    left = {name: data for name, data in contents(agents).items() if "backups" not in name}
    assert left == before
    assert not AgentToken.objects.filter(revoked_at=None).exists()
    assert "Claude Code is not connected." in run("claude-code", "--undo", "--yes")


def test_files_that_were_not_there_go_again(agents):
    (agents / "claude-code" / "settings.json").unlink()
    (agents / ".claude.json").unlink()
    run("claude-code", "--yes")
    assert stat.S_IMODE((agents / ".claude.json").stat().st_mode) == 0o600
    run("claude-code", "--undo", "--yes")
    assert not (agents / "claude-code" / "settings.json").exists()
    assert not (agents / ".claude.json").exists()


def test_what_changed_meanwhile_stays(agents):
    run("claude-code", "--yes")
    state = agents / ".claude.json"
    # Claude Code writes its file anew all the time.
    state.write_text(json.dumps(json.loads(state.read_text()) | {"numStartups": 4}, indent=2))
    settings = agents / "claude-code" / "settings.json"
    settings.write_text(settings.read_text().replace('"opus"', '"sonnet" /* better */'))
    run("claude-code", "--undo", "--yes")
    assert json.loads(state.read_text()) == {"numStartups": 4}
    assert settings.read_bytes() == SETTINGS.replace(b'"opus"', b'"sonnet" /* better */')


def test_connecting_codex_and_taking_it_back(agents):
    (agents / "codex" / "hooks.json").write_text("{}")
    said = run("codex", "--yes")
    assert "hooks.json" in said
    assert "/hooks" in said
    assert (
        (agents / "codex" / "config.toml").read_bytes().startswith(CONFIG + b"\n\n[[hooks.SessionStart]]\n")
    )
    assert "already connected" in run("codex", "--yes")
    run("codex", "--undo", "--yes")
    assert (agents / "codex" / "config.toml").read_bytes() == CONFIG
    assert (agents / "codex" / "hooks.json").read_text() == "{}"


def test_dsh_gets_a_token_and_the_rest_is_said(agents):
    before = contents(agents / "dsh")
    said = run("dsh", "--yes")
    assert "/api/session.prestep" in said
    assert str(token_path("dsh")) in said
    assert "by hand" in said
    assert contents(agents / "dsh") == before
    assert token_verify(token_path("dsh").read_text().strip()).agent == "dsh"
    assert "by hand" in run("dsh", "--undo", "--yes")
    assert not token_path("dsh").exists()


@pytest.mark.parametrize("agent", services.AGENTS)
def test_a_dry_run_changes_nothing_at_all(agents, agent):
    before = contents(agents)
    said = run(agent, "--dry-run")
    assert "Nothing was changed" in said
    assert f"{agent}.token" in said
    assert contents(agents) == before
    assert not AgentToken.objects.exists()
    run(agent, "--yes")
    connected = contents(agents)
    assert "Nothing was changed" in run(agent, "--dry-run", "--undo")
    assert contents(agents) == connected


def test_without_a_terminal_it_does_not_guess(agents, monkeypatch):
    before = contents(agents)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(CommandError, match="no terminal"):
        run("claude-code")
    assert contents(agents) == before


@pytest.mark.parametrize(("answer", "does"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_on_a_terminal_it_asks(agents, monkeypatch, answer, does):
    before = contents(agents)
    terminal, other_end = os.openpty()
    os.write(terminal, answer.encode() or b"\x04")
    with os.fdopen(other_end) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        if does:
            run("codex")
        else:
            with pytest.raises(CommandError, match="Nothing was changed"):
                run("codex")
    os.close(terminal)
    assert (contents(agents) != before) == does


def test_a_link_stays_a_link_and_a_mode_stays(agents):
    real = agents / "dotfiles" / "settings"
    real.parent.mkdir()
    path = agents / "claude-code" / "settings.json"
    path.rename(real)
    path.symlink_to("../dotfiles/settings")
    real.chmod(0o640)
    run("claude-code", "--yes")
    assert path.is_symlink()
    assert b"hook_client.py" in real.read_bytes()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    run("claude-code", "--undo", "--yes")
    assert path.is_symlink()
    assert real.read_bytes() == SETTINGS
    assert list(real.parent.iterdir()) == [real]


def test_an_unreadable_file_is_refused_by_its_place_and_nothing_is_changed(agents):
    (agents / "claude-code" / "settings.json").write_text('{\n  "hooks": {,}\n}')
    before = contents(agents)
    for arguments in (["--yes"], ["--dry-run"], ["--undo", "--yes"]):
        with pytest.raises(CommandError, match=r"settings\.json: line 2, column 13"):
            run("claude-code", *arguments)
    assert contents(agents) == before
    assert not AgentToken.objects.exists()


def test_a_folder_in_place_of_the_file_is_refused(agents):
    (agents / "codex" / "config.toml").unlink()
    (agents / "codex" / "config.toml").mkdir()
    with pytest.raises(CommandError, match=r"config\.toml: Is a directory"):
        run("codex", "--yes")


def test_an_agent_that_is_not_here_is_not_connected(agents, settings):
    settings.AGENT_HOMES["codex"] = agents / "nowhere"
    with pytest.raises(CommandError, match="Codex was not found"):
        run("codex", "--yes")
    assert not (agents / "nowhere").exists()


def test_a_change_between_looking_and_doing_is_not_written_over(agents):
    plan = connect_plan("codex", 8420)
    (agents / "codex" / "config.toml").write_text("newer = 1\n")
    with pytest.raises(EditRefused, match="changed meanwhile"):
        plan_apply(plan)
    assert (agents / "codex" / "config.toml").read_text() == "newer = 1\n"
    # What was noted for undoing it does no harm.
    assert not disconnect_plan("codex", 8420).changes


def test_a_token_that_is_gone_or_revoked_is_made_anew(agents):
    run("codex", "--yes")
    first = token_path("codex").read_text()
    assert not connect_plan("codex", 8420).token
    token_revoke("codex")
    assert connect_plan("codex", 8420).token
    run("codex", "--yes")
    second = token_path("codex").read_text()
    assert second != first
    token_path("codex").unlink()
    run("codex", "--yes")
    assert token_verify(second.strip()) is None
    assert token_verify(token_path("codex").read_text().strip()) is not None
    assert AgentToken.objects.filter(name="codex", revoked_at=None).count() == 1


@pytest.mark.parametrize("damage", ["{", "[]", '{"PATH": {"absent": 1, "trace": {"made": 3}}}'])
def test_undoing_works_without_what_was_noted(agents, memex_home, damage):
    run("codex", "--yes")
    run("claude-code", "--yes")
    for agent in ("codex", "claude-code"):
        noted = memex_home / "agents" / f"{agent}.json"
        noted.write_text(damage.replace("PATH", next(iter(json.loads(noted.read_text())))))
        run(agent, "--undo", "--yes")
    assert (agents / "codex" / "config.toml").read_bytes() == CONFIG + b"\n"
    assert (agents / "claude-code" / "settings.json").read_bytes() == SETTINGS


def test_over_http_it_says_where_the_token_must_be(agents):
    said = run("claude-code", "--http", "--yes")
    assert f'MX_TOKEN="$(cat {token_path("claude-code")})"' in said
    token = token_path("claude-code").read_text().strip()
    assert not any(token.encode() in path.read_bytes() for path in (agents / "claude-code").iterdir())
    assert "already connected" in run("claude-code", "--http", "--yes")
    run("claude-code", "--undo", "--yes")
    assert (agents / "claude-code" / "settings.json").read_bytes() == SETTINGS


def test_what_is_written_can_be_started(agents, memex_home, tmp_path):
    """From any folder, as each agent starts it: by arguments, or through a shell."""
    run("claude-code", "--yes")
    run("codex", "--yes")
    server = json.loads((agents / ".claude.json").read_text())["mcpServers"]["memex"]
    assert os.access(server["command"], os.X_OK)
    assert Path(server["args"][0]).is_file()
    settings = json.loads(
        (agents / "claude-code" / "settings.json").read_text().replace("// mine", "").replace("},\n}", "}}")
    )
    handler = settings["hooks"]["Stop"][0]["hooks"][0]
    config = tomllib.loads((agents / "codex" / "config.toml").read_text())
    asked: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        asked.append(request_of(connection))
        connection.sendall(plain(ANSWER))

    with serving(serve) as port:
        announce(memex_home, port)
        for command, shell in (
            ([handler["command"], *handler["args"]], False),
            (config["hooks"]["PreCompact"][0]["hooks"][0]["command"], True),
        ):
            said = subprocess.run(
                command, shell=shell, input=PAYLOAD, capture_output=True, cwd="/", check=True
            )
            assert said.stdout == ANSWER
    for agent, event, request in zip(("claude-code", "codex"), ("Stop", "PreCompact"), asked, strict=True):
        assert request.startswith(f"POST /hooks/{agent}/{event} HTTP/1.1\r\n".encode())
        token = re.search(rb"Bearer (\S+)\r\n", request)[1].decode()
        assert token_verify(token).agent == agent
