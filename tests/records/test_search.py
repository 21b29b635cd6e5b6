"""Search over a store of real files, rows and indexes."""

import shutil

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from records import fulltext, places
from records.fulltext import OverflowText, overflow_provider_set
from records.home import bodies_dir, home
from records.maintenance.doctor import Finding
from records.maintenance.searchcheck import search_findings
from records.models import Record, SearchEntry
from records.queries import record_open
from records.scope import OWNER, Scope
from records.search.indexing import bodies_forgotten, bodies_rebuild, bodies_sync
from records.search.search import EMPTY, search
from records.services import record_set_status, record_update, records_forget
from records.trash import bundle_restore

from .drafts import WHEN, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE, ELSEWHERE = "0123456789abcdef", "fedcba9876543210"
FILLER = "\n".join(f"Line {n} speaks of other things entirely." for n in range(200))


def titles(text: str, scope: Scope = OWNER, **filters) -> list[str]:
    return [hit.card.title for hit in search(scope, text, **filters).hits]


def test_a_hit_is_a_place():
    body = f"> Preface.\n\n### [#1] user\n\n{FILLER}\n### [#7] tool\n\nThe zebra ate the connection pool.\n"
    write("c1", title="animals", body=body)
    write("c2", title="other", body=FILLER)
    bodies_sync()
    (hit,) = search(OWNER, "zebras in pools").hits
    assert (hit.card.title, hit.seq_start, hit.seq_end) == ("animals", 7, 7)
    text = record_open(OWNER, hit.card.id).body[hit.offset :].decode()
    assert text.startswith("### [#7]")
    marked = [hit.snippet.text[start:end] for start, end in hit.snippet.marks]
    assert marked == ["zebra", "pool"]
    assert "passage" in hit.reason.legs
    assert set(hit.reason.terms) == {"zebra", "pool"}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("数据", "旧的数据库已经删除"),
        ("库", "旧的数据库已经删除"),
        ("數據庫", "旧的数据库已经删除"),
        ("x", "set x to one"),
        ("C++", "written in C++ of old"),
        (".env", "read from .env at start"),
        ("--dry-run", "call it with --dry-run first"),
        ("b.py:42", "see src/a/b.py:42 for it"),
        ("src/a/b.py", "see src/a/b.py:42 for it"),
        ("E0308", "error[E0308]: mismatched types"),
        ("10.0.0.1", "listening on 10.0.0.1:8080"),
        ("server", "class HTTPServer fails"),
        ("HTTPServ", "class HTTPServer fails"),
        ("ttpServerFact", "new HttpServerFactory()"),
        ("branches", "one branch is enough"),
        ("ｄｅｐｌｏｙ", "we deploy on Friday"),
        ("naive cafe", "a naïve café"),
        ("🚀", "shipped 🚀 today"),
        ("authenticat", "the authentication is broken"),
        ("postgres 迁移", "postgres 数据迁移失败"),
    ],
)
def test_forms(query, text):
    write("c1", title="wanted", body=f"{FILLER}\n{text}\n")
    write("c2", title="other", body=FILLER)
    bodies_sync()
    assert titles(query)[:1] == ["wanted"]


def test_words_are_joined_with_or():
    write("c1", title="one", body="alpha beta")
    write("c2", title="two", body="alpha")
    assert titles("alpha beta unheard") == ["one", "two"]


def test_the_words_as_they_stand_come_first():
    for n in range(8):
        write(f"c{n}", title=f"often {n}", body="connection refused " * 20 + "by the port")
    write("exact", title="exact", body=f"{FILLER}\nport 5432: connection refused\n")
    assert titles("port 5432: connection refused")[0] == "exact"


def test_signs_that_no_word_has_are_found():
    for n in range(70):
        write(f"c{n}", title=f"test {n}", body="test of the tests")
    write("exact", title="exact", body=f"{FILLER}\n#[test]\nfn works() {{}}\n")
    bodies_sync()
    hit = search(OWNER, "#[test]").hits[0]
    assert (hit.card.title, hit.reason.legs) == ("exact", ("verbatim",))
    assert [hit.snippet.text[start:end] for start, end in hit.snippet.marks] == ["#[test]"]


