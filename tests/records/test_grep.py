"""grep over a store of real files, with the real ripgrep or a stand-in for it."""

from pathlib import Path

import pytest

from records import fulltext, places
from records.fulltext import OverflowText, overflow_provider_set
from records.models import Record
from records.scope import OWNER, Scope
from records.search import grep as greps
from records.search import grep_rg
from records.search.grep import BadPattern, GrepHit, grep, grep_stream
from records.services import record_set_status, records_forget
from tests.queries import assert_flat_queries

from .drafts import WHEN, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]

HERE = "0123456789abcdef"
ELSEWHERE = "fedcba9876543210"


@pytest.fixture(autouse=True, params=["ripgrep", "re2"])
def engine(request, monkeypatch):
    """Everything here holds whichever engine looks through the files."""
    monkeypatch.setattr(greps, "RIPGREP_FROM_BYTES", 0)
    if request.param == "re2":
        monkeypatch.setattr(grep_rg, "binary", lambda: None)
    return request.param


def found(scope: Scope, pattern: str, **how) -> list[str]:
    return [hit.title for hit in grep(scope, pattern, **how).hits]


def path_of(record_id: str) -> Path:
    record = Record.objects.get(pk=record_id)
    return places.place_of(record_id, record.workspace_key, cold=bool(record.cold)).path


def test_a_hit_says_where_it_stands():
    record_id = write(
        body="## Summary\n\nNothing.\n\n### [#7] user · person\n\nWo ist der Käse?\nDort.\n", title="t"
    )
    (hit,) = grep(OWNER, "KÄSE", context=1).hits
    assert hit == GrepHit(
        record_id=record_id, title="t", cold=False, created_at=WHEN, line_number=7, offset=hit.offset, seq=7,
        line="Wo ist der Käse?", spans=((11, 15),), cut_before=False, cut_after=False, before=("",), after=("Dort.",),
    )  # fmt: skip
    body = path_of(record_id).read_bytes().partition(b"---\n\n")[2]
    assert body[hit.offset :].startswith(b"Wo ist")


def test_the_head_of_a_file_is_not_searched():
    record_id = write(title="needle", summary="needle", tags={"where": ["needle.py"]}, body="one\nneedle\n")
    (hit,) = grep(OWNER, "needle").hits
    assert (hit.record_id, hit.line_number) == (record_id, 2)
    assert found(OWNER, "^kind:") == []


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (OWNER, {"shared", "elsewhere", "mine", "theirs"}),
        (Scope(frozenset({HERE}), session_ids=frozenset({"s1"})), {"shared", "mine"}),
        (Scope(frozenset({HERE}), frozenset({"workspace"}), frozenset({"s1"})), {"shared"}),
        (Scope(frozenset({HERE}), frozenset({"session"}), frozenset({"s1"})), {"mine"}),
        (Scope(frozenset({HERE, ELSEWHERE})), {"shared", "elsewhere"}),
        (Scope(frozenset(), session_ids=frozenset()), set()),
        (Scope(None), {"shared", "elsewhere"}),
    ],
)
def test_nothing_out_of_scope_is_shown(scope, expected):
    write("shared", title="shared", body="needle")
    write("elsewhere", title="elsewhere", workspace_key=ELSEWHERE, body="needle")
    write("mine", title="mine", scope="session", session_id="s1", body="needle")
    write("theirs", title="theirs", scope="session", session_id="s2", body="needle")
    answer = grep(scope, "needle")
    assert {hit.title for hit in answer.hits} == expected
    assert answer.records_searched == len(expected)
    assert not answer.truncated


def test_what_is_cut_out_of_a_private_record_stays_private(monkeypatch):
    overflowing(monkeypatch, lambda record: [OverflowText(1, f"needle of {record.title}")])
    write("shared", title="shared", body="x", provenance=cut("shared"))
    write("theirs", title="theirs", scope="session", session_id="s2", body="x", provenance=cut("theirs"))
    assert found(Scope(frozenset({HERE}), session_ids=frozenset({"s1"})), "needle") == ["shared"]


