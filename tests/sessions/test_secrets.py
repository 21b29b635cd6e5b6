"""Secrets in what is archived, evicted and written, under each policy: who sees them, and what is stored where."""

import json

import pytest
from django.core.management import call_command
from django.db import connection

from records.models import Record
from records.queries import record_open
from records.scope import OWNER
from records.search.assembling import assemble
from records.search.grep import grep
from records.search.indexing import bodies_sync
from records.search.search import search
from records.secrets.queries import is_sensitive, reviews
from records.writing import Writer, memory_write
from records.written import Written
from sessions_app.access import access_of
from sessions_app.archiving import archive_run
from sessions_app.checkup import store_findings
from sessions_app.injection.recall import recalled
from sessions_app.injection.state import State
from sessions_app.levels import level_enable
from sessions_app.models import Receipt
from sessions_app.principals import OWNER_PRINCIPAL
from tests.records.secret_texts import GITHUB, PEM
from tests.sessions.secret_doors import DOORS, another_session, log_with, said, session_of, through
from tests.sessions.stories import DERIVED, dump, everything_in, write_log
from tests.sessions.test_rebuild_and_forget import lose_all_rows

pytestmark = pytest.mark.django_db(transaction=True)
POLICIES = ("auto", "flag", "redact", "off")


@pytest.fixture(autouse=True)
def _homes(agent_home):
    return agent_home


@pytest.mark.parametrize("door", DOORS)
def test_auto_keeps_it_from_other_sessions(door, agent_home, caplog):
    record = through(door, agent_home)
    assert (record.scope, is_sensitive(record)) == ("session", True)
    assert record.tags["sensitive"] == ["github-pat"]
    other = access_of(OWNER_PRINCIPAL, session_id=another_session(door)).scope
    assert GITHUB not in said(other) and record.id not in said(other)
    with pytest.raises(Record.DoesNotExist):
        record_open(other, record.id)
    # With L3 alone, not even to its own session.
    own = access_of(OWNER_PRINCIPAL, session_id=session_of(door))
    assert record.id not in said(own.scope)
    assert not Receipt.objects.filter(record_id=record.id).exists()
    # Its owner has everything, found and opened.
    assert GITHUB.encode() in record_open(OWNER, record.id).body
    assert GITHUB in said(OWNER)
    level_enable(session_of(door), "l2")
    own = access_of(OWNER_PRINCIPAL, session_id=session_of(door))
    assert GITHUB in said(own.scope)
    assert recalled(own, "what was the harbour token of that step", State(session_of(door))) == []
    assert GITHUB not in caplog.text


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("door", DOORS)
def test_each_policy_at_each_door(door, policy, agent_home, settings, caplog):
    settings.MEMEX_SENSITIVE_POLICY = policy
    record = through(door, agent_home)
    assert record.scope == ("session" if policy == "auto" else "workspace")
    assert is_sensitive(record) is (policy != "off")
    assert [review.record.id for review in reviews()] == ([record.id] if policy != "off" else [])
    # Nothing is skipped: the file has it all.
    assert GITHUB.encode() in record_open(OWNER, record.id).body
    if policy != "off":
        card = record.title, record.summary, record.use_when, record.tags, record.entities, record.provenance
        assert GITHUB not in json.dumps(card)
        assert "redacted:github-pat" in json.dumps(card)
    other = said(access_of(OWNER_PRINCIPAL, session_id=another_session(door)).scope)
    assert (GITHUB in other) is (policy in ("flag", "off"))
    ledger = (settings.MEMEX_HOME / "ledger.jsonl").read_text()
    assert GITHUB not in ledger + caplog.text
    assert list(store_findings(repair=False)) == []


