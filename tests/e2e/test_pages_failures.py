"""When an action fails, the page says so where one is, and shows nothing that is not so."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.sessions.stories import write_log

FOLDERS = range(70, 84)


@pytest.fixture(scope="module")
def folders(server) -> None:
    home = Path(server.environment["CLAUDE_CONFIG_DIR"])
    for number in FOLDERS:
        write_log(home, number, compactions=1, turns=1, cwd=f"/home/dev/failing-{number}", word="breakwater")
    server.manage("archive", str(home), "--level", "l3")


@pytest.fixture
def failing_page(browser, server, owner_page, folders) -> Iterator[Page]:
    """Signed in; what the browser prints of failed requests is expected here."""
    context = browser.new_context(base_url=server.url, storage_state=owner_page.context.storage_state())
    yield context.new_page()
    context.close()


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (lambda route: route.abort(), "Memex does not answer"),
        (lambda route: route.fulfill(status=500, body="broken"), "error 500"),
        (lambda route: route.fulfill(status=404, body="gone"), "forgotten or purged meanwhile"),
    ],
    ids=["no answer", "500", "404"],
)
def test_a_switch_goes_back_to_what_it_was(failing_page, failure, said):
    failing_page.goto("/workspaces/")
    failing_page.route("**/levels", failure)
    row = failing_page.locator("li.workspace").last
    switch = row.get_by_role("switch", name=re.compile("L2"))
    switch.scroll_into_view_if_needed()
    switch.click()
    alert = failing_page.get_by_role("alert")
    expect(alert).to_contain_text(said)
    expect(alert).to_be_in_viewport()
    expect(switch).not_to_be_checked()
    failing_page.get_by_role("button", name="Close").click()
    expect(alert).to_have_count(0)


def test_what_is_gone_is_said_to_be_gone(failing_page):
    failing_page.goto("/?q=breakwater")
    failing_page.route("**/records/act", lambda route: route.fulfill(status=404, body="<h1>Not here</h1>"))
    failing_page.locator("li.record").first.get_by_role("button", name="Pin").click()
    expect(failing_page.get_by_role("alert")).to_contain_text(
        "It may have been forgotten or purged meanwhile"
    )


def test_who_is_signed_out_sees_no_page_within_a_page(failing_page):
    failing_page.goto("/?q=breakwater")
    failing_page.context.clear_cookies()
    failing_page.locator("li.record").first.get_by_role("button", name="Pin").click()
    expect(failing_page.get_by_role("alert")).to_contain_text("Reload it")
    failing_page.get_by_role("button", name="Close").click()
    failing_page.get_by_role("searchbox").fill("break")
    expect(failing_page.get_by_role("alert")).to_contain_text("Reload it")
    expect(failing_page.locator("li.record").first).to_be_visible()
    expect(failing_page.get_by_role("heading", level=1)).to_have_count(1)
