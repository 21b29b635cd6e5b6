import json

import pytest

from records import home, services, tombstones, trash
from records.maintenance.doctor import findings
from records.models import PoolTotal, Record
from records.queries import record_open
from records.rows import rows_known
from records.scope import OWNER
from records.services import record_write, records_forget, records_forget_parts
from records.totals import totals_counted, totals_stored

from .drafts import make_draft, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE = "0123456789abcdef"


def create(record_id: str, *extra_files) -> trash.Bundle:
    parts = records_forget_parts([record_id])
    return trash.bundle_create(
        kind="records",
        title="A title",
        files=[*parts.files, *extra_files],
        rows=parts.rows,
        tombstones=parts.tombstones,
    )


def is_whole(record_id: str) -> bool:
    return (
        record_open(OWNER, record_id).body == make_draft().body.encode()
        and not tombstones.is_forgotten("record", record_id)
        and trash.bundle_list() == []
        and list(home.trash_dir().iterdir()) == []
        and totals_stored() == totals_counted()
    )


def is_forgotten(record_id: str) -> bool:
    return (
        not Record.objects.exists()
        and not home.record_path(HERE, record_id, cold=False).exists()
        and tombstones.is_forgotten("record", record_id)
        and [bundle.state for bundle in trash.bundle_list()] == [trash.State.FULL]
        and totals_stored() == {} == totals_counted()
    )


def test_forgetting_takes_file_and_row_and_can_be_undone():
    record_id = write()
    services.record_mark_read([record_id])
    before = rows_known([record_id])
    bundle = records_forget([record_id], actor="owner")
    assert is_forgotten(record_id)
    assert trash.bundle_restore(bundle.id).files == [f"records/{HERE}/{record_id}.md"]
    assert is_whole(record_id)
    assert rows_known([record_id]) == before


def test_what_is_forgotten_stays_so_until_it_is_restored():
    record_id = write()
    bundle = records_forget([record_id], actor="owner")
    assert record_write(make_draft(), actor="a", verb="v").tombstoned
    trash.bundle_restore(bundle.id)
    assert not record_write(make_draft(), actor="a", verb="v").tombstoned


def test_forgetting_what_is_not_there_does_nothing():
    record_id = write()
    with pytest.raises(Record.DoesNotExist, match="mem_0000000000"):
        records_forget([record_id, "mem_0000000000"], actor="owner")
    assert is_whole(record_id)


def test_a_cold_record_is_forgotten_and_restored_where_it_was():
    record_id = write()
    cold = home.record_path(HERE, record_id, cold=True)
    cold.parent.mkdir()
    home.record_path(HERE, record_id, cold=False).rename(cold)
    bundle = records_forget([record_id], actor="owner")
    assert not cold.exists()
    trash.bundle_restore(bundle.id)
    assert cold.exists()


def test_a_bundle_holds_folders_and_rows_of_other_tables():
    record_id = write()
    mirror = home.sessions_dir() / HERE / "s1"
    mirror.mkdir(parents=True)
    (mirror / "session.json").write_text("{}")
    total = PoolTotal.objects.create(
        workspace_key="other", scope="workspace", kind="note", status="active", cold=0
    )
    parts = records_forget_parts([record_id])
    row = {field.attname: getattr(total, field.attname) for field in PoolTotal._meta.concrete_fields}
    bundle = trash.bundle_create(
        kind="session",
        title="s1",
        files=[*parts.files, mirror],
        rows={**parts.rows, "pool_totals": [row]},
        tombstones=[*parts.tombstones, {"kind": "session", "id": "s1"}],
    )
    assert mirror.exists()
    records_forget([record_id], actor="owner", bundle=bundle)
    assert not mirror.exists()
    assert not PoolTotal.objects.filter(pk=total.pk).exists()
    assert tombstones.is_forgotten("session", "s1")
    trash.bundle_restore(bundle.id)
    assert (mirror / "session.json").read_text() == "{}"
    assert PoolTotal.objects.filter(pk=total.pk).exists()
    assert not tombstones.is_forgotten("session", "s1")


class Killed(BaseException):
    """Stands for a kill: no handler may catch it."""


def killed_at(monkeypatch, function: str, call: int):
    """Lets `function` of the trash module be called so often, then breaks off before it."""
    original = getattr(trash, function)
    calls = []

    def counted(*arguments, **named):
        calls.append(1)
        if len(calls) == call:
            raise Killed
        return original(*arguments, **named)

    monkeypatch.setattr(trash, function, counted)


