"""`manage.py archive` and `memory` as a person runs them: real files, real processes."""

import json
import random
import signal
import time

import pytest

from tests.sessions.stories import Store, as_bytes, everything_in, session_id, story, write_log


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path)


def test_a_log_is_archived_and_comes_back_byte_for_byte(store):
    log = write_log(store.agent, compactions=2, micros=True)
    original = log.read_bytes()
    rows = original.splitlines(keepends=True)
    result = store.json("archive", str(log), "--level", "l2")
    assert result["compactions"] == result["archived"] == 2
    assert (result["files"], result["sessions"], result["micro"], result["warnings"]) == (1, 1, 2, 0)
    log.unlink()
    assert store.run("memory", "read", session_id(), "--rows", f"0-{len(rows) - 1}", "--raw") == original
    assert store.run("memory", "read", session_id(), "--rows", "3-4", "--raw") == b"".join(rows[3:5])
    assert store.run("memory", "read", str(log), "--rows", "0", "--raw") == rows[0]
    records = store.json("memory", "list")["records"]
    first, second = sorted(
        (row for row in records if row["id"].startswith("mem_")), key=lambda row: row["createdAt"]
    )
    # 4 turns of 4 lines, a microcompact, a boundary, a summary.
    assert store.run("memory", "open", first["id"], "--original") == b"".join(rows[:16])
    # The second window holds the first one's summary too.
    assert store.run("memory", "open", second["id"], "--original") == b"".join([rows[18], *rows[19:35]])
    assert first["title"] == "Please look at the harbour of step 0.0"
    body = store.json("memory", "open", first["id"])["body"]
    assert "Summary 0: worked on the harbour." in body
    assert "harbour 0.3: row of output" in body


def test_more_kept_logs_than_wanted_are_said(store, tmp_path):
    write_log(store.agent, compactions=1)
    store.run("archive", str(store.agent), "--level", "l2")
    store.env["MEMEX_MIRROR_MAX_GB"] = "1"
    assert b"MEMEX_MIRROR_MAX_GB" not in store.run("memory", "status")
    (segment,) = store.home.glob("sessions/*/*/g*.zst")
    with (segment.parent / "large").open("wb") as file:
        file.truncate(1_100_000_000)
    assert b"over MEMEX_MIRROR_MAX_GB" in store.run("memory", "status")
    assert store.json("memory", "status")["mirrorOver"]


def test_only_what_is_new_is_read_and_nothing_twice(store):
    log = write_log(store.agent, compactions=1)
    store.run("memory", "level", "--workspace", "/home/dev/demo", "l3")
    first = store.json("archive")
    assert first["archived"] == 1
    second = store.json("archive")
    assert (second["archived"], second["already"], second["events"], second["skipped"]) == (0, 1, 0, 1)
    grown = as_bytes(story(compactions=2))
    log.write_bytes(grown)
    third = store.json("archive")
    assert (third["archived"], third["already"], third["compactions"]) == (1, 1, 2)
    assert third["events"] == len(grown.splitlines()) - first["events"]


def test_counts_add_up(store):
    for number in range(1, 4):
        write_log(store.agent, number, compactions=number - 1)
    result = store.json("archive", str(store.agent), "--level", "l3")
    parts = ("archived", "already", "pending", "inherited", "empty")
    assert result["compactions"] == sum(result[name] for name in parts) == 3
    assert set(result) == {
        "files", "skipped", "sessions", "events", "compactions", "archived", "already", "pending",
        "inherited", "empty", "micro", "closing", "warnings", "seconds", "passages",
    }  # fmt: skip


def test_a_file_that_is_no_log_costs_one_warning(store):
    write_log(store.agent, compactions=1)
    (store.agent / "projects" / "-work-demo" / "notes.jsonl").write_text('{"note": 1}\n{"note": 2}\n')
    result = store.json("archive", str(store.agent), "--level", "l2")
    assert (result["files"], result["skipped"], result["warnings"], result["archived"]) == (2, 1, 1, 1)