def test_a_scrap_of_a_name_is_no_hit():
    write("c1", title="other", body="vitamin e and 5 apples")
    bodies_sync()
    assert titles("E0308") == []
    write("c2", title="wanted", body="error[E0308]: mismatched types")
    assert titles("E0308") == ["wanted"]
    assert titles("数" * 3_000 + " mismatched") == ["wanted"]


def test_pools_are_measured_alike():
    for n in range(40):
        write(
            f"c{n}", title=f"port {n}", body="every port of every ship, and the port", workspace_key=ELSEWHERE
        )
    write("small", title="small", body="the checkout listens on this port", workspace_key=HERE)
    bodies_sync()
    assert titles("checkout port")[0] == "small"


def test_the_place_is_in_the_body_where_the_card_says_it_too():
    write("c1", title="About the walrus", body=f"{FILLER}\nwalrus\n{FILLER}")
    (hit,) = search(OWNER, "walrus").hits
    assert hit.offset and "walrus" in hit.snippet.text


def test_the_snippet_shows_the_words_as_they_stand():
    text = "walrus pool\n" * 5 + "x " * 200 + "the walrus\nin the pool\n"
    write("c1", title="t", body=text)
    (hit,) = search(OWNER, "walrus in the pool").hits
    assert "walrus\nin the pool" in hit.snippet.text


def test_synonyms_are_found_and_said():
    write("c1", title="wanted", body="The sqlite file is locked.")
    write("c2", title="other", body="Nothing.")
    (hit,) = search(OWNER, "数据库").hits
    assert hit.card.title == "wanted"
    assert "sqlite" in hit.reason.aliases
    assert "alias" in hit.reason.text


def test_what_was_just_written_is_found_at_once():
    write("c1", title="first", body="walrus")
    assert titles("walrus") == ["first"]
    write("c2", title="second", body="walrus")
    assert sorted(titles("walrus")) == ["first", "second"]
    assert SearchEntry.objects.filter(pending=1).count() == 0


def test_cards_answer_while_the_body_index_is_busy(monkeypatch):
    from records.search import search as module

    monkeypatch.setattr(module, "_SYNC_RECORDS", 0)
    write("c1", title="About the walrus", body="walrus")
    answer = search(OWNER, "walruses")
    assert [hit.card.title for hit in answer.hits] == ["About the walrus"]
    assert answer.pending == 1


def test_changes_are_followed():
    record_id = write("c1", title="Walrus", body="ice")
    assert titles("walrus") == ["Walrus"]
    record_update(record_id, expected_hash=None, changes={"title": "Seal"}, actor="test")
    assert titles("walrus") == []
    assert titles("seal") == ["Seal"]
    assert titles("ice") == ["Seal"]


def test_a_file_edited_by_hand_is_followed_once_it_was_read():
    record_id = write("c1", title="t", body="walrus")
    assert titles("walrus") == ["t"]
    path = home() / Record.objects.get(pk=record_id).path
    path.write_bytes(path.read_bytes().replace(b"walrus", b"seal and more"))
    record_open(OWNER, record_id)
    assert titles("seal") == ["t"]
    assert titles("walrus") == []


def test_the_title_of_what_was_forgotten_leaves_the_database():
    ids = [write(f"c{n}", title="quetzalcoatl" if n == 3 else f"card {n}", body="b") for n in range(12)]
    bodies_sync()
    records_forget([ids[3]], actor="test")
    bodies_forgotten()
    with connection.cursor() as cursor:
        cursor.execute("SELECT block FROM search_cards_data UNION ALL SELECT c0 FROM search_cards_content")
        held = b"".join(bytes(value, "utf-8") if isinstance(value, str) else value for (value,) in cursor)
    assert b"card" in held
    # Words share their beginnings in the index: what tells this one apart is its end.
    assert b"zalcoatl" not in held


def test_forgotten_is_gone_at_once_and_from_the_files():
    record_id = write("c1", title="secret", body="quetzalcoatl nests here")
    write("c2", title="kept", body="other words")
    assert titles("quetzalcoatl") == ["secret"]
    bundle = records_forget([record_id], actor="test")
    assert titles("quetzalcoatl") == []
    bodies_forgotten()
    held = [
        path for path in bodies_dir().rglob("*") if path.is_file() and b"quetzalcoatl" in path.read_bytes()
    ]
    assert held == []
    assert titles("other words") == ["kept"]
    bundle_restore(bundle.id)
    assert titles("quetzalcoatl") == ["secret"]