@pytest.mark.parametrize("door", DOORS)
def test_redacted_it_stands_in_the_record_and_its_log_alone(door, agent_home, settings, capfd):
    settings.MEMEX_SENSITIVE_POLICY = "redact"
    record = through(door, agent_home)
    bodies_sync()
    said_of_it = said(OWNER)
    assert GITHUB not in said_of_it
    # No word of it is in an index; bits of it may be in a record's id.
    assert all(len(term) < 6 for hit in search(OWNER, GITHUB).hits for term in hit.reason.terms)
    assert "«redacted:github-pat»" in said_of_it
    # A hit still leads to its place.
    (hit,) = [hit for hit in grep(OWNER, "redacted:github-pat").hits if hit.offset is not None][:1] or [None]
    body = record_open(OWNER, record.id).body
    assert hit is None or GITHUB.encode() in body[hit.offset :].split(b"\n")[0]
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    home = settings.MEMEX_HOME
    holding = {
        path.relative_to(home).parts[0]
        for path, data in everything_in(home)
        if GITHUB.lower().encode() in data.lower()
    }
    # Mirrors are compressed.
    assert holding == {"records"}
    assert GITHUB not in "".join(capfd.readouterr())


def test_a_secret_that_the_body_cuts_is_found_and_redacted_too(agent_home, settings):
    settings.MEMEX_SENSITIVE_POLICY = "redact"
    path = write_log(agent_home, 1, compactions=1)
    long = json.dumps("word of output " * 15_000 + f"\nlantern token {GITHUB} here\n")[1:-1].encode()
    lines = path.read_bytes().split(b"\n")
    at = next(n for n, line in enumerate(lines) if b"row of output" in line)
    lines[at] = lines[at].replace(b"harbour 0.0: ", long)
    path.write_bytes(b"\n".join(lines))
    archive_run(level="l3")
    (record,) = Record.objects.all()
    assert record.provenance["cut"] and is_sensitive(record)
    assert GITHUB.encode() not in record_open(OWNER, record.id).body
    found = search(OWNER, "lantern token").hits[0]
    assert "«redacted:github-pat»" in found.snippet.text
    assert grep(OWNER, GITHUB, literal=True).hits == []
    assert [hit.seq for hit in grep(OWNER, "lantern token").hits] == [found.seq_start]
    assert GITHUB not in repr(assemble(OWNER, "lantern token", budget=4_000))


def test_a_key_of_several_lines_is_redacted_as_a_whole(agent_home, settings):
    settings.MEMEX_SENSITIVE_POLICY = "redact"
    log_with(agent_home, f"\n{PEM}\n")
    archive_run(level="l3")
    bodies_sync()
    for line in PEM.split("\n")[1:-1]:
        assert grep(OWNER, line, literal=True).hits == []
        assert line not in repr(search(OWNER, line).hits)


@pytest.mark.parametrize("policy", POLICIES)
def test_archiving_again_or_rebuilding_changes_nothing(policy, agent_home, settings):
    settings.MEMEX_SENSITIVE_POLICY = policy
    path = log_with(agent_home)
    archive_run(level="l3")
    (secret,) = Record.objects.all()
    before = dump()
    path.touch()
    assert archive_run().archived == 0
    assert dump({"sources": {"mtime_ns", "seen_at"}})["records"] == before["records"]
    before = dump()
    lose_all_rows()
    # What the files say counts, not what the setting is now.
    settings.MEMEX_SENSITIVE_POLICY = "redact" if policy == "redact" else "off"
    call_command("reindex", verbosity=0)
    after = dump()
    for table in DERIVED:
        assert after[table] == before[table], table
    assert Record.objects.get().content_hash == secret.content_hash


def test_a_process_that_shares_the_work_finds_the_same(agent_home):
    for number in (1, 2, 3, 4):
        log_with(agent_home, number=number)
    memory_write(
        Written(kind="note", text=f"token {GITHUB}"),
        Writer(actor="owner", by_person=True, scope="workspace", workspace_key="0123456789abcdef"),
    )
    archive_run(level="l3", processes=2)
    assert Record.objects.count() == 5
    assert {(record.scope, tuple(record.tags["sensitive"])) for record in Record.objects.all()} == {
        ("session", ("github-pat",))
    }


def test_what_a_person_writes_without_a_session_is_theirs_alone(agent_home):
    writer = Writer(actor="owner", by_person=True, scope="workspace", workspace_key="0123456789abcdef")
    answer = memory_write(Written(kind="note", text=f"token {GITHUB}"), writer)
    assert (answer.scope, answer.sensitive) == ("session", ("github-pat",))
    assert memory_write(Written(kind="note", text=f"token {GITHUB}"), writer).id == answer.id
    assert GITHUB.encode() in record_open(OWNER, answer.id).body
