"""The two append-only files: tombstones and the ledger."""

import json
import stat

import pytest

from records import home, ledger, tombstones

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memex_home")]


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (home.home() / name).read_text().splitlines()]


def test_tombstones_hold_ids_and_nothing_else():
    assert not tombstones.is_forgotten("record", "mem_0123456789")
    tombstones.tombstones_add([{"kind": "record", "id": "mem_0123456789", "title": "secret"}])
    tombstones.tombstones_add([{"kind": "record", "id": "mem_0123456789"}, {"kind": "session", "id": "s"}])
    assert tombstones.is_forgotten("record", "mem_0123456789")
    assert not tombstones.is_forgotten("session", "mem_0123456789")
    assert [sorted(line) for line in lines("forgotten.jsonl")] == [["at", "id", "kind"]] * 2
    assert stat.S_IMODE((home.home() / "forgotten.jsonl").stat().st_mode) == 0o600


def test_a_tombstone_is_removed_and_the_others_stay():
    tombstones.tombstones_add({"kind": "record", "id": f"mem_00000{n}"} for n in range(3))
    tombstones.tombstones_remove([{"kind": "record", "id": "mem_000001"}])
    assert [line["id"] for line in lines("forgotten.jsonl")] == ["mem_000000", "mem_000002"]
    assert not tombstones.is_forgotten("record", "mem_000001")
    tombstones.tombstones_remove([{"kind": "record", "id": "mem_999999"}])
    assert tombstones.is_forgotten("record", "mem_000002")


def test_what_another_process_adds_is_seen():
    tombstones.tombstones_add([{"kind": "session", "id": "a"}])
    assert tombstones.is_forgotten("session", "a")
    with (home.home() / "forgotten.jsonl").open("a") as file:
        file.write('{"kind":"session","id":"b","at":1}\n')
    assert tombstones.is_forgotten("session", "b")


def test_a_torn_line_costs_that_line():
    tombstones.tombstones_add([{"kind": "session", "id": "a"}])
    with (home.home() / "forgotten.jsonl").open("ab") as file:
        file.write(b'{"kind":"session","id":"b')
    tombstones.tombstones_add([{"kind": "session", "id": "c"}])
    assert tombstones.tombstones() == {("session", "a"), ("session", "c")}


def test_the_ledger_appends_private_lines():
    ledger.ledger_write("hook", "archive", ["mem_a", "mem_b"])
    ledger.ledger_write("owner", "pin", iter(["mem_a"]))
    assert [(line["actor"], line["verb"], line["ids"]) for line in lines("ledger.jsonl")] == [
        ("hook", "archive", ["mem_a", "mem_b"]),
        ("owner", "pin", ["mem_a"]),
    ]
    assert stat.S_IMODE((home.home() / "ledger.jsonl").stat().st_mode) == 0o600


def test_a_full_ledger_is_put_aside_whole(monkeypatch):
    monkeypatch.setattr(ledger, "MAX_BYTES", 200)
    for n in range(10):
        ledger.ledger_write("actor", "verb", [f"mem_{n:06}"])
    kept = [
        json.loads(line) for path in home.home().glob("ledger*") for line in path.read_text().splitlines()
    ]
    assert sorted(line["ids"][0] for line in kept) == [f"mem_{n:06}" for n in range(10)]
    assert len(list(home.home().glob("ledger-*.jsonl"))) >= 2


def test_a_ledger_that_cannot_be_written_fails_nobody(caplog):
    (home.home() / "ledger.jsonl").mkdir()
    ledger.ledger_write("actor", "verb", ["mem_000000"])
    assert "ledger could not be written" in caplog.text
