"""Lists, counts, facets and the catalog: what they hold, and which indexes they are read from."""

import pytest

from records.models import Record
from records.queries import catalog, facets, record_count, record_list
from records.scope import OWNER, Scope
from records.services import records_write
from tests.queries import assert_flat_queries

from .drafts import WHEN, make_draft, write
from .plans import plans

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE = "0123456789abcdef"
ELSEWHERE = "fedcba9876543210"
AGENT = Scope(frozenset({HERE}), session_ids=frozenset({"s1"}))
SHARED = Scope(frozenset({HERE}), frozenset({"workspace"}))
SCOPES = {"owner": OWNER, "agent": AGENT, "shared": SHARED}


def sorts(plan: str) -> int:
    return plan.count("TEMP B-TREE FOR ORDER BY")


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({}, "records_pool_updated"),
        ({"order": "created"}, "records_pool_created"),
        ({"order": "oldest"}, "records_pool_created"),
        ({"kinds": ["decision"]}, "records_pool_kind"),
        ({"workspace_key": HERE}, "records_pool_updated"),
    ],
    ids=str,
)
def test_a_pool_is_listed_from_an_index_in_order(filters, index):
    (plan,) = plans(lambda: record_list(SHARED, **filters))
    assert index in plan
    assert sorts(plan) == 0


@pytest.mark.parametrize("order", ["updated", "created", "oldest"])
def test_the_owner_lists_everything_from_an_index_in_order(order):
    (plan,) = plans(lambda: record_list(OWNER, order=order))
    assert "records_updated_index" in plan or "records_created_index" in plan
    assert sorts(plan) == 0


@pytest.mark.parametrize("filters", [{}, {"kinds": ["decision", "fact"]}, {"kinds": ["decision"]}], ids=str)
def test_several_pools_are_one_query_that_sorts_what_was_chosen_only(filters):
    (plan,) = plans(lambda: record_list(AGENT, **filters))
    assert "records_pool_kind" in plan if filters else "records_pool_updated" in plan
    assert "records_session" in plan
    assert "SCAN records" not in plan


def test_a_workspace_is_listed_to_the_owner_pool_by_pool():
    (plan,) = plans(lambda: record_list(OWNER, workspace_key=HERE))
    assert plan.count("records_pool_updated (workspace_key=? AND scope=?)") == 2
    (plan,) = plans(lambda: record_list(OWNER, workspace_key=HERE, kinds=["decision"]))
    assert plan.count("records_pool_kind (workspace_key=? AND scope=? AND kind=?)") == 2


def test_a_session_is_listed_from_its_own_index():
    (plan,) = plans(lambda: record_list(OWNER, session_id="s1"))
    assert "records_session (session_id=?)" in plan


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_the_catalog_is_two_queries_from_the_partial_indexes(scope):
    chosen, totals = plans(lambda: catalog(scope))
    own = "" if scope.is_owner else "pool_"
    assert f"records_{own}pinned" in chosen
    assert f"records_{own}threads" in chosen
    assert scope.is_owner or "records_hot" in chosen
    assert "SCAN records\n" not in f"{chosen}\n"
    assert sorts(chosen) == 0
    assert "pool_total" in totals
    assert scope.is_owner or "SCAN pool_totals" not in totals


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_facets_look_at_totals_and_at_the_ends_of_an_index(scope):
    totals, ends = plans(lambda: facets(scope))
    assert "pool_total" in totals
    assert "SCAN records\n" not in f"{ends}\n"
    if scope is OWNER:
        assert "pool_totals_sums" in totals
        assert "TEMP B-TREE" not in totals
    else:
        assert "records_pool_created (workspace_key=? AND scope=?)" in ends
        assert "SCAN pool_totals" not in totals


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_queries_do_not_grow_with_records(scope):
    made = 0

    def make(count: int) -> None:
        nonlocal made
        drafts = [make_draft(f"c{n}", session=f"s{n}") for n in range(made, made + count)]
        drafts += [make_draft(f"p{n}", session="s1", scope="session") for n in range(made, made + count)]
        records_write(drafts, actor="a", verb="v")
        made += count

    def call() -> None:
        facets(scope)
        catalog(scope)
        record_list(scope)
        record_count(scope)

    assert_flat_queries(make, call)


def make_pools() -> None:
    for n in range(3):
        write(f"shared{n}", title=f"shared {n}", created_at=WHEN + n, tags={"topic": ["port", "北京"]})
        write(f"mine{n}", title=f"mine {n}", scope="session", session_id="s1", created_at=WHEN + 10 * n)
        write(f"theirs{n}", title=f"theirs {n}", scope="session", session_id="s2", created_at=WHEN + n)
        write(f"else{n}", title=f"elsewhere {n}", workspace_key=ELSEWHERE, created_at=WHEN + 5 * n)


def test_a_page_over_several_pools_is_in_order_and_complete():
    make_pools()
    visible = set(Record.objects.filter(AGENT.q()).values_list("title", flat=True))
    assert len(visible) == 6
    for order in ("updated", "created", "oldest", "title", "tokens"):
        whole = [record.title for record in record_list(AGENT, order=order).records]
        assert set(whole) == visible
        parts = [record_list(AGENT, order=order, offset=at, limit=2) for at in (0, 2, 4)]
        assert [record.title for part in parts for record in part.records] == whole
        assert [part.has_more for part in parts] == [True, True, False]
        cursor, turned = None, []
        while True:
            page = record_list(AGENT, order=order, limit=1, after_cursor=cursor)
            turned += [record.title for record in page.records]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert turned == whole
    created = [record.created_at for record in record_list(AGENT, order="created").records]
    assert created == sorted(created, reverse=True)
    found = facets(AGENT)
    assert (found.oldest, found.newest) == (WHEN, WHEN + 20)


