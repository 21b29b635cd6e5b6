"""What the Memory page makes of a search, and where its hits lead."""

import html
import re
from dataclasses import dataclass
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User

from records import contexts, hit_contexts
from records.contexts import HITS_FEW
from records.hit_contexts import Question, marker, pieces, reason_words
from records.markdown_html import WINDOW_BYTES
from records.models import Record
from records.search.indexing import bodies_sync
from records.search.results import Reason, SearchAnswer, Snippet
from sessions_app.models import AgentSession
from tests.queries import assert_flat_queries

from .drafts import write
from .test_pages import HTMX, provenance

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def owner(client, transactional_db, memex_home):
    client.force_login(User.objects.create_superuser("owner"))
    return client


FILLER = "This and that was said, and nothing came of it. " * 8


def long_body(needle, *, before=40, after=40):
    """Events that are long enough to be passages by themselves; the needle is in event `before`."""
    lines = [f"### [#{number}] model · model · 2026\n\n{FILLER}\n\n" for number in range(before)]
    lines.append(f"### [#{before}] model · model · 2026\n\n{needle} {FILLER}\n\n")
    lines += [f"### [#{before + number}] tool\n\n{FILLER}\n\n" for number in range(1, after)]
    return "".join(lines)


def hits(text):
    """The titles of the rows, in order."""
    return [html.unescape(title) for title in re.findall(r"<h2><a href=\"[^\"]*\"><bdi>(.*?)</bdi>", text)]


def shown(text):
    """The passages as one reads them, with their marks in brackets."""
    found = re.findall(r'<p class="passage"[^>]*>(.*?)</p>', text, re.DOTALL)
    return [html.unescape(passage.replace("<mark>", "[").replace("</mark>", "]")) for passage in found]


def link(text, words):
    """The address behind a link."""
    found = re.search(rf'<a (?:data-pane )?href="([^"]*)">{re.escape(words)}', text)
    return html.unescape(found[1])


def test_a_hit_shows_its_passage_and_leads_there(owner):
    AgentSession.objects.create(session_id="s1", agent="codex", workspace_key="k", pool_session_id="s1")
    record_id = write("c1", title="Harbour", body=long_body("The quokka timed out after refreshing."))
    text = owner.get("/?q=quokka+refreshed").text
    assert hits(text) == ["Harbour"]
    assert "The [quokka] timed out after [refreshing]." in shown(text)[0]
    assert "all words; terms: quokka, refreshed" in text
    assert link(text, "In the session at #40") == "/sessions/s1/?at=40#e40"
    place = link(text, "Open at this passage")
    assert re.fullmatch(rf"/records/{record_id}/\?from=\d+&q=quokka\+refreshed#passage", place)
    assert f'<h2><a href="{html.escape(place)}">' in text

    body = owner.get(place.partition("#")[0]).text
    lead, _, rest = body.partition("Found here")
    assert "<mark>" not in lead
    assert "#39</a>" in lead
    assert "#38</a>" not in lead
    assert '<mark id="passage">quokka</mark> timed out after <mark>refreshing</mark>' in rest.split("<h3>")[1]
    assert '<h3><a href="/sessions/s1/?at=40#e40">#40</a>' in rest
    assert "From the beginning" in lead


def test_events_are_named_where_their_session_was_not_read(owner):
    write("c1", body=long_body("The quokka."))
    text = owner.get("/?q=quokka").text
    assert "<span>event #40</span>" in text
    assert "In the session" not in text


def test_a_place_without_marks_is_led_to_all_the_same(owner):
    record_id = write("c1", body=long_body("The quokka."))
    text = owner.get(f"/records/{record_id}/?from=100&q=zzzz").text
    assert '<p class="found-here" id="passage">' in text
    assert text.count('id="passage"') == 1


