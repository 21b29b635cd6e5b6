"""What archive bodies leave out is found all the same."""

import re
from functools import partial
from pathlib import Path

import pytest

from records import fulltext as registry
from records.fulltext import OverflowText, overflow_texts
from records.models import Record
from records.recordfile import body_of
from records.scope import OWNER, Scope
from records.search.grep import grep
from sessions_app import archivetext
from sessions_app.apps import LEAST_CUT_BYTES
from sessions_app.archiving import archive_run
from sessions_app.fulltext import event_session
from sessions_app.logs.rows import clean
from sessions_app.markdown import EVENT_CHARACTERS, BodyWriter, Limits, is_named_only
from sessions_app.models import Event
from sessions_app.queries import event_texts
from sessions_app.samples import SAMPLE_LOGS

from .builders import reindex, session
from .logs.claude_lines import assistant, boundary, result, summary, user
from .stories import as_bytes, session_id

pytestmark = pytest.mark.django_db(transaction=True)


def small(monkeypatch, **limits: int) -> None:
    """Bodies in which little has room."""
    monkeypatch.setattr(archivetext, "BodyWriter", partial(BodyWriter, limits=Limits(**limits)))
    monkeypatch.setattr(registry, "_least_bytes", 0)


def log(agent_home: Path, *contents: str, after: str = "") -> Path:
    """A session whose first compaction drops a message of the person for each of `contents`."""
    common = {"sessionId": session_id(), "cwd": "/home/dev/demo"}
    lines = [user(f"u{number}", text, **common) for number, text in enumerate(contents)]
    lines += [
        boundary("b", **common),
        summary("s", "b", "Summary.", **common),
        user("after", after, **common),
    ]
    path = agent_home / "projects" / "-work-demo" / f"{session_id()}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_bytes(lines))
    return path


def archive(path: Path) -> Record:
    archive_run([path], level="l3")
    return Record.objects.get(provenance__source="compaction-archive")


def body(record: Record, home: Path) -> str:
    return body_of((home / record.path).read_bytes()).decode()


def shown(hits) -> list[tuple[int | None, bool, str]]:
    return [(hit.seq, hit.offset is not None, hit.line) for hit in hits]


def test_a_provider_is_registered_and_knows_how_large_a_cut_body_is():
    assert registry._provider is not None
    assert registry._least_bytes == LEAST_CUT_BYTES == EVENT_CHARACTERS


def test_what_is_cut_out_of_a_long_event_is_found_and_nothing_twice(agent_home, memex_home):
    long = "needle one\n" + "filler\n" * 40_000 + "needle two"
    record = archive(log(agent_home, "needle zero", long))
    assert record.provenance["cut"] == [[1, 1]]
    assert record.provenance["cutShown"] == [[1, EVENT_CHARACTERS]]
    assert "needle two" not in body(record, memex_home)
    assert shown(grep(OWNER, "needle").hits) == [
        (0, True, "needle zero"), (1, True, "needle one"), (1, False, "needle two"),
    ]  # fmt: skip
    (last,) = grep(OWNER, "needle two").hits
    assert last.line_number == 40_002
    assert event_session(record) == session_id()


def test_a_match_across_the_cut_is_found_once(agent_home):
    archive(log(agent_home, "x" * (EVENT_CHARACTERS - 3) + "needle"))
    (hit,) = grep(OWNER, "needle").hits
    assert (hit.offset, hit.line[hit.spans[0][0] : hit.spans[0][1]]) == (None, "needle")


def test_a_match_beyond_the_cut_of_a_single_line_is_found_beside_one_before_it(agent_home):
    archive(log(agent_home, "needle " * 60_000))
    hits = grep(OWNER, "needle").hits
    assert [(hit.line_number, hit.offset is None) for hit in hits[1:]] == [(1, True)]


def test_events_listed_or_only_counted_are_found(agent_home, memex_home, monkeypatch):
    small(monkeypatch, body=900, listed=2)
    record = archive(log(agent_home, *(f"needle {number} " + "x" * 200 for number in range(9))))
    text = body(record, memex_home)
    assert "more events" in text
    assert text.count("needle") < 5
    (run,) = record.provenance["cut"]
    assert run[1] == 8
    assert [hit.line.split()[1] for hit in grep(OWNER, "needle").hits] == [str(number) for number in range(9)]


def test_records_of_which_nothing_was_cut_say_nothing_of_it(agent_home):
    record = archive(log(agent_home, "needle"))
    assert "cut" not in record.provenance
    assert list(overflow_texts(record)) == []


def test_the_same_is_found_after_a_rebuild(agent_home):
    archive(log(agent_home, "filler " * 40_000 + "needle"))
    before = grep(OWNER, "needle").hits
    assert [hit.seq for hit in before] == [0]
    reindex()
    assert grep(OWNER, "needle").hits == before