@pytest.mark.parametrize(
    ("function", "call"),
    [("tombstones_add", 1), ("_delete_rows", 1), ("_move", 1), ("_move", 2), ("_set_state", 1)],
)
def test_forgetting_that_was_cut_short_is_completed(monkeypatch, function, call):
    record_id = write()
    other = home.records_dir() / HERE / "beside.txt"
    other.write_text("x")
    bundle = create(record_id, other)
    with monkeypatch.context() as patch:
        killed_at(patch, function, call)
        with pytest.raises(Killed):
            trash.bundle_fill(bundle)
    assert trash.bundles_resume() == [bundle.id]
    assert is_forgotten(record_id)
    assert not other.exists()
    assert trash.bundles_unfinished() == []


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("_move", 1),
        ("_move", 2),
        ("_insert_rows", 1),
        ("tombstones_remove", 1),
        ("_erase", 1),
        ("ledger_write", 1),
    ],
)
def test_restoring_that_was_cut_short_is_completed(monkeypatch, function, call):
    record_id = write()
    other = home.records_dir() / HERE / "beside.txt"
    other.write_text("x")
    bundle = create(record_id, other)
    trash.bundle_fill(bundle)
    with monkeypatch.context() as patch:
        killed_at(patch, function, call)
        with pytest.raises(Killed):
            trash.bundle_restore(bundle.id)
    trash.bundles_resume()
    assert is_whole(record_id)
    assert other.read_text() == "x"


def test_a_bundle_whose_manifest_was_never_written_is_removed():
    (home.trash_dir() / "20260101t000000-01234567").mkdir()
    assert trash.bundles_resume() == ["20260101t000000-01234567"]
    assert list(home.trash_dir().iterdir()) == []


def test_a_bundle_that_lost_its_manifest_keeps_its_files():
    bundle = records_forget([write()], actor="owner")
    (bundle.path / trash.MANIFEST).unlink()
    assert trash.bundles_resume() == []
    assert trash.bundles_damaged() == [bundle.id]
    assert len(list(bundle.path.rglob("*.md"))) == 1
    assert [finding.code for finding in findings(repair=True)] == ["damaged-bundle"]


def test_restoring_does_not_replace_what_is_there_now():
    record_id = write()
    bundle = records_forget([record_id], actor="owner")
    path = home.record_path(HERE, record_id, cold=False)
    path.write_text("something else")
    with pytest.raises(trash.BundleError, match="Something else"):
        trash.bundle_restore(bundle.id)
    assert path.read_text() == "something else"
    path.unlink()
    trash.bundle_restore(bundle.id)
    assert is_whole(record_id)


def test_purging_cannot_be_undone_and_keeps_the_tombstone():
    record_id = write()
    bundle = records_forget([record_id], actor="owner")
    trash.bundle_purge(bundle.id, actor="owner")
    assert list(home.trash_dir().iterdir()) == []
    assert tombstones.is_forgotten("record", record_id)
    with pytest.raises(trash.BundleError, match="no bundle"):
        trash.bundle_restore(bundle.id)
    entries = [json.loads(line) for line in (home.home() / "ledger.jsonl").read_text().splitlines()]
    assert [entry["verb"] for entry in entries] == ["archive", "forget", "purge"]


def test_purging_that_was_cut_short_is_completed(monkeypatch):
    bundle = records_forget([write()], actor="owner")
    with monkeypatch.context() as patch:
        killed_at(patch, "_erase", 1)
        with pytest.raises(Killed):
            trash.bundle_purge(bundle.id)
    with pytest.raises(trash.BundleError, match="purging"):
        trash.bundle_restore(bundle.id)
    assert trash.bundles_resume() == [bundle.id]
    assert list(home.trash_dir().iterdir()) == []


def test_bundles_are_due_after_their_days(monkeypatch):
    bundle = records_forget([write()], actor="owner")
    assert trash.bundles_due(1) == []
    later = bundle.manifest.created_at + 30 * trash.DAY_MS
    monkeypatch.setattr(trash, "now_ms", lambda: later)
    assert trash.bundles_due(30) == [bundle]
    assert trash.bundles_due(31) == []


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/passwd", "records/../../outside", "link/secret", ".", "trash/x"]
)
def test_a_manifest_cannot_name_files_outside_the_store(tmp_path, name):
    (home.home() / "link").symlink_to(tmp_path)
    bundle = create(write())
    manifest = json.loads((bundle.path / trash.MANIFEST).read_text())
    (bundle.path / trash.MANIFEST).write_text(json.dumps(manifest | {"files": [name]}))
    with pytest.raises(trash.BundleError, match="not a file of this store"):
        trash.bundle_fill(trash.bundle_get(bundle.id))


@pytest.mark.parametrize(
    "bundle_id", ["..", "../records", "", "20260101t000000-0123456", "20260101t000000-01234567\n"]
)
def test_a_bundle_id_cannot_leave_the_trash(bundle_id):
    with pytest.raises(trash.BundleError):
        trash.bundle_get(bundle_id)


def test_an_unknown_table_is_refused_before_anything_is_written():
    with pytest.raises(trash.BundleError, match="no table"):
        trash.bundle_create(kind="x", title="x", files=[], rows={"nothing": []}, tombstones=[])
    assert list(home.trash_dir().iterdir()) == []
