import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.markdown_html import before, link_events, marked, render, window

TAG = re.compile(r"<(/?)([a-z0-9]+)([^>]*)>")
ATTRIBUTE = re.compile(r"""([\w-]+)="([^"]*)\"""")
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe src=//evil.example></iframe>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](&#106;avascript:alert(1))",
    "[click](data:text/html,<script>alert(1)</script>)",
    "[click](/signout/)",
    "[click](//evil.example)",
    "[click](?from=3)",
    "<javascript:alert(1)>",
    "![pixel](https://evil.example/p.png)",
    '[x](https://ok.example "a\\" onmouseover=alert(1) x=\\"")',
    '```"><script>alert(1)</script>\n</code></pre><script>alert(2)</script>\n```',
    "| a |\n|--|\n| <style>*{display:none}</style> |",
    "<a href='https://ok.example' style='position:fixed' class='x' id='main'>x</a>",
]


def assert_inert(html: str) -> None:
    """Only tags that format text, and links to the web or to mail that give nothing away."""
    for closing, name, rest in TAG.findall(html):
        assert name not in {"script", "img", "svg", "iframe", "style", "form", "input", "object"}
        for attribute, value in ATTRIBUTE.findall(rest):
            assert not closing
            assert attribute in {"href", "title", "rel", "start"}, (attribute, html)
            if attribute == "href":
                assert re.match(r"(https?://|mailto:)", value, re.IGNORECASE), html
        if name == "a" and "href=" in rest:
            assert 'rel="noopener noreferrer"' in rest
    assert html.count("<") == len(TAG.findall(html))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_inert(text):
    for around in (text, f"# {text}", f"- {text}", f"> {text}", f"**{text}**", f"a\n\n{text}\n\nb"):
        assert_inert(render(around))


@given(st.lists(st.sampled_from([*HOSTILE, "`", "```\n", "\n", "[", "](", ")", "<", ">", '"', "# ", "| "])))
def test_no_mixture_of_hostile_pieces_is_active(pieces):
    assert_inert(render("".join(pieces)))


def test_markdown_is_rendered():
    html = render("## Title\n\n**bold** `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- x\n\n~~gone~~")
    for piece in ("<h2>Title</h2>", "<strong>bold</strong>", "<code>code</code>", "<td>1</td>", "<li>x</li>"):
        assert piece in html


@pytest.mark.parametrize("address", ["https://a.example/x?y=1", "http://a.example", "mailto:a@a.example"])
def test_links_to_the_web_and_to_mail_stay(address):
    assert f'<a href="{address}" rel="noopener noreferrer">x</a>' in render(f"[x]({address})")


def test_headings_of_events_lead_to_the_event():
    html = link_events(render("### [#812] tool · tool · 2026-01-01T10:00Z\n"), "/sessions/a%2520b/")
    assert '<h3><a href="/sessions/a%2520b/?at=812#e812">#812</a> tool' in html


def test_what_only_looks_like_an_event_is_no_link():
    html = link_events(render("text [#812]\n\n## [#3]\n\n\\### [#4] x"), "/sessions/a/")
    assert "<a" not in html


def parts(body: bytes, size: int) -> list[str]:
    found, start = [], 0
    while True:
        part = window(body, start, size)
        found.append(part.text)
        if part.next_start is None:
            return found
        assert part.next_start > start
        start = part.next_start


@given(
    st.lists(st.sampled_from(["a", "é", "字", "🙂", "\n", "\n### [#1] x\n", "~~~", "long " * 20])).map(
        "".join
    ),
    st.integers(8, 200),
)
def test_parts_join_to_the_body(text, size):
    text = text.replace("~~~", "-")
    found = parts(text.encode(), size)
    assert "".join(found) == text
    assert all(len(part.encode()) <= size for part in found)


def test_a_part_ends_where_an_event_begins():
    body = b"".join(b"\n### [#%d] model\n\n%s\n" % (number, b"x" * 300) for number in range(10))
    found = parts(body, 1_000)
    assert len(found) > 2
    assert all(part.lstrip().startswith("### [#") for part in found)


def test_a_fence_that_is_cut_is_opened_again():
    body = b"\n### [#1] tool\n\n````tool-result\n" + b"# no heading\n" * 400 + b"````\n\nafter\n"
    found = parts(body, 1_000)
    assert len(found) > 3
    htmls = [render(part) for part in found]
    assert all("<h1>" not in html for html in htmls)
    assert "<p>after</p>" in htmls[-1]


def test_a_place_beyond_the_end_is_the_end():
    part = window(b"abc", 10_000)
    assert (part.text, part.next_start) == ("", None)


def every(word):
    return lambda text: [found.span() for found in re.finditer(re.escape(word), text)]


def test_marks_stand_in_text_and_nowhere_else():
    html = render("a title [a title](https://title.example) `title < x`")
    assert marked(html, every("title")) == (
        "<p>a <mark>title</mark> "
        '<a href="https://title.example" rel="noopener noreferrer">a <mark>title</mark></a> '
        "<code><mark>title</mark> &lt; x</code></p>\n"
    )
    assert "<mark>&lt;b&gt;</mark>" in marked(render("x <b> y"), every("<b>"))
    assert marked("", every("x")) == ""


def test_a_sign_of_a_tag_in_an_attribute_is_no_end_of_the_tag():
    html = render('[x](https://a.example "title > title \\"title\\" <title>")')
    assert marked(html, every("title")) == html


@given(
    st.lists(
        st.sampled_from([*HOSTILE, "`", "```\n", "\n", "[", "](", ")", "<", ">", '"', "# ", "&amp;", "&"])
    ),
    st.text("<>&\"'aclertimghox=/", min_size=1, max_size=3),
)
def test_marks_change_nothing_but_for_themselves(texts, word):
    html = render("".join(texts))
    shown = marked(html, every(word))
    assert_inert(shown.replace("<mark>", "").replace("</mark>", ""))
    assert TAG.findall(re.sub("</?mark>", "", shown)) == TAG.findall(html)
    assert shown.count("<mark>") == shown.count("</mark>")
    assert shown.count("<") == len(TAG.findall(shown))
    # What one reads is the same.
    assert unescape(re.sub(TAG, "", shown)) == unescape(re.sub(TAG, "", html))


def test_what_stands_before_a_place_begins_with_its_event():
    body = b"intro\n\n### [#1] model\n\none\n\n### [#2] model\n\ntwo\nthree\n"
    assert before(body, body.index(b"three")) == "### [#2] model\n\ntwo\n"
    assert before(body, body.index(b"### [#2]")) == "### [#1] model\n\none\n\n"
    assert before(body, 7) == "intro\n\n"
    assert before(body, 0) == ""
    assert before(body, 10_000) == "### [#2] model\n\ntwo\nthree\n"


def test_what_stands_before_a_place_is_little():
    body = b"\n### [#1] tool\n\n````\n" + b"# line\n" * 4_000
    text = before(body, len(body), 1_000)
    assert text.startswith("````\n# line\n")
    assert len(text) <= 1_005
    assert before(b"x" * 5_000, 4_000, 1_000) == ""
