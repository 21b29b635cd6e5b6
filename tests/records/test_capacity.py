"""The cold tier and compression, on real files, rows and indexes."""

import pytest

from records import home, services
from records.capacity import cold as cold_tier
from records.capacity import gc as gc_module
from records.capacity.cold import record_cool, record_restore
from records.capacity.compress import DigestRequiresModel, compress, compress_preview
from records.capacity.gc import gc, gc_preview
from records.capacity.pools import PoolBusy, pool_figures, pools_locked, session_pool, workspace_pool
from records.capacity.runs import compression_stats, run_json
from records.maintenance.doctor import findings
from records.maintenance.searchcheck import search_findings
from records.models import CompressionRun, Record
from records.queries import record_open
from records.rows import rows_known
from records.scope import OWNER
from records.search.indexing import bodies_sync
from records.search.search import search
from records.totals import totals_counted, totals_stored
from records.trash import bundle_create, bundle_fill, bundle_list, bundle_restore

from .drafts import make_draft, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE, THERE = "0123456789abcdef", "fedcba9876543210"
POOL = workspace_pool([HERE])
# Tokens of a record with this body: four characters a token.
BODY = "word " * 4_000
TOKENS = 5_000


@pytest.fixture(autouse=True)
def small_pools(settings):
    settings.MEMEX_CAPACITY_TOKENS = 10 * TOKENS
    settings.MEMEX_SESSION_CAPACITY_TOKENS = 4 * TOKENS


def fill(count: int, *, first: int = 0, **changes) -> list[str]:
    """Records of TOKENS tokens each, the older the smaller their number."""
    return [
        write(f"c{n}", body=BODY, created_at=1_700_000_000_000 + n, **changes)
        for n in range(first, first + count)
    ]


def wrong() -> list[str]:
    return [str(each) for each in [*findings(repair=False), *search_findings(repair=False)]]


def file_of(record_id: str, *, cold: bool) -> bytes | None:
    path = home.record_path(HERE, record_id, cold=cold)
    return path.read_bytes() if path.exists() else None


def test_a_record_goes_cold_and_comes_back_byte_for_byte():
    record_id = write(body=b"> Archived.\n\nText\r\n\ttabs \x00\n", title="Harbour")
    before, data = rows_known([record_id])[record_id], file_of(record_id, cold=False)
    totals = totals_stored()
    moved = record_cool([record_id], actor="test")
    assert (moved.ids, moved.tokens, moved.skipped) == ([record_id], before["tokens"], {})
    assert (file_of(record_id, cold=False), file_of(record_id, cold=True)) == (None, data)
    record = Record.objects.get()
    assert (record.cold, record.path) == (1, f"cold/{HERE}/{record_id}.md")
    assert record.abstract.startswith("Text")
    assert record.updated_at == before["updated_at"]
    assert totals_stored() == totals_counted()
    assert record_open(OWNER, record_id).body == b"> Archived.\n\nText\r\n\ttabs \x00\n"
    bodies_sync()
    assert wrong() == []
    restored = record_restore(record_id, actor="test")
    assert (restored.cold, restored.abstract) == (0, "")
    assert file_of(record_id, cold=False) == data
    after = rows_known([record_id])[record_id]
    assert after.pop("last_read_at") is not None
    before.pop("last_read_at")
    assert after == before
    assert totals_stored() == totals_counted() == totals
    bodies_sync()
    assert wrong() == []


def test_both_ways_can_be_repeated():
    record_id = write()
    assert record_cool([record_id], actor="a").ids == [record_id]
    again = record_cool([record_id], actor="a")
    assert (again.ids, again.skipped) == ([], {})
    assert record_restore(record_id, actor="a").cold == 0
    assert record_restore(record_id, actor="a").cold == 0
    with pytest.raises(Record.DoesNotExist):
        record_restore("mem_0000000000", actor="a")


def test_the_abstract_is_what_the_summary_lost():
    given = make_draft().provenance | {"lost": {"paths": ["src/lost.py"], "lost": {"paths": 1}}}
    record_id = write(provenance=given)
    record_cool([record_id], actor="a")
    assert Record.objects.get(pk=record_id).abstract == "paths: src/lost.py"
    assert wrong() == []


