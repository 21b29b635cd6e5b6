import re

import pytest
from playwright.sync_api import expect


def test_signing_in_and_out(page, server):
    page.goto("/")
    expect(page).to_have_url(re.compile(r"/signin/\?next=/$"))
    expect(page.get_by_text("manage.py signin_link")).to_be_visible()

    link = server.signin_link()
    page.goto(link)
    expect(page.get_by_role("button", name="Sign in")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(server.url)
    expect(page.get_by_role("heading", level=1)).to_be_visible()

    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile(r"/signin/$"))
    page.goto("/")
    expect(page).to_have_url(re.compile(r"/signin/\?next=/$"))


def test_a_used_link_says_so(owner_page, server, browser):
    link = server.signin_link()
    owner_page.goto(link)
    owner_page.get_by_role("button", name="Sign in on").click()
    other = browser.new_context().new_page()
    other.goto(link)
    expect(other.get_by_role("button", name="Sign in")).to_have_count(0)
    expect(other.get_by_role("alert")).to_contain_text("used already")
    other.context.close()


def test_opening_the_link_tells_other_sites_nothing(page, server):
    referrers = []
    page.on("request", lambda request: referrers.append(request.headers.get("referer", "")))
    link = server.signin_link()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(server.url)
    token = link.rsplit("/", 1)[1]
    assert referrers
    assert not any(token in referrer for referrer in referrers)


def test_the_keyboard_reaches_the_content_first(owner_page):
    owner_page.keyboard.press("Tab")
    skip = owner_page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    owner_page.keyboard.press("Enter")
    expect(owner_page.get_by_role("main")).to_be_focused()


def test_the_theme_is_kept(owner_page):
    background = "getComputedStyle(document.body).backgroundColor"
    toggle = owner_page.get_by_role("button", name="Theme")
    expect(toggle).to_have_text("Theme: auto")
    toggle.click()
    expect(toggle).to_have_text("Theme: light")
    light = owner_page.evaluate(background)
    toggle.click()
    expect(toggle).to_have_text("Theme: dark")
    dark = owner_page.evaluate(background)
    assert light != dark
    owner_page.reload()
    expect(toggle).to_have_text("Theme: dark")
    assert owner_page.evaluate(background) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system(owner_page, scheme):
    owner_page.emulate_media(color_scheme=scheme)
    red = owner_page.evaluate("+getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
    assert (red > 128) == (scheme == "light")


def test_a_phone_needs_no_sideways_scrolling(owner_page, server):
    owner_page.set_viewport_size({"width": 390, "height": 844})
    for address in ("/", server.signin_link()):
        owner_page.goto(address)
        assert owner_page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_admin_works_under_the_policy(owner_page):
    owner_page.goto("/admin/memex_site/signinlink/")
    expect(owner_page.get_by_role("heading", name="Select signin link")).to_be_visible()
