"""What the owner decides of records with secrets in them, and finding those from before."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from records.home import home
from records.models import PoolTotal, Record
from records.scope import OWNER
from records.search.indexing import bodies_sync
from records.search.search import search
from records.secrets.queries import is_sensitive, reviews, sensitive_records
from records.secrets.scanning import secrets_scan
from records.secrets.services import (
    NotMeantToBeShared,
    NotSensitive,
    secret_dismiss,
    secret_keep,
    secret_share,
)
from sessions_app.access import _scope, access_of
from sessions_app.archiving import archive_run
from sessions_app.checkup import store_findings
from sessions_app.levels import Levels
from sessions_app.models import ArchivedCompaction
from sessions_app.principals import OWNER_PRINCIPAL
from tests.records.secret_texts import GITHUB
from tests.sessions.secret_doors import DOORS, another_session, log_with, said, through
from tests.sessions.stories import dump, session_id
from tests.sessions.test_rebuild_and_forget import lose_all_rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _homes(agent_home):
    return agent_home


@pytest.mark.parametrize("door", DOORS)
def test_dismissed_a_record_is_what_it_would_have_been(door, agent_home):
    record = through(door, agent_home)
    bodies_sync()
    assert "«redacted:" in repr([record.title, record.summary, record.tags])
    (cleared,) = secret_dismiss(record.id, actor="owner")
    assert (cleared.scope, is_sensitive(cleared), "sensitive" in cleared.provenance) == (
        "workspace",
        False,
        False,
    )
    card = repr([cleared.title, cleared.summary, cleared.tags, cleared.provenance.get("lost")])
    assert GITHUB in card and "«redacted:" not in card
    bodies_sync()
    assert list(store_findings(repair=False)) == []


def test_what_was_private_anyway_stays_private(agent_home):
    record = through("archive", agent_home, "l2")
    with pytest.raises(NotMeantToBeShared):
        secret_share(record.id, actor="owner")
    assert [each.scope for each in secret_dismiss(record.id, actor="owner")] == ["session"]


def test_what_the_owner_keeps_private_stays_so_when_another_is_dismissed(agent_home):
    first = through("archive", agent_home)
    log_with(agent_home, number=2)
    log_with(agent_home, number=3)
    archive_run(level="l3")
    kept, other = Record.objects.exclude(pk=first.id).order_by("pk")
    secret_keep(kept.id, actor="owner")
    cleared = secret_dismiss(first.id, actor="owner")
    assert {each.id for each in cleared} == {first.id, other.id}
    assert {each.scope for each in cleared} == {"workspace"}
    assert [(each.record.id, each.record.scope) for each in reviews()] == [(kept.id, "session")]
    assert [each.scope for each in secret_dismiss(kept.id, actor="owner")] == ["workspace"]


def test_a_record_that_cannot_be_changed_keeps_no_other_from_it(agent_home):
    first = through("archive", agent_home)
    log_with(agent_home, number=2)
    log_with(agent_home, number=3)
    archive_run(level="l3")
    broken, other = Record.objects.exclude(pk=first.id).order_by("pk")
    (home() / broken.path).unlink()
    assert {each.id for each in secret_dismiss(first.id, actor="owner")} == {first.id, other.id}
    assert is_sensitive(Record.objects.get(pk=broken.id))


def test_a_fork_does_not_see_what_its_parent_may_not(agent_home):
    record = through("archive", agent_home)
    other = another_session("archive")
    ArchivedCompaction.objects.create(
        session_id=other, compaction_id="c", record_id=record.id, created_at=record.created_at
    )
    with_both = access_of(OWNER_PRINCIPAL, session_id=other)
    assert (record.id, record.session_id) in with_both.scope.granted
    assert _scope(OWNER_PRINCIPAL, with_both.session, Levels(l3=True)).granted == frozenset()


def test_the_review_list_is_read_off_an_index(agent_home):
    assert "records_sensitive" in sensitive_records().order_by("-created_at", "-id").explain()


def test_dismissed_it_is_not_raised_again(agent_home, settings):
    record = through("archive", agent_home)
    bodies_sync()
    (cleared,) = secret_dismiss(record.id, actor="owner")
    assert (cleared.id, cleared.scope, is_sensitive(cleared), reviews()) == (
        record.id,
        "workspace",
        False,
        [],
    )
    assert GITHUB not in (settings.MEMEX_HOME / "dismissed.jsonl").read_text()
    assert GITHUB in said(access_of(OWNER_PRINCIPAL, session_id=another_session("archive")).scope)
    # The same secret in another session.
    log_with(agent_home, number=2)
    archive_run(level="l3")
    assert {each.scope for each in Record.objects.all()} == {"workspace"}
    assert reviews() == []
    PoolTotal.objects.filter(count=0).delete()
    before = dump()
    lose_all_rows()
    call_command("reindex", verbosity=0)
    assert dump() == before
    with pytest.raises(NotSensitive):
        secret_dismiss(record.id, actor="owner")


def test_shared_anyway_and_private_again(agent_home):
    record = through("archive", agent_home)
    other = access_of(OWNER_PRINCIPAL, session_id=another_session("archive")).scope
    bodies_sync()
    shared = secret_share(record.id, actor="owner")
    assert (shared.scope, reviews()[0].decision.state) == ("workspace", "shared")
    assert GITHUB in said(other)
    kept = secret_keep(record.id, actor="owner")
    assert (kept.scope, kept.session_id, reviews()[0].decision.state) == ("session", session_id(), "kept")
    bodies_sync()
    assert record.id not in said(other)
    assert [hit.card.id for hit in search(OWNER, "harbour token").hits] == [record.id]
    assert list(store_findings(repair=False)) == []


def test_a_store_from_before_is_scanned_and_stays_as_it_is_shared(agent_home, settings):
    settings.MEMEX_SENSITIVE_POLICY = "off"
    record = through("archive", agent_home)
    assert GITHUB in json.dumps([record.title, record.summary, record.tags])
    settings.MEMEX_SENSITIVE_POLICY = "auto"
    before = dump()
    assert [each.is_new for each in secrets_scan(actor="owner", dry_run=True)] == [True]
    assert dump() == before
    assert [each.is_new for each in secrets_scan(actor="owner")] == [True]
    record.refresh_from_db()
    assert (record.scope, is_sensitive(record)) == ("workspace", True)
    assert GITHUB not in json.dumps([record.title, record.summary, record.tags, record.provenance])
    before = dump()
    assert [each.is_new for each in secrets_scan(actor="owner")] == [False]
    assert dump() == before
    assert secret_keep(record.id, actor="owner").scope == "session"


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("memory", "secrets", *arguments, stdout=out)
    return out.getvalue()


def test_the_command(agent_home, settings):
    settings.MEMEX_SENSITIVE_POLICY = "flag"
    record = through("archive", agent_home)
    listed = told()
    assert record.id in listed and "github-pat in #" in listed and GITHUB not in listed
    (row,) = json.loads(told("list", "--json"))["records"]
    assert (row["state"], row["scope"], row["count"]) == ("open", "workspace", 1)
    assert "scope is session" in told("keep", record.id)
    assert "scope is workspace" in told("share", record.id)
    assert "for the first time" in told("scan", "--dry-run")
    assert record.id in told("dismiss", record.id)
    assert "Nothing" in told()
    with pytest.raises(CommandError, match="Name the record"):
        told("keep")
    with pytest.raises(CommandError):
        told("keep", record.id)


def test_the_page(owner, agent_home):
    record = through("archive", agent_home)
    assert "1 record to decide on" in owner.get("/health/").content.decode()
    page = owner.get("/secrets/").content.decode()
    assert record.id in page and "github-pat" in page and GITHUB not in page
    assert GITHUB in owner.get(f"/records/{record.id}/").content.decode()
    shared = owner.post(f"/secrets/{record.id}", {"action": "share"}, follow=True).content.decode()
    assert "Shared in its workspace" in shared
    owner.post(f"/secrets/{record.id}", {"action": "keep"})
    assert Record.objects.get().scope == "session"
    assert (
        "Not raised again"
        in owner.post(f"/secrets/{record.id}", {"action": "dismiss"}, follow=True).content.decode()
    )
    assert "Nothing to decide" in owner.get("/secrets/").content.decode()
    assert owner.post(f"/secrets/{record.id}", {"action": "no"}).status_code == 404
    owner.logout()
    assert owner.get("/secrets/").status_code == 302