def test_what_cannot_go_stays_and_says_why():
    pinned, by_hand, broken, missing, twice, fine = (write(f"c{n}") for n in range(6))
    services.record_pin(pinned, pinned=True, actor="a")
    hand = home.record_path(HERE, by_hand, cold=False)
    hand.write_bytes(hand.read_bytes().replace(b'status: "active"', b"status: pinned"))
    home.record_path(HERE, broken, cold=False).write_bytes(b"---\ntitle: a: b\n---\n\nbody")
    home.record_path(HERE, missing, cold=False).unlink()
    other = home.record_path(HERE, twice, cold=True)
    other.parent.mkdir(parents=True, exist_ok=True)
    other.write_bytes(b"something else")
    moved = record_cool([pinned, by_hand, broken, missing, twice, fine, "mem_0000000000"], actor="a")
    assert moved.ids == [fine]
    reasons = {
        name: moved.skipped[key]
        for name, key in zip(
            "phbm2g", [pinned, by_hand, broken, missing, twice, "mem_0000000000"], strict=True
        )
    }
    assert reasons["p"] == reasons["h"] == "it is pinned"
    assert reasons["b"].startswith("its file can't be read")
    assert reasons["m"] == "its file is missing"
    assert reasons["2"] == "it has a file in both tiers"
    assert reasons["g"] == "it is gone"
    assert other.read_bytes() == b"something else"
    assert totals_stored() == totals_counted()
    with pytest.raises(services.Unreadable):
        record_restore(missing, actor="a")
    with pytest.raises(services.Conflict):
        record_restore(twice, actor="a")


