"""Reading logs that grow, are torn, and point to files."""

import os
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from records.models import Record
from sessions_app.archiving import archive_run
from sessions_app.blobs import blob_read
from sessions_app.levels import level_enable
from sessions_app.models import AgentSession, Event, ImportWarning, SessionFile, Source
from sessions_app.originals import record_rows
from sessions_app.queries import rows_read, session_get
from tests.sessions.logs.claude_lines import assistant, boundary, result, summary, user
from tests.sessions.stories import as_bytes, session_id, story, write_log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def agent(settings, tmp_path, memex_home) -> Path:
    settings.AGENT_HOMES = {
        "claude-code": tmp_path / "claude", "codex": tmp_path / "codex", "dsh": tmp_path / "dsh",
    }  # fmt: skip
    level_enable(session_id(), "l2")
    return tmp_path / "claude"


def kept() -> bytes:
    return b"".join(rows_read(session_get(session_id()), 0, 10**6))


def test_a_half_written_line_waits_until_it_is_complete(agent):
    whole = as_bytes(story(compactions=0))
    log = write_log(agent)
    log.write_bytes(whole[:-40])
    archive_run()
    complete = whole[: whole[:-40].rfind(b"\n") + 1]
    assert kept() == complete
    assert Source.objects.get().read_size != log.stat().st_size
    log.write_bytes(whole)
    archive_run()
    assert kept() == whole
    assert Event.objects.count() == len(whole.splitlines())
    assert not ImportWarning.objects.exists()


def test_a_half_written_line_is_kept_once_the_log_is_idle(agent):
    whole = as_bytes(story(compactions=0))
    log = write_log(agent)
    log.write_bytes(whole[:-40])
    archive_run()
    os.utime(log, (1, 1))
    archive_run()
    assert kept() == whole[:-40]
    assert ImportWarning.objects.get().code == "torn"
    log.write_bytes(whole)
    archive_run()
    assert kept() == whole
    assert Event.objects.count() == len(whole.splitlines())


def test_a_complete_line_without_its_end_is_read_at_once(agent):
    whole = as_bytes(story(compactions=0))
    log = write_log(agent)
    log.write_bytes(whole[:-1])
    archive_run()
    assert kept() == whole[:-1]
    assert Event.objects.count() == len(whole.splitlines())
    more = as_bytes([user("u-more", "and then?", sessionId=session_id())])
    log.write_bytes(whole + more)
    archive_run()
    assert kept() == whole + more
    assert list(Event.objects.order_by("seq").values_list("row", flat=True)) == list(range(17))


