import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from records.models import Record
from records.queries import BadPath, nav
from records.scope import OWNER, Scope
from records.services import records_write
from tests.queries import assert_flat_queries

from .drafts import WHEN, make_draft, write
from .plans import plans

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE = "0123456789abcdef"
ELSEWHERE = "fedcba9876543210"
AGENT = Scope(frozenset({HERE}), session_ids=frozenset({"s1"}))


@pytest.fixture
def shelf(memex_home):
    topics = {"topic": ["deploy", "部署/上线"], "where": ["src/a.py"]}
    write("a", title="Apples", kind="decision", tags=topics, created_at=WHEN + 3, summary="Which apples.")
    write("b", title="Bread", kind="note", tags={"topic": ["deploy"]}, created_at=WHEN + 2)
    write(
        "c",
        title="Cheese",
        kind="decision",
        created_at=WHEN + 1,
        workspace="/w/else",
        workspace_key=ELSEWHERE,
    )
    write("d", title="Theirs", scope="session", session_id="s2", tags={"topic": ["secret"]})
    write("e", title="Old", kind="decision", status="superseded")


def titles(scope: Scope = OWNER, path: str = "", **options) -> list[str]:
    return [entry.title for entry in nav(scope, path, **options).entries]


def paths(scope: Scope, path: str) -> list[str]:
    return [entry.path for entry in nav(scope, path).entries]


@pytest.mark.usefixtures("shelf")
def test_a_path_leads_from_groups_to_records():
    assert titles() == ["Apples", "Bread", "Cheese", "Theirs"]
    assert titles(path="kind/decision") == ["Apples", "Cheese"]
    assert titles(path=f"workspace/{ELSEWHERE}") == ["Cheese"]
    assert titles(path=f"workspace/{HERE}/kind/decision/topic/deploy") == ["Apples"]
    assert titles(path="/topic/deploy/") == ["Apples", "Bread"]
    assert titles(path="where/src%2Fa.py") == ["Apples", "Cheese"]
    assert titles(path="topic/nothing") == []


@pytest.mark.usefixtures("shelf")
def test_a_step_alone_lists_its_values_with_paths_that_work():
    groups = nav(OWNER, "topic")
    assert [(entry.title, entry.summary, entry.type) for entry in groups.entries] == [
        ("deploy", "2 records", "topic"),
        ("secret", "1 record", "topic"),
        ("部署/上线", "1 record", "topic"),
    ]
    assert groups.total == 3
    assert not groups.is_partial
    assert [titles(path=entry.path) for entry in groups.entries] == [
        ["Apples", "Bread"],
        ["Theirs"],
        ["Apples"],
    ]
    assert groups.entries[0].time == WHEN + 3
    assert paths(OWNER, "kind") == ["kind/decision", "kind/episode", "kind/note"]
    inside = f"workspace/{HERE}/kind"
    assert paths(OWNER, inside) == [f"{inside}/{kind}" for kind in ("decision", "episode", "note")]
    assert paths(OWNER, "topic/deploy/kind") == ["topic/deploy/kind/decision", "topic/deploy/kind/note"]
    workspaces = nav(OWNER, "workspace").entries
    assert [(entry.title, entry.summary, entry.time) for entry in workspaces] == [
        ("/home/dev/demo", "3 records", WHEN + 3),
        ("/w/else", "1 record", WHEN + 1),
    ]
    assert titles(path=workspaces[1].path) == ["Cheese"]


@pytest.mark.usefixtures("shelf")
def test_a_record_is_an_entry_by_its_id():
    record = Record.objects.get(title="Apples")
    (entry,) = nav(OWNER, record.id).entries
    assert entry == (record.id, record.id, "decision", "Apples", "Which apples.", WHEN + 3)
    theirs = Record.objects.get(title="Theirs")
    assert nav(AGENT, theirs.id).entries == []


@pytest.mark.usefixtures("shelf")
def test_the_scope_decides_in_lists_groups_counts_and_facets():
    found = nav(AGENT)
    assert [entry.title for entry in found.entries] == ["Apples", "Bread"]
    assert found.total == 2
    assert found.facets == {"workspace": {HERE: 2}, "kind": {"decision": 1, "note": 1}}
    assert titles(AGENT, "topic") == ["deploy", "部署/上线"]
    assert titles(AGENT, "kind") == ["decision", "note"]
    assert titles(AGENT, "workspace") == ["/home/dev/demo"]
    assert titles(AGENT, f"workspace/{ELSEWHERE}") == []
    nobody = Scope(frozenset(), frozenset())
    assert (nav(nobody).total, nav(nobody, "topic").total, nav(nobody, "workspace").total) == (0, 0, 0)