def test_filters_hold_over_several_pools():
    make_pools()

    def titles(**filters) -> set[str]:
        return {record.title for record in record_list(AGENT, **filters).records}

    shared = {"shared 0", "shared 1", "shared 2"}
    assert titles(tag="北京") == titles(tag="topic:port") == shared
    assert titles(text="shared") == shared
    assert titles(agent="claude-code") == shared | {"mine 0", "mine 1", "mine 2"}
    assert titles(agent="codex") == titles(cold=True) == titles(statuses=["superseded"]) == set()
    assert titles(session_id="s1") == shared | {"mine 0", "mine 1", "mine 2"}
    assert titles(workspace_key=ELSEWHERE) == set()
    assert titles(kinds=["episode", "fact", "note"]) == titles()
    assert titles(text="100%") == set()


def test_very_many_pools_are_no_trouble():
    make_pools()
    keys = frozenset({HERE, *(f"{n:016x}" for n in range(2_000))})
    wide = Scope(keys, session_ids=frozenset(f"s{n}" for n in range(2_000)))
    assert len(record_list(wide).records) == 9
    assert len(catalog(wide).recent) == 8
    assert facets(wide).newest == WHEN + 20


@pytest.mark.parametrize(
    "scope", [*SCOPES.values(), Scope(frozenset(), frozenset())], ids=[*SCOPES, "nobody"]
)
def test_the_count_is_that_of_the_list(scope):
    make_pools()
    write("old", status="superseded")
    write("kept", status="pinned", kind="decision")
    for filters in (
        {},
        {"kinds": ["decision"]},
        {"kinds": ["decision", "episode"]},
        {"statuses": ["superseded", "pinned"]},
        {"workspace_key": HERE},
        {"workspace_key": ELSEWHERE, "cold": False},
        {"cold": True},
        {"session_id": "s1"},
        {"tag": "port"},
        {"agent": "claude-code", "kinds": ["episode"]},
    ):
        assert record_count(scope, **filters) == len(record_list(scope, **filters).records), filters


def card_titles(cards) -> list[str]:
    return [card.title for card in cards]


def test_the_catalog_chooses_in_its_order_and_names_each_once():
    rules = {"status": "pinned", "trust": "trusted"}
    write("rule", title="rule", kind="constraint", created_at=WHEN + 1, **rules)
    write("wish", title="wish", kind="preference", created_at=WHEN + 2, **rules)
    write("guess", title="guess", kind="decision", status="pinned", trust="agent", created_at=WHEN + 3)
    write("fact", title="fact", kind="fact", created_at=WHEN + 4, **rules)
    write("todo", title="todo", kind="open-thread", created_at=WHEN + 5)
    write("pinned todo", title="pinned todo", kind="open-thread", created_at=WHEN + 6, **rules)
    write("new", title="new", created_at=WHEN + 7)
    write("loose rule", title="loose rule", kind="decision", trust="trusted", created_at=WHEN + 8)
    write("passed", title="passed", kind="checkpoint", status="pinned", created_at=WHEN + 9)
    for status in ("suggested", "conflict", "superseded", "resolved"):
        write(status, title=status, status=status, kind="open-thread", created_at=WHEN + 10)
    found = catalog(SHARED)
    assert card_titles(found.standing) == ["wish", "rule"]
    assert card_titles(found.pinned) == ["pinned todo", "fact", "guess"]
    assert card_titles(found.open_threads) == ["todo"]
    assert card_titles(found.recent) == ["loose rule", "new"]
    assert (found.hot_count, found.cold_count) == (13, 0)
    assert found.hot_tokens == sum(Record.objects.values_list("tokens", flat=True))


def test_the_catalog_is_bounded_and_fills_up_from_what_is_left():
    for n in range(30):
        write(
            f"p{n}",
            title=f"pinned {n}",
            kind="decision",
            status="pinned",
            trust="trusted",
            created_at=WHEN + n,
        )
        write(f"t{n}", title=f"thread {n}", kind="open-thread", created_at=WHEN + 100 + n)
    found = catalog(SHARED)
    assert card_titles(found.standing) == [f"pinned {n}" for n in range(29, 21, -1)]
    assert card_titles(found.pinned) == [f"pinned {n}" for n in range(21, 15, -1)]
    assert card_titles(found.open_threads) == [f"thread {n}" for n in range(29, 25, -1)]
    assert card_titles(found.recent) == [f"thread {n}" for n in range(25, 17, -1)]
    assert len({card.id for card in found.cards}) == 26


def test_the_catalog_keeps_to_its_scope_and_to_what_is_hot():
    make_pools()
    assert set(card_titles(catalog(AGENT).recent)) == {
        f"{who} {n}" for who in ("shared", "mine") for n in range(3)
    }
    assert set(card_titles(catalog(SHARED).recent)) == {f"shared {n}" for n in range(3)}
    assert catalog(Scope(frozenset(), frozenset())).cards == []
    assert card_titles(catalog(AGENT).recent)[0] == "mine 2"
    Record.objects.filter(title="mine 2").update(cold=1)
    assert card_titles(catalog(AGENT).recent)[0] == "mine 1"
