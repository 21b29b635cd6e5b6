"""Reading packs from a real store."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from records import home
from records.models import Record
from records.queries import record_open
from records.scope import OWNER, Scope
from records.search.assembling import assemble
from records.search.hints import NOTHING
from records.search.search import search
from records.tokens import estimate

from .drafts import WHEN, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE = "0123456789abcdef"
FILLER = "\n\n".join(
    f"Paragraph {n} speaks of nothing in particular, at some length. " * 6 for n in range(12)
)


def body(passage: str) -> str:
    return f"> Archived.\n\n{FILLER}\n\n### [#7] user\n{passage}\n\n### [#8] assistant\n{FILLER}\n"


@pytest.fixture
def store(memex_home):
    write("pool", title="The pool", body=body("The connection pool ran dry at 40 connections. " * 8))
    write("again", title="The pool again", body=body("The connection pool ran dry at 40 connections. " * 8))
    write("cjk", title="连接池", body=body("数据库连接池在凌晨三点耗尽，上限是 40 个连接。" * 10))
    write(
        "other",
        title="Bread",
        body=body("Bread needs four hours to rise in the kitchen. " * 8),
        workspace_key="fedcba9876543210",
    )
    write(
        "mine",
        title="Private pool",
        scope="session",
        session_id="s2",
        body=body("The pool of s2 holds 7 connections."),
    )


def titles(packed) -> list[str]:
    return [source.title for source in packed.sources]


@pytest.mark.usefixtures("store")
def test_the_whole_passage_is_read_from_the_record():
    packed = assemble(OWNER, "connection pool ran dry", budget=2_000)
    assert packed.used_tokens == estimate(packed.context) <= 2_000
    first = packed.sources[0]
    assert first.title in ("The pool", "The pool again")
    assert "The connection pool ran dry at 40 connections. " * 8 in packed.context
    assert first.seq_start == first.seq_end == 7
    opened = record_open(OWNER, first.id)
    assert opened.body[first.offset :].decode().startswith("### [#7] user\nThe connection pool")
    assert f"{first.id} · episode · 2023-11-14 · event #7" in packed.context
    (twin,) = (left for left in packed.omitted if left.why.startswith("says the same as"))
    assert twin.why == f"says the same as {first.id}"
    assert twin.tokens > 90


@pytest.mark.usefixtures("store")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=80) | st.sampled_from(["pool", "连接池", "connection pool 40", "bread"]),
    st.integers(100, 3_000),
)
@example("pool", 100)
@example("连接池 耗尽", 100)
@example("\ud800 \0 AND OR NEAR(", 100)
def test_any_task_and_budget_will_do(task, budget):
    packed = assemble(OWNER, task, budget=budget)
    assert packed.used_tokens == estimate(packed.context) <= budget
    assert packed.sources or packed.hint


@pytest.mark.usefixtures("store")
def test_a_small_budget_still_gives_something():
    packed = assemble(OWNER, "connection pool ran dry", budget=100)
    assert packed.sources[0].is_cut
    assert packed.omitted
    with pytest.raises(ValueError, match="budget"):
        assemble(OWNER, "pool", budget=99)


@pytest.mark.usefixtures("store")
def test_scope_and_filters_decide_also_about_hits_that_were_given():
    agent = Scope(frozenset({HERE}), session_ids=frozenset({"s1"}))
    assert "Private pool" not in titles(assemble(agent, "pool connections", budget=4_000))
    hits = search(OWNER, "pool connections bread").hits
    assert {"Private pool", "Bread"} <= {hit.card.title for hit in hits}
    given_hits = assemble(agent, "pool", hits=hits, budget=4_000)
    assert given_hits.sources
    assert not {"Private pool", "Bread"} & set(titles(given_hits))
    assert titles(assemble(OWNER, "pool bread", budget=4_000, workspace_key="fedcba9876543210")) == ["Bread"]


@pytest.mark.usefixtures("store")
def test_neighbours_stay_within_the_event():
    packed = assemble(OWNER, "Bread needs four hours to rise", budget=4_000)
    section = packed.context.split("## Bread\n")[1].split("\n## ")[0]
    assert "Bread needs four hours" in section
    assert "### [#8]" not in section
    assert "Paragraph" not in section


def test_a_long_event_grows_around_its_passage():
    middle = "The needle lies in the haystack, at the third bale from the left. "
    text = "\n\n".join(
        [*(f"Before {n}. " * 20 for n in range(3)), middle * 5, *(f"Behind {n}. " * 20 for n in range(3))]
    )
    write("long", title="Hay", body=f"### [#3] user\n{text}\n")
    wide = assemble(OWNER, "needle in the haystack", budget=2_000)
    assert "Before 2." in wide.context
    assert "Behind 0." in wide.context
    (source,) = wide.sources
    opened = record_open(OWNER, source.id).body
    shown = wide.context.split("\n```")[1].removeprefix("\n")
    assert opened[source.offset :].decode().lstrip("\n").startswith(shown)
    narrow = assemble(OWNER, "needle in the haystack", budget=180)
    (source,) = narrow.sources
    assert source.is_cut
    assert "The needle lies in the haystack" in narrow.context
    assert opened[source.offset :].decode().startswith(narrow.context.split("\n… ")[1][:40])


def test_what_is_gone_is_said():
    record_id = write("gone", title="Gone", body=body("The gondola was painted green."))
    hits = search(OWNER, "gondola painted green").hits
    home.record_path(HERE, record_id, cold=False).unlink()
    packed = assemble(OWNER, "gondola", hits=hits)
    assert [(left.id, left.why) for left in packed.omitted] == [(record_id, "its text can't be read")]
    assert packed.context == ""


def test_a_card_that_was_found_gives_its_summary():
    write("card", title="Zanzibar", summary="What was agreed on Zanzibar.", body="Nothing.", created_at=WHEN)
    packed = assemble(OWNER, "zanzibar")
    assert "What was agreed on Zanzibar." in packed.context
    Record.objects.update(summary="")
    assert "Nothing." in assemble(OWNER, "zanzibar").context


def test_an_empty_store_says_what_to_do():
    packed = assemble(OWNER, "anything at all")
    assert (packed.context, packed.used_tokens, packed.sources) == ("", 0, [])
    assert packed.hint == NOTHING
