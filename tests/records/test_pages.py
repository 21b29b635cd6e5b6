import pytest
from django.contrib.auth.models import User

from records import services
from records.contexts import HITS_FEW, PAGE_SIZE
from records.home import record_path
from records.ids import archive_id
from records.models import Record
from records.search.indexing import bodies_sync
from tests.queries import assert_flat_queries

from .drafts import WHEN, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]
HTMX = {"HX-Request": "true"}
HOSTILE = "<script>alert(1)</script><svg onload=alert(2)>\"'><img src=x>"
LOST = {
    "paths": ["src/lost.py"],
    "commands": [],
    "errors": [HOSTILE],
    "numbers": [],
    "decisions": [],
    "found": {"paths": 4, "commands": 2, "errors": 1, "numbers": 0, "decisions": 0},
    "lost": {"paths": 3, "commands": 0, "errors": 1, "numbers": 0, "decisions": 0},
}


@pytest.fixture
def owner(client):
    client.force_login(User.objects.create_superuser("owner"))
    return client


def provenance(**more):
    return {
        "source": "compaction-archive",
        "agent": "claude-code",
        "sessionId": "s1",
        "compactionId": "c1",
        "seqStart": 3,
        "seqEnd": 40,
        "model": "model-x",
        "trigger": "auto",
        "tokensBefore": 150_000,
        **more,
    }


def test_the_list_shows_what_one_looks_for(owner):
    write("c1", title="Fix the parser", use_when="Read when parsing.", tokens=41_000)
    text = owner.get("/").text
    for piece in (
        "Fix the parser",
        "Read when parsing.",
        "L3 workspace",
        "Episode",
        "41k tokens",
        "dev/demo",
    ):
        assert piece in text, piece
    assert '<a href="/" aria-current="page">' in text


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("q=alpha", ["alpha"]),
        ("q=nothing-has-this", []),
        ("kind=decision", ["beta"]),
        ("status=pinned", ["beta"]),
        ("status=superseded", ["gamma"]),
        ("scope=session", ["delta"]),
        ("scope=workspace", ["alpha", "beta"]),
        ("tier=cold", []),
        ("tier=hot", ["alpha", "beta", "delta"]),
        ("workspace=0123456789abcdef", ["alpha", "beta"]),
        ("agent=codex", ["beta"]),
        ("session=s2", ["delta"]),
        ("tag=where:src/a.py", ["alpha", "beta", "delta"]),
        ("kind=%00&status=nonsense&order=nonsense", ["alpha", "beta", "delta"]),
        ("q=%25_%27%3B--", []),
    ],
)
def test_filters(owner, query, shown):
    write("c1", title="alpha")
    write("c2", title="beta", kind="decision", status="pinned", provenance=provenance(agent="codex"))
    write("c3", title="gamma", status="superseded")
    write(
        "c4",
        title="delta",
        scope="session",
        session="s2",
        workspace_key="fedcba9876543210",
        workspace="/w/other",
    )
    for headers in ({}, HTMX):
        text = owner.get(f"/?{query}", headers=headers).text
        found = [name for name in ("alpha", "beta", "gamma", "delta") if f"<bdi>{name}</bdi></a>" in text]
        assert found == shown
        assert ("<html" in text) is not bool(headers)


def test_going_back_in_the_history_gets_the_whole_page(owner):
    write()
    response = owner.get("/", headers={**HTMX, "HX-History-Restore-Request": "true"})
    assert "<html" in response.text
    assert "HX-Request" in response["Vary"]


def test_more_are_loaded_until_the_end(owner):
    for number in range(PAGE_SIZE + 3):
        write(f"c{number}", title=f"number {number}.", created_at=WHEN + number)
    first = owner.get("/?kind=episode").text
    address = first.split('id="more"')[1].split('hx-get="?')[1].split('"')[0].replace("&amp;", "&")
    assert "kind=episode" in address
    rest = owner.get(f"/?{address}", headers=HTMX).text
    assert rest.count("<li id=") == 3
    assert "number 0." in rest
    assert "Load more" not in rest
    assert "<html" not in rest


@pytest.mark.parametrize("cursor", ["x", "1", "a:b"])
def test_a_cursor_that_is_none_is_not_found(owner, cursor):
    write()
    assert owner.get(f"/?after={cursor}").status_code == 404


def test_an_empty_list_says_what_to_do(owner):
    write()
    assert "Show everything" in owner.get("/?q=zzz").text
    services.records_forget([archive_id("s1", "c1")], actor="test")
    assert "Welcome to Memex" in owner.get("/").text


def test_the_number_of_queries_does_not_grow(owner):
    made = iter(range(1_000))

    def make(count):
        for number, _ in zip(made, range(count), strict=False):
            write(
                f"c{number}", session=f"s{number}", workspace_key=f"{number:016x}", workspace=f"/w/{number}"
            )

    assert_flat_queries(make, lambda: owner.get("/"), rows=5)