def test_a_move_that_fails_puts_the_files_back(monkeypatch):
    ids = fill(3)
    monkeypatch.setattr(cold_tier, "rows_put", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        record_cool(ids, actor="a")
    monkeypatch.undo()
    assert all(file_of(record_id, cold=False) for record_id in ids)
    assert wrong_files() == []


def wrong_files() -> list[str]:
    return [str(each) for each in findings(repair=False)]


class Killed(BaseException):
    """Stands for a kill: nothing is put back."""


def cut_short(monkeypatch, record_id: str) -> None:
    def killed(_):
        raise Killed

    monkeypatch.setattr(cold_tier, "rows_put", killed)
    monkeypatch.setattr(cold_tier, "_take_back", lambda *_, **__: None)
    with pytest.raises(Killed):
        record_cool([record_id], actor="a")
    monkeypatch.undo()


def test_a_crash_between_file_and_row_harms_nobody_and_is_repaired(monkeypatch):
    body = "A zebra among the words.\n"
    record_id = write(body=body)
    bodies_sync()
    cut_short(monkeypatch, record_id)
    assert Record.objects.get().cold == 0
    assert record_open(OWNER, record_id).body == body.encode()
    assert [hit.card.id for hit in search(OWNER, "zebra").hits] == [record_id]
    assert [each.code for each in findings(repair=False)] == ["place"]
    assert [each.code for each in findings(repair=True)] == ["place"]
    record = Record.objects.get()
    assert record.cold == 1
    assert record.abstract.startswith("A zebra")
    bodies_sync()
    assert wrong() == []


@pytest.mark.parametrize("way", ["cool", "restore", "change"])
def test_after_a_crash_the_same_can_be_done_again(monkeypatch, way):
    record_id = write()
    cut_short(monkeypatch, record_id)
    if way == "cool":
        assert record_cool([record_id], actor="a").ids == [record_id]
    elif way == "change":
        assert services.record_set_status(record_id, "resolved", actor="a").cold == 1
    else:
        record_restore(record_id, actor="a")
        assert file_of(record_id, cold=False)
    assert wrong_files() == []


def test_a_record_that_goes_cold_while_it_is_forgotten_is_forgotten():
    record_id = write()
    parts = services.records_forget_parts([record_id])
    bundle = bundle_create(
        kind="records", title="t", files=parts.files, rows=parts.rows, tombstones=parts.tombstones
    )
    record_cool([record_id], actor="a")
    bundle_fill(bundle)
    assert list(home.cold_dir().rglob("*.md")) == []
    bundle_restore(bundle.id)
    assert record_open(OWNER, record_id).body == make_draft().body.encode()
    assert wrong_files() == []


def test_cold_bodies_leave_search_and_cards_stay():
    body = f"> Preface.\n\n{'Plain words. ' * 120}\nA zebra ate the pool.\n"
    record_id = write(body=body, title="Animals", summary="Of horses.")
    assert [hit.card.id for hit in search(OWNER, "zebra").hits] == [record_id]
    record_cool([record_id], actor="a")
    bodies_sync()
    assert search(OWNER, "zebra").hits == []
    for word in ("animals", "horses", "plain"):  # title, summary, abstract
        (hit,) = search(OWNER, word).hits
        assert (hit.card.id, hit.card.cold, hit.offset) == (record_id, 1, None)
    assert wrong() == []
    record_restore(record_id, actor="a")
    (hit,) = search(OWNER, "zebra").hits
    assert hit.card.id == record_id and hit.offset is not None
    bodies_sync()
    assert wrong() == []


def test_compressing_moves_just_enough_the_oldest_first():
    ids = fill(10)
    services.record_mark_read([ids[0]])
    services.record_pin(ids[1], pinned=True, actor="a")
    services.record_set_status(ids[8], "superseded", actor="a")
    preview = compress_preview(POOL, min_age_ms=0)
    assert preview.ids == [ids[8], *ids[2:5]]
    assert (preview.tokens, preview.after_hot, preview.target_tokens) == (4 * TOKENS, 6 * TOKENS, 6 * TOKENS)
    assert not Record.objects.filter(cold=1).exists()
    seen = []
    (report,) = compress([POOL], actor="test", min_age_ms=0, progress=seen.append)
    assert (report.before_hot, report.after_hot, report.target_tokens) == (
        10 * TOKENS,
        6 * TOKENS,
        6 * TOKENS,
    )
    assert (report.cold_moved, report.freed_tokens, report.errors) == (4, 4 * TOKENS, [])
    assert set(Record.objects.filter(cold=1).values_list("id", flat=True)) == set(preview.ids)
    assert [(each.hot_tokens, each.cold_moved) for each in seen] == [(6 * TOKENS, 4)]
    figures = pool_figures(POOL)
    assert (figures.hot_count, figures.cold_count, figures.count) == (6, 4, 10)
    assert (figures.cold_tokens, figures.tokens, figures.hot_ratio) == (4 * TOKENS, 10 * TOKENS, 0.6)
    assert wrong() == []
    (again,) = compress([POOL], actor="test", min_age_ms=0)
    assert (again.cold_moved, again.after_hot) == (0, 6 * TOKENS)


def test_what_is_young_stays(settings):
    fill(10)
    (fresh,) = write_now(1)
    settings.MEMEX_MIN_AGE_HOURS = 1
    (report,) = compress([POOL], actor="a", target_ratio=0.1)
    assert report.after_hot == TOKENS
    assert Record.objects.get(cold=0).id == fresh


def write_now(count: int) -> list[str]:
    from records.clock import now_ms

    return [write(f"now{n}", body=BODY, created_at=now_ms()) for n in range(count)]


def test_a_pool_is_one_sessions_or_some_workspaces():
    fill(2)
    fill(2, first=2, workspace_key=THERE)
    mine = fill(3, first=4, scope="session", session="s1")
    fill(3, first=7, scope="session", session="s2")
    compress([session_pool("s1")], actor="a", target_ratio=0.5, min_age_ms=0)
    assert list(Record.objects.filter(cold=1).values_list("id", flat=True)) == [mine[0]]
    both = workspace_pool([THERE, HERE])
    assert pool_figures(both).hot_tokens == 4 * TOKENS
    compress([both], actor="a", target_ratio=0.2, min_age_ms=0)
    assert pool_figures(both).hot_tokens == 2 * TOKENS
    assert pool_figures(session_pool("s2")).hot_tokens == 3 * TOKENS
    assert compression_stats([session_pool("s1")]).count == 1
    assert compression_stats([workspace_pool([HERE])]).count == 1
    assert compression_stats([both, session_pool("s1")]).count == 2
    assert compression_stats([session_pool("s2")]).count == compression_stats([]).count == 0
    assert wrong_files() == []


def test_every_run_is_remembered(settings):
    fill(8)
    compress([POOL], actor="command", min_age_ms=0, session_id="asking")
    settings.MEMEX_CAPACITY_TOKENS = 10_000_000
    compress([POOL], actor="schedule")
    stats = compression_stats([POOL])
    assert [run.actor for run in stats.recent] == ["schedule", "command"]
    assert stats.last == stats.recent[0]
    run = run_json(stats.recent[1])
    assert run.pop("durationMs") >= 0
    run.pop("createdAt")
    assert run == {
        "id": stats.recent[1].id, "sessionId": "asking", "level": "l3", "strategy": "cold",
        "beforeHot": 8 * TOKENS, "afterHot": 6 * TOKENS, "coldMoved": 2, "digests": 0, "llmCalls": 0,
        "errors": [], "actor": "command",
    }  # fmt: skip


def test_a_run_that_fails_is_remembered(monkeypatch):
    ids = fill(10)
    home.record_path(HERE, ids[0], cold=False).unlink()
    (report,) = compress([POOL], actor="a", min_age_ms=0)
    assert (
        report.errors == [f"{ids[0]}: its file is missing"] == CompressionRun.objects.get().errors.split("\n")
    )
    assert report.after_hot == 6 * TOKENS
    monkeypatch.setattr("records.capacity.compress.record_cool", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        compress([POOL], actor="a", min_age_ms=0, target_ratio=0.1)
    run = CompressionRun.objects.latest("id")
    assert "ZeroDivisionError" in run.errors and run.duration_ms is not None


def test_a_run_can_be_stopped_between_batches(monkeypatch):
    monkeypatch.setattr("records.capacity.compress.BATCH", 2)
    fill(10)
    done = []
    (report,) = compress(
        [POOL], actor="a", min_age_ms=0, progress=done.append, stopped=lambda: len(done) == 1
    )
    assert (report.stopped, report.cold_moved) == (True, 2)
    run = CompressionRun.objects.get()
    assert (run.cold_moved, run.after_hot, run.errors) == (2, 8 * TOKENS, "stopped when asked to")
    (report,) = compress([POOL], actor="a", min_age_ms=0)
    assert (report.stopped, report.after_hot) == (False, 6 * TOKENS)


def test_a_pool_that_is_being_worked_on_is_refused():
    fill(10)
    with pools_locked([workspace_pool([HERE, THERE])]):
        with pytest.raises(PoolBusy):
            compress([POOL], actor="a", min_age_ms=0)
        with pytest.raises(PoolBusy):
            gc(POOL, keep_tokens=0, actor="a")
        compress([session_pool("s1")], actor="a")
    assert CompressionRun.objects.count() == 1
    assert compress([POOL], actor="a", min_age_ms=0)[0].cold_moved == 4


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"strategy": "digest"}, DigestRequiresModel),
        ({"strategy": "other"}, ValueError),
        ({"target_ratio": 0.05}, ValueError),
        ({"target_ratio": 1.0}, ValueError),
        ({"min_age_ms": -1}, ValueError),
    ],
)
def test_what_makes_no_sense_is_refused(how, error):
    with pytest.raises(error):
        compress([POOL], actor="a", **how)
    assert not CompressionRun.objects.exists()


