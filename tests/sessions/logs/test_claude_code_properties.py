import json
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.logs.claude_code import FORMAT
from sessions_app.logs.events import LOG_ONLY, Head
from tests.sessions.logs.claude_lines import (
    OTHER_SESSION,
    SESSION,
    SUMMARY_TEXT,
    Line,
    Run,
    assistant,
    attachment,
    boundary,
    call,
    line,
    micro,
    result,
    rows_of,
    run_in_parts,
    summary,
    user,
)

# How fast the machine is says nothing about the reader.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
names = st.sampled_from([f"{letter * 8}-{n}" for letter in "abc" for n in range(4)])
tools = st.sampled_from(["t1", "t2", "t3"])
texts = st.sampled_from(["Start", "weiter", "继续", "<system-reminder>x</system-reminder>", SUMMARY_TEXT, ""])
extras = st.fixed_dictionaries(
    {},
    optional={
        "isSidechain": st.booleans(),
        "parentUuid": st.none() | st.just("nowhere") | names,
        "forkedFrom": st.just({"sessionId": OTHER_SESSION}),
        "isMeta": st.booleans(),
        "version": st.sampled_from(["2.1.20", "2.1.21"]),
    },
)
preserved = st.fixed_dictionaries(
    {},
    optional={
        "preservedMessages": st.fixed_dictionaries({"uuids": st.lists(names, max_size=3)}),
        "preservedSegment": st.fixed_dictionaries({"headUuid": names, "tailUuid": names}),
    },
)
usages = st.fixed_dictionaries({"usage": st.fixed_dictionaries({"input_tokens": st.integers(0, 3)})})


def lines() -> st.SearchStrategy[Line]:
    plain = st.one_of(
        st.builds(user, names, texts),
        st.builds(lambda uid, text, message: assistant(uid, text, message=message), names, texts, usages),
        st.builds(call, names, tools),
        st.builds(result, names, tools, texts),
        st.builds(attachment, names, st.sampled_from(["file", "new_kind", "hook_cancelled"]), filename=texts),
        st.builds(line, st.sampled_from(["progress", "brand-new"]), names, note=texts),
        st.builds(boundary, names, preserved),
        st.builds(summary, names, st.none() | names),
        st.builds(micro, names, st.lists(tools, max_size=3), st.lists(names, max_size=2)),
    )
    titles = st.sampled_from(["custom-title", "ai-title", "summary", "agent-name"])
    title = st.builds(lambda kind, text, leaf: _title(kind, text, leaf), titles, texts, names)
    return st.one_of(st.builds(lambda item, extra: {**item, **extra}, plain, extras), plain, title)


def _title(kind: str, text: str, leaf: str) -> Line:
    keys = {
        "custom-title": "customTitle",
        "ai-title": "aiTitle",
        "summary": "summary",
        "agent-name": "agentName",
    }
    return {"type": kind, keys[kind]: text, "leafUuid": leaf, "sessionId": SESSION}


def _raw(item: Line) -> bytes:
    return json.dumps(item, ensure_ascii=False).encode()


rows_raw = st.one_of(
    lines().map(_raw),
    lines().map(_raw),
    st.builds(lambda a, b: _raw(a) + _raw(b), lines(), lines()),
    st.builds(lambda item, n: _raw(item)[:n], lines(), st.integers(0, 60)),
)
heads = st.sampled_from([Head("claude-code", SESSION), Head("claude-code", "agent-1", relation="subagent")])


@unhurried
@given(st.lists(rows_raw, max_size=25), st.data(), heads)
def test_any_split_into_runs_gives_the_same_effects(raws: list[bytes], data: Any, head: Head) -> None:
    rows = rows_of(*raws)
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=4))
    assert run_in_parts(rows, cuts, head) == run_in_parts(rows, [], head)


@unhurried
@given(st.lists(rows_raw, max_size=30), heads)
def test_the_books_balance(raws: list[bytes], head: Head) -> None:
    read = Run(run_in_parts(rows_of(*raws), [], head))
    by_lane: dict[str, list[int]] = {}
    for event in read.events:
        by_lane.setdefault(event.lane, []).append(event.seq)
    for seqs in by_lane.values():
        assert seqs == list(range(len(seqs)))
    seen = {(e.lane, e.seq) for e in read.events if e.surface != LOG_ONLY}
    gone = Counter((effect.lane, seq) for effect in read.shadowed for seq in effect.seqs)
    assert set(gone) <= seen
    assert not gone or max(gone.values()) == 1
    ready = [fact for fact in read.facts if fact.state == "ready"]
    assert {(f.lane, seq) for f in ready for seq in f.dropped} == set(gone)
    for kind in ("compaction", "microcompact"):
        taken = Counter((f.lane, seq) for f in ready if f.kind == kind for seq in f.dropped)
        assert not taken or max(taken.values()) == 1
    ends = Counter((fact.kind, fact.compaction_id) for fact in ready)
    assert not ends or max(ends.values()) == 1
    assert set(ends) <= {(fact.kind, fact.compaction_id) for fact in read.facts}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    ["type", "uuid", "message", "content", "attachment", "subtype", "timestamp", "toolUseResult", "parentUuid",
     "compactMetadata", "microcompactMetadata", "isSidechain", "isCompactSummary", "forkedFrom", "cwd"]
)  # fmt: skip
known_words = st.sampled_from(
    ["user", "assistant", "system", "attachment", "compact_boundary", "tool_result", "file"]
)


@unhurried
@given(st.dictionaries(keys, json_values | known_words | st.dictionaries(keys, json_values | known_words)))
def test_nothing_in_a_line_makes_the_reader_fail(fields: dict[str, Any]) -> None:
    raw = json.dumps(fields).encode()
    read = Run(run_in_parts(rows_of(raw), []))
    assert len(read.events) == 1
    for block in FORMAT.blocks(raw, 0):
        assert block.text.encode() is not None
    FORMAT.head(rows_of(raw), "x.jsonl")


@unhurried
@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail(raw: bytes) -> None:
    row = raw.replace(b"\n", b"")
    read = Run(run_in_parts(rows_of(row), []))
    for event in read.events:
        assert FORMAT.blocks(row, event.part)