def test_the_part_that_follows_a_hit_is_marked_as_well(owner):
    body = "quokka\n\n" + "word word\n" * (WINDOW_BYTES // 10) + "a quokka again\n"
    record_id = write("c1", body=body)
    text = owner.get(f"/records/{record_id}/?q=quokka").text
    assert 'id="passage"' not in text
    following = html.unescape(text.split('hx-get="')[1].split('"')[0])
    assert following.startswith(f"/records/{record_id}/?from=")
    assert following.endswith("&q=quokka")
    part = owner.get(following, headers=HTMX).text
    assert "a <mark>quokka</mark> again" in part
    assert "lead" not in part


def test_marks_leave_links_and_anchors_whole(owner):
    body = (
        "## Lost by the summary\n\n- paths: `a`\n\n## Archived context\n\n"
        "### [#3] user · person · 2026\n\nlost 3 words [lost](https://lost.example)\n"
    )
    record_id = write("c1", provenance=provenance(), body=body)
    text = owner.get(f"/records/{record_id}/?q=lost+3+summary+user").text
    assert '<h2 id="lost-by-the-summary"><mark>Lost</mark> by the <mark>summary</mark></h2>' in text
    assert '<h3><a href="/sessions/s1/?at=3#e3">#<mark>3</mark></a> <mark>user</mark>' in text
    assert '<a href="https://lost.example" rel="noopener noreferrer"><mark>lost</mark></a>' in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"alpha", "beta", "delta"}),
        ("kind=decision", {"beta"}),
        ("status=pinned", {"beta"}),
        ("status=superseded", {"gamma"}),
        ("scope=session", {"delta"}),
        ("scope=workspace", {"alpha", "beta"}),
        ("tier=cold", {"alpha"}),
        ("tier=hot", {"beta", "delta"}),
        ("workspace=fedcba9876543210", {"delta"}),
        ("agent=codex", {"beta"}),
        ("session=s2", {"delta"}),
        ("tag=where:src/b.py", {"beta"}),
        ("kind=decision&tier=cold", set()),
        ("order=oldest", {"alpha", "beta", "delta"}),
    ],
)
def test_filters_hold_for_hits(owner, query, found):
    first = write("c1", title="alpha", summary="A quokka.")
    write("c2", title="beta", kind="decision", status="pinned", body="A quokka.",
          provenance=provenance(agent="codex"), tags={"where": ["src/b.py"]})  # fmt: skip
    write("c3", title="gamma", status="superseded", body="A quokka.")
    write("c4", title="delta", scope="session", session="s2", workspace_key="fedcba9876543210",
          workspace="/w/other", body="A quokka.")  # fmt: skip
    write("c5", title="other", body="A wombat.")
    # Its card alone is searched.
    Record.objects.filter(pk=first).update(cold=1)
    for headers in ({}, HTMX):
        text = owner.get(f"/?q=quokka&{query}", headers=headers).text
        assert set(hits(text)) == found
        assert ("<html" in text) is not bool(headers)


def test_more_hits_are_a_link_away(owner):
    for number in range(HITS_FEW + 5):
        write(f"c{number}", title=f"quokka {number}")
    bodies_sync()
    text = owner.get("/?q=quokka&kind=episode").text
    assert len(hits(text)) == HITS_FEW
    more = html.unescape(re.search(r'id="more-hits" href="([^"]*)"', text)[1])
    assert more == "?q=quokka&kind=episode&more=1"
    text = owner.get(f"/{more}").text
    assert len(hits(text)) == HITS_FEW + 5
    assert "more-hits" not in text
    assert "more-hits" not in owner.get("/?q=nothing").text


def test_no_hit_says_what_to_do(owner):
    write()
    text = owner.get("/?q=zzzz").text
    assert "No hits" in text
    assert "Nothing was found." in text
    assert 'href="/">Show everything' in text
    assert "Search without the filters" not in text
    text = owner.get("/?q=zz+%26&kind=note&workspace=x").text
    assert 'href="?q=zz+%26">Search without the filters' in text
    assert "There is nothing to search for" in owner.get("/?q=%3F%21").text


@dataclass(frozen=True)
class Suggesting(SearchAnswer):
    suggestions: tuple[SimpleNamespace, ...] = ()


