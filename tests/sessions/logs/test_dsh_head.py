import pytest

from sessions_app.logs.dsh import FORMAT
from sessions_app.logs.events import Head
from sessions_app.logs.rows import Row

from .dsh_builder import START, DshLog, story
from .dsh_run import rows_of


def head(log: DshLog, path: str = "") -> Head:
    found = FORMAT.head(rows_of(log.data()), path)
    assert found is not None
    return found


def test_the_header_tells_what_a_list_of_sessions_needs():
    assert head(DshLog(version=4)) == Head(
        agent="dsh", session_id="session-demo", cwd="/home/dev/demo", started_at=START, version="4"
    )


@pytest.mark.parametrize(
    ("fields", "relation"),
    [
        ({"parentSession": "p"}, "fork"),
        ({"parentSession": "p", "origin": "subagent"}, "subagent"),
        ({"parentSession": "p", "delegationDepth": 1}, "subagent"),
        ({"parentSession": "p", "origin": "subagent", "isSeeded": True}, "subagent"),
    ],
)
def test_the_relation_to_a_parent(fields, relation):
    found = head(DshLog(**fields))
    assert (found.parent_id, found.relation) == ("p", relation)


def test_a_start_of_zero_is_none():
    assert head(DshLog(createdAt=0)).started_at is None


def test_a_log_whose_header_is_damaged_is_known_by_its_events_and_its_folder():
    rows = rows_of(story().data())
    rows[0] = Row(0, 0, rows[0].raw[:40])
    found = FORMAT.head(rows, "/x/sessions/--work--/session~002D~4E2D1/session.v4.jsonl.zstd")
    assert found is not None
    assert (found.session_id, found.started_at) == ("session-中1", START + 1000)


@pytest.mark.parametrize(
    ("path", "session_id"),
    [
        ("/x/--p--/session-1/session.jsonl", "session-1"),
        ("/x/--p--/~D83D~DE00/session.v3.jsonl.zstd", "😀"),
        ("/x/--p--/~002E~002E/session.jsonl", ".."),
        ("/x/--p--/session-flat.jsonl.zstd", "session-flat"),
    ],
)
def test_the_id_is_read_from_the_path_where_the_header_has_none(path, session_id):
    log = DshLog()
    del log.rows[0]["id"]
    assert head(log, path).session_id == session_id


@pytest.mark.parametrize(
    "row",
    [
        b'{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}',
        b'{"type":"user","sessionId":"x","message":{"role":"user","content":"hi"}}',
        b'{"type":"session_meta","payload":{"id":"x"}}',
        b'{"type":"turn/start","data":{"turn":1}}',
        b'["session"]',
        b"",
    ],
)
def test_other_rows_are_not_claimed(row):
    assert FORMAT.head([Row(0, 0, row)], "/x/session.jsonl") is None
