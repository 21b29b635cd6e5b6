"""Agents without logs push their events: what is kept, byte for byte, and what is refused."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import call_command
from django.db import connection

from records.ids import workspace_key
from records.models import Record
from sessions_app.archiving import archive_run
from sessions_app.checkup import store_findings
from sessions_app.forget import forget_plan, forget_run, forget_undo
from sessions_app.levels import LevelsOff, SessionForgotten, SessionPaused, level_enable
from sessions_app.mirrorwriter import MirrorWriter
from sessions_app.models import AgentSession, Compaction, Event, ImportWarning, Receipt, Source
from sessions_app.originals import record_rows
from sessions_app.push import (
    PushRefused,
    PushTooLarge,
    session_compaction_push,
    session_events_push,
    session_open,
)
from sessions_app.pushlog import PushConflict
from sessions_app.queries import SessionNotFound, events_read, rows_read, session_get
from sessions_app.sessionfile import session_folder
from sessions_app.surface import CursorInvalid, session_read, session_surface
from sessions_app.workspaces import pause_set, workspace_default_set
from tests.sessions.pushes import CWD, SESSION, ids, opened, push, turn, turns
from tests.sessions.stories import DERIVED, dump, everything_in, session_id, write_log
from tests.sessions.test_off_means_off import texts_of_all_tables
from tests.sessions.test_rebuild_and_forget import lose_all_rows

pytestmark = pytest.mark.django_db(transaction=True)
# Nobody else says it: the index of cards outlives a test.
WORD = "quetzalite"


@pytest.fixture(autouse=True)
def _homes(agent_home):
    return agent_home


def rows_of(session: str = SESSION) -> list[bytes]:
    return list(rows_read(session_get(session), 1, 10_000))


def compact(compaction_id: str, removed: list[str], summary: str = "What was done so far.", **how):
    return session_compaction_push(SESSION, compaction_id, summary=summary, removed_ids=removed, **how)


def test_events_are_kept_as_the_bytes_that_were_sent():
    opened(SESSION, "l2")
    raws = [
        b'{ "id" : "e1",  "role": "user", "text": "a \\ud800 b \\u00e9 \xc3\xa9" }',
        b'{"id":"e2","role":"tool","content":"x","n":123456789012345678901234567890,"f":1e400,"z":-0.0}',
        b'{"id":"e3","role":"assistant","content":[{"type":"text","text":"deep"}],"raw":'
        + b"[" * 3_000 + b"]" * 3_000 + b"}",
        b'{"id":"e4","role":"user","text":"raw surrogate \xed\xa0\x80"}',
        b'{"id":"e5",\n\t"role":"user",\r\n"text":"line\\nend"}',
    ]  # fmt: skip
    request = b'\xef\xbb\xbf{"events":\n[ ' + b" ,\n".join(raws) + b' ], "sessionId": "push-0001"}\n'
    assert session_events_push(SESSION, request).stored == 5
    assert rows_of() == [raw.replace(b"\n", b" ") + b"\n" for raw in raws]
    texts = [read.text for read in session_read(SESSION, 0, 9)[0]]
    assert texts == ["a ? b é é", "x", "deep", "raw surrogate ???", "line\nend"]


def test_what_was_sent_before_is_counted_and_not_kept_again():
    opened(SESSION, "l2")
    first = push([*turn(1), turn(1)[0]])
    again = push([*turn(1), *turn(2)])
    assert (first.duplicates, again.stored, again.duplicates) == (1, 4, 4)
    assert again.next_seq == Event.objects.count()
    session = session_get(SESSION)
    assert (session.event_count, session.current_count) == (again.next_seq, again.next_seq)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"role": "user", "text": "x"}, "Event 1: 'id' is missing"),
        ({"id": "", "text": "x"}, "Event 1: 'id' is missing"),
        ({"id": 5, "text": "x"}, "Event 1: 'id' is missing or not a text"),
        ({"id": "x" * 121}, "Event 1: 'id' is longer"),
        ({"id": "a\0b"}, "Event 1: 'id' holds a NUL"),
        ({"id": "x", "role": 5}, "Event 1: 'role' is not a text"),
        ({"id": "x", "content": {"a": 1}}, "Event 1: 'content' is neither"),
        ({"id": "x", "time": True}, "Event 1: 'time' is neither"),
        ({"id": "x", "usage": [1]}, "Event 1: 'usage' is not an object"),
        ({"memex": {"kind": "compaction", "id": "c", "text": "x", "seqs": [[0, 9]]}}, "Event 1: 'id' is missing"),
        ("text", "Event 1: not an object"),
    ],
)  # fmt: skip
def test_one_wrong_event_refuses_them_all(wrong, says, memex_home):
    opened(SESSION, "l2")
    before = dict(everything_in(memex_home / "sessions"))
    with pytest.raises(PushRefused, match=says) as refused:
        push([{"id": "fine", "role": "user", "text": "x"}, wrong, {"id": "fine-too", "text": "x"}])
    assert refused.value.index == 1
    assert not Event.objects.exists()
    assert dict(everything_in(memex_home / "sessions")) == before


@pytest.mark.parametrize(
    "request_body",
    [
        b"", b"[]", b"{}", b'{"events": 5}', b'{"events": [], "more": 1}', b'{"events": [{"id": "a"},]}',
        b'{"events": []} {}', b'{"events": [], "sessionId": "another"}', b'{"events": [{"id": "a"}',
        b'{"events": [{"id": "a" "b"}]}', b'{"events": [{"id": "a", "text": "x\ny"}]}',
        b'{"events": [{"id": "a\0"}]}',
    ],
)  # fmt: skip
def test_a_request_that_is_none_is_refused(request_body):
    opened(SESSION, "l2")
    with pytest.raises(PushRefused):
        session_events_push(SESSION, request_body)
    assert not Event.objects.exists()


def test_a_request_has_a_limit():
    opened(SESSION, "l2")
    big = b'{"events":[{"id":"big","role":"user","text":"' + b"x" * (16 * 1024 * 1024 - 60) + b'"}]}'
    assert session_events_push(SESSION, big).stored == 1
    with pytest.raises(PushTooLarge):
        session_events_push(SESSION, big + b" " * 60)
    assert rows_of() == [big[11:-2] + b"\n"]


def test_a_compaction_archives_exactly_what_it_removed():
    opened(SESSION, "l2", title="Harbour work")
    events = turns(3)
    push(events)
    removed = ids(events[4:8])
    done = compact(
        "c1", [*removed, "never-pushed"], "Step 1 was looked at.", trigger="manual", tokens_before=900
    )
    assert (done.state, done.missing) == ("archived", ("never-pushed",))
    record = Record.objects.get()
    assert record.id == done.record_id
    assert (record.scope, record.session_id, record.provenance["trigger"]) == ("session", SESSION, "manual")
    assert b"".join(record_rows(record)) == b"".join(rows_of()[4:8])
    assert set(Event.objects.filter(record_id=record.id).values_list("uid", flat=True)) == set(removed)
    warning = ImportWarning.objects.get()
    assert (warning.code, warning.session_id) == ("missing-events", SESSION)
    assert Receipt.objects.get().record_id == record.id
    assert session_get(SESSION).title == "Harbour work"
    again = compact("c1", removed, "another text")
    assert (again.state, again.record_id, again.missing) == ("already", record.id, ("never-pushed",))
    assert Record.objects.count() == 1


def test_a_later_compaction_takes_the_summary_along_and_owns_only_what_is_new():
    opened(SESSION, "l3")
    push(turns(2))
    first = compact("c1", ids(turns(1)))
    push(turns(2, 2))
    second = compact("c2", ["c1", *ids(turns(2, 1))])
    record = Record.objects.get(id=second.record_id)
    assert record.links["previous"] == [first.record_id]
    owned = Event.objects.filter(record_id=record.id).order_by("seq")
    assert list(owned.values_list("uid", flat=True)) == [*ids(turn(1)), "c1", *ids(turn(2))]
    assert [message.id for message in session_surface(SESSION).messages] == ["c2", *ids(turn(3))]


def test_nothing_removed_makes_no_record():
    opened(SESSION, "l2")
    push(turn(0))
    done = compact("c1", ["unknown"], "gist")
    assert (done.record_id, done.state, done.missing) == ("", "archived", ("unknown",))
    assert (compact("c1", ["u0"]).state, Record.objects.count()) == ("already", 0)
    assert Compaction.objects.get().state == "empty"


def test_texts_that_memex_injected_are_never_archived_as_content():
    opened(SESSION, "l3")
    injected = [
        {"id": "i1", "role": "user", "text": f"[MEMORY RECALL] Earlier: {WORD}one"},
        {"id": "i2", "role": "user", "text": f"{WORD}two", "source": {"kind": "memory-recall", "form": "catalog"}},
        {"id": "i3", "role": "user", "content": [
            {"type": "text", "text": f"<memex-context form=\"recall\">{WORD}three</memex-context>"},
            {"type": "text", "text": "What a person asked"}]},
    ]  # fmt: skip
    push([*injected, *turn(0)])
    record = Record.objects.get(id=compact("c1", ["i1", "i2", "i3", *ids(turn(0))]).record_id)
    text = (session_folder(record.workspace_key, SESSION).parents[2] / record.path).read_text()
    assert WORD not in text
    assert "What a person asked" in text


def test_the_window_is_handed_out_in_order_and_in_pages():
    opened(SESSION, "l2", context_window=5_000)
    push(turns(4))
    compact("c1", ids(turns(2, 1)), "the gist", tokens_after=77)
    page = session_surface(SESSION)
    assert [message.id for message in page.messages] == [*ids(turn(0)), "c1", *ids(turn(3))]
    assert page.messages[4].content == "the gist"
    assert page.messages[1].content == turn(0)[1]["content"]
    assert (page.used_tokens, page.more, page.restarted) == (77, False, False)
    found, cursor = [], ""
    for _ in range(20):
        part = session_surface(SESSION, cursor, max_bytes=500)
        found += part.messages
        cursor = part.cursor
        if not part.more:
            break
    assert found == page.messages
    push(turn(9))
    assert [message.id for message in session_surface(SESSION, cursor).messages] == ids(turn(9))
    compact("c2", ids(turn(9)))
    changed = session_surface(SESSION, cursor)
    assert changed.restarted
    assert [message.id for message in changed.messages] == [*ids(turn(0)), "c1", *ids(turn(3)), "c2"]
    with pytest.raises(CursorInvalid):
        session_surface(SESSION, "elsewhere")


def test_events_are_read_as_text_or_as_they_were_and_never_too_many():
    opened(SESSION, "l2")
    push(turns(3))
    compact("c1", ids(turn(0)))
    events, more = session_read(SESSION, 0, 3)
    assert not more
    assert [(event.seq, event.role, event.surface, event.shadowed_by) for event in events] == [
        (0, "user", "shadowed", 12), (1, "assistant", "shadowed", 12), (2, "tool", "shadowed", 12),
        (3, "assistant", "shadowed", 12),
    ]  # fmt: skip
    assert events[0].text == turn(0)[0]["text"]
    raw, _ = session_read(SESSION, 0, 3, raw=True)
    assert [json.loads(event.text) for event in raw] == turn(0)
    some, more = session_read(SESSION, 0, 99, max_bytes=900)
    assert (more, 0 < len(some) < 13) == (True, True)
    (cut,), _ = session_read(SESSION, 2, 2, max_bytes=100)
    assert "more characters]" in cut.text


def test_reindex_gives_the_same_session_back(memex_home):
    opened(SESSION, "l3", title="Harbour", context_window=9_000)
    push(turns(3))
    compact("c1", ids(turns(2)))
    push([*turns(2, 3), {"id": "z", "type": "turn/end"}])
    compact("c2", ["c1", *ids(turns(2, 2))])
    archive_run()
    before = dump()
    lose_all_rows()
    call_command("reindex", verbosity=0)
    after = dump()
    for table in DERIVED:
        assert after[table] == before[table], table
    assert list(store_findings(repair=False)) == []
    assert push(turns(5)).duplicates == 20


def test_a_whole_pass_neither_misses_nor_closes_a_pushed_session_that_goes_on(settings, memex_home):
    settings.MEMEX_IDLE_ARCHIVE_HOURS = 24
    opened(SESSION, "l2")
    push(turns(1))
    compact("c1", ["u0"])
    archive_run()
    assert Record.objects.count() == 1
    assert Source.objects.get().missing_since is None
    for path in memex_home.glob("sessions/*/*/*.zst"):
        os.utime(path, (1, 1))
    Source.objects.update(mtime_ns=1)
    AgentSession.objects.update(last_event_at=1)
    assert archive_run().closing == 1


def test_off_means_off(memex_home):
    opened(title=WORD)
    events = turn(0, word=WORD)
    calls = (
        lambda: push(events),
        lambda: compact("c1", ["u0"], WORD),
        lambda: session_surface(SESSION),
        lambda: session_read(SESSION, 0, 9),
    )
    for call in calls:
        with pytest.raises(LevelsOff):
            call()
    archive_run()
    assert not AgentSession.objects.exists()
    source = Source.objects.get()
    assert (source.session_id, source.agent, source.cwd, source.size) == (SESSION, "my-agent", CWD, 0)
    assert WORD not in texts_of_all_tables()
    for path, data in everything_in(memex_home):
        assert WORD.encode() not in data, path
    level_enable(SESSION, "l2")
    assert push(events).stored == 4


def test_a_default_of_its_workspace_switches_a_session_on():
    key = workspace_key(CWD, "")
    workspace_default_set(key, CWD, l2=False, l3=True)
    assert session_open(SESSION, "my-agent", cwd=CWD).levels.l3
    push(turn(0))
    assert compact("c1", ["u0"]).state == "archived"
    assert Record.objects.get().workspace_key == key


@pytest.mark.parametrize("kind", ["all", "workspaces", "sessions"])
def test_paused_keeps_nothing_until_it_is_resumed(kind):
    opened(SESSION, "l2")
    push(turn(0))
    value = {"all": "", "workspaces": workspace_key(CWD, ""), "sessions": SESSION}[kind]
    pause_set(kind, value, paused=True)
    for call in (lambda: push(turn(1)), lambda: compact("c1", ["u0"]), lambda: session_surface(SESSION)):
        with pytest.raises(SessionPaused):
            call()
    assert Event.objects.count() == 4
    assert not Compaction.objects.exists()
    pause_set(kind, value, paused=False)
    assert push(turn(1)).stored == 4


def test_a_forgotten_session_cannot_be_pushed_back(memex_home):
    opened(SESSION, "l3")
    push(turns(2))
    compact("c1", ["u0", "a0"], "gist")
    bundle = forget_run(forget_plan(session_ids=[SESSION]), actor="owner")
    calls = (
        lambda: session_open(SESSION, "my-agent", cwd=CWD),
        lambda: push(turn(5)),
        lambda: compact("c1", ["u0"]),
        lambda: session_surface(SESSION),
    )
    for call in calls:
        with pytest.raises(SessionForgotten):
            call()
    archive_run()
    assert not Event.objects.exists()
    assert not Record.objects.exists()
    assert not Source.objects.exists()
    forget_undo(bundle, actor="owner")
    assert push(turns(3)).stored == 4
    assert compact("c1", []).state == "already"


def test_a_session_that_is_read_from_a_log_is_not_pushed_to(agent_home):
    log = write_log(agent_home, 1)
    archive_run(level="l3")
    name = session_id(1)
    before = dump()
    found = session_open(name, "claude-code", cwd="/elsewhere", title="x")
    assert (found.log, found.agent) == (str(log), "claude-code")
    with pytest.raises(PushConflict, match=str(log)):
        session_events_push(name, b'{"events": []}')
    with pytest.raises(PushConflict):
        session_compaction_push(name, "c", summary="", removed_ids=[])
    assert dump() == before
    assert session_surface(name).messages


def test_nor_when_its_log_is_gone(agent_home):
    write_log(agent_home, 1)
    archive_run(level="l3")
    Source.objects.all().delete()
    session_open(session_id(1), "claude-code")
    with pytest.raises(PushConflict, match="a log that is gone"):
        push(turn(0), session_id(1))


def test_a_log_of_a_session_that_is_pushed_is_left_alone(agent_home):
    name = session_id(1)
    session_open(name, "claude-code", cwd="/home/dev/demo")
    level_enable(name, "l3")
    push(turn(0), name)
    write_log(agent_home, 1)
    assert archive_run().events == 0
    assert [read.raw for read in events_read(session_get(name), 0, 0)] == [json.dumps(turn(0)[0]).encode()]


def test_an_agent_with_logs_may_open_its_session_before_the_log_is_found(agent_home):
    name = session_id(1)
    session_open(name, "claude-code", cwd="/home/dev/demo", title="x")
    level_enable(name, "l3")
    session_open(name, "claude-code", cwd="/home/dev/demo", title="x")
    assert session_surface(name).messages == []
    log = write_log(agent_home, 1)
    assert archive_run().archived == 2
    assert session_open(name, "claude-code").log == str(log)
    with pytest.raises(PushConflict, match=str(log)):
        push(turn(0), name)


def test_a_sub_agent_that_is_pushed_uses_its_parent_s_levels_and_pool():
    opened(SESSION, "l2")
    session_open("child", "my-agent", cwd="/elsewhere", parent_session_id=SESSION)
    push(turn(0), "child")
    done = session_compaction_push("child", "c1", summary="x", removed_ids=["u0"])
    record = Record.objects.get(id=done.record_id)
    assert (record.session_id, record.workspace_key) == (SESSION, workspace_key(CWD, ""))
    assert Event.objects.get(uid="u0").source == "agent"


@pytest.mark.parametrize(
    ("name", "agent", "how"),
    [
        ("", "a", {}), ("x" * 201, "a", {}), ("a\0", "a", {}), ("x", "", {}), ("x", "My Agent", {}),
        ("x", "a" * 33, {}), ("x", "a", {"title": "t" * 2_001}), ("x", "a", {"context_window": 0}),
    ],
)  # fmt: skip
def test_a_session_that_cannot_be_named_is_not_opened(name, agent, how):
    with pytest.raises(PushRefused):
        session_open(name, agent, **how)
    assert not Source.objects.exists()


def test_a_session_that_nobody_opened_is_not_found():
    for call in (lambda: push([]), lambda: session_surface(SESSION)):
        with pytest.raises(SessionNotFound):
            call()


def test_a_row_that_a_crash_tore_costs_itself_alone():
    opened(SESSION, "l2")
    push(turn(0))
    session = session_get(SESSION)
    with MirrorWriter(session_folder(session.workspace_key, SESSION)) as writer:
        writer.append(writer.length, json.dumps(turn(1)[0]).encode()[:30])
    archive_run()
    assert push(turns(2)).stored == 4
    assert Event.objects.count() == 8
    assert ImportWarning.objects.get().code == "damaged"
    assert json.loads(rows_of()[-1]) == turn(1)[-1]


def test_a_row_that_lacks_its_end_alone_is_whole():
    opened(SESSION, "l2")
    push(turn(0))
    session = session_get(SESSION)
    with MirrorWriter(session_folder(session.workspace_key, SESSION)) as writer:
        writer.append(writer.length, json.dumps(turn(1)[0]).encode())
    assert archive_run().events == 1
    assert push(turns(2)).stored == 3
    assert [json.loads(row)["id"] for row in rows_of()] == ids(turns(2))
    lose_all_rows()
    call_command("reindex", verbosity=0)
    assert list(Event.objects.order_by("seq").values_list("uid", flat=True)) == ids(turns(2))


def test_ids_and_texts_that_no_database_takes_cost_nothing():
    opened(SESSION, "l2")
    push(turn(0))
    done = compact("c1", ["u0", "\ud800", "a\0b", "x" * 300], "half a \ud800 character")
    assert (done.state, len(done.missing)) == ("archived", 3)
    assert session_surface(SESSION).messages[0].content == "half a \ud800 character"


def test_who_pushes_the_same_at_once_pushes_it_once():
    opened(SESSION, "l2")
    events = turns(5)

    def work(_: int) -> int:
        try:
            return push(events).stored
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        stored = list(pool.map(work, range(8)))
    assert sum(stored) == len(events) == Event.objects.count()


def test_a_session_that_is_damaged_does_not_keep_others_from_being_read(memex_home):
    for name in ("first", "second"):
        opened(name, "l2")
        push(turn(0), name)
        session = session_get(name)
        with MirrorWriter(session_folder(session.workspace_key, name)) as writer:
            writer.append(writer.length, json.dumps(turn(1)[0]).encode() + b"\n")
    (segment,) = memex_home.glob("sessions/*/first/*.zst")
    data = bytearray(segment.read_bytes())
    data[-6] ^= 255
    segment.write_bytes(data)
    result = archive_run()
    assert (result.events, result.warnings) == (1, 1)


def test_pages_show_a_pushed_session(owner):
    opened(SESSION, "l3", title="Harbour work")
    push(turns(3))
    done = compact("c1", ids(turns(2)))
    for address in (
        "/",
        "/sessions/",
        f"/sessions/{SESSION}/",
        "/workspaces/",
        f"/records/{done.record_id}/",
    ):
        page = owner.get(address, follow=True)
        assert page.status_code == 200, address
    assert "Step 2 of the harbour" in owner.get(f"/sessions/{SESSION}/", follow=True).content.decode()