def test_the_time_of_a_workspace_is_that_of_what_may_be_seen_there():
    write("shared", created_at=WHEN)
    write("theirs", scope="session", session_id="s2", created_at=WHEN + 9)
    assert [entry.time for entry in nav(AGENT, "workspace").entries] == [WHEN]
    write("mine", scope="session", session_id="s1", created_at=WHEN + 5)
    assert [entry.time for entry in nav(AGENT, "workspace").entries] == [WHEN + 5]
    assert [entry.time for entry in nav(OWNER, "workspace").entries] == [WHEN + 9]
    private = Scope(frozenset({HERE}), frozenset({"session"}), frozenset({"s1"}))
    assert [entry.time for entry in nav(private, "workspace").entries] == [WHEN + 5]
    shared = Scope(frozenset({HERE}), frozenset({"workspace"}), frozenset({"s1"}))
    assert [entry.time for entry in nav(shared, "workspace").entries] == [WHEN]


@pytest.mark.parametrize("scope", [OWNER, AGENT], ids=["owner", "agent"])
def test_a_workspace_is_named_off_an_index(scope):
    write("a")
    plan = "\n".join(plans(lambda: nav(scope, "workspace")))
    assert "records_pool_updated (workspace_key=? AND scope=?)" in plan
    assert "SCAN records" not in plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan


@pytest.mark.usefixtures("shelf")
def test_what_may_follow_is_said():
    assert nav(OWNER).steps == ("workspace", "kind", "topic", "where", "tools", "source")
    assert nav(OWNER, "kind/decision").steps == ("workspace", "topic", "where", "tools", "source")
    assert nav(OWNER, "topic/deploy").steps == ("workspace", "kind")


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(
    "path", ["nowhere", "kind/decision/kind/note", "topic/a/where/b", "../etc", "kind//x/y"]
)
def test_a_path_that_leads_nowhere_says_what_would(path):
    with pytest.raises(BadPath, match="steps: "):
        nav(OWNER, path)


def test_pages_follow_each_other():
    records_write(
        [
            make_draft(f"c{n}", title=f"t{n:02}", created_at=WHEN + n, tags={"topic": [f"v{n:02}"]})
            for n in range(25)
        ],
        actor="a",
        verb="v",
    )
    for path in ("", "kind/episode", "topic"):
        whole = titles(path=path, sort="title")
        turned, at = [], 0
        while True:
            page = nav(OWNER, path, limit=10, offset=at, sort="title")
            assert page.total == 25
            turned += [entry.title for entry in page.entries]
            if not page.has_more:
                break
            at += 10
        assert turned == whole
        assert len(set(whole)) == 25
    assert titles(sort="oldest")[0] == "t00"
    assert nav(OWNER, limit=100_000).limit == 500
    assert nav(OWNER, limit=0, offset=-5).limit == 1
    with pytest.raises(ValueError, match="sort"):
        nav(OWNER, sort="random")


def test_tags_of_very_many_records_are_counted_among_the_newest(monkeypatch):
    monkeypatch.setattr("records.nav.GROUPED_MAX", 3)
    for n in range(5):
        write(f"c{n}", tags={"topic": ["all", f"v{n}"]}, created_at=WHEN + n)
    found = nav(OWNER, "topic")
    assert found.is_partial
    assert "v0" not in {entry.title for entry in found.entries}
    assert {"v4", "v3", "v2"} <= {entry.title for entry in found.entries}


@pytest.mark.parametrize("path", ["", "topic", "kind", "workspace", "topic/deploy", "kind/episode"])
@pytest.mark.parametrize("scope", [OWNER, AGENT], ids=["owner", "agent"])
def test_queries_do_not_grow(scope, path):
    made = 0

    def make(count: int) -> None:
        nonlocal made
        drafts = [
            make_draft(f"c{n}", tags={"topic": ["deploy", f"v{n}"]}, workspace_key=f"{n:016x}")
            for n in range(made, made + count)
        ]
        records_write(drafts, actor="a", verb="v")
        made += count

    assert_flat_queries(make, lambda: nav(scope, path))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=60) | st.lists(st.sampled_from(["kind", "topic", "%", "%00", "\0", "a"])).map("/".join)
)
def test_any_path_is_an_answer_or_a_bad_path(path):
    try:
        assert nav(OWNER, path).total == 0
    except BadPath as error:
        assert "steps: " in str(error)
