"""The page to try the API's calls, in a real browser, under the policy that forbids inline scripts."""

from playwright.sync_api import Page, expect


def test_the_owner_tries_a_call_that_changes_something(owner_page: Page):
    owner_page.goto("/api/docs")
    route = owner_page.locator(".opblock", has_text="/api/memory.nav").filter(has_text="POST")
    route.locator(".opblock-summary-control").click()
    route.locator("textarea").fill('{"path": "kind"}')
    route.get_by_role("button", name="Execute").click()
    answer = route.locator(".live-responses-table")
    expect(answer.locator(".response-col_status").nth(1)).to_contain_text("200")
    expect(answer).to_contain_text('"ok": true')


def test_a_stranger_is_sent_to_the_sign_in(page: Page):
    page.goto("/api/docs")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
