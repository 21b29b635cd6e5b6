"""What is written on purpose: duplicates, contradictions, confirmation; on a store of real files."""

import threading

import pytest
from django.db import connection

from records import home, services
from records.capacity.cold import record_cool
from records.maintenance.doctor import findings
from records.models import Record
from records.queries import record_open
from records.scope import OWNER
from records.search.search import search
from records.similarity import text_hash
from records.writing import Writer, memory_write
from records.written import SLOT_MAX, TEXT_MAX_BYTES, TextTooLarge, Written

from .drafts import write as archive
from .plans import plans

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE, THERE = "0123456789abcdef", "fedcba9876543210"


def by(
    *, person: bool = False, scope: str = "workspace", session: str = "s1", key: str = HERE, joined=()
) -> Writer:
    return Writer(
        actor="owner" if person else "agent",
        by_person=person,
        scope=scope,
        workspace_key=key,
        workspace="/home/dev/demo",
        session_id="" if person and scope == "workspace" else session,
        agent="" if person else "claude-code",
        joined=joined,
    )


def note(text: str, writer: Writer | None = None, **given):
    return memory_write(Written(kind=given.pop("kind", "note"), text=text, **given), writer or by())


def test_a_text_is_stored_byte_for_byte_with_a_card_of_its_own():
    text = "\n# Package manager\r\n\r\nUse pnpm.  It is faster!\tNever npm.\x00\n\n"
    answer = note(
        text, kind="decision", tags=["tools"], entities=["pnpm"], confidence=0.8, slot=" Package  Manager "
    )
    assert (answer.status, answer.dedupe, answer.similarity, answer.conflicts_with) == (
        "active",
        None,
        None,
        (),
    )
    opened = record_open(OWNER, answer.id)
    assert opened.body == text.encode()
    record = opened.record
    assert (record.title, record.kind, record.trust) == ("Package manager", "decision", "agent")
    assert record.summary.startswith("Package manager Use pnpm. It is faster! Never npm.")
    assert (record.slot, record.tags, record.entities) == ("package manager", {"topic": ["tools"]}, ["pnpm"])
    assert (record.confidence, record.scope, record.session_id) == (0.8, "workspace", "s1")
    assert record.sources == [{"session_id": "s1", "kind": "session"}]
    assert record.provenance == {
        "source": "write", "agent": "claude-code", "sessionId": "s1", "cwd": "/home/dev/demo",
        "textHash": text_hash(text),
    }  # fmt: skip
    assert record.id.startswith("mem_") and len(record.id) == 20
    assert [hit.card.id for hit in search(OWNER, "pnpm").hits] == [record.id]
    assert list(findings(repair=False)) == []


def test_what_is_given_for_the_card_is_kept():
    answer = note(
        "Text.", title=" A\ttitle ", summary="A summary.", use_when="When building.", tags={"where": ["a.py"]}
    )
    record = Record.objects.get(pk=answer.id)
    assert (record.title, record.summary, record.use_when) == ("A title", "A summary.", "When building.")
    assert record.tags == {"where": ["a.py"]}


