"""Making room in the window of an agent that pushes its events: archive first, then cut; and back again."""

import json
from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from records.files import StoreFull
from records.ids import eviction_id
from records.models import Record
from sessions_app import evicting, pushlog
from sessions_app.archiving import archive_run
from sessions_app.checkup import store_findings
from sessions_app.evicting import (
    Rules,
    SurfaceChanged,
    evict_due,
    eviction_apply,
    eviction_planned,
    eviction_undo,
)
from sessions_app.forget import forget_plan, forget_run
from sessions_app.levels import LevelsOff, SessionForgotten, SessionPaused, level_enable
from sessions_app.models import Compaction, Event, L1Eviction
from sessions_app.originals import record_rows
from sessions_app.push import session_compaction_push
from sessions_app.pushlog import PushConflict
from sessions_app.queries import rows_read, session_get
from sessions_app.surface import session_surface
from sessions_app.workspaces import pause_set
from tests.sessions.pushes import SESSION, ids, opened, push, turn, turns
from tests.sessions.stories import DERIVED, dump, session_id, write_log
from tests.sessions.test_rebuild_and_forget import lose_all_rows

pytestmark = pytest.mark.django_db(transaction=True)
WINDOW = 1_000


@pytest.fixture(autouse=True)
def _homes(agent_home):
    return agent_home


@pytest.fixture
def full():
    """A window of 1,000 tokens with ten turns in it, about 100 tokens each."""
    opened(SESSION, "l3", context_window=WINDOW)
    push(turns(10, size=50))
    return session_get(SESSION)


def window() -> list[str]:
    return [message.id for message in session_surface(SESSION).messages]


def test_it_is_due_when_the_window_is_full_enough(full):
    used = full.current_tokens
    assert used > 600
    assert evict_due(SESSION) == evicting.Due(True, used, 600)
    assert evict_due(SESSION, 599) == evicting.Due(False, 599, 600)
    assert evict_due(SESSION, 599, 900) == evicting.Due(True, 599, 540)
    assert not eviction_planned(SESSION, used_tokens=599).plan_id


def test_a_plan_changes_nothing(full):
    before = dump()
    planned = eviction_planned(SESSION)
    assert planned == eviction_planned(SESSION)
    assert (planned.due, planned.start_seq, planned.record_id) == (True, 4, "")
    assert planned.tokens > 0
    assert planned.stops[0][1] == "the newest events stay"
    assert dump() == before


def test_what_is_evicted_is_archived_and_one_message_stands_in_its_place(full):
    planned = eviction_planned(SESSION)
    before = window()
    done = eviction_apply(SESSION, planned.plan_id)
    assert (done.plan_id, done.start_seq, done.end_seq) == (planned.plan_id, 4, planned.end_seq)
    gone = before[4 : planned.end_seq + 1]
    assert gone[-1][0] in "br", "neither a question nor a call is parted from its answer"
    assert window() == [*before[:4], done.message_id, *before[planned.end_seq + 1 :]]
    record = Record.objects.get()
    assert record.id == done.record_id == eviction_id(SESSION, 4, planned.end_seq)
    rows = list(rows_read(full, 1, 10_000))
    assert b"".join(record_rows(record)) == b"".join(rows[4 : planned.end_seq + 1])
    assert set(Event.objects.filter(record_id=record.id).values_list("uid", flat=True)) == set(gone)
    row = L1Eviction.objects.get()
    assert (row.session_id, row.start_seq, row.end_seq, row.record_id, row.shadowed_tokens) == (
        SESSION, 4, planned.end_seq, record.id, planned.tokens,
    )  # fmt: skip
    assert Compaction.objects.get().state == "archived"
    for word in (record.id, f"#4–#{planned.end_seq}", "src/harbour_1.py", "Read", "step 1"):
        assert word in done.message, done.message
    assert done.message.startswith("[MEMORY CHECKPOINT]")
    assert len(done.message) <= 1_200
    assert Event.objects.get(uid=done.message_id).source == "injected"
    left = full.current_tokens - planned.tokens
    assert left < session_get(SESSION).used_tokens <= left + 300


def test_applying_a_plan_again_changes_nothing(full):
    planned = eviction_planned(SESSION)
    done = eviction_apply(SESSION, planned.plan_id)
    before = dump()
    again = eviction_apply(SESSION, planned.plan_id)
    assert again.already
    assert (again.record_id, again.message_id) == (done.record_id, done.message_id)
    assert dump() == before
    archive_run()
    assert dump() == before


def test_a_plan_of_a_window_that_changed_is_refused(full):
    planned = eviction_planned(SESSION)
    push(turns(2, 10))
    assert eviction_planned(SESSION).plan_id != planned.plan_id
    session_compaction_push(SESSION, "c1", summary="gist", removed_ids=ids(turn(2)))
    before = dump()
    for plan_id in (planned.plan_id, "4-8-0123456789ab", "nonsense"):
        with pytest.raises(SurfaceChanged):
            eviction_apply(SESSION, plan_id)
    assert dump() == before