def test_statuses():
    for n, status in enumerate(("active", "pinned", "resolved", "superseded")):
        record_set_status(write(f"c{n}", title=status, body="walrus"), status, actor="test")
    assert sorted(titles("walrus")) == ["active", "pinned", "resolved"]
    assert titles("walrus", statuses=["superseded"]) == ["superseded"]


def test_filters():
    write("c1", title="a", kind="decision", body="walrus", workspace_key=HERE, tags={"topic": ["ice"]})
    write("c2", title="b", kind="note", body="walrus", workspace_key=ELSEWHERE)
    write("c3", title="c", kind="note", body="walrus", scope="session", session="s3")
    assert titles("walrus", kinds=["decision"]) == ["a"]
    assert titles("walrus", workspace_key=ELSEWHERE) == ["b"]
    assert titles("walrus", session_id="s3") == ["c"]
    assert titles("walrus", tag="topic:ice") == ["a"]
    assert titles("walrus", cold=True) == []


def test_a_filter_that_few_records_pass_misses_none_of_them():
    for n in range(120):
        write(f"c{n}", title=f"many {n}", body="walrus walrus walrus")
    write("rare", title="rare", kind="decision", body=f"{FILLER}\nwalrus")
    assert titles("walrus", kinds=["decision"]) == ["rare"]


def test_scopes_decide():
    write("c1", title="shared here", body="walrus", workspace_key=HERE)
    write("c2", title="shared elsewhere", body="walrus", workspace_key=ELSEWHERE)
    write("c3", title="private s3", body="walrus", scope="session", session="s3", workspace_key=HERE)
    write("c4", title="private s4", body="walrus", scope="session", session="s4", workspace_key=HERE)
    bodies_sync()
    agent = Scope(workspace_keys=frozenset({HERE}), session_ids=frozenset({"s3"}))
    assert sorted(titles("walrus", agent)) == ["private s3", "shared here"]
    assert titles("walrus", agent, workspace_key=ELSEWHERE) == []
    assert titles("walrus", agent, session_id="s4") == []
    nobody = Scope(workspace_keys=frozenset(), session_ids=frozenset({""}))
    assert titles("walrus", nobody) == []
    assert len(titles("walrus")) == 4


def test_pending_cards_are_under_the_same_rule(monkeypatch):
    from records.search import search as module

    monkeypatch.setattr(module, "_SYNC_RECORDS", 0)
    write("c4", title="walrus of s4", body="x", scope="session", session="s4", workspace_key=HERE)
    agent = Scope(workspace_keys=frozenset({HERE}), session_ids=frozenset({"s3"}))
    assert titles("walrus", agent) == []
    assert titles("walrus") == ["walrus of s4"]


def test_what_a_body_leaves_out_is_found(monkeypatch):
    monkeypatch.setattr(fulltext, "_provider", fulltext._provider)
    monkeypatch.setattr(fulltext, "_least_bytes", 0)
    event = OverflowText(4, f"shown\n{FILLER}\nthe walrus beyond\n", shown=6)
    overflow_provider_set(lambda record, warn, seq=None: iter([event]))
    provenance = {"source": "compaction-archive", "sessionId": "s1", "compactionId": "c1", "cut": [[4, 4]]}
    write("c1", title="cut", body="### [#4] tool\n\nshown\n", provenance=provenance)
    (hit,) = search(OWNER, "walrus").hits
    assert (hit.card.title, hit.seq_start, hit.offset) == ("cut", 4, None)
    assert "walrus beyond" in hit.snippet.text


def test_nothing_to_search_for():
    write()
    for text in ("", "   ", "?!…", "\0", "——。"):
        answer = search(OWNER, text)
        assert (answer.hits, answer.hint) == ([], EMPTY)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=400)
    | st.sampled_from(
        [
            '"',
            "AND OR NOT",
            "NEAR(a b)",
            "title:x*",
            "a^2",
            "(((",
            "\ud800",
            "%_",
            "x" * 20_000,
            "字" * 20_000,
            "a " * 10_000,
            "'; DROP TABLE records; --",
        ]
    )
)
def test_any_text_searches(text):
    if not Record.objects.exists():
        write("c1", title="walrus", body="walrus and seal 数据库\n")
    assert isinstance(search(OWNER, text).hits, list)