def test_mistakes_are_answered_with_what_to_do(store):
    write_log(store.agent, compactions=1)
    assert b"no such file" in store.run("archive", "/nowhere/at/all.jsonl", fails=True)
    assert b"switches one on" in store.run("memory", "sessions")
    assert b"no session here has a level on" in store.run("archive")
    assert b"memory sessions" in store.run("memory", "read", "nobody", "--rows", "0", fails=True)
    assert b"memory list" in store.run("memory", "open", "mem_0123456789", fails=True)
    store.run("archive", str(store.agent), "--level", "l2")
    assert b"has no row 999" in store.run(
        "memory", "read", session_id(), "--rows", "999", "--raw", fails=True
    )
    assert b"A-B" in store.run("memory", "read", session_id(), "--rows", "x", fails=True)
    assert b"stays on" in store.run("memory", "level", session_id(), "off", fails=True)


def test_windows_of_a_body_and_of_the_original(store):
    write_log(store.agent, compactions=1)
    store.run("archive", str(store.agent), "--level", "l2")
    record_id = store.json("memory", "list")["records"][0]["id"]
    body = store.json("memory", "open", record_id)["body"]
    part = store.json("memory", "open", record_id, "--offset", "100", "--limit", "50")
    assert part["body"] == body[100:150]
    assert part["bodyTotalChars"] == len(body)
    whole = store.run("memory", "open", record_id, "--original")
    assert (
        store.run("memory", "open", record_id, "--original", "--offset", "9", "--limit", "4000")
        == whole[9:4009]
    )


def test_events_show_their_state(store):
    write_log(store.agent, compactions=1, turns=1)
    store.run("archive", str(store.agent), "--level", "l2")
    events = store.json("memory", "read", session_id(), "--seq", "0-9")["events"]
    assert [event["surface"] for event in events[:4]] == ["shadowed"] * 4
    assert events[4]["type"] == "system:compact_boundary"
    assert events[5]["surface"] == "current"
    assert {event["shadowedBy"] for event in events[:4]} == {5}
    assert events[0]["text"] == "Please look at the harbour of step 0.0"


def comparable(store: Store) -> dict[str, object]:
    """A store as its user sees it, without what depends on when and in how many steps it was read."""
    rows = {
        number: store.run("memory", "read", session_id(number), "--rows", "0-99999", "--raw")
        for number in range(1, 5)
    }
    files = {path.name: path.read_bytes() for path in sorted((store.home / "records").rglob("*.md"))}
    sessions = store.json("memory", "sessions")["sessions"]
    events = {
        number: store.json("memory", "read", session_id(number), "--seq", "0-99999") for number in range(1, 5)
    }
    return {"rows": rows, "records": files, "sessions": sessions, "events": events}


def test_killed_at_any_moment_it_ends_in_the_same_store(tmp_path):
    chance = random.Random(7)
    calm, rough = Store(tmp_path / "calm"), Store(tmp_path / "rough")
    rough.env["CLAUDE_CONFIG_DIR"] = calm.env["CLAUDE_CONFIG_DIR"]
    for number in range(1, 5):
        write_log(calm.agent, number, compactions=3, turns=30, micros=True, size=400)
    calm.run("archive", str(calm.agent), "--level", "l2")
    killed = 0
    rough.run("memory", "status")
    for _ in range(25):
        process = rough.start("archive", str(calm.agent), "--level", "l2")
        time.sleep(chance.uniform(0.2, 1.0))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.communicate()
    rough.run("archive", str(calm.agent), "--level", "l2")
    assert killed, "the machine was too fast for this test to kill anything"
    assert comparable(rough) == comparable(calm)
    assert json.loads(rough.run("doctor", "--repair", "--json"))["ok"]
    assert json.loads(rough.run("doctor", "--json")) == {"ok": True, "findings": []}


