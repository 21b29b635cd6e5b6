import shutil
import subprocess
import sys

import pytest

from records import home, services
from records.maintenance.doctor import Finding, findings
from records.maintenance.reindex import ReindexCounts, records_reindex
from records.models import PoolTotal, Record
from records.queries import record_open
from records.recordfile import render
from records.rows import rows_known
from records.scope import OWNER
from records.services import records_forget, records_forget_parts, records_write
from records.totals import totals_counted, totals_stored
from records.trash import bundle_create

from .drafts import make_draft, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE = "0123456789abcdef"


def path_of(record_id: str, cold: bool = False):
    return home.record_path(HERE, record_id, cold=cold)


def move_cold(record_id: str) -> None:
    path_of(record_id, cold=True).parent.mkdir(mode=0o700, exist_ok=True)
    path_of(record_id).rename(path_of(record_id, cold=True))


def rows() -> dict:
    return rows_known(Record.objects.values_list("pk", flat=True))


def found(*, repair: bool = False) -> list[Finding]:
    return list(findings(repair=repair))


def codes(*, repair: bool = False) -> list[str]:
    return [finding.code for finding in found(repair=repair)]


def fill_store() -> None:
    records_write([make_draft(f"c{n}", confidence=0.5, slot="s") for n in range(4)], actor="a", verb="v")
    write("private", scope="session", session_id="s9", extra={"mood": "good"})
    write("odd", workspace_key="a session/with: no cwd")


def test_an_index_that_was_lost_is_rebuilt_as_it_was():
    fill_store()
    before = rows()
    Record.objects.all().delete()
    PoolTotal.objects.all().delete()
    assert records_reindex() == ReindexCounts(found=6, added=6)
    assert rows() == before
    assert totals_stored() == totals_counted() != {}


def test_reindexing_what_is_right_changes_nothing():
    fill_store()
    before = rows()
    assert records_reindex() == ReindexCounts(found=6)
    assert rows() == before


def test_reindexing_follows_edits_moves_and_removals_and_keeps_read_counts():
    edited, cold, gone = write("c1"), write("c2"), write("c3")
    services.record_mark_read([edited, cold])
    path_of(edited).write_bytes(path_of(edited).read_bytes().replace(b"What c1", b"Edited"))
    move_cold(cold)
    path_of(gone).unlink()
    assert records_reindex() == ReindexCounts(found=2, changed=2, removed=1)
    assert Record.objects.get(pk=edited).title == "Edited was about"
    record = Record.objects.get(pk=cold)
    assert (record.cold, record.path, record.read_count) == (1, f"cold/{HERE}/{cold}.md", 1)
    assert record.abstract.startswith("## Summary\nThe text of c2.")
    assert totals_stored() == totals_counted()


def test_reindexing_one_workspace_leaves_the_others_alone():
    here, there = write("c1"), write("c2", workspace_key="fedcba9876543210")
    shutil.rmtree(home.records_dir())
    assert records_reindex(HERE) == ReindexCounts(removed=1)
    assert [record.id for record in Record.objects.all()] == [there]
    assert here != there


def test_a_forgotten_record_is_not_brought_back():
    record_id = write()
    records_forget([record_id], actor="owner")
    path_of(record_id).write_bytes(render(make_draft()))
    assert records_reindex() == ReindexCounts()
    assert codes() == ["forgotten"]


def test_a_file_that_cannot_be_read_stops_nothing_and_keeps_its_row():
    broken, fine = write("c1"), write("c2")
    path_of(broken).write_bytes(b"---\ntitle: a: b\n---\n\nbody")
    assert records_reindex() == ReindexCounts(found=2, unreadable=1)
    assert {record.id for record in Record.objects.all()} == {broken, fine}
    assert codes() == codes(repair=True) == ["unreadable"]


def test_a_file_without_a_block_stays_private():
    path_of("mem_0123456789").parent.mkdir(mode=0o700)
    path_of("mem_0123456789").write_bytes(b"# Shopping\n\nmilk")
    path_of("mem_0123456789").chmod(0o600)
    records_reindex()
    record = Record.objects.get()
    assert (record.scope, record.session_id, record.trust) == ("session", "", "derived")
    assert (record.title, record.kind, record.workspace_key) == ("# Shopping", "note", HERE)
    assert record_open(OWNER, record.id).body == b"# Shopping\n\nmilk"


def test_a_record_that_lost_its_block_keeps_its_card():
    record_id = write(scope="session", title="The title")
    path_of(record_id).write_bytes(b"only text\n")
    assert records_reindex() == ReindexCounts(found=1, changed=1)
    record = Record.objects.get()
    assert (record.title, record.scope, record.session_id) == ("The title", "session", "s1")