def test_hostile_text_in_a_card_is_inert(owner):
    values = {"title": HOSTILE[:160], "use_when": HOSTILE, "summary": HOSTILE, "workspace": HOSTILE}
    tags = {HOSTILE: [HOSTILE]}
    given = provenance(sessionId=HOSTILE, agent=HOSTILE, model=HOSTILE, lost=LOST, compactionId=HOSTILE)
    links = {HOSTILE: [HOSTILE], "previous": "../../admin"}
    record_id = write("c1", **{**values, "tags": tags, "provenance": given, "links": links, "body": HOSTILE})
    for address in ("/", f"/records/{record_id}/", f"/records/forget?id={record_id}"):
        text = owner.get(address).text
        for piece in ("<script>alert", "<svg onload", "<img"):
            assert piece not in text.replace('<img src="/static/favicon.svg"', "")


def test_a_record_shows_its_card_and_where_it_comes_from(owner):
    record_id = write(
        "c1", title="Parser", provenance=provenance(lost=LOST), links={"previous": ["mem_0000000000"]}
    )
    text = owner.get(f"/records/{record_id}/").text
    for piece in (
        "<h1><bdi>Parser</bdi></h1>",
        "model-x",
        "150k",
        "#3–#40",
        'href="/sessions/s1/?at=3#e3"',
        'href="/records/mem_0000000000/"',
        "<strong>3</strong> of 4 paths",
        "src/lost.py",
        "All of them are in the summary.",
        "<p>The text of c1.</p>",
        "tag=where:src%2Fa.py",
        record_path("0123456789abcdef", record_id, cold=False).name,
    ):
        assert piece in text, piece


def test_a_long_body_comes_in_parts(owner):
    body = "".join(f"\n### [#{number}] model\n\n{'word ' * 400}\n" for number in range(200))
    record_id = write("c1", body=body)
    address, seen = f"/records/{record_id}/", []
    while True:
        text = owner.get(address, headers=HTMX).text
        assert len(text) < 300_000
        seen += [int(piece.split("<")[0]) for piece in text.split(">#")[1:]]
        if "Next part" not in text:
            break
        address = text.split('hx-get="')[1].split('"')[0]
    assert seen == list(range(200))


@pytest.mark.parametrize("start", ["-1", "x", "9" * 30, "1.5", "٣"])
def test_a_part_that_is_no_number_is_not_found(owner, start):
    record_id = write()
    assert owner.get(f"/records/{record_id}/?from={start}").status_code == 404


@pytest.mark.parametrize("record_id", ["mem_0000000000", "nothing", "..", "%00", "mem_x'--"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_what_does_not_exist_is_not_found(owner, method, record_id):
    action = "" if method == "get" else "edit"
    address = f"/records/{record_id}/{action}"
    assert getattr(owner, method)(address).status_code == 404


def test_a_missing_file_does_not_hide_the_card(owner):
    record_id = write("c1", title="Still here")
    record_path("0123456789abcdef", record_id, cold=False).unlink()
    text = owner.get(f"/records/{record_id}/").text
    assert "Still here" in text
    assert "is missing" in text
    answer = owner.post("/records/act", {"action": "pin", "id": record_id}, follow=True).text
    assert "Left as it is" in answer
    assert "is missing" in answer


def test_reading_changes_nothing(owner):
    record_id = write()
    before = Record.objects.values().get()
    for address in ("/", f"/records/{record_id}/", f"/records/forget?id={record_id}"):
        assert owner.get(address).status_code == 200
    assert owner.get("/records/act").status_code == 405
    assert Record.objects.values().get() == before


def test_the_header_counts_what_is_shown(owner):
    for number in range(3):
        write(f"c{number}", title="alpha" if number else "beta")
    assert "3 records · " in owner.get("/").text
    assert ">3 of 3 records<" in owner.get("/?kind=episode").text
    part = owner.get("/?kind=note", headers=HTMX).text
    assert '<p class="hint" id="totals" hx-swap-oob="true">0 of 3 records</p>' in part
    assert ">1 hit, the best first · 3 records in all<" in owner.get("/?q=beta").text
    assert ">2 hits, the best first · 3 records in all<" in owner.get("/?q=alpha").text
    part = owner.get("/?q=nothing", headers=HTMX).text
    assert '<p class="hint" id="totals" hx-swap-oob="true">No hits · 3 records in all</p>' in part
    for number in range(3, PAGE_SIZE + 3):
        write(f"c{number}", title="alpha")
    assert f">more than {PAGE_SIZE} of {PAGE_SIZE + 3} records<" in owner.get("/?kind=episode").text
    bodies_sync()
    assert f">The best {HITS_FEW} hits · {PAGE_SIZE + 3} records in all<" in owner.get("/?q=alpha").text


def test_what_is_gone_says_where_it_may_be(owner):
    answer = owner.get("/records/mem_0000000000/")
    assert answer.status_code == 404
    for piece in ("There is no record", "may have been forgotten or purged", 'href="/trash/"', 'href="/"'):
        assert piece in answer.text
    assert "There is nothing at this address" in owner.get("/nowhere/").text


def test_records_of_one_title_can_be_told_apart(owner):
    write("c1", title="Continue", provenance=provenance(seqStart=3, seqEnd=40))
    write("c2", title="Continue", provenance=provenance(seqStart=41, seqEnd=90))
    text = owner.get("/").text
    assert "seq 3–40" in text
    assert "seq 41–90" in text
