"""What Codex' logs do that is easily counted twice, lost, or laid at the wrong door, end to end."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from backports import zstd

from sessions_app.counts import session_events
from sessions_app.models import AgentSession, ArchivedCompaction, Compaction, Event

from .builders import (
    Line,
    archive,
    assert_sound,
    body,
    compactions,
    encode,
    original,
    previews,
    records,
    session,
    window,
    write,
)
from .logs.codex_lines import (
    CHILD,
    CHILD_TURN,
    PARENT,
    PARENT_TURN,
    SEALED,
    START,
    call,
    compacted,
    event,
    message,
    meta,
    output,
    tokens,
    turn,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

ASKED = message("user", "why does the build fail?")
WORK = [call("call_1"), output("call_1", "error: port 8123 is taken"), message("assistant", "The port.")]
SUMMARY = "Another language model started to solve this problem. The build was looked at."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "2026" / "04" / "11"


def place(folder: Path, session_id: str) -> Path:
    return folder / f"rollout-2026-04-11T20-42-59-{session_id}.jsonl"


def log(*rows: Line, session_id: str = PARENT, turn_id: str = PARENT_TURN) -> list[Line]:
    return [meta(session_id), *turn(turn_id), ASKED, *WORK, *rows]


def dropped(record_id: str) -> list[str]:
    return previews(Event.objects.filter(record_id=record_id, session_id=PARENT).order_by("seq"))


# --- compactions ----------------------------------------------------------------------------------


def test_a_sealed_summary_leaves_the_archive_as_the_only_readable_form(folder, memex_home):
    path = place(folder, PARENT)
    rows = [compacted(ASKED, SEALED), event("context_compacted"), message("assistant", "on")]
    data = write(path, log(*rows))
    assert archive(path).archived == 1
    (record,) = records()
    assert compactions(PARENT)[0].opaque is True
    assert "error: port 8123 is taken" in body(record, memex_home)
    assert "encrypted" in body(record, memex_home)
    assert record.provenance["lost"]["lost"] == record.provenance["lost"]["found"]
    assert ASKED["payload"]["content"][0]["text"] in window(PARENT)
    assert_sound({PARENT: data}, [path])


def test_a_summary_in_words(folder, memex_home):
    path = place(folder, PARENT)
    kept = message("user", SUMMARY)
    data = write(path, log(compacted(ASKED, kept, text=SUMMARY), event("context_compacted")))
    assert archive(path).archived == 1
    (record,) = records()
    assert compactions(PARENT)[0].opaque is False
    assert "The build was looked at." in body(record, memex_home)
    assert len(dropped(record.id)) == 3
    assert_sound({PARENT: data}, [path])


def test_a_history_that_is_repeated_gives_no_new_messages(folder):
    path = place(folder, PARENT)
    more = [message("user", "and the tests?"), message("assistant", "They pass.")]
    second = compacted(ASKED, more[0], SEALED, window_id="w2")
    data = write(path, log(compacted(ASKED, SEALED, window_id="w1"), *more, second))
    assert archive(path).archived == 2
    assert Event.objects.filter(role="user").count() == 2
    first, last = records()
    assert b"They pass." in original(last)
    assert b"They pass." not in original(first)
    assert_sound({PARENT: data}, [path])


def test_turns_that_were_taken_back(folder):
    path = place(folder, PARENT)
    undone = [*turn("019d7d09-0000-78a1-ae52-df8e21f9b394"), message("user", "try sleep"), *WORK]
    rows = [*undone, event("thread_rolled_back", num_turns=1), message("user", "no sleeping, please")]
    data = write(path, log(*rows, compacted(SEALED)))
    archive(path)
    (record,) = records()
    assert b"no sleeping, please" in original(record)
    rolled_back = Event.objects.get(preview="try sleep")
    assert rolled_back.surface == "shadowed"
    assert_sound({PARENT: data}, [path])


# --- the head -------------------------------------------------------------------------------------


def test_a_header_for_each_resume(folder):
    path = place(folder, PARENT)
    resumed = [meta(PARENT, cwd="/home/dev/elsewhere"), message("user", "again"), meta(PARENT)]
    data = write(path, log(*resumed, compacted(SEALED)))
    archive(path)
    assert AgentSession.objects.get().cwd == "/home/dev/project"
    assert len(compactions(PARENT)) == 1
    assert_sound({PARENT: data}, [path])


def test_a_chunk_without_a_header(folder):
    path = place(folder, PARENT)
    data = write(path, log(compacted(SEALED))[1:])
    assert archive(path).archived == 1
    found = AgentSession.objects.get()
    assert (found.pk, found.cwd, found.agent) == (PARENT, "", "codex")
    assert_sound({PARENT: data}, [path])


# --- forks ----------------------------------------------------------------------------------------

FORK_TIME = "2026-04-13T11:22:33.512Z"
SHARED = compacted(ASKED, SEALED, compaction_response_id="resp_" + "7" * 40)
PARENT_LOG = log(SHARED, message("assistant", "after the compaction"))
OWN = [*turn(CHILD_TURN), message("user", "what if we start over?"), message("assistant", "Then so.")]
OWN_COMPACTION = compacted(SEALED, compaction_response_id="resp_" + "8" * 40)
REPLAY: list[Line] = [{**row, "timestamp": FORK_TIME} for row in PARENT_LOG]
CHILD_LOG = [meta(CHILD, forked_from_id=PARENT), *REPLAY, *OWN, OWN_COMPACTION]


def archives() -> set[tuple[str, str, str]]:
    return set(ArchivedCompaction.objects.values_list("session_id", "compaction_id", "record_id"))


def assert_inherited_once(record_ids: Iterable[str]) -> None:
    first, second = record_ids
    shared, own = (
        SHARED["payload"]["compaction_response_id"],
        OWN_COMPACTION["payload"]["compaction_response_id"],
    )
    assert archives() == {(PARENT, shared, first), (CHILD, shared, first), (CHILD, own, second)}


def by_session() -> list[str]:
    """The parent's record, then the child's own."""
    found = {record.provenance["sessionId"]: record.id for record in records()}
    assert len(records()) == 2
    return [found[PARENT], found[CHILD]]


def test_a_fork_beside_its_parent(folder):
    logs = {PARENT: write(place(folder, PARENT), PARENT_LOG), CHILD: write(place(folder, CHILD), CHILD_LOG)}
    result = archive(folder)
    assert (result.archived, result.inherited) == (2, 1)
    assert_inherited_once(by_session())
    inherited = Event.objects.filter(session_id=CHILD, inherited=True)
    assert "what if we start over?" not in previews(inherited)
    assert "after the compaction" in previews(inherited)
    assert_sound(logs, [folder])


def test_a_fork_without_its_parent(folder):
    path = place(folder, CHILD)
    data = write(path, CHILD_LOG)
    assert archive(path).archived == 2
    assert_inherited_once(by_session())
    (shared,) = [record for record in records() if record.provenance["sessionId"] == PARENT]
    assert b"error: port 8123 is taken" in original(shared)
    assert session(CHILD).relation == "fork"
    assert not AgentSession.objects.filter(pk=PARENT).exists()
    assert_sound({CHILD: data}, [path])


def test_a_fork_whose_parent_is_imported_later(folder):
    logs = {CHILD: write(place(folder, CHILD), CHILD_LOG)}
    archive(folder)
    before = by_session()
    logs[PARENT] = write(place(folder, PARENT), PARENT_LOG)
    assert archive(folder).archived == 0
    assert by_session() == before
    assert_inherited_once(before)
    assert {each.record_id for each in compactions(PARENT)} == {before[0]}
    assert_sound(logs, [folder])


def test_a_sub_agent_that_replays_its_parent(folder):
    source = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    child = [meta(CHILD, forked_from_id=PARENT, source=source), *REPLAY, *OWN, OWN_COMPACTION]
    logs = {PARENT: write(place(folder, PARENT), PARENT_LOG), CHILD: write(place(folder, CHILD), child)}
    archive(folder)
    found = session(CHILD)
    assert (found.relation, found.parent_id, found.pool_session_id) == ("subagent", PARENT, PARENT)
    assert_inherited_once(by_session())
    assert_sound(logs, [folder])


# --- compressed -----------------------------------------------------------------------------------


def test_the_compressed_twin_of_a_log_is_passed_over(folder):
    path = place(folder, PARENT)
    data = write(path, log(compacted(SEALED)))
    path.with_suffix(".jsonl.zst").write_bytes(zstd.compress(data[:-200]))
    result = archive(folder)
    assert (result.files, result.archived) == (1, 1)
    assert_sound({PARENT: data}, [folder])


def test_a_log_that_was_compressed_is_the_same_log(folder):
    path = place(folder, PARENT)
    data = write(path, log(compacted(SEALED)))
    archive(folder)
    path.with_suffix(".jsonl.zst").write_bytes(zstd.compress(data))
    path.unlink()
    result = archive(folder)
    assert (result.events, result.archived, result.already) == (0, 0, 1)
    assert session(PARENT).generations.count() == 1
    assert_sound({PARENT: data}, [folder])


def test_a_compressed_log_that_grew_since(folder):
    path = place(folder, PARENT)
    start = encode(log(compacted(SEALED)))
    packed = path.with_suffix(".jsonl.zst")
    write(packed, zstd.compress(start))
    archive(folder)
    packed.unlink()
    data = write(path, start + encode([message("user", "go on")]))
    assert archive(folder).events == 1
    assert_sound({PARENT: data}, [folder])


def test_a_compressed_log_that_is_torn(folder):
    packed = place(folder, PARENT).with_suffix(".jsonl.zst")
    frames = [zstd.compress(encode([row])) for row in log(compacted(SEALED))]
    write(packed, b"".join(frames)[:-5])
    archive(folder)
    data = encode(log())
    assert session_events(session(PARENT)).count() == data.count(b"\n")
    write(packed, b"".join(frames))
    assert archive(folder).archived == 1
    assert_sound({PARENT: encode(log(compacted(SEALED)))}, [folder])


# --- what stands beside the conversation ----------------------------------------------------------


def test_what_events_repeat_is_counted_once(folder):
    path = place(folder, PARENT)
    told = [event("user_message", message="why does the build fail?"), tokens(500)]
    told += [
        event("agent_message", message="The port."),
        event("task_complete", last_agent_message="The port."),
    ]
    data = write(path, log(*told, compacted(SEALED)))
    archive(path)
    (record,) = records()
    assert original(record).count(b"The port.") == 1
    assert session(PARENT).used_tokens == 500
    assert_sound({PARENT: data}, [path])


def test_what_we_injected_is_not_archived_again(folder, memex_home):
    path = place(folder, PARENT)
    ours = message("user", "<memex-context>\nRecord mem_0123456789: use port 9000.\n</memex-context>")
    data = write(path, [meta(PARENT), *turn(PARENT_TURN, START), ours, ASKED, *WORK, compacted(SEALED)])
    archive(path)
    (record,) = records()
    assert record.title == "why does the build fail?"
    assert "9000" not in body(record, memex_home)
    assert Compaction.objects.get().record_id == record.id
    assert_sound({PARENT: data}, [path])