def test_filters_and_what_stays_out_unless_asked_for():
    write("a", title="a", body="needle", created_at=WHEN + 4, kind="note", tags={"where": ["x.py"]})
    write("b", title="b", body="needle", created_at=WHEN + 3, session="s2", workspace_key=ELSEWHERE)
    c = write("c", title="c", body="needle", created_at=WHEN + 2)
    forgotten = write("d", title="d", body="needle", created_at=WHEN + 1)
    record_set_status(c, "superseded", actor="test")
    records_forget([forgotten], actor="test")
    assert found(OWNER, "needle") == ["a", "b"]
    assert found(OWNER, "needle", statuses=["superseded"]) == ["c"]
    assert found(OWNER, "needle", kinds=["note"]) == ["a"]
    assert found(OWNER, "needle", workspace_key=ELSEWHERE) == ["b"]
    assert found(OWNER, "needle", session_id="s2") == ["b"]
    assert found(OWNER, "needle", tag="where:x.py") == ["a"]
    assert found(OWNER, "needle", agent="codex") == []
    assert found(OWNER, "needle", cold=True) == []


def test_cold_records_and_those_that_have_just_moved_are_found():
    record_id = write(body="needle", title="t")
    target = places.place_of(record_id, HERE, cold=True).path
    target.parent.mkdir(parents=True)
    path_of(record_id).rename(target)
    assert found(OWNER, "needle") == ["t"]
    Record.objects.update(cold=1, path=f"cold/{HERE}/{record_id}.md")
    (hit,) = grep(OWNER, "needle", cold=True).hits
    assert hit.cold


def test_files_that_vanish_or_lead_elsewhere_cost_nothing(tmp_path):
    gone, link = write("a", body="needle"), write("b", body="needle")
    write("c", title="c", body="needle")
    path_of(gone).unlink()
    outside = tmp_path / "outside.md"
    outside.write_text("needle of somebody else")
    path_of(link).unlink()
    path_of(link).symlink_to(outside)
    answer = grep(OWNER, "needle")
    assert [hit.title for hit in answer.hits] == ["c"]
    assert answer.warnings == ()


def test_the_newest_come_first_and_lines_in_order():
    for number in (2, 3, 1):
        write(f"c{number}", title=f"t{number}", created_at=WHEN + number, body="needle\nx\nneedle")
    write("e", title="e", created_at=WHEN + 2, body="needle")
    answer = grep(OWNER, "needle")
    assert [(hit.title, hit.line_number) for hit in answer.hits if hit.title != "e"] == [
        ("t3", 1), ("t3", 3), ("t2", 1), ("t2", 3), ("t1", 1), ("t1", 3),
    ]  # fmt: skip
    assert list(grep_stream(OWNER, "needle")) == answer.hits


def test_every_bound_is_said():
    for number in range(4):
        write(f"c{number}", title=f"t{number}", created_at=WHEN + number, body="needle\n" * 3)
    exactly = grep(OWNER, "needle", max_hits=12)
    assert (len(exactly.hits), exactly.why, exactly.truncated) == (12, "", False)
    first = grep(OWNER, "needle", max_hits=5)
    assert (first.why, first.truncated) == ("hits", True)
    assert [hit.title for hit in first.hits] == ["t3"] * 3 + ["t2"] * 2
    each = grep(OWNER, "needle", max_hits_per_record=2)
    assert (len(each.hits), each.why, len(each.capped)) == (8, "record", 4)
    assert (grep(OWNER, "needle", max_hits=0).hits, grep(OWNER, "needle", max_hits=0).why) == ([], "hits")
    late = grep(OWNER, "needle", timeout_s=-1)
    assert (late.hits, late.why, late.records_searched) == ([], "time", 0)