def test_a_damaged_index_is_written_anew():
    for n in range(5):
        write(f"c{n}", title=f"t{n}", body="walrus")
    bodies_sync()
    for path in (bodies_dir() / HERE / "shared").iterdir():
        if path.suffix in (".idx", ".term", ".store", ".fast", ".fieldnorm"):
            path.write_bytes(path.read_bytes()[:10])
    from records.search import pools

    pools._folders.clear()
    assert len(titles("walrus")) == 5


def test_a_folder_that_was_removed_is_written_anew():
    write("c1", title="t", body="walrus")
    assert titles("walrus") == ["t"]
    shutil.rmtree(bodies_dir())
    bodies_dir().mkdir()
    assert titles("walrus") == ["t"]


def test_another_layout_is_written_anew():
    write("c1", title="t", body="walrus")
    assert titles("walrus") == ["t"]
    (bodies_dir() / "VERSION").write_text("0")
    assert titles("walrus") == ["t"]
    assert (bodies_dir() / "VERSION").read_text() != "0"


def test_rebuilding_gives_the_same_answers():
    for n in range(6):
        write(f"c{n}", title=f"t{n}", body=f"walrus {'seal ' * n}")
    before = [(hit.card.id, hit.score) for hit in search(OWNER, "walrus seals").hits]
    bodies_rebuild()
    after = [(hit.card.id, hit.score) for hit in search(OWNER, "walrus seals").hits]
    assert before == after


def codes(*, repair: bool = False) -> list[str]:
    found: list[Finding] = list(search_findings(repair=repair))
    return [finding.code for finding in found]


def test_doctor_sees_what_the_indexes_lack():
    first, second = write("c1", title="t", body="walrus"), write("c2", body="x")
    bodies_sync()
    assert codes() == []
    SearchEntry.objects.filter(record_id=first).delete()
    assert codes() == ["not-searchable", "body-index"]
    codes(repair=True)
    assert codes() == []
    assert titles("walrus") == ["t"]
    shutil.rmtree(bodies_dir() / HERE)
    assert codes() == ["body-index"]
    codes(repair=True)
    assert codes() == []
    assert titles("walrus") == ["t"]
    Record.objects.filter(pk=second).delete()
    assert codes() == ["searchable-without-record"]
    codes(repair=True)
    assert codes() == []


@pytest.mark.parametrize("suffix", [".idx", ".term", ".store", ".fieldnorm", ".fast"])
def test_doctor_sees_a_flipped_byte(suffix):
    write("c1", title="t", body=f"walrus\n{FILLER}")
    bodies_sync()
    path = next((bodies_dir() / HERE / "shared").glob(f"*{suffix}"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (finding,) = search_findings(repair=False)
    assert (finding.code, path.name in finding.message) == ("body-index", True)
    codes(repair=True)
    assert codes() == []
    assert titles("walrus") == ["t"]


def test_cold_records_keep_their_cards():
    record_id = write("c1", title="About walruses", summary="", body="seals live here", tags={})
    record = Record.objects.get(pk=record_id)
    place = places.place_of(record_id, record.workspace_key, cold=False)
    place.other_tier.path.parent.mkdir(parents=True, exist_ok=True)
    place.path.rename(place.other_tier.path)
    from records.maintenance.reindex import records_reindex

    records_reindex()
    assert titles("walrus", cold=True) == ["About walruses"]
    assert titles("seals live") == ["About walruses"], "its abstract is searched"
    assert WHEN


def test_a_record_that_has_just_changed_is_no_finding():
    changed, _ = write("c1"), write("c2")
    bodies_sync()
    record_set_status(changed, "resolved", actor="test")
    assert list(search_findings(repair=False)) == []
    shutil.rmtree(next(bodies_dir().glob(f"{HERE}/shared")))
    assert [each.code for each in search_findings(repair=False)] == ["body-index"]
