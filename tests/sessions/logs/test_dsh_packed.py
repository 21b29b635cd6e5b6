import json

import pytest

from sessions_app.logs.dsh import FORMAT
from sessions_app.logs.events import LOG_ONLY, Block

from .dsh_builder import START, DshLog
from .dsh_run import Run, run

WORDS = ["好", "的，", " port", ""]


def answered(kind: str, *, packed: bool, numbered: bool = True) -> Run:
    """A log whose answer was streamed in four pieces."""
    log = DshLog(version=0)
    log.user("9000?")
    key = "argumentsDelta" if kind == "tool-call" else "text"
    first = log.seq
    if packed:
        members = {"args" if kind == "tool-call" else "texts": WORDS, "dt": [1000] * 3, "index": 0}
        log.event(f"{kind}-chunks", members)
        row = log.rows[-1]
        row["seq0"], row["time0"] = row.pop("seq"), row.pop("time")
        log.seq += len(WORDS) - 1
    else:
        for word in WORDS:
            log.event("assistant/chunk", {"chunk": {"type": f"{kind}-delta", "index": 0, key: word}})
    log.assistant("好的， port")
    log.compaction("k", [0], "asked for 9000")
    assert first == 1
    if not numbered:
        for row in log.rows:
            for field in ("seq", "time", "seq0", "time0"):
                row.pop(field, None)
    return run(log)


def told(found: Run) -> list[tuple[object, ...]]:
    """What must not depend on the packing."""
    texts = [FORMAT.blocks(found.rows[event.row].raw, event.part) for event in found.events]
    return [
        (
            e.seq,
            e.type,
            e.role,
            e.source,
            e.time,
            e.tokens,
            e.uid,
            e.ref,
            e.digest,
            e.surface,
            e.preview,
            text,
        )
        for e, text in zip(found.events, texts, strict=True)
    ]


@pytest.mark.parametrize("kind", ["text", "reasoning", "tool-call"])
@pytest.mark.parametrize("numbered", [True, False])
def test_packed_and_unpacked_pieces_are_the_same_events(kind, numbered):
    packed = answered(kind, packed=True, numbered=numbered)
    unpacked = answered(kind, packed=False, numbered=numbered)
    assert told(packed) == told(unpacked)
    assert packed.shadowed == unpacked.shadowed == {0: 8}
    assert packed.facts == unpacked.facts
    assert packed.nodes == unpacked.nodes


def test_members_of_a_packed_row_carry_their_own_number_time_and_text():
    found = answered("text", packed=True)
    members = [event for event in found.events if event.type == "assistant/chunk"]
    assert [(e.seq, e.part, e.time, e.surface) for e in members] == [
        (1 + k, k, START + 2000 + 1000 * k, LOG_ONLY) for k in range(4)
    ]
    assert {(e.row, e.offset) for e in members} == {(2, members[0].offset)}
    raw = found.rows[2].raw
    assert [FORMAT.blocks(raw, k) for k in range(4)] == [[Block("text", word)] for word in WORDS]
    assert FORMAT.blocks(raw, 4) == []


def test_odd_packed_rows_cost_a_warning_at_most():
    log = DshLog(version=0)
    log.event("text-chunks", {"texts": None})
    log.event("text-chunks", {"texts": ["a", 5, None], "dt": ["x"]})
    found = run(log)
    assert [event.preview for event in found.events] == ["a", "", ""]
    assert found.warnings == ["damaged"]


def test_the_parts_of_a_glued_row_count_through_packed_members():
    values = [
        {"type": "turn/start", "seq": 0, "data": {"turn": 1}},
        {"type": "text-chunks", "seq0": 1, "data": {"texts": ["a", "b"]}},
        {
            "type": "user/message",
            "seq": 3,
            "data": {"content": "hi", "source": {"kind": "user"}},
            "surfaceOp": "append",
        },
    ]
    raw = "".join(json.dumps(value) for value in values).encode()
    found = run(raw + b"\n")
    assert [(event.seq, event.part) for event in found.events] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert FORMAT.blocks(raw, 2) == [Block("text", "b")]
    assert FORMAT.blocks(raw, 3) == [Block("text", "hi")]
    assert found.warnings == ["glued"]