def test_suggestions_are_led_to_and_text_of_others_is_escaped(owner, monkeypatch):
    given = (SimpleNamespace(text=f"Try {HOSTILE}", query="a&b"), SimpleNamespace(text="Only said"))
    answer = Suggesting(hint=HOSTILE, pending=3, suggestions=given)
    monkeypatch.setattr(contexts, "search", lambda *_, **__: answer)
    write()
    text = owner.get("/?q=x&kind=note").text
    assert '<a href="?q=a%26b&amp;kind=note"><bdi>Try &lt;img' in text
    assert "<li><bdi>Only said</bdi></li>" in text
    assert "<img src=x" not in text
    assert "The text of 3 records is still being indexed" in text


def test_records_that_wait_for_the_index_are_named(owner, monkeypatch):
    monkeypatch.setattr("records.search.search._SYNC_RECORDS", 0)
    for number in range(30):
        write(f"c{number}", title=f"number {number}")
    text = owner.get("/?q=number").text
    assert re.search(r"The text of \d+ records is still being indexed", text)
    assert "in the card" in text or "in title" in text
    bodies_sync()
    assert "still being indexed" not in owner.get("/?q=number").text


@pytest.mark.parametrize(
    "question",
    [HOSTILE, "'; DROP TABLE records; --", "a" * 5_000, "数据库" * 1_600, "🙂🙂", "?!…", '"', "\0", "﷽", "e\u0301" * 50,
     "NEAR(a b) AND OR NOT *", "<b>", "%", "\ud83d"],
    ids=range(14),
)  # fmt: skip
def test_any_text_is_a_question(owner, question):
    record_id = write(
        "c1", title=f"{HOSTILE} title", body=f"Said: {HOSTILE} 数据库 🙂 <b>bold</b>\n\n`{HOSTILE}`\n"
    )
    asked = quote(question.encode("utf-8", "surrogatepass"))
    for headers in ({}, HTMX):
        for address in (f"/?q={asked}", f"/records/{record_id}/?from=3&q={asked}&also={asked}"):
            answer = owner.get(address, headers=headers)
            assert answer.status_code == 200
            assert "<img src=x" not in answer.text
            assert "<b>" not in answer.text


def test_hostile_text_is_marked_and_stays_text(owner):
    record_id = write("c1", body=f"Said: {HOSTILE}\n\n    {HOSTILE}\n")
    text = owner.get("/", {"q": HOSTILE}).text
    assert f"[{HOSTILE}]" in shown(text)[0].replace("][", "")
    body = owner.get(f"/records/{record_id}/", {"q": HOSTILE}).text
    assert "<mark>&lt;img src=x onerror=alert(1)&gt;</mark>" in body
    assert "<img src=x" not in text + body


def address_of(answer):
    return next(((name, answer[name]) for name in ("HX-Push-Url", "HX-Replace-Url") if name in answer), None)


@pytest.mark.parametrize(
    ("before", "asked", "expected"),
    [
        ("/", "q=ab&kind=&order=created", ("HX-Push-Url", "/?q=ab")),
        ("/?q=a", "q=ab&kind=", ("HX-Replace-Url", "/?q=ab")),
        ("/?q=ab", "q=ab&kind=note", ("HX-Push-Url", "/?q=ab&kind=note")),
        ("/?q=ab&kind=note", "q=abc&kind=note", ("HX-Replace-Url", "/?q=abc&kind=note")),
        ("/?q=ab", "q=", ("HX-Push-Url", "/")),
        ("/?q=ab", "q=ab&kind=&tier=", ("HX-Replace-Url", "/?q=ab")),
        ("/?q=%E6%95%B0", "q=%E6%95%B0%E6%8D%AE", ("HX-Replace-Url", "/?q=%E6%95%B0%E6%8D%AE")),
    ],
)
def test_the_address_follows_what_is_typed(owner, before, asked, expected):
    write()
    headers = {**HTMX, "HX-Current-URL": f"http://testserver{before}"}
    assert address_of(owner.get(f"/?{asked}", headers=headers)) == expected
    assert address_of(owner.get(f"/?{asked}")) is None