def test_a_healthy_store_has_no_findings():
    fill_store()
    records_forget([write("gone")], actor="owner")
    assert found() == []


def remove_rows(record_id: str) -> None:
    Record.objects.filter(pk=record_id).delete()
    PoolTotal.objects.all().delete()


def drift(record_id: str) -> None:
    PoolTotal.objects.update(count=7)


def edit(record_id: str) -> None:
    path_of(record_id).write_bytes(path_of(record_id).read_bytes() + b"more\n")


def spoil_row(record_id: str) -> None:
    Record.objects.filter(pk=record_id).update(title="spoiled")


def open_up(record_id: str) -> None:
    path_of(record_id).chmod(0o644)
    path_of(record_id).parent.chmod(0o755)


def leave_temporary(record_id: str) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    temporary = path_of(record_id).with_name(f".memex-{ended.pid}-0123456789abcdef.tmp")
    temporary.write_bytes(b"half")
    temporary.chmod(0o600)


def begin_forgetting(record_id: str) -> None:
    parts = records_forget_parts([record_id])
    bundle_create(kind="records", title="t", files=parts.files, rows=parts.rows, tombstones=parts.tombstones)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (remove_rows, ["file-without-row"]),
        (lambda record_id: path_of(record_id).unlink(), ["row-without-file"]),
        (edit, ["hash"]),
        (spoil_row, ["row"]),
        (move_cold, ["place"]),
        (drift, ["totals"]),
        (open_up, ["mode", "mode"]),
        (leave_temporary, ["leftover"]),
        (begin_forgetting, ["unfinished-bundle"]),
    ],
)
def test_damage_is_named_then_mended(damage, expected):
    damage(write())
    assert codes() == expected
    mended = found(repair=True)
    assert [(finding.code, finding.repaired) for finding in mended] == [(code, True) for code in expected]
    assert found() == []
    assert totals_stored() == totals_counted()


def test_an_edited_identity_is_named_and_moves_nothing():
    record_id = write(scope="session")
    data = path_of(record_id).read_bytes()
    path_of(record_id).write_bytes(
        data.replace(b'scope: "session"', b'scope: "workspace"').replace(
            record_id.encode(), b"mem_9999999999"
        )
    )
    assert codes() == ["hash", "identity", "identity"]
    assert codes(repair=True) == ["hash", "identity", "identity"]
    record = Record.objects.get()
    assert (record.id, record.scope) == (record_id, "session")
    assert [finding.repaired for finding in found()] == [False, False]


def test_a_renamed_file_is_named_and_reindexed_under_its_name():
    record_id = write()
    path_of(record_id).rename(path_of("mem_9999999999"))
    assert sorted(codes()) == ["file-without-row", "identity", "row-without-file"]
    assert records_reindex() == ReindexCounts(found=1, added=1, removed=1)
    assert Record.objects.get().id == "mem_9999999999"


def test_strangers_among_the_records_are_named_and_left_alone(tmp_path):
    write()
    folder = home.records_dir() / HERE
    (folder / "notes.txt").write_text("mine")
    (folder / "mem_0123456789.md").symlink_to(tmp_path / "elsewhere.md")
    (folder / "mem_1234567890.md").mkdir(mode=0o700)
    (folder / "notes.txt").chmod(0o600)
    assert codes() == codes(repair=True) == ["stray"] * 3
    assert records_reindex() == ReindexCounts(found=1, unreadable=3)
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_record_in_both_tiers_counts_once():
    record_id = write()
    path_of(record_id, cold=True).parent.mkdir(mode=0o700)
    shutil.copy(path_of(record_id), path_of(record_id, cold=True))
    assert codes() == ["duplicate"]
    assert records_reindex() == ReindexCounts(found=1)
    assert Record.objects.get().cold == 0


def test_a_file_that_makes_no_sense_in_places_is_named():
    record_id = write()
    path_of(record_id).write_bytes(path_of(record_id).read_bytes().replace(b'"active"', b'"happy"'))
    assert codes(repair=True) == ["hash", "front-matter"]
    assert Record.objects.get().status == "active"


def test_a_newer_schema_is_indexed_and_named():
    record_id = write()
    path_of(record_id).write_bytes(path_of(record_id).read_bytes().replace(b"schema: 1", b"schema: 2"))
    assert codes(repair=True) == ["hash", "front-matter"]
    assert Record.objects.get().schema == 2
