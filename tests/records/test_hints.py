"""What a search says that found nothing."""

import pytest

from records.models import Record
from records.scope import OWNER, Scope
from records.search.hints import NOTHING
from records.search.results import SearchAnswer, Suggestion
from records.search.search import EMPTY, search
from records.services import records_write
from tests.queries import assert_flat_queries

from .drafts import make_draft, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE = "0123456789abcdef"
ELSEWHERE = "fedcba9876543210"
AGENT = Scope(frozenset({HERE}), session_ids=frozenset({"s1"}))


@pytest.fixture
def store(memex_home):
    write(
        "a",
        title="The harbour",
        kind="decision",
        tags={"topic": ["kubernetes", "数据库连接"]},
        body="Kubernetes ships.",
    )
    write("b", title="The quay", body="The harbour lies behind the quay.", status="superseded")
    write("c", title="A wharf", body="A wharf in Zanzibar.", workspace_key=ELSEWHERE, workspace="/w/else")
    write("d", title="Theirs", body="The password is swordfish.", scope="session", session_id="s2")


def of_kind(answer: SearchAnswer, kind: str) -> list[Suggestion]:
    assert answer.hits == []
    return [each for each in answer.suggestions if each.kind == kind]


@pytest.mark.usefixtures("store")
def test_a_hit_needs_no_hint():
    answer = search(OWNER, "harbour")
    assert answer.hits
    assert (answer.hint, answer.suggestions) == ("", [])


@pytest.mark.usefixtures("store")
def test_words_that_are_spelt_nearly_so_are_named_and_found():
    answer = search(OWNER, "harbuor zanzibra")
    words = of_kind(answer, "words")
    assert [(each.value, each.text) for each in words] == [
        ("harbuor", "“harbour” occurs in 1 record"),
        ("zanzibra", "“zanzibar” occurs in 1 record"),
    ]
    assert all(search(OWNER, each.query).hits for each in words)
    assert answer.hint.startswith("Nothing was found. “harbour” occurs in 1 record. ")


@pytest.mark.usefixtures("store")
def test_tags_that_resemble_the_question_are_named():
    (tag,) = of_kind(search(OWNER, "kuberntes"), "tag")
    assert (tag.query, tag.text) == ("kubernetes", "the tag “kubernetes” is on 1 record")
    assert search(OWNER, "anything harbour", tag=tag.query).hits


@pytest.mark.usefixtures("store")
def test_the_exact_text_can_be_grepped_for():
    (grep,) = of_kind(search(OWNER, " xyzzy:plugh "), "grep")
    assert grep.query == "xyzzy:plugh"
    assert of_kind(search(OWNER, "xyzzy\nplugh"), "grep") == []
    assert of_kind(search(OWNER, "xyzzy " * 100), "grep") == []


@pytest.mark.usefixtures("store")
def test_filters_that_leave_nothing_over_are_told_one_by_one():
    answer = search(OWNER, "harbour", kinds=["note"], cold=False)
    (alone,) = of_kind(answer, "filter")
    assert (alone.value, alone.text) == ("kinds", "without the kind filter: 1 record")
    (only,) = of_kind(search(OWNER, "harbour", kinds=["note"]), "filter")
    assert only.text == "without the kind filter: 1 record"
    (both,) = of_kind(search(OWNER, "harbour", kinds=["note"], cold=True), "filter")
    assert (both.value, both.text) == ("kinds cold", "without the kind and cold filters: 1 record")
    assert (
        "Without the kind and cold filters: 1 record."
        in search(OWNER, "harbour", kinds=["note"], cold=True).hint
    )


@pytest.mark.usefixtures("store")
def test_other_workspaces_are_counted_for_those_who_see_them():
    (elsewhere,) = of_kind(search(OWNER, "zanzibar", workspace_key=HERE), "workspace")
    assert (elsewhere.value, elsewhere.text) == (ELSEWHERE, "in /w/else: 1 record")
    assert search(OWNER, elsewhere.query, workspace_key=elsewhere.value).hits
    answer = search(AGENT, "zanzibar", workspace_key=HERE)
    assert {each.kind for each in answer.suggestions} == {"grep"}


@pytest.mark.usefixtures("store")
def test_nothing_out_of_scope_is_let_out():
    assert [each.query for each in of_kind(search(OWNER, "swordfihs"), "words")] == ["swordfish"]
    for text in ("swordfihs", "zanzibra", "swordfish", "quya"):
        answer = search(AGENT, text)
        assert {each.kind for each in answer.suggestions} <= {"grep"}, answer.hint
    write("mine", title="Mine", body="Swordplay.", scope="session", session_id="s1")
    assert {each.kind for each in search(AGENT, "swordfihs").suggestions} <= {"grep"}


@pytest.mark.usefixtures("store")
def test_what_is_hidden_is_not_suggested():
    Record.objects.filter(title="The harbour").update(status="superseded")
    assert of_kind(search(OWNER, "harbuor"), "words") == []


def test_an_empty_store_and_an_empty_question_have_their_own_words():
    assert search(OWNER, "anything").hint == NOTHING
    write("a")
    assert search(OWNER, "anything at hand").hint != NOTHING
    assert search(OWNER, " \n").hint == EMPTY
    assert search(Scope(frozenset(), frozenset()), "anything").hint == NOTHING


def test_queries_do_not_grow():
    made = 0

    def make(count: int) -> None:
        nonlocal made
        drafts = [
            make_draft(f"c{n}", tags={"topic": [f"kubernetes{n}"]}, body=f"harbour{n}")
            for n in range(made, made + count)
        ]
        records_write(drafts, actor="a", verb="v")
        made += count
        search(OWNER, "harbour1")

    assert_flat_queries(make, lambda: search(OWNER, "xubernetes harbuor", kinds=["note"], cold=False))


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    "text", ["\0", "\ud800x", "😀😀", "%s %d", "的的的", "(((", "a" * 5_000, "数据库链接池" * 50]
)
def test_any_text_has_an_answer(text):
    answer = search(OWNER, text, kinds=["note"])
    assert answer.hits or answer.hint
