import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from records import home, services
from records.models import Record
from records.queries import facets, record_get, record_list, record_open
from records.scope import OWNER, Scope
from records.services import record_set_status, records_write

from .drafts import WHEN, make_draft, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE = "0123456789abcdef"
ELSEWHERE = "fedcba9876543210"


def titles(scope: Scope, **filters) -> list[str]:
    return [record.title for record in record_list(scope, **filters).records]


def seen(scope: Scope) -> set[str]:
    return set(titles(scope))


@pytest.fixture
def pools(memex_home):
    write("shared", title="shared")
    write("elsewhere", title="elsewhere", workspace_key=ELSEWHERE)
    write("mine", title="mine", scope="session", session_id="s1")
    write("theirs", title="theirs", scope="session", session_id="s2")


@pytest.mark.usefixtures("pools")
@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (OWNER, {"shared", "elsewhere", "mine", "theirs"}),
        (Scope(frozenset({HERE}), session_ids=frozenset({"s1"})), {"shared", "mine"}),
        (Scope(frozenset({HERE}), frozenset({"workspace"}), frozenset({"s1"})), {"shared"}),
        (Scope(frozenset({HERE}), frozenset({"session"}), frozenset({"s1"})), {"mine"}),
        (Scope(frozenset({HERE, ELSEWHERE})), {"shared", "elsewhere"}),
        (Scope(frozenset(), session_ids=frozenset()), set()),
        (Scope(frozenset({HERE}), frozenset(), frozenset({"s1"})), set()),
        (Scope(None, frozenset({"workspace"})), {"shared", "elsewhere"}),
        (Scope(None), {"shared", "elsewhere"}),
    ],
)
def test_the_scope_decides_in_every_read(scope, expected):
    assert seen(scope) == expected
    assert facets(scope).count == len(expected)
    for record in Record.objects.all():
        if record.title in expected:
            assert record_get(scope, record.id) == record
            assert record_open(scope, record.id).record == record
        else:
            with pytest.raises(Record.DoesNotExist):
                record_get(scope, record.id)
            with pytest.raises(Record.DoesNotExist):
                record_open(scope, record.id)


def test_a_private_record_without_a_session_is_the_owners():
    Record.objects.filter(pk=write(scope="session")).update(session_id="")
    assert seen(Scope(frozenset({HERE}), session_ids=frozenset({""}))) == set()
    assert len(seen(OWNER)) == 1


def test_a_record_is_opened_from_either_tier():
    record_id = write()
    hot = home.record_path(HERE, record_id, cold=False)
    cold = home.record_path(HERE, record_id, cold=True)
    cold.parent.mkdir()
    hot.rename(cold)
    assert record_open(OWNER, record_id).body == make_draft().body.encode()


def test_hidden_statuses_are_listed_only_when_asked_for():
    for status in ("active", "pinned", "conflict", "resolved", "suggested", "superseded"):
        write(status, title=status, status=status)
    assert seen(OWNER) == {"active", "pinned", "conflict", "resolved"}
    assert titles(OWNER, statuses=["superseded"]) == ["superseded"]


def test_filters_narrow_the_list():
    write("a", title="Apples", kind="decision", tags={"topic": ["fruit", "项目"], "where": ["src/a.py"]})
    write(
        "b",
        title="Bread 100%",
        tags={"fruit": ["x"], "topic": ['q"uote']},
        session_id="s9",
        provenance={"agent": "codex"},
    )
    write("c", title="Cheese", workspace_key=ELSEWHERE, tags={"topic": ["a", "b"]})
    assert titles(OWNER, kinds=["decision"]) == ["Apples"]
    assert titles(OWNER, workspace_key=ELSEWHERE) == ["Cheese"]
    assert titles(OWNER, session_id="s9") == ["Bread 100%"]
    assert titles(OWNER, agent="codex") == ["Bread 100%"]
    assert titles(OWNER, text="bread 100%") == ["Bread 100%"]
    assert titles(OWNER, text="%") == ["Bread 100%"]
    assert titles(OWNER, tag="fruit") == ["Apples"]
    assert titles(OWNER, tag="项目") == ["Apples"]
    assert titles(OWNER, tag="where:src/a.py") == ["Apples"]
    assert titles(OWNER, tag="topic:src/a.py") == []
    assert titles(OWNER, tag='q"uote') == ["Bread 100%"]
    assert titles(OWNER, tag="topic:b") == ["Cheese"]
    assert titles(OWNER, tag="topic") == []
    assert len(titles(OWNER, cold=False)) == 3
    assert titles(OWNER, cold=True) == []


@pytest.mark.parametrize("order", ["updated", "created", "oldest", "tokens", "read", "title"])
def test_pages_follow_each_other_without_gaps(order):
    records_write(
        [
            make_draft(f"c{n}", title=f"t: {n % 3}", created_at=WHEN + n // 2, tokens=1 + n % 4)
            for n in range(9)
        ],
        actor="a",
        verb="v",
    )
    whole = [record.id for record in record_list(OWNER, order=order).records]
    paged, cursor = [], None
    while True:
        page = record_list(OWNER, order=order, limit=2, after_cursor=cursor)
        paged += [record.id for record in page.records]
        cursor = page.next_cursor
        if not page.has_more:
            break
    assert paged == whole
    assert len(set(whole)) == 9
    assert [record.id for record in record_list(OWNER, order=order, offset=4, limit=3).records] == whole[4:7]


def test_orders_are_what_they_say():
    write("a", title="b", created_at=WHEN + 1, tokens=5)
    write("b", title="a", created_at=WHEN + 2, tokens=9)
    assert titles(OWNER) == titles(OWNER, order="created") == titles(OWNER, order="tokens") == ["a", "b"]
    assert titles(OWNER, order="oldest") == ["b", "a"]
    with pytest.raises(ValueError, match="order"):
        record_list(OWNER, order="random")
    with pytest.raises(ValueError, match="cursor"):
        record_list(OWNER, after_cursor="nonsense")


def test_facets_count_everything():
    write("a", kind="decision", tokens=10, created_at=WHEN + 5)
    write("b", kind="decision", tokens=20, status="superseded", created_at=WHEN + 9)
    write("c", tokens=30, created_at=WHEN)
    found = facets(OWNER)
    assert (found.count, found.tokens, found.hot_count, found.hot_tokens) == (3, 60, 3, 60)
    assert (found.cold_count, found.cold_tokens) == (0, 0)
    assert found.by_kind == {"decision": 2, "episode": 1}
    assert found.by_kind_tokens == {"decision": 30, "episode": 30}
    assert found.by_status == {"active": 2, "superseded": 1}
    assert (found.oldest, found.newest) == (WHEN, WHEN + 9)
    assert found.bytes == sum(Record.objects.values_list("bytes", flat=True))


def test_facets_of_nothing():
    found = facets(OWNER)
    assert (found.count, found.oldest, found.newest, found.by_kind) == (0, None, None, {})


def test_what_has_left_a_pool_is_not_counted():
    record_id = write()
    record_set_status(record_id, "pinned", actor="owner")
    assert facets(OWNER).by_status == {"pinned": 1}
    services.records_forget([record_id], actor="owner")
    assert facets(OWNER).by_status == {}


def test_the_number_of_queries_does_not_grow():
    def count(call) -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            call()
        return len(queries)

    write("first")
    before = [count(lambda: facets(OWNER)), count(lambda: record_list(OWNER))]
    records_write([make_draft(f"c{n}", session=f"s{n}") for n in range(20)], actor="a", verb="v")
    assert [count(lambda: facets(OWNER)), count(lambda: record_list(OWNER))] == before
