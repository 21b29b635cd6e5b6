"""Reading a log in any number of runs gives what reading it in one gives."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.logs.dsh import FORMAT
from sessions_app.logs.events import SHADOWED, Effect, Head, Known, NewEvent, Shadowed
from sessions_app.logs.rows import Row

from .dsh_builder import DshLog, story
from .dsh_run import rows_of

SEQS = st.integers(0, 25)
SPANS = st.lists(SEQS, min_size=1, max_size=5)
ACTIONS = st.one_of(
    st.tuples(st.just("user"), st.just("words")),
    st.tuples(st.just("assistant"), st.just("more words")),
    st.tuples(st.just("result"), st.sampled_from(["c1", "c2"])),
    st.tuples(st.just("prune"), SPANS),
    st.tuples(st.just("replace"), SEQS, SEQS),
    st.tuples(st.just("summary"), st.sampled_from(["k1", "k2"]), SPANS),
    st.tuples(st.just("checkpoint"), st.sampled_from(["k1", "k2", ""]), SEQS, SEQS),
    st.tuples(st.just("end"), st.sampled_from(["k1", "k2"]), st.sampled_from(["", "cut"])),
    st.tuples(st.just("chunks"), st.integers(0, 3)),
    st.tuples(st.just("seed"), st.booleans()),
    st.tuples(st.just("skip"), st.integers(-4, 4)),
    st.tuples(st.just("junk"), st.sampled_from([b"{", b"\0", b"[1]", b'{"a":1}{"type":"x"}', b""])),
)


def act(log: DshLog, action: tuple[Any, ...]) -> bytes:
    """One row of a log that need not make sense."""
    match action:
        case "user", words:
            log.user(words)
        case "assistant", words:
            log.assistant(words, calls={"c1": "ls"}, usage={"inputTokens": 5})
        case "result", call_id:
            log.result(call_id, "output")
        case "prune", seqs:
            log.prune(seqs)
        case "replace", start, end:
            log.result("c1", "short", op=log.replace_op(start, end))
        case "summary", compaction_id, seqs:
            log.summary(compaction_id, seqs, "what was said")
        case "checkpoint", compaction_id, start, end:
            log.checkpoint(compaction_id, start, end, "what was said")
        case "end", compaction_id, error:
            log.event("compaction/end", {"compactionId": compaction_id, "error": error})
        case "chunks", count:
            log.event("text-chunks", {"texts": ["a"] * count}, seq0=log.seq)
            log.seq += count - 1
        case "seed", inherited:
            log.event("session/end-seed", {"inherited": inherited})
        case "skip", step:
            log.seq = max(0, log.seq + step)
            log.event("turn/start", {})
        case "junk", raw:
            return bytes(raw) + b"\n"
    return log.lines()[-1]


def known_from(effects: list[Effect]) -> list[Known]:
    """What a database would hold of them."""
    known = {
        event.seq: Known(
            event.seq, event.uid, event.ref, event.digest, event.lane, event.surface, event.type, event.role
        )
        for event in effects
        if isinstance(event, NewEvent)
    }
    for effect in effects:
        if isinstance(effect, Shadowed):
            for seq in effect.seqs:
                known[seq].surface = SHADOWED
    return list(known.values())


def read(rows: list[Row], cuts: set[int]) -> tuple[list[Effect], dict[str, Any]]:
    head = FORMAT.head(rows, "") or Head("dsh")
    effects: list[Effect] = []
    reader = FORMAT.reader(head, None, [])
    for row in rows:
        if row.number in cuts:
            reader = FORMAT.reader(head, json.loads(json.dumps(reader.state())), known_from(effects))
        effects += reader.feed(row)
    return effects, reader.state()


def test_the_story_cut_at_every_row():
    rows = rows_of(story(parentSession="p", isSeeded=True).data())
    whole = read(rows, set())
    for row in rows:
        assert read(rows, {row.number}) == whole
    assert read(rows, set(range(len(rows)))) == whole


def test_all_that_counts_is_in_the_state():
    """Gaps that are filled later, an error that comes late, a fork of a fork; and a caller who knows
    nothing but the format once the header was read."""
    log = DshLog(parentSession="p", origin="subagent", isSeeded=True)
    log.user("grandparent")
    log.event("session/end-seed", {"inherited": True})
    log.compaction("k1", [log.user("parent")], "…")
    log.event("session/end-seed", {"inherited": True})
    log.rows[0]["createdAt"] = log.rows[-1]["time"]
    log.seq += 4
    log.compaction("k2", [log.user("child")], "…")
    log.event("compaction/end", {"compactionId": "k2", "error": "late"})
    log.seq = 10
    log.user("found later")
    log.user("found later too")
    log.user("there before", op=log.replace_op(10, 11))
    log.rows += [log.rows[3], log.rows[0]]
    rows = rows_of(log.data())
    whole = read(rows, set())
    for cut in range(1, len(rows)):
        reader = FORMAT.reader(FORMAT.head(rows, "") or Head("dsh"), None, [])
        effects = [effect for row in rows[:cut] for effect in reader.feed(row)]
        later = FORMAT.reader(Head("dsh"), json.loads(json.dumps(reader.state())), known_from(effects))
        effects += [effect for row in rows[cut:] for effect in later.feed(row)]
        assert (effects, later.state()) == whole


@settings(max_examples=150, deadline=None)
@given(
    header=st.sampled_from(
        [{}, {"version": 0, "seedLength": 6, "parentSession": "p"}, {"isSeeded": True, "parentSession": "p"}]
    ),
    actions=st.lists(ACTIONS, max_size=30),
    cuts=st.sets(st.integers(0, 31), max_size=6),
)
def test_any_log_in_any_runs(header, actions, cuts):
    log = DshLog(**header)
    lines = [log.lines()[0], *(act(log, action) for action in actions)]
    rows = rows_of(b"".join(lines))
    effects, state = read(rows, set())
    assert read(rows, cuts) == (effects, state)

    events = [effect.seq for effect in effects if isinstance(effect, NewEvent)]
    assert len(events) == len(set(events))
    # What is in the window is what came into it and was not replaced.
    surfaces = {known.seq: known.surface for known in known_from(effects)}
    nodes = FORMAT.reader(Head("dsh"), state, []).state()["nodes"]
    current = {
        seq for item in nodes for seq in ([item] if isinstance(item, int) else range(item[0], item[1] + 1))
    }
    assert current == {seq for seq, surface in surfaces.items() if surface == "current"}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(0, 8))
def test_bytes_that_are_no_log_never_raise(junk, cut):
    rows = [Row(number, 0, raw) for number, raw in enumerate(junk)]
    assert read(rows, {cut}) == read(rows, set())


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 40), st.sampled_from(["", "append", "text", "user", "k1"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "text",
                    "content",
                    "message",
                    "source",
                    "kind",
                    "id",
                    "op",
                    "startSeq",
                    "endSeq",
                    "summary",
                    "compactionId",
                    "shadowedSeqs",
                    "texts",
                    "shadowedRange",
                    "start",
                    "end",
                    "header",
                    "config",
                    "usage",
                    "reason",
                    "attachment",
                    "chunk",
                    "data",
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
TYPES = st.sampled_from(
    [
        "session",
        "user/message",
        "assistant/message",
        "tool/result",
        "system/message",
        "compaction/summary",
        "compaction/prune",
        "compaction/end",
        "request/header",
        "request/context",
        "session/title",
        "session/end-seed",
        "text-chunks",
        "assistant/chunk",
        "tool/call",
        "tool/ptc-dispatch",
        "turn/end",
        "unknown/thing",
    ]
)
FIELDS = st.fixed_dictionaries(
    {"type": TYPES},
    optional=dict.fromkeys(("data", "seq", "time", "surfaceOp", "isSeeded", "seq0", "time0"), VALUES),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(FIELDS, max_size=6), st.integers(0, 6))
def test_rows_of_any_shape_never_raise(values, cut):
    rows = [Row(number, 0, json.dumps(value).encode()) for number, value in enumerate(values)]
    effects, state = read(rows, {cut})
    assert (effects, state) == read(rows, set())
    for effect in effects:
        if isinstance(effect, NewEvent):
            assert isinstance(FORMAT.blocks(rows[effect.row].raw, effect.part), list)
