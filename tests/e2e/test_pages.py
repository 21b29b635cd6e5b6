"""The main paths in a real browser. The store is the same for all of them: each brings what it looks at."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.sessions.logs.claude_lines import assistant, user
from tests.sessions.stories import as_bytes, session_id, write_log

ARCHIVE_MS = 30_000
HOSTILE = (
    "<script>alert(1)</script><svg onload=alert(2)>\"'><img src=x onerror=alert(3)>[x](javascript:alert(4))"
)
READ, CHOSEN, HURT, ALONE, FOLDERS = 31, 32, 33, 34, 50


def agent_home(server) -> Path:
    return Path(server.environment["CLAUDE_CONFIG_DIR"])


@pytest.fixture(scope="module")
def history(server) -> str:
    """The address of a session that was archived before the browser came."""
    path = write_log(agent_home(server), READ, compactions=3, turns=20, cwd="/home/dev/long-story")
    server.manage("archive", str(path), "--level", "l3")
    return f"/sessions/{session_id(READ)}/"


def test_looking_around_with_the_samples(owner_page: Page):
    owner_page.get_by_role("button", name="Load the sample sessions").click()
    expect(owner_page.locator("#job")).to_contain_text("Archive run done", timeout=ARCHIVE_MS)
    owner_page.get_by_role("link", name="To the memory").click()
    expect(owner_page.get_by_text("Sample data.")).to_be_visible()
    expect(owner_page.locator("li.record").first).to_be_visible()

    owner_page.get_by_role("button", name="Remove the samples").click()
    expect(owner_page.get_by_text("The samples are gone")).to_be_visible()
    expect(owner_page.get_by_role("heading", name="Welcome to Memex")).to_be_visible()
    expect(owner_page.get_by_text("No agent logs on this machine")).to_be_visible()
    expect(owner_page.get_by_text("Sample data.")).to_have_count(0)


def test_choosing_a_folder_archiving_and_reading(owner_page: Page, server):
    write_log(agent_home(server), CHOSEN, cwd="/home/dev/chosen", word="lantern")
    server.manage("archive")  # finds the log, and reads nothing of it
    owner_page.goto("/workspaces/")
    row = owner_page.locator("li.workspace", has_text="/home/dev/chosen")
    switch = row.get_by_role("switch", name=re.compile("L3"))
    expect(switch).not_to_be_checked()
    switch.focus()
    owner_page.keyboard.press("Space")
    expect(owner_page.get_by_text("/home/dev/chosen: L3 on for its sessions")).to_be_visible()
    expect(switch).to_be_checked()
    expect(switch).to_be_focused()

    # The worker's own pass may have been faster than the run that was asked for.
    expect(owner_page.locator("#job")).to_contain_text("Archive run done", timeout=ARCHIVE_MS)
    expect(row).to_contain_text("1 session on; new sessions: L3")
    owner_page.goto("/workspaces/")
    owner_page.get_by_role("button", name="Archive now").click()
    expect(owner_page.locator("#job")).to_contain_text(
        "0 compactions archived, 2 there before", timeout=ARCHIVE_MS
    )

    owner_page.get_by_role("link", name="Memory", exact=True).click()
    expect(owner_page.get_by_role("heading", name="Memory", level=1)).to_be_visible()
    owner_page.keyboard.press("/")
    owner_page.keyboard.type("step 1.0")
    expect(owner_page).to_have_url(re.compile(r"q=step\+1\.0|q=step%201\.0"))
    title = "Please look at the lantern of step 1.0"
    records = owner_page.locator("li.record").filter(
        has=owner_page.get_by_role("link", name=title, exact=True)
    )
    expect(records).to_have_count(1)
    records.get_by_role("button", name="Pin").click()
    expect(owner_page.get_by_role("status").get_by_text("Pinned:")).to_be_visible()
    expect(records.get_by_role("button", name="Unpin")).to_be_focused()

    records.get_by_role("link", name=title).first.click()
    pane = owner_page.get_by_role("region", name="The record that is open")
    expect(pane.get_by_role("heading", name=title)).to_be_visible()
    pane.get_by_role("link", name="Open as a page").click()
    expect(owner_page.get_by_role("heading", name="What the summary lost")).to_be_visible()
    expect(owner_page.get_by_text("row of output;").first).to_be_visible()
    owner_page.get_by_role("link", name=re.compile("Open the original at #")).click()
    expect(owner_page).to_have_url(re.compile(r"/sessions/[^/]+/\?at=\d+#e\d+$"))
    expect(owner_page.locator("li.event:target")).to_be_in_viewport()


def test_a_long_session_loads_as_one_scrolls(owner_page: Page, history):
    owner_page.goto(history)
    events = owner_page.locator("li.event")
    expect(events).to_have_count(100)
    owner_page.get_by_role("link", name="Later").scroll_into_view_if_needed()
    expect(events).to_have_count(200)
    owner_page.get_by_role("navigation", name="Compactions").get_by_role("link").last.click()
    expect(owner_page.locator("li.compaction:target")).to_be_in_viewport()
    owner_page.locator("li.compaction:target").get_by_role(
        "link", name="The summary beside what it lost"
    ).click()
    expect(owner_page.get_by_text("Summary 2: worked on the harbour.").first).to_be_visible()
    owner_page.get_by_role("link", name="Compacted away").click()
    expect(owner_page.locator("li.event.current")).to_have_count(0)
    expect(owner_page.locator("li.event.shadowed").first).to_be_visible()


def test_earlier_events_do_not_move_the_one_that_is_read(owner_page: Page, history):
    owner_page.goto(f"{history}?at=150")
    first = owner_page.locator("li.event").first
    name = first.get_attribute("id")
    earlier = owner_page.locator("#earlier")
    earlier.scroll_into_view_if_needed()
    before = first.bounding_box()["y"]
    earlier.click()
    expect(owner_page.locator("li.event").first).not_to_have_attribute("id", name)
    assert abs(owner_page.locator(f"#{name}").bounding_box()["y"] - before) < 2
    owner_page.locator("#later").scroll_into_view_if_needed()
    expect(owner_page.locator("#later")).to_have_count(0)
    expect(earlier).to_have_count(1)
    ids = owner_page.evaluate("[...document.querySelectorAll('li.event')].map(event => event.id)")
    assert ids == sorted(set(ids), key=lambda event: int(event[1:]))
    assert owner_page.evaluate(
        "document.querySelector('.events > .more').compareDocumentPosition(document.querySelector('.events > .event')) & 4"
    )


def test_switching_a_session_on_leads_to_the_reader(owner_page: Page, server):
    write_log(agent_home(server), ALONE, cwd="/home/dev/alone", word="beacon")
    server.manage("archive")
    owner_page.goto(f"/sessions/{session_id(ALONE)}/")
    owner_page.get_by_role("button", name="Switch on L2").click()
    expect(owner_page.get_by_role("heading", name="beacon")).to_be_visible(timeout=ARCHIVE_MS)
    expect(owner_page.locator("li.event").first).to_be_visible()


def test_a_switch_far_down_answers_where_one_is(owner_page: Page, server):
    for number in range(FOLDERS, FOLDERS + 12):
        write_log(agent_home(server), number, compactions=1, turns=1, cwd=f"/home/dev/folder-{number}")
    server.manage("archive")
    owner_page.goto("/workspaces/")
    row = owner_page.locator("li.workspace", has_text=f"/home/dev/folder-{FOLDERS}")
    row.scroll_into_view_if_needed()
    row.get_by_role("switch", name=re.compile("L2")).click()
    toast = owner_page.locator(".toast")
    expect(toast).to_contain_text("L2 on for its sessions")
    expect(toast).to_be_in_viewport()
    expect(toast).to_contain_text("Archive run done", timeout=ARCHIVE_MS)
    expect(toast).to_be_in_viewport()
    owner_page.keyboard.press("Escape")
    expect(toast).to_have_count(0)
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name="Resume").click()
    expect(row.get_by_text("paused")).to_have_count(0)


def test_forgetting_and_bringing_back(owner_page: Page, server, history):
    owner_page.goto("/?kind=episode")
    titles = owner_page.locator("li.record h2")
    title = titles.first.inner_text()
    row = owner_page.locator("li.record").first
    row.get_by_role("button", name="Forget").click()
    expect(row.get_by_role("link", name=title, exact=True)).to_have_count(0)
    expect(owner_page.get_by_role("status")).to_contain_text("Forgotten")
    owner_page.get_by_role("status").get_by_role("link", name="trash").click()
    owner_page.get_by_role("button", name=f"Restore {title}").first.click()
    expect(owner_page.get_by_text(f"Restored: {title}")).to_be_visible()


def test_archived_text_stays_text(owner_page: Page, server):
    dialogs: list[str] = []
    owner_page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    session = session_id(HURT)
    path = agent_home(server) / "projects" / "-hurt" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    common = {"sessionId": session, "cwd": f"/home/dev/{HOSTILE}"}
    path.write_bytes(
        as_bytes(
            [
                user("33333333-0000-4000-8000-000000000001", HOSTILE, **common),
                assistant("33333333-0000-4000-8000-000000000002", HOSTILE, **common),
            ]
        )
    )
    # Old enough to count as ended: it is archived as a record as well.
    os.utime(path, (1_700_000_000, 1_700_000_000))
    server.manage("archive", str(path), "--level", "l3")
    for address in (
        f"/sessions/{session}/",
        "/sessions/",
        "/workspaces/",
        "/",
        "/admin/sessions_app/agentsession/",
    ):
        owner_page.goto(address)
        expect(owner_page.get_by_text("alert(1)").first).to_be_attached()
    owner_page.goto("/")
    owner_page.locator("li.record", has_text="alert(1)").first.get_by_role("link").first.click()
    expect(owner_page.locator("div.body")).to_contain_text("alert(1)")
    assert owner_page.locator("main :is(script, img, [onload], [onerror], a[href^=javascript])").count() == 0
    assert dialogs == []


PAGES = ["/", "/sessions/", "/sessions/?show=off", "/workspaces/", "/connect/", "/trash/", "/health/"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_phone(owner_page: Page, history, scheme):
    owner_page.set_viewport_size({"width": 390, "height": 844})
    owner_page.emulate_media(color_scheme=scheme)
    owner_page.goto("/")
    record = owner_page.locator("li.record h2 a").first.get_attribute("href")
    for address in [*PAGES, history, f"{history}forget", f"{history}events/3/", record]:
        owner_page.goto(address)
        assert owner_page.evaluate("document.documentElement.scrollWidth") <= 390, address
        ground = owner_page.evaluate("+getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
        assert (ground > 128) == (scheme == "light"), address


def test_a_phone_folds_filters_that_are_not_in_use(owner_page: Page, history):
    tier = owner_page.get_by_label("Tier")
    owner_page.goto("/")
    expect(tier).to_be_visible()
    owner_page.set_viewport_size({"width": 390, "height": 844})
    owner_page.goto("/")
    expect(tier).to_be_hidden()
    owner_page.get_by_text("Filters").click()
    expect(tier).to_be_visible()
    owner_page.goto("/?tier=hot")
    expect(tier).to_be_visible()
    owner_page.goto("/health/")
    expect(owner_page.get_by_role("link", name="Health")).to_be_in_viewport(ratio=1)


def test_reading_needs_no_script(owner_page: Page, browser, server, history):
    state = owner_page.context.storage_state()
    context = browser.new_context(base_url=server.url, storage_state=state, java_script_enabled=False)
    plain = context.new_page()
    plain.goto("/")
    plain.locator("li.record h2 a").first.click()
    expect(plain.locator("div.body")).to_be_visible()
    expect(plain.locator("#theme-toggle")).to_be_hidden()
    plain.goto(history)
    plain.get_by_role("link", name="Later").click()
    expect(plain.locator("li.event").first).to_be_visible()
    plain.get_by_role("link", name="Earlier").click()
    expect(plain.get_by_role("link", name="Later")).to_be_visible()
    context.close()


def test_the_keyboard_goes_through_a_page_in_order(owner_page: Page, history):
    owner_page.goto("/")
    order = []
    for _ in range(18):
        owner_page.keyboard.press("Tab")
        order.append(
            owner_page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")
        )
    assert order.index("Memory") < order.index("Sessions") < order.index("sign-out") < order.index("q")
    assert order.index("q") < order.index("f-kind") < order.index("f-status")
