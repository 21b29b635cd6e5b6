"""Searching in a real browser: as one types, to the place in a long record, and back."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.sessions.stories import session_id, write_log

NUMBER = 91
HOSTILE = "<img src=x onerror=alert(1)>"
DEEP = "The zephyr valve sticks when the brine pump restarts within ninety seconds."
SEED = """
from tests.records.drafts import write
from records.search.indexing import bodies_sync
filler = "\\n\\n".join(f"Paragraph {{n}} says nothing of any interest to anybody at all." for n in range(600))
# What is searched for stands deep in a body.
write("deep", session="brine", title="Notes of the desalination plant", body=filler + "\\n\\n{deep}\\n\\n" + filler, kind="note")
write("chinese", session="brine", title="压测记录", body="闲话。\\n\\n" * 300 + "第一轮压测时数据库连接池耗尽，原因是估价接口。\\n", kind="note")
write("hostile", session="brine", title="{hostile}", body="xylograph {hostile}", kind="note", summary="{hostile}")
bodies_sync()
"""
# Narrower than what opens a record beside the list.
ONE_COLUMN = {"width": 1100, "height": 800}


@pytest.fixture(scope="module")
def archive(server) -> str:
    """The id of an archived session; and every body is in the index."""
    home = Path(server.environment["CLAUDE_CONFIG_DIR"])
    write_log(home, NUMBER, compactions=1, turns=30, cwd="/home/dev/brine", word="ferryboat", size=60)
    server.manage("archive", "--level", "l3")
    server.manage("shell", "-v0", "-c", SEED.format(deep=DEEP, hostile=HOSTILE))
    return session_id(NUMBER)


def box(page: Page):
    return page.get_by_role("searchbox")


def test_typing_finds_a_passage_and_back_returns_to_it(owner_page: Page, archive):
    owner_page.set_viewport_size(ONE_COLUMN)
    owner_page.goto("/")
    owner_page.keyboard.press("/")
    expect(box(owner_page)).to_be_focused()
    owner_page.keyboard.type("zephyr valve", delay=20)
    hit = owner_page.locator("li.record").first
    expect(hit.locator(".passage mark").first).to_have_text("zephyr valve")
    expect(hit.locator(".passage")).to_contain_text("The zephyr valve sticks when the brine pump")
    expect(hit).to_contain_text("verbatim; all words; terms: zephyr, valve")
    expect(owner_page.locator("#totals")).to_contain_text("the best first")
    expect(owner_page).to_have_url(re.compile(r"/\?q=zephyr\+valve$"))
    expect(box(owner_page)).to_be_focused()

    hit.get_by_role("link", name="Open at this passage").click()
    expect(owner_page.get_by_role("heading", name="Notes of the desalination plant")).to_be_attached()
    expect(owner_page.locator("mark:target")).to_have_text("zephyr valve")
    expect(owner_page.locator("mark:target")).to_be_in_viewport()
    expect(owner_page.get_by_text("Found here")).to_be_attached()
    expect(owner_page.locator(".part.lead mark")).to_have_count(0)

    owner_page.go_back()
    expect(box(owner_page)).to_have_value("zephyr valve")
    expect(owner_page.locator("li.record .passage mark").first).to_have_text("zephyr valve")
    # What was typed is one step of the history.
    owner_page.go_back()
    expect(box(owner_page)).to_have_value("")
    expect(owner_page.locator(".passage")).to_have_count(0)
    expect(owner_page.locator("li.record").first).to_be_visible()

    owner_page.goto("/?q=zephyr")
    owner_page.reload()
    expect(owner_page.locator(".passage mark").first).to_have_text("zephyr")


def test_an_old_answer_never_overwrites_a_newer_one(owner_page: Page, archive):
    owner_page.goto("/")
    held = []
    owner_page.route(re.compile(r"\?q=zephyr(&|$)"), lambda route: held.append(route))
    box(owner_page).fill("zephyr")
    with owner_page.expect_request(re.compile(r"\?q=zephyr(&|$)")):
        pass
    box(owner_page).fill("xylograph")
    expect(owner_page.locator(".passage mark").first).to_have_text("xylograph")
    for route in held:
        route.continue_()
    owner_page.wait_for_load_state("networkidle")
    expect(owner_page.locator(".passage mark").first).to_have_text("xylograph")
    expect(owner_page).to_have_url(re.compile(r"q=xylograph$"))


def test_a_wide_screen_opens_a_hit_beside_the_list(owner_page: Page, archive):
    owner_page.goto("/?q=zephyr")
    link = owner_page.locator("li.record h2 a").first
    link.click()
    pane = owner_page.get_by_role("region", name="The record that is open")
    expect(pane.locator("#passage")).to_be_in_viewport()
    expect(pane.locator("mark").first).to_have_text("zephyr")
    expect(owner_page.locator("li.record[aria-current]")).to_have_count(1)
    owner_page.keyboard.press("Escape")
    expect(pane).to_be_hidden()
    expect(link).to_be_focused()


def test_arrow_keys_go_through_the_hits(owner_page: Page, archive):
    owner_page.set_viewport_size(ONE_COLUMN)
    owner_page.goto("/")
    box(owner_page).fill("zephyr xylograph")
    titles = owner_page.locator("li.record h2 a")
    expect(owner_page.locator(".passage mark", has_text="zephyr")).to_be_visible()
    expect(titles).to_have_count(2)
    box(owner_page).press("ArrowDown")
    expect(titles.first).to_be_focused()
    owner_page.keyboard.press("ArrowDown")
    expect(titles.nth(1)).to_be_focused()
    owner_page.keyboard.press("ArrowUp")
    owner_page.keyboard.press("ArrowUp")
    expect(box(owner_page)).to_be_focused()
    owner_page.keyboard.press("ArrowDown")
    owner_page.keyboard.press("Enter")
    expect(owner_page).to_have_url(re.compile(r"/records/mem_\w+/\?.*q=zephyr"))


def test_a_hit_leads_into_its_session(owner_page: Page, archive):
    owner_page.goto("/?q=ferryboat+of+step+0.17&kind=episode")
    owner_page.get_by_role("link", name=re.compile("In the session at #")).first.click()
    expect(owner_page).to_have_url(re.compile(rf"/sessions/{archive}/\?at=\d+#e\d+$"))
    expect(owner_page.locator("li.event:target")).to_be_in_viewport()


def test_filters_hold_and_pinning_keeps_the_passage(owner_page: Page, archive):
    owner_page.goto("/?q=ferryboat")
    expect(owner_page.get_by_label("Order")).to_be_hidden()
    owner_page.get_by_label("Tier").select_option("cold")
    expect(owner_page.get_by_role("heading", name="No hits")).to_be_visible()
    owner_page.get_by_role("link", name="Search without the filters").click()
    hit = owner_page.locator("li.record").first
    expect(hit.locator(".passage mark").first).to_have_text("ferryboat")
    hit.get_by_role("button", name="Pin").click()
    expect(hit.locator(".badge.pinned")).to_be_visible()
    expect(hit.get_by_role("button", name="Unpin")).to_be_focused()
    expect(hit.locator(".passage mark").first).to_have_text("ferryboat")
    hit.get_by_role("button", name="Unpin").click()
    expect(hit.locator(".badge.pinned")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_chinese_on_a_phone(owner_page: Page, archive, scheme):
    owner_page.set_viewport_size({"width": 390, "height": 844})
    owner_page.emulate_media(color_scheme=scheme)
    owner_page.goto("/")
    box(owner_page).fill("数据库连接池")
    hit = owner_page.locator("li.record", has_text="压测记录")
    expect(hit.locator(".passage mark").first).to_have_text("数据库连接池")
    expect(hit.locator(".passage mark").first).to_be_in_viewport()
    assert owner_page.evaluate("document.documentElement.scrollWidth") <= 390
    hit.get_by_role("link", name="Open at this passage").click()
    expect(owner_page.locator("mark:target")).to_have_text("数据库连接池")
    expect(owner_page.locator("mark:target")).to_be_in_viewport()
    assert owner_page.evaluate("document.documentElement.scrollWidth") <= 390


def test_letters_of_a_word_that_is_being_composed_are_not_searched_for(owner_page: Page, archive):
    owner_page.goto("/")
    asked = []
    owner_page.on("request", lambda request: asked.append(request.url) if "q=" in request.url else None)
    box(owner_page).focus()
    keyboard = owner_page.context.new_cdp_session(owner_page)
    for letters in ("s", "sh", "shu", "shuj", "shuju"):
        keyboard.send(
            "Input.imeSetComposition",
            {"text": letters, "selectionStart": len(letters), "selectionEnd": len(letters)},
        )
    owner_page.wait_for_timeout(600)
    assert asked == []
    keyboard.send("Input.insertText", {"text": "数据库"})
    expect(owner_page.locator(".passage mark").first).to_have_text(re.compile("^数据库"))


@pytest.mark.parametrize(
    "question",
    [
        HOSTILE,
        f'xylograph "{HOSTILE}',
        "x" * 5_000,
        "数" * 5_000,
        "🙂🙂🙂",
        "?!,;…",
        "' OR 1=1 --",
        "<b>bold</b> %00",
    ],
    ids=["tag", "quoted tag", "long", "long and Chinese", "emoji", "signs", "sql", "bold"],
)
def test_any_text_can_be_asked(owner_page: Page, archive, question):
    dialogs: list[str] = []
    owner_page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    owner_page.goto("/")
    for typed in (question, f"{question} xylograph"):
        with owner_page.expect_response(lambda response: "?q=" in response.url) as answer:
            box(owner_page).fill(typed[-5_000:])
        assert answer.value.status == 200
    expect(owner_page.locator(".passage mark", has_text="xylograph").first).to_be_visible()
    expect(owner_page.locator("li.record", has_text="xylograph")).to_contain_text(HOSTILE)
    owner_page.reload()
    owner_page.locator("li.record", has_text="xylograph").get_by_role(
        "link", name="Open at this passage"
    ).click()
    expect(owner_page.locator("div.body mark", has_text="xylograph").first).to_be_visible()
    assert owner_page.locator("main :is(script, img, [onload], [onerror])").count() == 0
    assert dialogs == []


def test_a_search_needs_no_script(owner_page: Page, browser, server, archive):
    state = owner_page.context.storage_state()
    context = browser.new_context(base_url=server.url, storage_state=state, java_script_enabled=False)
    plain = context.new_page()
    plain.goto("/")
    plain.get_by_role("searchbox").fill("zephyr valve")
    plain.get_by_role("searchbox").press("Enter")
    expect(plain.locator(".passage mark").first).to_have_text("zephyr valve")
    plain.get_by_role("link", name="Open at this passage").first.click()
    expect(plain.locator("mark:target")).to_be_in_viewport()
    context.close()
