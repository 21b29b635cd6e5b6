import json

import pytest
from django.db import transaction

from records import files, home, ids, places, services, tombstones
from records.models import PoolTotal, Record
from records.queries import record_open
from records.recordfile import NewerSchemaError, parse, render
from records.rows import ATTRIBUTES, project, row_of_draft, rows_known
from records.scope import OWNER
from records.services import record_write, records_write
from records.totals import totals_counted, totals_stored

from .drafts import WHEN, make_draft, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]


def path_of(record_id: str, cold: bool = False):
    return home.record_path("0123456789abcdef", record_id, cold=cold)


def edit(record_id: str, old: bytes, new: bytes) -> None:
    data = path_of(record_id).read_bytes()
    assert old in data
    path_of(record_id).write_bytes(data.replace(old, new))


def ledger() -> list[dict]:
    path = home.home() / "ledger.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def all_files() -> list[str]:
    return sorted(path.name for path in home.records_dir().rglob("*") if path.is_file())


def test_a_record_is_a_file_and_a_row_that_agree():
    draft = make_draft()
    outcome = record_write(draft, actor="hook", verb="archive")
    assert (outcome.record_id, outcome.created, outcome.tombstoned) == (draft.id, True, False)
    assert path_of(draft.id).read_bytes() == render(draft)
    record = Record.objects.get()
    assert (record.title, record.tags, record.provenance) == (draft.title, draft.tags, draft.provenance)
    assert record.path == f"records/0123456789abcdef/{draft.id}.md"
    assert (record.bytes, record.cold, record.updated_at) == (len(render(draft)), 0, WHEN)
    assert record_open(OWNER, draft.id).body == draft.body.encode()


def test_the_row_of_a_draft_is_the_row_of_its_file():
    draft = make_draft(
        scope="session", confidence=0.5, entities=["a", {"b": 1}], slot="s", links={"previous": "x"}
    )
    place = places.place_of(draft.id, draft.workspace_key, cold=False)
    files.write_atomic(place.path, render(draft))
    assert project(place, places.read(place), None).row == row_of_draft(
        draft, place=place, data=render(draft)
    )
    write()
    assert set(rows_known([make_draft().id])[make_draft().id]) == set(ATTRIBUTES)


def test_totals_follow_every_write():
    records_write([make_draft(f"c{n}") for n in range(5)], actor="a", verb="v")
    write("private", scope="session")
    services.record_pin(make_draft("c1").id, pinned=True, actor="owner")
    assert totals_stored() == totals_counted()
    shared = PoolTotal.objects.get(scope="workspace", status="active")
    assert (shared.count, shared.session_id) == (4, "")
    assert PoolTotal.objects.get(scope="session").session_id == "s1"


def test_the_same_compaction_twice_is_one_record_left_as_it_was():
    write(title="first")
    again = record_write(make_draft(title="second"), actor="a", verb="v")
    assert not again.created
    assert Record.objects.get().title == "first"
    assert len(all_files()) == 1


def test_twice_in_one_batch_is_one_record():
    outcomes = records_write([make_draft(), make_draft()], actor="a", verb="v")
    assert [outcome.created for outcome in outcomes] == [True, False]


def test_an_eviction_is_recognised_by_its_span():
    def eviction(start):
        provenance = {"source": "l1-eviction", "sessionId": "s1", "seqStart": start, "seqEnd": 9}
        return make_draft(id="l1_0123456789", provenance=provenance)

    assert record_write(eviction(1), actor="a", verb="v").created
    assert not record_write(eviction(1), actor="a", verb="v").created
    with pytest.raises(ValueError, match="another record"):
        record_write(eviction(2), actor="a", verb="v")


def test_a_taken_id_is_made_longer_and_nothing_overwritten():
    write("c1")
    taken = make_draft("c1").id

    def other():
        draft = make_draft("c2", id=taken)
        draft.id_at = lambda length: ids.archive_id("s1", "c1", length=length)
        return draft

    first = record_write(other(), actor="a", verb="v")
    assert (first.record_id, first.created) == (ids.archive_id("s1", "c1", length=14), True)
    again = record_write(other(), actor="a", verb="v")
    assert (again.record_id, again.created) == (first.record_id, False)
    assert record_open(OWNER, taken).body == make_draft("c1").body.encode()
    assert parse(path_of(first.record_id).read_bytes()).draft_fields["id"] == first.record_id


def test_the_callers_rows_are_part_of_the_transaction():
    seen = []
    record_write(make_draft(), actor="a", verb="v", within=lambda outcomes: seen.extend(outcomes))
    assert [(outcome.record_id, outcome.created) for outcome in seen] == [(make_draft().id, True)]


def test_a_failed_transaction_takes_the_files_back():
    def fail(_):
        assert len(all_files()) == 2
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        records_write([make_draft("c1"), make_draft("c2")], actor="a", verb="v", within=fail)
    assert all_files() == []
    assert Record.objects.count() == 0
    assert totals_stored() == {}
    assert ledger() == []