def test_two_at_once_archive_each_compaction_once(store):
    for number in range(1, 5):
        write_log(store.agent, number, compactions=2, turns=10)
    store.run("memory", "status")
    processes = [store.start("archive", str(store.agent), "--level", "l3", "--json") for _ in range(3)]
    results = [json.loads(process.communicate()[0].splitlines()[-1]) for process in processes]
    assert sum(result["archived"] for result in results) == 8
    assert sum(result["events"] for result in results) == results[0]["sessions"] * len(
        story(compactions=2, turns=10)
    )
    assert len(store.json("memory", "list")["records"]) == 8
    assert json.loads(store.run("doctor", "--json"))["ok"]


def test_the_first_two_commands_ever_may_start_at_once(store):
    write_log(store.agent, compactions=1)
    processes = [store.start("archive", str(store.agent), "--level", "l2", "--json") for _ in range(3)]
    ended = [(process.communicate(), process.returncode) for process in processes]
    assert [code for _, code in ended] == [0, 0, 0], [output[1].decode() for output, _ in ended]
    assert sum(json.loads(output[0].splitlines()[-1])["archived"] for output, _ in ended) == 1


def test_a_damaged_database_is_made_anew_from_the_files(store):
    write_log(store.agent, compactions=2)
    store.run("archive", str(store.agent), "--level", "l2")
    records = store.json("memory", "list")["records"]
    database = store.home / "index.db"
    for suffix in ("-wal", "-shm"):
        database.with_name(f"index.db{suffix}").unlink(missing_ok=True)
    database.write_bytes(b"not a database at all, but long enough to look at" * 100)
    for command in (("memory", "list"), ("archive",), ("reindex",), ("doctor",)):
        message = store.run(*command, fails=True)
        assert b"reindex" in message, message
        assert b"Traceback" not in message
    database.unlink()
    store.run("reindex")
    assert store.json("memory", "list")["records"] == records
    assert store.json("archive")["already"] == 2


def test_none_of_the_words_of_a_forgotten_session_is_in_any_file(store):
    write_log(store.agent, 1, compactions=2, word="zanzibarite")
    write_log(store.agent, 2, compactions=1)
    store.run("archive", str(store.agent), "--level", "l3")
    before = {name: store.json("memory", name) for name in ("list", "sessions")}
    preview = store.json("memory", "forget", "--session", session_id(1))
    assert not preview["done"]
    assert len(preview["plan"]["records"]) == 2
    assert {name: store.json("memory", name) for name in ("list", "sessions")} == before
    bundle = store.json("memory", "forget", "--session", session_id(1), "--yes")["bundle"]
    for again in ("archive", "reindex"):
        store.run(again)
        store.run("archive", str(store.agent), "--level", "l3")
        for path, data in everything_in(store.home):
            assert b"zanzibarite" not in data or path.is_relative_to(store.home / "trash"), path
    assert len(store.json("memory", "list")["records"]) == 1
    store.run("memory", "trash", "restore", bundle)
    assert {name: store.json("memory", name) for name in ("list", "sessions")} == before
    assert b"--yes" in store.run("memory", "trash", "purge", bundle, fails=True)


def test_the_watcher_archives_what_is_appended(store):
    log = write_log(store.agent, compactions=0)
    store.run("memory", "level", "--workspace", "/home/dev/demo", "l2")
    watcher = store.start("watch")
    try:
        assert watcher.stdout is not None
        assert b"Watching" in watcher.stdout.readline()
        deadline = time.monotonic() + 60
        with log.open("ab") as file:
            for line in story(compactions=1)[16:]:
                file.write(as_bytes([line]))
                file.flush()
        while time.monotonic() < deadline and not store.json("memory", "list")["records"]:
            time.sleep(0.3)
        assert len(store.json("memory", "list")["records"]) == 1
    finally:
        watcher.terminate()
        assert watcher.wait(30) == 0