def test_a_search_takes_the_same_number_of_queries(owner):
    made = iter(range(1_000))

    def make(count):
        for number, _ in zip(made, range(count), strict=False):
            write(f"c{number}", session=f"s{number}", title=f"quokka {number}", body=long_body("A quokka."),
                  workspace_key=f"{number:016x}", workspace=f"/w/{number}")  # fmt: skip
        bodies_sync()

    assert_flat_queries(make, lambda: owner.get("/?q=quokka", headers=HTMX), rows=5)


def test_a_record_that_was_forgotten_meanwhile_is_no_hit(owner, monkeypatch):
    record_id = write("c1", title="quokka")
    answer = contexts.search(contexts.OWNER, "quokka")
    Record.objects.filter(pk=record_id).delete()
    assert len(answer.hits) == 1
    assert hit_contexts.hit_rows(answer, "quokka") == []


def cut(text, marks, question):
    found = pieces(Snippet(text, marks), Question.of(question))
    return "".join(f"[{piece}]" if is_asked else piece for piece, is_asked in found)


def test_single_characters_of_words_are_not_marked_beside_whole_ones():
    text, marks = "数据和库", ((0, 2), (3, 4))
    assert cut(text, marks, "数据库") == "[数据]和库"
    assert cut(text, marks, "数据 库") == "[数据]和[库]"
    assert cut("一库", ((1, 2),), "数据库") == "一[库]"
    assert cut("", (), "x") == ""


@pytest.mark.parametrize(
    ("reason", "question", "words"),
    [
        (Reason(("passage", "verbatim"), ("refresh", "lock"), ("title", "use_when")), "Refreshing, locks?",
         "verbatim; terms: Refreshing, locks; in title, when to read"),
        (Reason(("card",)), "x", "in the card"),
        (Reason(("card",), ("x",), ("tags",)), "x", "terms: x; in tags"),
        (Reason(("passage",), ("数据", "据库", "数", "库", "锁"), ()), "数据库死锁", "terms: 数据库"),
        (Reason(("passage",), ("锁",), ()), "死锁", "terms: 锁"),
        (Reason(("passage",), ("refreshlock", "refresh", "lock")), "RefreshLock", "terms: RefreshLock, refresh, lock"),
        (Reason(("passage",), ("lock",)), "RefreshLock", "terms: lock"),
        (Reason(("passage",), (), (), (), ("refresh",)), "refre", "as in: refreshed"),
        (Reason(("passage",), (), (), ("verifi",)), "test", "by synonym: verifi"),
        (Reason(("fragment",), tuple("abcdefghij")), " ".join("abcdefghij"),
         "part of a longer word; terms: a, b, c, d, e, f, g, h and 2 more"),
    ],
)  # fmt: skip
def test_a_reason_is_said_in_the_words_of_the_question(reason, question, words):
    assert reason_words(reason, Question.of(question), ["refreshed"]) == words


@pytest.mark.parametrize(
    ("question", "also", "text", "expected"),
    [
        ("refreshing", "", "It refreshed the Refresh-Lock", "It [refreshed] the [Refresh]-Lock"),
        ("refre", "refresh", "It refreshed", "It [refreshed]"),
        ("数据库", "", "数据庫和数字", "[数据庫]和数字"),
        ("b c", "", "cab, b c", "cab, [b c]"),
        ("src/app.py", "", "see src/app.py:3", "see [src/app.py]:3"),
        ("no", "", "yes", "yes"),
    ],
)
def test_what_is_marked_in_a_record(question, also, text, expected):
    mark = marker(question, also)
    assert cut(text, tuple(mark(text)), question) == expected


def test_nothing_asked_for_marks_nothing():
    assert marker("") is None
    assert marker("?!") is None or marker("?!")("what?!") in ([], [(4, 6)])