def test_a_failed_transaction_leaves_what_was_there_before():
    kept = write("c1")

    def fail(_):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        records_write([make_draft("c1"), make_draft("c2")], actor="a", verb="v", within=fail)
    assert all_files() == [f"{kept}.md"]


def test_writing_inside_a_transaction_is_refused():
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        write()
    assert all_files() == []


def test_a_draft_that_breaks_a_rule_writes_nothing_of_the_batch():
    with pytest.raises(ValueError, match="session_id"):
        records_write([make_draft(), make_draft("c2", scope="session", session_id="")], actor="a", verb="v")
    assert all_files() == []


def test_nothing_is_written_on_a_full_disk(settings):
    settings.MEMEX_MIN_FREE_MB = 2**40
    with pytest.raises(files.StoreFull):
        write()
    assert all_files() == []


def test_what_is_forgotten_is_not_written_again():
    tombstones.tombstones_add([{"kind": "record", "id": make_draft().id}])
    outcome = record_write(make_draft(), actor="a", verb="v")
    assert (outcome.created, outcome.tombstoned) == (False, True)
    assert all_files() == []


def test_a_file_without_a_row_is_taken_in_by_the_retry():
    files.write_atomic(path_of(make_draft().id), render(make_draft(title="edited meanwhile")))
    outcome = record_write(make_draft(), actor="a", verb="v")
    assert outcome.created
    assert Record.objects.get().title == "edited meanwhile"


def test_a_file_without_a_row_of_something_else_is_left_alone():
    files.write_atomic(path_of(make_draft().id), b"somebody's notes")
    with pytest.raises(ValueError, match="another record"):
        write()
    assert path_of(make_draft().id).read_bytes() == b"somebody's notes"


def test_a_row_that_another_process_wrote_meanwhile_is_found(monkeypatch):
    """The other one commits between the plan and the transaction."""
    plan = services.plan_writes
    calls = []

    def plan_then_be_overtaken(drafts):
        plans = plan(drafts)
        if not calls:
            calls.append(1)
            record_write(make_draft(title="theirs"), actor="other", verb="archive")
        return plans

    monkeypatch.setattr(services, "plan_writes", plan_then_be_overtaken)
    outcome = record_write(make_draft(title="ours"), actor="a", verb="v")
    assert not outcome.created
    assert Record.objects.get().title == "theirs"
    assert parse(path_of(outcome.record_id).read_bytes()).draft_fields["title"] == "theirs"


def test_a_file_that_appears_meanwhile_is_not_replaced(monkeypatch):
    plan = services.plan_writes
    calls = []

    def plan_then_be_overtaken(drafts):
        plans = plan(drafts)
        if not calls:
            calls.append(1)
            files.write_atomic(path_of(make_draft().id), render(make_draft(title="theirs")))
        return plans

    monkeypatch.setattr(services, "plan_writes", plan_then_be_overtaken)
    record_write(make_draft(title="ours"), actor="a", verb="v")
    assert Record.objects.get().title == "theirs"


def test_records_with_hostile_text_are_kept():
    title = "'; DROP TABLE records; -- <script> 项目 \x7f"
    record_id = write(
        title=title, body="\0\ud800 ---\n---\n", workspace_key="项目/..", tags={"a\n---": ["\u2028"]}
    )
    assert Record.objects.get(pk=record_id).title == title
    assert record_open(OWNER, record_id).body == "\ufffd\ufffd ---\n---\n".encode()
    assert not (home.records_dir() / "项目").exists()


def test_an_update_rewrites_the_file_and_keeps_the_body():
    record_id = write(body="# Body\r\n---\nend")
    before = Record.objects.get()
    record = services.record_update(
        record_id,
        expected_hash=before.content_hash,
        changes={"title": "new", "tags": {"topic": ["x"]}},
        actor="owner",
    )
    assert (record.title, record.tags) == ("new", {"topic": ["x"]})
    assert record.updated_at > before.updated_at
    opened = record_open(OWNER, record_id)
    assert opened.body == b"# Body\r\n---\nend"
    assert opened.record.content_hash == record.content_hash != before.content_hash
    assert ledger()[-1]["verb"] == "update"


def test_an_edit_by_hand_wins_over_an_update():
    record_id = write()
    expected = Record.objects.get().content_hash
    edit(record_id, b"What c1 was about", b"By hand")
    with pytest.raises(services.Conflict):
        services.record_update(record_id, expected_hash=expected, changes={"title": "x"}, actor="owner")
    assert Record.objects.get().title == "By hand"
    assert parse(path_of(record_id).read_bytes()).draft_fields["title"] == "By hand"


def test_setting_a_status_keeps_an_edit_by_hand():
    record_id = write()
    edit(record_id, b"What c1 was about", b"By hand")
    record = services.record_set_status(record_id, "resolved", actor="owner")
    assert (record.title, record.status) == ("By hand", "resolved")
    assert services.record_pin(record_id, pinned=True, actor="owner").status == "pinned"
    assert services.record_pin(record_id, pinned=False, actor="owner").status == "active"


