"""The surface and the compactions that DSH's reader finds."""

import pytest

from sessions_app.logs.events import (
    CURRENT,
    LOG_ONLY,
    PERSON,
    CompactionFact,
    RowWarning,
)

from .dsh_builder import START, DshLog, story, text
from .dsh_run import run


@pytest.mark.parametrize("version", range(6))
def test_a_session_with_every_kind_of_compaction_folds_alike_in_all_versions(version):
    found = run(story(version))
    system, asked, ran, full, short, decided, first, image, last, second = 1, 2, 6, 8, 10, 11, 14, 16, 20, 23
    assert found.nodes == [system, second, image, last]
    assert found.shadowed == {
        full: short,
        asked: first, ran: first, short: first,
        first: second, decided: second,
    }  # fmt: skip
    assert {fact.compaction_id: (fact.kind, fact.state, fact.dropped) for fact in found.facts.values()} == {
        "prune:r-c1": ("prune", "ready", [full]),
        "k1": ("compaction", "ready", [asked, ran, short]),
        "k2": ("compaction", "failed", []),
        "k3": ("compaction", "ready", [first, decided]),
    }
    assert found.warnings == []
    current = {seq for item in found.nodes for seq in [item]} | set(found.shadowed)
    assert {event.seq for event in found.events if event.surface == CURRENT} == current
    assert {event.surface for event in found.events if event.seq not in current} == {LOG_ONLY}


def test_a_compaction_is_told_twice_and_fully():
    log = DshLog()
    asked = log.user("port?")
    answered = log.assistant("9000")
    checkpoint = log.compaction("k1", [asked, answered], "asked for the port", sourceCommandId="cmd")
    summary = checkpoint - 1
    common = {
        "compaction_id": "k1", "kind": "compaction", "dropped": [asked, answered], "summary_seq": summary,
        "trigger": "manual", "tokens_before": 1460, "provider": "demo", "model": "demo-1",
    }  # fmt: skip
    assert run(log).of(CompactionFact) == [
        CompactionFact(state="pending", at_seq=summary, time=START + 1000 * (summary + 1), **common),
        CompactionFact(state="ready", at_seq=checkpoint, time=START + 1000 * (checkpoint + 1), **common),
    ]


def test_a_summary_whose_checkpoint_is_not_there_stays_pending_and_shadows_nothing():
    log = DshLog()
    asked = log.user("port?")
    log.summary("k1", [asked], "…")
    found = run(log)
    assert (found.facts["k1"].state, found.facts["k1"].trigger) == ("pending", "auto")
    assert found.shadowed == {}
    assert found.nodes == [asked]


def test_dropped_events_stand_in_the_order_of_the_window():
    log = DshLog()
    one, two, three = (log.user(word) for word in ("one", "two", "three"))
    first = log.compaction("k1", [one, two], "…")
    log.summary("k2", [three, first], "…")
    log.checkpoint("k2", first, three, "…")
    assert run(log).facts["k2"].dropped == [first, three]


def test_events_that_the_log_does_not_hold_are_missing():
    log = DshLog()
    log.seq = 5
    asked = log.user("port?")
    log.compaction("k1", [asked, 2, 900], "…", shadowedRange={"start": 5, "end": 5})
    log.rows[-2]["surfaceOp"] = log.replace_op(asked, asked)
    found = run(log)
    assert found.facts["k1"].missing == ["2", "900"]
    assert found.facts["k1"].dropped == [asked]
    assert found.warnings == ["missing-events"]


def test_without_a_list_the_range_of_the_window_is_dropped():
    log = DshLog()
    one = log.user("one")
    log.event("turn/start", {})
    two = log.user("two")
    log.summary("k1", [one, two], "…")
    del log.rows[-1]["data"]["shadowedSeqs"]
    assert run(log).facts["k1"].dropped == [one, two]


def test_a_checkpoint_whose_summary_was_lost_is_a_compaction_all_the_same():
    log = DshLog()
    asked = log.user("port?")
    seq = log.checkpoint("k1", asked, asked, "asked for the port")
    fact = run(log).facts["k1"]
    assert (fact.state, fact.dropped, fact.at_seq, fact.summary_seq) == ("ready", [asked], seq, seq)


def test_a_checkpoint_without_an_id_belongs_to_the_last_summary():
    log = DshLog(version=0)
    asked = log.user("port?")
    log.summary("k1", [asked], "…")
    log.checkpoint("", asked, asked, "…")
    assert run(log).facts["k1"].state == "ready"


def test_legacy_names_are_read_alike():
    log = DshLog(version=0)
    asked = log.event(
        "steering/message", {"content": text("port?"), "source": {"kind": "user"}}, surfaceOp="append"
    )
    log.summary("k1", [asked], "asked")
    log.checkpoint("k1", asked, asked, "asked")
    log.event("compact/end", {"compactionId": "k2", "error": "gave up"})
    log.rows[2]["type"] = "compact/summary"
    found = run(log)
    assert found.events[0].source == PERSON
    assert {key: fact.state for key, fact in found.facts.items()} == {"k1": "ready", "k2": "failed"}


def test_an_error_after_the_checkpoint_takes_nothing_back():
    log = DshLog()
    asked = log.user("port?")
    log.compaction("k1", [asked], "…")
    log.event("compaction/end", {"compactionId": "k1", "error": "late"})
    assert run(log).facts["k1"].state == "ready"


