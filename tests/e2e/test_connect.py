"""Connecting an agent in a real browser."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

SETTINGS = '{\n  // mine\n  "model": "opus"\n}\n'


@pytest.fixture
def claude_settings(server) -> Path:
    """Claude Code's settings; its other file is made by connecting."""
    path = Path(server.environment["CLAUDE_CONFIG_DIR"]) / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(SETTINGS)
    return path


def test_connecting_and_undoing(owner_page: Page, server, claude_settings):
    owner_page.get_by_role("link", name="Connect", exact=True).click()
    claude = owner_page.locator("#agent-claude-code")
    expect(claude.get_by_text("not connected")).to_be_visible()
    claude.get_by_text("What Connect would change").click()
    expect(claude.locator(".diff .added", has_text="hook_client.py").first).to_be_visible()

    claude.get_by_role("button", name="Connect Claude Code").click()
    expect(owner_page.get_by_role("status")).to_contain_text("Made the token")
    expect(claude.get_by_text("connected", exact=True)).to_be_visible()
    assert "hook_client.py" in claude_settings.read_text()
    assert "already connected" in server.manage("connect", "claude-code", "--yes")
    state = json.loads((claude_settings.parent / ".claude.json").read_text())
    assert state["mcpServers"]["memex"]["env"] == {"MEMEX_HOME": str(server.home)}

    claude.get_by_role("button", name="Undo connecting Claude Code").click()
    expect(claude.get_by_text("not connected")).to_be_visible()
    assert claude_settings.read_text() == SETTINGS
    assert not (claude_settings.parent / ".claude.json").exists()


def test_a_token_is_made_shown_once_and_revoked(owner_page: Page, server):
    owner_page.goto("/connect/")
    owner_page.get_by_label("Name").fill("ci machine")
    owner_page.get_by_label("Folders").fill("/home/dev/demo")
    owner_page.get_by_role("button", name="Make a token").click()
    expect(owner_page.get_by_role("alert")).to_contain_text("can't name a token")
    expect(owner_page.get_by_label("Folders")).to_have_value("/home/dev/demo")

    owner_page.get_by_label("Name").fill("ci")
    owner_page.get_by_label("write").uncheck()
    owner_page.get_by_role("button", name="Make a token").click()
    token = owner_page.locator("#token").inner_text()
    assert re.fullmatch(r"mx_[\w-]{40,}", token)
    assert token not in owner_page.url
    owner_page.get_by_role("link", name="Back to Connect").click()
    row = owner_page.get_by_role("row", name=re.compile("^ci "))
    expect(row).to_contain_text("/home/dev/demo")
    expect(owner_page.get_by_text(token)).to_have_count(0)
    row.get_by_role("button", name="Revoke ci").click()
    expect(row).to_contain_text("revoked")
    assert "revoked" in server.manage("agent_token", "list")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_the_screen_with_all_diffs_open(owner_page: Page, server, claude_settings, scheme, width):
    owner_page.set_viewport_size({"width": width, "height": 844})
    owner_page.emulate_media(color_scheme=scheme)
    owner_page.goto("/connect/")
    for summary in owner_page.locator("summary").all():
        summary.click()
    expect(owner_page.locator(".diff").first).to_be_visible()
    assert owner_page.evaluate("document.documentElement.scrollWidth") <= width