@pytest.mark.parametrize("status", ["trashed", "suggested", "conflict", "happy"])
def test_other_statuses_are_not_set_by_hand(status):
    record_id = write()
    with pytest.raises(ValueError, match="status"):
        services.record_set_status(record_id, status, actor="owner")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scope": "session"}, "can't be changed"),
        ({"title": "x" * 161}, "160"),
        ({"status": "happy"}, "status"),
    ],
)
def test_an_update_that_breaks_a_rule_changes_nothing(changes, message):
    record_id = write()
    before = path_of(record_id).read_bytes()
    with pytest.raises(ValueError, match=message):
        services.record_update(record_id, expected_hash=None, changes=changes, actor="owner")
    assert path_of(record_id).read_bytes() == before


def test_a_failed_update_puts_the_file_back(monkeypatch):
    record_id = write()
    before = path_of(record_id).read_bytes()

    def fail(rows):
        assert path_of(record_id).read_bytes() != before
        raise RuntimeError("no")

    monkeypatch.setattr(services.rows, "rows_put", fail)
    with pytest.raises(RuntimeError):
        services.record_update(record_id, expected_hash=None, changes={"title": "new"}, actor="owner")
    assert path_of(record_id).read_bytes() == before


def test_a_record_that_lost_its_header_gets_it_back_from_the_row():
    record_id = write(scope="session")
    path_of(record_id).write_bytes(b"only text\n")
    record = services.record_set_status(record_id, "resolved", actor="owner")
    assert (record.title, record.scope, record.session_id) == ("What c1 was about", "session", "s1")
    parsed = parse(path_of(record_id).read_bytes())
    assert (parsed.body, parsed.draft_fields["session_id"]) == (b"only text\n", "s1")


def test_a_newer_schema_is_not_rewritten():
    record_id = write()
    edit(record_id, b"schema: 1", b"schema: 2")
    before = path_of(record_id).read_bytes()
    with pytest.raises(NewerSchemaError):
        services.record_set_status(record_id, "resolved", actor="owner")
    assert path_of(record_id).read_bytes() == before
    assert record_open(OWNER, record_id).record.schema == 2


def test_a_file_that_cannot_be_read_or_is_gone():
    record_id = write()
    edit(record_id, b"title: ", b"title: a: b: ")
    with pytest.raises(services.Unreadable):
        services.record_set_status(record_id, "resolved", actor="owner")
    opened = record_open(OWNER, record_id)
    assert (opened.body, opened.record.title) == (make_draft().body.encode(), "What c1 was about")
    path_of(record_id).unlink()
    with pytest.raises(services.Unreadable):
        record_open(OWNER, record_id)
    with pytest.raises(Record.DoesNotExist):
        services.record_set_status("mem_0000000000", "resolved", actor="owner")


def test_reading_counts_and_survives_an_update():
    record_id = write()
    services.record_mark_read([record_id])
    services.record_mark_read([record_id])
    services.record_pin(record_id, pinned=True, actor="owner")
    record = Record.objects.get()
    assert record.read_count == 2
    assert record.last_read_at >= WHEN


def test_an_edit_by_hand_is_indexed_when_it_is_opened():
    record_id = write()
    edit(record_id, b"The text of c1", b"Another text")
    edit(record_id, b"What c1 was about", b"By hand")
    opened = record_open(OWNER, record_id)
    assert b"Another text" in opened.body
    assert opened.record.title == Record.objects.get().title == "By hand"
    assert totals_stored() == totals_counted()


def test_identity_in_the_file_moves_nothing():
    record_id = write(scope="session")
    edit(record_id, b'scope: "session"', b'scope: "workspace"')
    edit(record_id, b'session_id: "s1"', b'session_id: "s2"')
    edit(record_id, b'workspace_key: "0123456789abcdef"', b'workspace_key: "fedcba9876543210"')
    record = record_open(OWNER, record_id).record
    assert (record.scope, record.session_id, record.workspace_key) == ("session", "s1", "0123456789abcdef")


def test_a_link_to_a_file_elsewhere_is_not_followed(tmp_path):
    record_id = write()
    path_of(record_id).unlink()
    (tmp_path / "secret.md").write_text("secret")
    path_of(record_id).symlink_to(tmp_path / "secret.md")
    with pytest.raises(OSError, match="symbolic links"):
        record_open(OWNER, record_id)


def test_the_ledger_says_who_did_what_and_no_text():
    record_id = write(title="very private")
    services.record_pin(record_id, pinned=True, actor="owner")
    assert [(entry["actor"], entry["verb"], entry["ids"]) for entry in ledger()] == [
        ("test", "archive", [record_id]),
        ("owner", "pin", [record_id]),
    ]
    assert "private" not in (home.home() / "ledger.jsonl").read_text()
