import pytest

from records import services
from records.capacity.cold import record_cool
from records.capacity.pools import workspace_pool
from records.deciding import Action, decision_undo, records_decide
from records.models import Record, Status, Trust
from records.writing import Writer, memory_write, pool_writing
from records.written import Written

from .drafts import write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]
PERSON = Writer(actor="owner", by_person=True, scope="workspace", workspace_key="k", workspace="/w")
AGENT = Writer(
    actor="a", by_person=False, scope="workspace", workspace_key="k", workspace="/w", agent="codex"
)


def said(text, writer=PERSON, **more):
    return memory_write(Written(kind="decision", text=text, **more), writer).id


def states():
    return {record.title: (record.status, record.trust) for record in Record.objects.all()}


def decide(action, *ids):
    return records_decide(action, ids, actor="owner")


@pytest.mark.parametrize(
    ("before", "action", "after"),
    [
        ("active", Action.PIN, "pinned"),
        ("resolved", Action.PIN, "pinned"),
        ("pinned", Action.UNPIN, "active"),
        ("active", Action.RESOLVE, "resolved"),
        ("pinned", Action.RESOLVE, "resolved"),
        ("resolved", Action.REOPEN, "active"),
        ("superseded", Action.REOPEN, "active"),
    ],
)
def test_what_can_be_done_and_undone(before, action, after):
    record_id = write("c1", status=before)
    done = decide(action, record_id)
    assert (done.changed, done.skipped) == ([record_id], {})
    assert Record.objects.get().status == after
    assert decision_undo(done.steps, actor="owner").changed == [record_id]
    assert Record.objects.get().status == before


@pytest.mark.parametrize(
    ("before", "action"),
    [
        ("pinned", Action.PIN),
        ("suggested", Action.PIN),
        ("conflict", Action.RESOLVE),
        ("active", Action.UNPIN),
        ("active", Action.REOPEN),
        ("active", Action.CONFIRM),
        ("active", Action.KEEP),
        ("active", Action.KEEP_ALL),
        ("active", Action.RESTORE),
        ("pinned", Action.COOL),
    ],
)
def test_what_does_not_fit_is_left_and_said(before, action):
    record_id = write("c1", status=before)
    done = decide(action, record_id, "mem_0000000000")
    assert done.changed == []
    assert set(done.skipped) == {record_id, "mem_0000000000"}
    assert done.skipped["mem_0000000000"] == "it is gone"
    assert Record.objects.get().status == before


def test_to_the_cold_tier_and_back():
    record_id = write("c1")
    done = decide(Action.COOL, record_id)
    assert Record.objects.get().cold == 1
    assert decision_undo(done.steps, actor="owner").changed == [record_id]
    assert Record.objects.get().cold == 0
    record_cool([record_id], actor="owner")
    assert decide(Action.RESTORE, record_id).changed == [record_id]
    assert Record.objects.get().cold == 0


def test_what_is_kept_supersedes_what_contradicts_it():
    npm = said("We use npm.", slot="package manager")
    said("We use pnpm, it is faster.", AGENT, slot="package manager")
    other = said("The port is 8420.", slot="port")
    before = states()
    # What a person said stays in force until they decide.
    assert before["We use npm."] == ("active", "trusted")
    assert before["We use pnpm, it is faster."] == ("conflict", "agent")
    pnpm = Record.objects.get(title="We use pnpm, it is faster.").id
    done = decide(Action.KEEP, pnpm)
    assert states() == {
        "We use npm.": ("superseded", "trusted"),
        "We use pnpm, it is faster.": ("active", "trusted"),
        "The port is 8420.": ("active", "trusted"),
    }
    assert set(done.steps) == {npm, pnpm}
    assert decide(Action.KEEP, npm).skipped == {npm: "nothing contradicts it"}
    decision_undo(done.steps, actor="owner")
    assert states() == before
    assert Record.objects.get(pk=other).status == "active"


def test_all_may_hold():
    said("We use npm.", slot="tool")
    pip = said("We use pip.", AGENT, slot="tool")
    decide(Action.KEEP_ALL, pip)
    assert set(states().values()) == {("active", "trusted")}


def test_a_private_claim_does_not_contradict_a_shared_one():
    said("We use npm.", slot="tool")
    mine = Writer(actor="owner", by_person=True, scope="session", workspace_key="k", session_id="s")
    private = said("We use pip.", mine, slot="tool")
    assert Record.objects.get(pk=private).status == "active"


def test_what_a_person_confirms_is_their_word(settings):
    settings.MEMEX_REQUIRE_CONFIRMATION = True
    old = said("We deploy on Mondays.")
    waiting = said("We deploy on Thursdays.", AGENT, links={"supersedes": old})
    assert Record.objects.get(pk=waiting).status == Status.SUGGESTED
    done = decide(Action.CONFIRM, waiting)
    # An agent can't replace what a person said: the person who confirms it can.
    assert states() == {
        "We deploy on Mondays.": ("superseded", "trusted"),
        "We deploy on Thursdays.": ("active", "trusted"),
    }
    decision_undo(done.steps, actor="owner")
    assert Record.objects.get(pk=waiting).status == Status.SUGGESTED
    assert Record.objects.get(pk=waiting).trust == Trust.AGENT
    assert Record.objects.get(pk=old).status == Status.ACTIVE


def test_a_confirmed_claim_contradicts_what_is_there(settings):
    settings.MEMEX_REQUIRE_CONFIRMATION = True
    said("We use npm.", slot="tool")
    waiting = said("We use pip.", AGENT, slot="tool")
    decide(Action.CONFIRM, waiting)
    assert {status for status, _ in states().values()} == {"conflict"}


def test_an_undo_leaves_what_is_gone(memex_home):
    record_id = write("c1")
    done = decide(Action.PIN, record_id)
    services.records_forget([record_id], actor="owner")
    assert decision_undo(done.steps, actor="owner").skipped == {record_id: "it is gone"}


def test_a_pool_that_others_write_to_is_left_and_said(monkeypatch):
    said("We use npm.", slot="tool")
    pip = said("We use pip.", AGENT, slot="tool")
    monkeypatch.setattr("records.writing._WAIT_SECONDS", 0)
    with pool_writing(workspace_pool(["k"])):
        done = decide(Action.KEEP, pip)
    assert (done.changed, done.steps) == ([], {})
    assert "keep writing" in done.skipped[pip]