def test_an_error_after_the_summary_is_a_failure():
    log = DshLog()
    asked = log.user("port?")
    log.summary("k1", [asked], "…")
    log.event("compaction/end", {"compactionId": "k1", "error": "too long"})
    fact = run(log).facts["k1"]
    assert (fact.state, fact.dropped) == ("failed", [])


def test_a_summary_that_nobody_can_read_is_opaque():
    log = DshLog(version=5)
    asked = log.user("port?")
    log.summary("k1", [asked], "", summary=[{"type": "compaction", "item": {"encrypted_content": "QUJD"}}])
    assert run(log).facts["k1"].opaque


def test_an_eviction_by_a_third_party_is_a_prune_of_many():
    log = DshLog()
    seqs = [log.user("one"), log.assistant("two"), log.user("three")]
    log.prune(seqs)
    by = log.user("evicted", kind="memory-evict", op=log.replace_op(seqs[0], seqs[-1]))
    found = run(log)
    fact = found.facts[f"prune:m{by}"]
    assert (fact.kind, fact.state, fact.dropped, fact.at_seq) == ("prune", "ready", seqs, by)
    assert (fact.tokens_before, fact.trigger, fact.summary_seq) == (2540, "auto", None)
    assert found.nodes == [by]


def test_a_prune_by_a_message_without_an_id_is_known_by_its_number():
    log = DshLog(version=0)
    ran = log.result("c1", "long")
    log.prune([ran])
    by = log.event(
        "tool/result", {"callId": "c1", "content": text("short")}, surfaceOp=log.replace_op(ran, ran)
    )
    assert run(log).facts[f"prune:{by}"].dropped == [ran]


def test_a_prune_that_was_never_carried_out_is_forgotten():
    log = DshLog()
    one, two = log.user("one"), log.user("two")
    log.prune([one])
    log.user("three")
    log.result("c1", "new", op=log.replace_op(two, two))
    assert run(log).facts["prune:r-c1"].dropped == [two]


def test_a_new_system_message_is_no_compaction():
    log = DshLog()
    old = log.system("one")
    new = log.system("two", surfaceOp=log.replace_op(old, old))
    found = run(log)
    assert found.shadowed == {old: new}
    assert found.facts == {}


@pytest.mark.parametrize(
    "op", [{"op": "replace", "startSeq": 7, "endSeq": 0}, {"op": "swap"}, {"op": "replace"}, 5]
)
def test_a_replacement_that_cannot_be_is_appended_with_a_warning(op):
    log = DshLog()
    log.user("one")
    by = log.user("two", op=op)
    found = run(log)
    assert found.nodes == [0, by]
    assert found.events[-1].surface == CURRENT
    assert found.warnings == ["surface"]


def test_where_the_span_is_lost_the_named_events_leave_the_window():
    log = DshLog()
    one, two, three, four = (log.user(word) for word in ("one", "two", "three", "four"))
    by = log.compaction("k1", [one, two, three], "…")
    log.rows[1] = {"type": 5}
    found = run(log)
    assert found.shadowed == {two: by, three: by}
    assert found.nodes == [by, four]
    assert (found.facts["k1"].state, found.facts["k1"].missing) == ("ready", ["0"])
    assert set(found.warnings) == {"damaged", "missing-events", "surface"}


def test_a_message_that_does_not_name_its_place_is_log_only():
    log = DshLog()
    log.user("one", op=None)
    found = run(log)
    assert found.events[0].surface == LOG_ONLY
    assert found.warnings == ["surface"]


def test_an_event_that_comes_twice_is_kept_once():
    log = DshLog()
    log.user("one")
    log.user("two")
    log.rows.append(log.rows[1])
    found = run(log)
    assert [event.seq for event in found.events] == [0, 1]
    assert found.warnings == ["duplicate"]


def test_rows_without_numbers_are_counted():
    log = story(0)
    for row in log.rows[1:]:
        del row["seq"], row["time"]
    found = run(log)
    assert [event.seq for event in found.events] == list(range(log.seq))
    assert found.facts.keys() == run(story(0)).facts.keys()
    assert found.shadowed == run(story(0)).shadowed


def test_damage_costs_its_row_and_no_more():
    lines = story().lines()
    lines[5] = b"\0\0\0\0\n"
    lines[6] = lines[6][:30] + b"\n"
    lines[7] = lines[7].replace(b'"type"', b'\0"type"', 1)
    lines[-1:] = [lines[-1].strip() + story().lines()[-2].replace(b'"seq": 24', b'"seq": 99')]
    found = run(b"".join(lines))
    assert set(found.warnings) >= {"nul", "damaged", "glued"}
    assert {4, 5}.isdisjoint(event.seq for event in found.events)
    assert found.events[-1].part == 1
    assert found.facts["k3"].state == "ready"


def test_a_newer_format_is_read_with_a_warning():
    found = run(story(9))
    assert found.of(RowWarning) == [
        RowWarning(0, "newer-version", "format 9 is newer than 5: read as far as known")
    ]
    assert found.facts["k3"].state == "ready"


def test_a_second_header_is_passed_over():
    log = DshLog()
    log.user("one")
    log.rows.append(log.rows[0] | {"parentSession": "other"})
    found = run(log)
    assert found.warnings == ["header"]
    assert "parent_id" not in found.session