def test_what_came_after_the_plan_does_not_make_it_stale(full):
    planned = eviction_planned(SESSION)
    push(turns(1, 10))
    assert eviction_apply(SESSION, planned.plan_id).record_id


def test_span_after_span_until_nothing_may_go(full):
    push(turns(10, 10, size=50))
    records = []
    for _ in range(20):
        done = eviction_apply(SESSION, used_tokens=900, rules=Rules(max_chars=1_500))
        if not done.record_id:
            break
        records.append(done.record_id)
    assert len(records) > 2
    assert len(records) == len(set(records)) == L1Eviction.objects.count()
    assert window()[:4] == ids(turn(0))
    left = [name for name in window() if not name.startswith("msg_")]
    assert left[-4:] == ids(turn(19))
    assert len(window()) == len(left) + 1, "one message stands for all that left"
    owned = Event.objects.exclude(record_id="").exclude(source="injected").count()
    assert owned + len(left) == 80
    newest = Record.objects.get(pk=records[-1])
    assert newest.links["previous"] == records[-2:-1], "each names the one before"


def test_when_it_cannot_be_archived_nothing_leaves(full, monkeypatch):
    before = dump()

    def no_room(*_: object, **__: object) -> str:
        raise StoreFull("full")

    monkeypatch.setattr(evicting, "eviction_archive", no_room)
    with pytest.raises(StoreFull):
        eviction_apply(SESSION)
    assert dump() == before


