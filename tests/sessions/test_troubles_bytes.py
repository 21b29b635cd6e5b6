"""Damaged bytes: a bad row costs one warning and nothing else, and no byte of the log is lost."""

import json
from pathlib import Path

import pytest

from sessions_app.models import AgentSession, Compaction, Event, ImportWarning
from sessions_app.queries import events_read

from .builders import (
    LAST,
    archive,
    archive_watched,
    assert_kept,
    assert_sound,
    compactions,
    encode,
    records,
    reindex,
    session,
    warnings,
    write,
)
from .logs import claude_lines as claude
from .logs import codex_lines as codex
from .logs.claude_lines import SESSION, Line
from .logs.dsh_builder import DshLog

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "projects" / "-home-dev---" / f"{SESSION}.jsonl"


def raw(line: Line) -> bytes:
    return encode([line]).removesuffix(b"\n")


def talk(*rows: Line | bytes) -> list[Line | bytes]:
    """A question and an answer, `rows`, and a compaction over all of it."""
    return [
        claude.user("u1", "why is /srv/app/cache.py slow?"),
        claude.assistant("a1", "I look."),
        *rows,
        claude.boundary("b1"),
        claude.summary("s1", "b1"),
        claude.user("u2", "go on"),
    ]


SNAPSHOT = raw({"type": "file-history-snapshot", "messageId": "m1", "snapshot": {}})
SAID = raw(claude.user("x1", "the middle"))
PARTS: dict[str, tuple[list[bytes], list[str]]] = {
    "glued": ([SAID + SNAPSHOT], ["glued"]),
    "glued with space between": ([SNAPSHOT + b"  " + SAID], ["glued"]),
    "a block of NULs": ([b"\0" * 4096, SAID], ["nul"]),
    "NULs before a row": ([b"\0" * 512 + SAID], ["nul"]),
    "line separators": ([raw(claude.user("x1", "the middle\u2028of\u2029a\u0085line"))], []),
    "half a surrogate, escaped": ([SAID.replace(b"the middle", b"the middle \\ud83d!")], []),
    "half a surrogate, in bytes": ([SAID.replace(b"the middle", b"the middle \xed\xa0\xbd!")], []),
    "carriage return": ([SAID + b"\r"], []),
    "not JSON": ([b'{"type": "user", "uuid', SAID], ["damaged"]),
    "JSON, but no object": ([b"[1, 2]", SAID], ["damaged"]),
    "bytes that are no UTF-8": ([b"\xff\xfe\x00garbage", SAID], ["damaged"]),
    "blank rows": ([b"", b"   ", SAID], []),
    "numbers and nesting out of bounds": (
        [SAID[:-1] + b', "n": 1' + b"0" * 400 + b', "deep": ' + b"[" * 300 + b"]" * 300 + b"}"],
        [],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_damaged_row_costs_one_warning(log, name):
    rows, codes = PARTS[name]
    data = write(log, talk(*rows))
    result = archive(log)
    assert (result.archived, result.warnings) == (1, len(codes))
    assert warnings(log) == [(2, code) for code in codes]
    assert sorted(Event.objects.filter(uid__in=["u1", "a1", "x1", "u2"]).values_list("uid", flat=True)) == [
        "a1", "u1", "u2", "x1",
    ]  # fmt: skip
    (record,) = records()
    assert Event.objects.get(uid="x1").record_id == record.id
    assert_sound({SESSION: data}, [log])


def test_both_objects_of_a_glued_row_can_be_read(log):
    write(log, talk(SAID + raw(claude.assistant("x2", "and an answer"))))
    archive(log)
    read = [each for each in events_read(session(SESSION), 0, LAST) if each.event.uid in ("x1", "x2")]
    assert [each.blocks[0].text for each in read] == ["the middle", "and an answer"]
    assert [(each.event.row, each.event.part) for each in read] == [(2, 0), (2, 1)]


def test_a_byte_order_mark_and_windows_line_ends(log):
    data = b"\xef\xbb\xbf" + encode(talk(SAID)).replace(b"\n", b"\r\n")
    write(log, data)
    result = archive(log)
    assert (result.archived, result.warnings) == (1, 0)
    assert Event.objects.get(uid="u1").seq == 0
    assert_sound({SESSION: data}, [log])


def test_a_row_of_five_megabytes(log):
    long = "line of output 0123456789\n" * 200_000
    data = write(log, talk(claude.call("c1", "toolu_1"), claude.result("r1", "toolu_1", long)))
    assert archive(log).archived == 1
    (each,) = [each for each in events_read(session(SESSION), 0, LAST) if each.event.uid == "r1"]
    assert each.blocks[0].text == long
    assert len(Event.objects.get(uid="r1").preview) <= 200
    assert_sound({SESSION: data}, [log])


# --- the end of a file that is being written ------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 40, -1])
def test_a_torn_tail_is_read_once_it_is_complete(log, cut):
    data = encode(talk(SAID))
    end = data.rfind(b"\n", 0, -1) + 1  # of the row before the last
    write(log, data[: end + cut] if cut > 0 else data[:cut])
    archive_watched(log)
    assert Event.objects.filter(uid="u2").exists() == (cut < 0)
    assert not ImportWarning.objects.exists()
    write(log, data)
    result = archive_watched(log)
    assert result.events == (1 if cut > 0 else 0)
    assert Event.objects.filter(uid="u2").count() == 1
    assert_sound({SESSION: data}, [log])


def test_a_torn_tail_of_a_file_that_was_named_is_kept(log):
    data = encode(talk(SAID)) + b'{"type": "user", "mess'
    write(log, data)
    assert archive(log).warnings == 1
    assert warnings(log) == [(data.count(b"\n"), "torn")]
    assert_kept(SESSION, data)
    assert archive(log).events == 0


def test_a_kept_torn_tail_goes_on(log):
    start, last = encode(talk(SAID)), raw(claude.user("u3", "and then?"))
    write(log, start + last[:30])
    archive(log)
    data = write(log, start + last + b"\n" + raw(claude.user("u4", "next")) + b"\n")
    archive(log)
    assert Event.objects.filter(uid="u3").count() == Event.objects.filter(uid="u4").count() == 1
    assert_sound({SESSION: data}, [log])


def test_an_empty_file_is_no_log(log):
    write(log, b"")
    result = archive(log)
    assert (result.files, result.skipped, result.warnings) == (1, 1, 1)
    assert not AgentSession.objects.exists()


# --- the same for the other agents ----------------------------------------------------------------


def codex_log(row: bytes) -> bytes:
    rows = [codex.meta(), *codex.turn(codex.CHILD_TURN), codex.message("user", "why?")]
    return codex.raw([*rows, row, codex.message("assistant", "so"), codex.compacted(text="Done.")])


def dsh_log(row: bytes) -> bytes:
    log = DshLog()
    first = log.user("why?")
    last = log.assistant("so")
    log.compaction("k1", [first, last], "Done.")
    lines = log.lines()
    return b"".join([*lines[:2], row + b"\n", *lines[2:]])


@pytest.mark.parametrize(("row", "code"), [(b"\0" * 100, "nul"), (b'{"torn', "damaged")])
@pytest.mark.parametrize(
    ("build", "name", "session_id"),
    [
        (codex_log, f"sessions/rollout-2026-04-11T20-42-59-{codex.CHILD}.jsonl", codex.CHILD),
        (dsh_log, "sessions/--work-demo--/session-demo/session.v4.jsonl", "session-demo"),
    ],
)
def test_damage_in_other_agents_logs(tmp_path, build, name, session_id, row, code):
    path = tmp_path / name
    data = write(path, build(row))
    result = archive(path)
    assert (result.archived, result.warnings) == (1, 1)
    assert [found for _, found in warnings(path)] == [code]
    assert_sound({session_id: data}, [path])


def test_two_events_of_codex_on_one_row(tmp_path):
    path = tmp_path / f"rollout-2026-04-11T20-42-59-{codex.CHILD}.jsonl"
    glued = raw(codex.tokens(1000)) + raw(codex.message("assistant", "in between"))
    data = write(path, codex_log(glued))
    archive(path)
    (record,) = records()
    assert Event.objects.get(preview="in between").record_id == record.id
    assert [code for _, code in warnings(path)] == ["glued"]
    assert_sound({codex.CHILD: data}, [path])


def test_an_odd_field_costs_no_more_than_itself(log):
    odd = {**claude.assistant("x1", "still here"), "timestamp": {"at": 1}, "cwd": 7, "version": ["2"]}
    odd["message"] = {**odd["message"], "usage": "none", "model": None}
    data = write(log, talk(json.dumps(odd).encode()))
    assert archive(log).warnings == 0
    assert Event.objects.get(uid="x1").preview == "still here"
    assert len(compactions(SESSION)) == Compaction.objects.count() == 1
    assert_sound({SESSION: data}, [log])


def test_a_rebuild_warns_of_nothing_again(log):
    write(log, talk(b"not JSON"))
    archive(log)
    reindex()
    assert list(ImportWarning.objects.values_list("session_id", "row", "code")) == [(SESSION, 2, "damaged")]