@pytest.mark.parametrize("piece", [1, 7, 1_000])
def test_a_log_that_grows_ends_like_one_read_at_once(agent, piece):
    whole = as_bytes(story(compactions=2, turns=2, micros=True, size=3))
    log = write_log(agent)
    step = max(1, len(whole) // 40) if piece == 1 else piece * 53
    for end in range(step, len(whole) + step, step):
        log.write_bytes(whole[:end])
        archive_run()
    assert kept() == whole
    events = list(Event.objects.order_by("seq").values_list("seq", "row", "surface", "shadowed_by", "type"))
    records = sorted(Record.objects.values_list("id", "content_hash"))
    AgentSession.objects.all().delete()
    Event.objects.all().delete()
    Source.objects.all().delete()
    other = agent.parent / "again"
    (other / "projects" / "-x").mkdir(parents=True)
    (other / "projects" / "-x" / log.name).write_bytes(whole)
    archive_run([other])
    assert (
        list(Event.objects.order_by("seq").values_list("seq", "row", "surface", "shadowed_by", "type"))
        == events
    )
    assert sorted(Record.objects.values_list("id", "content_hash")) == records


def test_what_is_said_again_after_a_rewrite_is_new(agent, memex_home):
    """A rewritten log's events go to the records that own them, once: nobody said "go on" for good."""
    common = {"sessionId": session_id(), "cwd": "/home/dev/demo"}

    def said(number: int) -> list[dict[str, object]]:
        # Without an id of its own an event is known by what it says alone.
        return [{**user("", "go on", **common)}, {**assistant("", f"Step {number}.", **common)}]

    def compacted(name: str) -> list[dict[str, object]]:
        return [boundary(f"b{name}", **common), summary(f"s{name}", f"b{name}", f"Summary {name}.", **common)]

    first = [user("u0", "begin", **common), *said(0), *compacted("1")]
    log = write_log(agent)
    log.write_bytes(as_bytes(first))
    archive_run()
    rewritten = [user("u-1", "a new beginning", **common), *first]
    log.write_bytes(as_bytes(rewritten))
    archive_run()
    log.write_bytes(as_bytes([*rewritten, *said(1), *compacted("2")]))
    archive_run()
    later = Record.objects.get(provenance__compactionId="b2")
    assert "go on" in (memex_home / later.path).read_text()


def spilled(agent: Path, content: bytes, path: str = "tool-results/out.txt") -> Path:
    """A log whose tool result stands in a file beside it."""
    log = write_log(agent)
    file = log.with_suffix("") / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    said = f"<persisted-output>\nOutput too large. Full output saved to: {file}\n</persisted-output>"
    about = {"sessionId": session_id(), "cwd": "/home/dev/demo"}
    log.write_bytes(
        as_bytes([
            user("u1", "run the tests", **about),
            result("r1", "toolu_1", said, **about),
            assistant("a1", "They fail.", **about),
            boundary("b1", **about),
            summary("s1", "b1", **about),
        ])
    )  # fmt: skip
    return file


def test_a_file_that_a_log_points_to_is_kept_and_archived(agent, memex_home):
    file = spilled(agent, b"E0308: mismatched types in lantern.rs\n" * 50)
    archive_run()
    row = SessionFile.objects.get()
    assert (row.state, row.size) == ("kept", file.stat().st_size)
    content = file.read_bytes()
    file.unlink()
    assert blob_read(row.sha256) == content
    record = Record.objects.get()
    assert "E0308: mismatched types in lantern.rs" in (memex_home / record.path).read_text()
    assert len(list(record_rows(record))) == 3


def test_a_missing_file_is_said_in_its_place(agent, memex_home):
    spilled(agent, b"x").unlink()
    archive_run()
    assert SessionFile.objects.get().state == "missing"
    record = Record.objects.get()
    assert "missing" in (memex_home / record.path).read_text()


def test_nothing_outside_is_followed(agent, memex_home):
    secret = agent.parent / "id_secret"
    secret.write_text("do not copy")
    file = spilled(agent, b"x")
    file.unlink()
    file.symlink_to(secret)
    archive_run()
    assert SessionFile.objects.get().state == "outside"
    for path in memex_home.rglob("*"):
        assert not path.is_file() or b"do not copy" not in path.read_bytes()


def test_memory_does_not_grow_with_what_a_log_repeats(agent):
    image = os.urandom(150_000).hex()
    lines = []
    for number in range(40):
        block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}}
        lines.append(
            user(f"u{number}", [block, {"type": "text", "text": f"see {number}"}], sessionId=session_id())
        )
    log = write_log(agent)
    log.write_bytes(as_bytes(lines))
    archive_run()
    assert kept() == log.read_bytes()
    folder = Path(agent.parent / "home" / "sessions")
    stored = sum(path.stat().st_size for path in folder.rglob("*.zst"))
    assert stored < 2 * len(image)


def test_a_log_that_is_named_twice_is_read_once(agent):
    log = write_log(agent, compactions=1)
    result = archive_run([log, log.parent / "." / log.name, log.parent])
    assert (result.files, result.sessions, result.archived) == (3, 1, 1)
    assert Source.objects.count() == 1
    assert result.events == Event.objects.count() == len(story(compactions=1))


def test_what_an_archive_takes_to_plan_does_not_grow_with_the_session(agent):
    log = write_log(agent, compactions=3)
    with CaptureQueriesContext(connection) as asked:
        archive_run([log])
    by_replacement = [
        query["sql"]
        for query in asked.captured_queries
        if '"events"."shadowed_by" >=' in query["sql"] or '"events"."shadowed_by" IN' in query["sql"]
    ]
    assert len(by_replacement) >= 4
    with connection.cursor() as cursor:
        for sql in by_replacement:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            assert "event_shadowed_by" in str(cursor.fetchall()), sql