def test_tool_calls_and_results_are_found_and_reasoning_is_not(agent_home, monkeypatch):
    small(monkeypatch, body=1, listed=0)
    common = {"sessionId": session_id(), "cwd": "/home/dev/demo"}
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "cat needle-call"}}
    lines = [
        user("u", "needle-said", **common),
        assistant("a", {"type": "thinking", "thinking": "needle-thought"}, use, **common),
        result("r", "t1", "needle-result", **common),
    ]
    path = log(agent_home, "x")
    path.write_bytes(as_bytes(lines) + path.read_bytes())
    archive(path)
    hits = grep(OWNER, r"needle-\w+").hits
    found = {re.search(r"needle-\w+", hit.line)[0] for hit in hits}
    assert found == {"needle-said", "needle-call", "needle-result"}
    assert "Bash" in {hit.line for hit in grep(OWNER, "Bash").hits}


def test_a_damaged_mirror_costs_a_warning_and_what_it_held(agent_home, memex_home):
    record = archive(log(agent_home, "x" * 300_000 + " needle", "needle in the body"))
    (segment,) = memex_home.glob("sessions/*/*/g*.zst")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    segment.write_bytes(data)
    answer = grep(OWNER, "needle")
    assert shown(answer.hits) == [(1, True, "needle in the body")]
    (warning,) = answer.warnings
    assert record.id in warning
    assert "event #0" in warning
    segment.unlink()
    assert len(grep(OWNER, "needle").warnings) == 1


def test_a_session_that_is_gone_costs_a_warning(agent_home, caplog):
    record = archive(log(agent_home, "x" * 300_000 + " needle"))
    Event.objects.all().delete()
    assert "no longer here" in grep(OWNER, "needle").warnings[0]
    assert list(overflow_texts(record)) == []
    assert record.id in caplog.text


def test_a_head_edited_to_nonsense_is_no_obstacle(agent_home):
    record = archive(log(agent_home, "x" * 300_000 + " needle"))
    for nonsense in ("all", [1, 2], [[1]], [["a", "b"]], {"0": 1}, [[0, 0], None]):
        for values in (
            {"cut": nonsense},
            {"cutShown": nonsense},
            {"generation": nonsense},
            {"sessionId": nonsense},
        ):
            record.provenance = {**record.provenance, **values}
            assert all(isinstance(text, OverflowText) for text in overflow_texts(record, lambda _: None))


def test_one_session_s_cut_text_is_not_another_s(agent_home):
    archive_run([log(agent_home, "x" * 300_000 + " needle")], level="l2")
    assert len(grep(Scope(None, session_ids=frozenset({session_id()})), "needle").hits) == 1
    assert grep(Scope(None, session_ids=frozenset({"another"})), "needle").hits == []


@pytest.mark.parametrize(
    "limits", [{}, {"event": 300}, {"body": 3_000, "listed": 3}, {"event": 50, "body": 2_000}]
)
def test_body_and_overflow_together_hold_all_the_text(memex_home, monkeypatch, limits):
    """Of sessions of all agents, sub-agents among them."""
    small(monkeypatch, **limits)
    archive_run([SAMPLE_LOGS], level="l3", is_sample=True)
    records = Record.objects.filter(provenance__has_key="rows")
    assert records.count() > 6
    assert any("cut" in record.provenance for record in records) is bool(limits)
    for record in records:
        overflow = {text.seq: text for text in overflow_texts(record, pytest.fail)}
        sections = dict(
            re.findall(r"^### \[#(\d+)\][^\n]*\n(.*?)(?=^### \[#|\Z)", body(record, memex_home), re.M | re.S)
        )
        events = Event.objects.filter(record_id=record.id).order_by("seq")
        for text in event_texts(session(event_session(record)), events):
            said = "".join(clean(block.text) for block in text.blocks if not is_named_only(block))
            section = bare(sections.get(str(text.event.seq), ""))
            rest = overflow.get(text.event.seq)
            if rest is None:
                assert all(bare(block.text) in section for block in text.blocks if not is_named_only(block))
                continue
            # All of it is in the text, and what the body has is where that says.
            assert bare(said) in bare(without_names(rest.text, text.blocks))
            for piece in rest.text[: rest.shown].split("\n"):
                assert bare(piece) in section
            assert rest.shown < len(rest.text)


def bare(text: str) -> str:
    """Without what a body adds to a text: line ends, and backslashes before what looks like a heading."""
    return re.sub(r"[\s\\]", "", text)


def without_names(text: str, blocks) -> str:
    for block in blocks:
        if block.kind == "tool-call" and block.name:
            text = text.replace(f"{block.name}\n", "", 1)
    return text
