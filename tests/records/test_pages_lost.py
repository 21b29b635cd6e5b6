"""What a summary lost: a dozen values on the page, and the way to the others."""

import re

import pytest
from django.contrib.auth.models import User

from records.contexts import lost_categories
from records.markdown_html import WINDOW_BYTES

from .drafts import write
from .test_pages import HTMX, provenance

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]
PATHS = [f"src/file_{number}.py" for number in range(40)]
LOST = {
    "paths": PATHS[:12], "commands": ["make a", "make b"], "errors": [], "numbers": [], "decisions": [],
    "found": {"paths": 60, "commands": 3, "errors": 2, "numbers": 0, "decisions": 0},
    "lost": {"paths": 52, "commands": 2, "errors": 0, "numbers": 0, "decisions": 0},
}  # fmt: skip


def body(summary="Short.", paths=PATHS):
    values = ", ".join(f"`{path}`" for path in paths)
    return (
        f"## Summary\n\n{summary}\n\n## Lost by the summary\n\n- paths: {values}\n- commands: `make a`, `make b`\n"
        "\n## Archived context\n\n### [#3] user · person · 2026\n\nWords.\n"
    )


@pytest.fixture
def owner(client):
    client.force_login(User.objects.create_superuser("owner"))
    return client


def page(owner, **draft):
    record_id = write("c1", provenance=provenance(lost=LOST), **draft)
    address = f"/records/{record_id}/"
    return address, owner.get(address).text


def test_the_rest_is_a_link_away(owner):
    _, text = page(owner, body=body())
    assert "The first 12 of 52." in text
    assert re.search(r'<a href="#lost-by-the-summary">All 40 that were kept are in the record</a>', text)
    assert text.count('id="lost-by-the-summary"') == 1
    assert "src/file_39.py" in text
    assert "of 2." not in text  # both commands are shown


def test_when_all_were_kept_it_says_so(owner):
    lost = LOST | {"lost": LOST["lost"] | {"paths": 40}}
    record_id = write("c1", provenance=provenance(lost=lost), body=body())
    assert ">All 40 are in the record</a>" in owner.get(f"/records/{record_id}/").text


def test_behind_a_long_summary_the_link_leads_to_its_part(owner):
    address, text = page(owner, body=body(summary="word " * (WINDOW_BYTES // 4)))
    found = re.search(r'href="(\?from=\d+)#lost-by-the-summary"', text)
    assert 'id="lost-by-the-summary"' not in text
    assert 'id="lost-by-the-summary"' in owner.get(address + found[1]).text
    assert "src/file_39.py" in owner.get(address + found[1], headers=HTMX).text


@pytest.mark.parametrize(
    "text",
    [
        "Nothing of it.\n",
        "## Archived context\n\n## Lost by the summary\n\n- paths: `said/by/someone.py`\n",
        "## Lost by the summary\n\nwritten by hand, without what follows\n",
    ],
)
def test_what_is_no_such_section_is_not_linked(owner, text):
    _, shown = page(owner, body=text)
    assert "The first 12 of 52." in shown
    assert "in the record</a>" not in shown


def test_the_first_category_that_lost_something_is_open(owner):
    lost = LOST | {"lost": LOST["lost"] | {"paths": 0}}
    assert [category.name for category in lost_categories(lost) if category.is_open] == ["commands"]
    _, text = page(owner, body=body())
    section = text.split('class="lost-list"')[1].split("</section>")[0]
    assert section.count("<details open>") == 1
    assert section.index("<details open>") < section.index("src/file_0.py") < section.index("make a")
