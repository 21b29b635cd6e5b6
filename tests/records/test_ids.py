import hashlib

from hypothesis import given
from hypothesis import strategies as st

from records import ids


def test_an_archive_is_named_after_its_session_and_compaction():
    expected = hashlib.sha256(b"session-1\0compaction-1").hexdigest()
    assert ids.archive_id("session-1", "compaction-1") == f"mem_{expected[:10]}"
    assert ids.archive_id("session-1", "compaction-1", length=16) == f"mem_{expected[:16]}"
    assert ids.checkpoint_id("session-1", "compaction-1") == f"chk_{expected[:10]}"
    assert ids.closing_id("session-1", "e9") == ids.archive_id("session-1", "end:e9")


def test_an_eviction_is_named_after_its_span_or_its_boundary():
    assert ids.eviction_id("s", 3, 9) == "l1_" + hashlib.sha256(b"s\x003\x009").hexdigest()[:10]
    assert ids.eviction_id("s", "boundary") != ids.eviction_id("s", 3, 9)


def test_a_digest_does_not_depend_on_the_order_of_its_sources():
    assert ids.digest_id("pool", "l2", ["mem_b", "mem_a"]) == ids.digest_id("pool", "l2", ["mem_a", "mem_b"])
    assert ids.digest_id("pool", "l2", ["mem_a"]) != ids.digest_id("pool", "l3", ["mem_a"])


def test_captures_that_say_the_same_are_one_record():
    assert ids.captured_id("k", "decision", "Use  UV.\n") == ids.captured_id("k", "decision", "use ｕｖ.")
    assert ids.captured_id("k", "decision", "use uv") != ids.captured_id("k", "preference", "use uv")


@given(st.text(), st.text(), st.integers(min_value=6, max_value=40))
def test_every_id_is_a_record_id(session, compaction, length):
    made = ids.archive_id(session, compaction, length=length)
    assert ids.is_record_id(made)
    assert made.startswith(ids.archive_id(session, compaction, length=6))


def test_random_ids_are_record_ids_and_differ():
    made = {ids.random_id() for _ in range(100)}
    assert len(made) == 100
    assert all(ids.is_record_id(record_id) and len(record_id) == 20 for record_id in made)


def test_record_ids_are_matched_as_a_whole():
    for wrong in (
        "mem_0123456789\n",
        "MEM_0123456789",
        "mem_12345",
        "m-m_0123456",
        "mem_../../x",
        "memory_012345",
    ):
        assert not ids.is_record_id(wrong)


def test_a_workspace_is_its_folder_as_the_log_spells_it():
    key = hashlib.sha256(b"cwd:/home/dev/demo").hexdigest()[:16]
    assert ids.workspace_key("/home/dev/demo", "s") == key
    assert ids.workspace_key("/home/dev/demo/", "s") == key
    assert ids.workspace_key("/Work/demo", "s") != key
    assert ids.workspace_key("/", "s") == hashlib.sha256(b"cwd:/").hexdigest()[:16]
    assert ids.workspace_key("", "session-7") == "session-7"