def test_many_records_are_searched_in_batches_to_the_last(monkeypatch):
    monkeypatch.setattr(greps, "BATCHES", (3, 5))
    monkeypatch.setattr(greps, "_ARGUMENT_BYTES", 700)
    for number in range(40):
        # Some at the same moment.
        write(f"c{number}", title=f"t{number:02}", created_at=WHEN + number // 2, body=f"needle {number % 5}")
    answer = grep(OWNER, "needle 0")
    assert sorted(hit.title for hit in answer.hits) == [f"t{number:02}" for number in range(0, 40, 5)]
    assert answer.records_searched == 40
    assert grep(OWNER, "needle 0", max_hits=2).records_searched < 40
    order = [(hit.created_at, hit.record_id) for hit in grep_stream(OWNER, "needle")]
    assert order == sorted(order, reverse=True)
    assert len(order) == 40


def test_the_number_of_queries_does_not_grow():
    made = iter(range(1_000))

    def more(count: int) -> None:
        for _ in range(count):
            write(f"c{next(made)}", body="needle")

    assert_flat_queries(more, lambda: grep(OWNER, "needle"))


def test_odd_bytes_in_files_are_no_obstacle():
    record_id = write(title="t", body="x")
    path = path_of(record_id)
    head = path.read_bytes().removesuffix(b"x")
    path.write_bytes(
        head + b"\xff\xfe\0 needle\r\n" + b"\0" * 100 + b"\n" + b"y" * 9_000_000 + "库 needle".encode()
    )
    hits = grep(OWNER, "needle").hits
    assert [hit.line_number for hit in hits] == [1, 3]
    assert hits[0].line == "\ufffd\ufffd\0 needle"
    assert hits[1].line.endswith("y库 needle")
    path.write_bytes(b"\xff\xfe" + "needle".encode("utf-16-le"))
    assert found(OWNER, "needle") == []
    path.write_bytes(b"")
    assert found(OWNER, "needle") == []


def test_bad_patterns_are_refused_before_anything_is_read():
    with pytest.raises(BadPattern):
        grep_stream(OWNER, "(?=a)")
    write(title="t", body="a.c\nabc")
    assert [hit.line for hit in grep(OWNER, "a.c", literal=True).hits] == ["a.c"]
    assert found(OWNER, "A.C", ignore_case=False) == []
    assert found(OWNER, "-a", literal=True) == []
    assert found(OWNER, "--files") == []


def cut(compaction: str) -> dict[str, object]:
    return {"source": "compaction-archive", "sessionId": "s1", "compactionId": compaction, "cut": [[4, 9]]}


def overflowing(monkeypatch, provide) -> None:
    monkeypatch.setattr(fulltext, "_provider", fulltext._provider)
    monkeypatch.setattr(fulltext, "_least_bytes", 0)
    overflow_provider_set(lambda record, warn, seq=None: iter(provide(record)))


def test_what_was_cut_out_of_a_body_is_found(monkeypatch):
    texts = [
        OverflowText(4, "needle in the body\nneedle beyond", shown=len("needle in the body\n")),
        OverflowText(5, "nothing"),
        OverflowText(6, "ä\nneedle"),
    ]
    overflowing(monkeypatch, lambda record: texts)
    write("whole", title="whole", created_at=WHEN + 1, body="needle")
    write(
        "part",
        title="part",
        created_at=WHEN,
        body="### [#4] user\n\nneedle in the body\n",
        provenance=cut("part"),
    )
    hits = grep(OWNER, "needle").hits
    assert [(hit.title, hit.line_number, hit.seq, hit.offset is None) for hit in hits] == [
        ("whole", 1, None, False), ("part", 3, 4, False), ("part", 2, 4, True), ("part", 2, 6, True),
    ]  # fmt: skip
    limited = grep(OWNER, "needle", max_hits_per_record=2)
    assert (len(limited.hits), limited.why) == (3, "record")


def test_damage_is_a_warning(monkeypatch):
    def damaged(record, warn, seq=None):
        yield OverflowText(4, "needle")
        warn("event #5 is gone")

    monkeypatch.setattr(fulltext, "_provider", damaged)
    monkeypatch.setattr(fulltext, "_least_bytes", 0)
    write("part", title="part", body="x", provenance=cut("part"))
    answer = grep(OWNER, "needle")
    assert [hit.seq for hit in answer.hits] == [4]
    assert answer.warnings == ("event #5 is gone",)


def test_without_a_provider_nothing_is_cut(monkeypatch):
    monkeypatch.setattr(fulltext, "_provider", None)
    write("part", title="part", body="needle", provenance=cut("part"))
    assert found(OWNER, "needle") == ["part"]