def test_a_run_that_ended_behind_the_archive_is_made_up_for(full, monkeypatch):
    def stop(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(evicting, "note_row", stop)
        eviction_apply(SESSION)
    record = Record.objects.get()
    assert len(window()) == 40
    done = eviction_apply(SESSION)
    assert done.record_id == record.id
    assert (Record.objects.count(), L1Eviction.objects.count()) == (1, 1)
    assert done.message_id in window()


def test_undone_the_span_is_back_in_its_place(full):
    before = window()
    done = eviction_apply(SESSION)
    push(turn(10))
    back = eviction_undo(SESSION, done.plan_id)
    assert (back.plan_id, back.record_id, back.already) == (done.plan_id, done.record_id, False)
    assert window() == [*before, *ids(turn(10))]
    shadowed = Event.objects.filter(surface="shadowed")
    assert list(shadowed.values_list("uid", flat=True)) == [done.message_id]
    session = session_get(SESSION)
    assert session.current_count == 44
    again = dump()
    assert eviction_undo(SESSION, done.plan_id).already
    assert dump() == again
    with pytest.raises(SurfaceChanged):
        eviction_undo(SESSION)
    assert Record.objects.count() == 1
    # And out again: the same record, another message.
    once_more = eviction_apply(SESSION, done.plan_id)
    assert (once_more.record_id, once_more.already) == (done.record_id, False)
    assert once_more.message_id != done.message_id
    assert (Record.objects.count(), L1Eviction.objects.count()) == (1, 1)


def test_what_was_compacted_away_cannot_be_undone(full):
    done = eviction_apply(SESSION)
    session_compaction_push(SESSION, "c1", summary="gist", removed_ids=[done.message_id])
    with pytest.raises(SurfaceChanged):
        eviction_undo(SESSION, done.plan_id)


def test_a_compaction_after_an_eviction_owns_only_what_the_eviction_did_not(full):
    done = eviction_apply(SESSION)
    removed = window()[:-4]
    compacted = session_compaction_push(SESSION, "c1", summary="gist", removed_ids=removed)
    record = Record.objects.get(id=compacted.record_id)
    assert record.links["previous"] == [done.record_id]
    owned = Event.objects.filter(record_id=record.id).values_list("uid", flat=True)
    assert set(owned) == set(removed)
    evicted = Event.objects.filter(record_id=done.record_id).values_list("uid", flat=True)
    assert set(evicted) | set(removed) | set(window()) >= set(ids(turns(10)))


def test_reindex_gives_evictions_and_undone_ones_back(full):
    first = eviction_apply(SESSION, used_tokens=900, rules=Rules(max_chars=1_500))
    second = eviction_apply(SESSION, used_tokens=900, rules=Rules(max_chars=1_500))
    eviction_undo(SESSION, second.plan_id)
    third = eviction_apply(SESSION, second.plan_id)
    assert third.record_id == second.record_id
    with pytest.raises(SurfaceChanged, match="undone first"):
        eviction_undo(SESSION, first.plan_id)
    eviction_undo(SESSION, third.plan_id)
    eviction_undo(SESSION, first.plan_id)
    eviction_apply(SESSION, first.plan_id)
    second = eviction_apply(SESSION, used_tokens=900, rules=Rules(max_chars=1_500))
    push(turns(2, 10))
    archive_run()
    before, shown = dump(), window()
    lose_all_rows()
    call_command("reindex", verbosity=0)
    after = dump()
    for table in DERIVED:
        assert after[table] == before[table], table
    assert window() == shown
    assert list(store_findings(repair=False)) == []
    assert eviction_undo(SESSION).record_id == second.record_id


def test_a_record_of_an_eviction_can_be_kept_to_its_session(full):
    done = eviction_apply(SESSION, rules=Rules(capture_level="l2"))
    record = Record.objects.get(id=done.record_id)
    assert (record.scope, record.session_id) == ("session", SESSION)


def test_a_forgotten_eviction_is_not_made_again(full):
    done = eviction_apply(SESSION)
    eviction_undo(SESSION)
    forget_run(forget_plan(record_ids=[done.record_id]), actor="owner")
    again = eviction_apply(SESSION)
    assert (again.plan_id, again.record_id) == ("", "")
    assert again.stops[-1][1] == "the record of this span was forgotten"
    assert len(window()) == 40


def test_nothing_goes_while_the_agent_compacts(full):
    push([{"id": "start", "type": "compaction/start"}])
    assert eviction_planned(SESSION).stops == [(40, "a compaction is under way")]
    push([{"id": "end", "type": "compaction/end"}])
    assert eviction_planned(SESSION).plan_id


def test_images_and_summaries_stay(full):
    session_compaction_push(SESSION, "c1", summary="gist " * 40, removed_ids=ids(turns(2)))
    image = {"type": "image", "source": {"media_type": "image/png", "data": "AAAA"}}
    push([{"id": "image", "role": "user", "content": [image]}, *turns(8, 10, size=50)])
    while eviction_apply(SESSION, used_tokens=900).record_id:
        pass
    assert {"c1", "image"} <= set(window())


def test_the_figures_of_the_agent_count_more_than_an_estimate(full):
    usage = {"inputTokens": 100, "cacheReadTokens": 20}
    push([{"id": "x", "role": "assistant", "text": "ok", "usage": usage}])
    assert evict_due(SESSION).used_tokens == 121
    assert replace(eviction_planned(SESSION), stops=[]) == evicting.Eviction(False, 121, 600)


def test_off_paused_and_forgotten_sessions_are_left_alone(full):
    pause_set("sessions", SESSION, paused=True)
    calls = (
        lambda: evict_due(SESSION),
        lambda: eviction_planned(SESSION),
        lambda: eviction_apply(SESSION),
        lambda: eviction_undo(SESSION),
    )
    before = dump()
    for call in calls:
        with pytest.raises(SessionPaused):
            call()
    pause_set("sessions", SESSION, paused=False)
    assert dump() == before
    forget_run(forget_plan(session_ids=[SESSION]), actor="owner")
    for call in calls:
        with pytest.raises(SessionForgotten):
            call()
    opened("off")
    for call in (evict_due, eviction_planned, eviction_apply, eviction_undo):
        with pytest.raises(LevelsOff):
            call("off")
    level_enable("off", "l2")
    assert evict_due("off", 10, 100) == evicting.Due(False, 10, 60)
    assert session_surface("off").messages == []


def test_an_agent_with_a_log_manages_its_window_itself(agent_home):
    write_log(agent_home, 1)
    archive_run(level="l3")
    assert not evict_due(session_id(1), 10**9, 1_000).due
    with pytest.raises(PushConflict):
        eviction_apply(session_id(1))


def test_asking_whether_it_is_due_reads_no_events(full, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        evict_due(SESSION)
    with connection.execute_wrapper(_refuse_events):
        evict_due(SESSION)


def _refuse_events(execute, sql, params, many, context):
    assert '"events"' not in sql
    return execute(sql, params, many, context)


def test_the_store_is_asked_for_room_first(full, monkeypatch):
    def no_room() -> None:
        raise StoreFull("full")

    monkeypatch.setattr(pushlog, "ensure_free_space", no_room)
    before = dump()
    with pytest.raises(StoreFull):
        push(turn(11))
    assert dump() == before


def test_the_command_plans_applies_and_undoes(full, capsys):
    call_command("memory", "evict", SESSION)
    out = capsys.readouterr().out
    plan_id = eviction_planned(SESSION).plan_id
    assert plan_id in out
    assert "the newest events stay" in out
    call_command("memory", "evict", SESSION, "--apply", "--plan-id", plan_id, "--json")
    done = json.loads(capsys.readouterr().out)
    assert (done["planId"], done["recordId"]) == (plan_id, Record.objects.get().id)
    call_command("memory", "evict", SESSION, "--undo")
    assert "is back in the window" in capsys.readouterr().out
    assert len(window()) == 40
    with pytest.raises(CommandError, match="Nothing that was evicted"):
        call_command("memory", "evict", SESSION, "--undo")
    call_command("memory", "evict", SESSION, "--window", "100000")
    assert "Nothing is due" in capsys.readouterr().out