def test_gc_moves_the_oldest_cold_ones_to_the_trash_and_back():
    ids = fill(6)
    record_cool(ids[:5], actor="a")
    services.record_pin(ids[1], pinned=True, actor="a")
    before = {record_id: record_open(OWNER, record_id).body for record_id in ids}
    preview = gc_preview(POOL, keep_tokens=3 * TOKENS)
    assert (preview.ids, preview.tokens, preview.bundle_id) == ([ids[0], ids[2]], 2 * TOKENS, "")
    report = gc(POOL, keep_tokens=3 * TOKENS, actor="a")
    assert (report.ids, report.before_cold, report.after_cold) == (preview.ids, 5 * TOKENS, 3 * TOKENS)
    assert [bundle.id for bundle in bundle_list()] == [report.bundle_id]
    assert not Record.objects.filter(pk__in=report.ids).exists()
    assert wrong() == []
    assert gc(POOL, keep_tokens=3 * TOKENS, actor="a").bundle_id == ""
    bundle_restore(report.bundle_id)
    assert {record_id: record_open(OWNER, record_id).body for record_id in ids} == before
    assert pool_figures(POOL).cold_tokens == 5 * TOKENS
    bodies_sync()
    assert wrong() == []


def test_gc_has_a_most_and_never_takes_hot_ones(monkeypatch):
    ids = fill(5)
    record_cool(ids[:4], actor="a")
    monkeypatch.setattr(gc_module, "MOST", 3)
    assert gc(POOL, keep_tokens=0, actor="a").ids == ids[:3]
    assert gc(POOL, keep_tokens=0, actor="a").ids == [ids[3]]
    assert [record.id for record in Record.objects.all()] == [ids[4]]
    with pytest.raises(ValueError, match="negative"):
        gc(POOL, keep_tokens=-1, actor="a")


def test_a_quota_for_cold_records_is_kept_after_a_compression(settings):
    settings.MEMEX_COLD_QUOTA_TOKENS = TOKENS
    ids = fill(10)
    (report,) = compress([POOL], actor="a", min_age_ms=0)
    assert report.gc is not None
    assert report.gc.ids == ids[:3]
    assert pool_figures(POOL).cold_tokens == TOKENS
    assert wrong() == []