def test_a_person_is_trusted():
    record = Record.objects.get(pk=note("Text.", by(person=True)).id)
    assert (record.trust, record.sources) == ("trusted", [{"session_id": "", "kind": "user"}])


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "episode"},
        {"kind": "digest"},
        {"text": " \n"},
        {"text": "half \ud800"},
        {"title": "x" * 161},
        {"summary": "x" * 1_001},
        {"use_when": "x" * 401},
        {"slot": "x" * (SLOT_MAX + 1)},
        {"confidence": 1.1},
        {"confidence": float("nan")},
        {"tags": "topic"},
        {"tags": {"": ["x"]}},
        {"tags": {"topic": [1]}},
        {"tags": ["x" * 101]},
        {"tags": [f"t{n}" for n in range(51)]},
        {"entities": [{"name": "x"}]},
        {"links": {"digest_of": "mem_0123456789"}},
        {"links": {"parent": "../etc"}},
        {"links": {"supersedes": "mem_0123456789"}},
    ],
)
def test_what_makes_no_sense_is_refused_and_writes_nothing(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        memory_write(Written(**({"kind": "note", "text": "Text."} | given)), by())
    assert not Record.objects.exists()
    assert list(home.records_dir().rglob("*.md")) == []


def test_a_text_that_is_too_large_is_refused_by_its_bytes():
    with pytest.raises(TextTooLarge):
        note("数" * (TEXT_MAX_BYTES // 3 + 1))
    assert note("x" * TEXT_MAX_BYTES).status == "active"


def test_a_session_needs_its_id_and_a_scope_its_name():
    with pytest.raises(ValueError, match="session"):
        note("Text.", by(scope="session", session=""))
    with pytest.raises(ValueError, match="scope"):
        note("Text.", by(scope="everything"))


def test_the_same_text_is_one_record_and_gets_the_new_source():
    first = note("Use pnpm.")
    again = note("  use PNPM.\n", by(session="s2"), kind="decision")
    assert (again.id, again.status, again.dedupe, again.similarity) == (first.id, "active", "exact", 1.0)
    record = Record.objects.get()
    assert [source["session_id"] for source in record.sources] == ["s1", "s2"]
    assert record_open(OWNER, first.id).body == b"Use pnpm."
    note("Use pnpm.", by(session="s2"))
    assert len(Record.objects.get().sources) == 2


def test_what_says_the_same_in_other_words_is_one_record():
    first = note("The tests of this project are run with `make test`.")
    again = note("Tests of the project run with make test", by(session="s2"))
    assert (again.id, again.dedupe) == (first.id, "similar")
    assert again.similarity is not None and again.similarity >= 0.95
    assert note("The tests of this project are run with `make check`.").dedupe is None
    assert Record.objects.count() == 2


def test_a_cold_one_and_a_resolved_one_are_known_a_superseded_one_is_not():
    cold, resolved, old = (note(text).id for text in ("Use pnpm.", "Use make.", "Use bazel."))
    record_cool([cold], actor="a")
    services.record_set_status(resolved, "resolved", actor="a")
    services.record_set_status(old, "superseded", actor="a")
    assert note("Use pnpm.").id == cold
    assert note("Use make.").id == resolved
    assert note("Use bazel.").id != old


def test_other_pools_and_archives_are_not_looked_at():
    archive("c1", body="Use pnpm.")
    ids = {
        note("Use pnpm.", writer).id
        for writer in (
            by(), by(key=THERE), by(scope="session"), by(scope="session", session="s2"),
        )
    }  # fmt: skip
    assert len(ids) == 4
    assert note("Use pnpm.", by(key=THERE, joined=[HERE])).id in ids
    assert Record.objects.count() == 5


def test_a_text_that_was_edited_by_hand_is_no_longer_the_same():
    first = note("Use pnpm.")
    path = home.record_path(HERE, first.id, cold=False)
    path.write_bytes(path.read_bytes().replace(b"Use pnpm.", b"Use npm."))
    assert note("Use pnpm.").id != first.id


def test_two_claims_about_a_slot_are_in_conflict():
    first = note("Use npm.", slot="package manager")
    elsewhere = note("Use cargo.", by(key=THERE), slot="package manager")
    other = note("Run make.", slot="build")
    second = note("Use pnpm.", slot="Package  MANAGER")
    assert (second.status, second.conflicts_with) == ("conflict", (first.id,))
    third = note("Use yarn.", slot="package manager")
    assert set(third.conflicts_with) == {first.id, second.id}
    status = dict(Record.objects.values_list("id", "status"))
    assert [status[each.id] for each in (first, second, third)] == ["conflict"] * 3
    assert [status[each.id] for each in (elsewhere, other)] == ["active"] * 2
    again = note("Use npm.", slot="package manager")
    assert (again.dedupe, again.status, set(again.conflicts_with)) == (
        "exact",
        "conflict",
        {second.id, third.id},
    )
    assert b'status: "conflict"' in home.record_path(HERE, first.id, cold=False).read_bytes()


def test_a_conflict_that_was_cut_short_is_completed_by_the_next_write(monkeypatch):
    first = note("Use npm.", slot="tool")
    monkeypatch.setattr("records.writing._in_conflict", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        note("Use pnpm.", slot="tool")
    monkeypatch.undo()
    again = note("Use pnpm.", slot="tool")
    assert (again.dedupe, again.status, again.conflicts_with) == ("exact", "conflict", (first.id,))
    assert Record.objects.get(pk=first.id).status == "conflict"


def test_what_replaces_another_claim_does_not_contradict_it():
    first = note("Use npm.", slot="tool")
    second = note("Use pnpm.", slot="tool", links={"supersedes": first.id})
    assert (second.status, second.conflicts_with) == ("active", ())
    assert Record.objects.get(pk=first.id).status == "superseded"
    assert Record.objects.get(pk=second.id).links == {"supersedes": [first.id]}


def test_an_agent_does_not_replace_what_a_person_said():
    first = note("Use npm.", by(person=True), slot="tool")
    second = note("Use pnpm.", slot="tool", links={"supersedes": [first.id]})
    assert (second.status, second.conflicts_with) == ("conflict", (first.id,))


def test_what_an_agent_writes_may_have_to_be_confirmed(settings):
    first = note("Use npm.", slot="tool")
    settings.MEMEX_REQUIRE_CONFIRMATION = True
    waiting = note("Use pnpm.", slot="tool", links={"supersedes": first.id})
    assert (waiting.status, waiting.conflicts_with) == ("suggested", ())
    contradicting = note("Use yarn.", slot="tool")
    assert (contradicting.status, contradicting.conflicts_with) == ("suggested", (first.id,))
    assert Record.objects.get(pk=first.id).status == "active"
    assert search(OWNER, "pnpm").hits == []
    assert note("Use pnpm.", slot="tool").id == waiting.id
    assert Record.objects.get(pk=waiting.id).status == "suggested"
    assert note("Something else.", by(person=True)).status == "active"


def test_what_a_person_says_as_well_is_confirmed(settings):
    settings.MEMEX_REQUIRE_CONFIRMATION = True
    waiting = note("Use pnpm.")
    again = note("Use pnpm.", by(person=True))
    assert (again.id, again.status, again.dedupe) == (waiting.id, "active", "exact")
    record = Record.objects.get()
    assert (record.trust, len(record.sources)) == ("trusted", 2)


def test_writers_at_once_make_one_record():
    answers, errors = [], []
    start = threading.Barrier(4)

    def work(number: int) -> None:
        try:
            start.wait()
            answers.append(note("Use pnpm.", by(session=f"s{number}")))
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len({answer.id for answer in answers}) == Record.objects.count() == 1
    assert sorted(str(answer.dedupe) for answer in answers) == ["None", "exact", "exact", "exact"]
    assert len(Record.objects.get().sources) == 4
    assert list(findings(repair=False)) == []


def test_the_hash_and_the_slot_are_looked_up_in_their_indexes():
    note("Use pnpm.", slot="tool")
    found = "\n".join(plans(lambda: note("Use pnpm.", slot="tool")))
    assert "records_text_hash" in found
    assert "records_slot" in found
