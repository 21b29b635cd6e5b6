"""The routes that change something."""

import json

import pytest
from django.test import Client

from records.models import CompressionRun, Record
from records.services import record_pin, record_update
from sessions_app import worker
from sessions_app.archiving import archive_run
from sessions_app.levels import level_enable
from sessions_app.models import AgentSession, Injection, OpenedSession, SessionSettings
from tests.sessions.stories import session_id, write_log

pytestmark = pytest.mark.django_db(transaction=True)
ALL = ("read", "write", "capacity", "levels")
CWD = "/home/dev/demo"


@pytest.fixture
def claude(caller, agents):
    write_log(agents / "claude-code", 1)
    archive_run(level="l3")
    return caller("claude-code", agent="claude-code", rights=ALL)


def ok(response):
    assert response.status_code == 200, response.content
    return response.json()


def refused(response, status, code):
    answer = response.json()
    assert (response.status_code, answer["ok"], answer["code"]) == (status, False, code), answer
    return answer


def write(caller, **fields):
    given = {
        "sessionId": session_id(),
        "kind": "decision",
        "text": "We deploy with make ship, never by hand.",
    }
    return caller.post("memory.write", **(given | fields))


def test_what_is_written_is_found_and_is_the_sessions_own(claude):
    answer = ok(write(claude, tags=["deploy"], useWhen="Read before deploying."))
    assert answer["status"] == "active" and answer["dedupe"] is None
    record = Record.objects.get(pk=answer["id"])
    assert (record.scope, record.trust, record.session_id) == ("workspace", "agent", session_id())
    assert record.provenance["source"] == "write" and record.provenance["agent"] == "claude-code"
    found = ok(claude.get("memory.search", sessionId=session_id(), q="how do we deploy?"))
    assert found["records"][0]["id"] == answer["id"]
    body = ok(claude.get("memory.record", sessionId=session_id(), id=answer["id"]))["body"]
    assert body.strip() == "We deploy with make ship, never by hand."


def test_the_same_again_is_the_same_record(claude):
    first = ok(write(claude))
    again = ok(write(claude))
    assert again["id"] == first["id"] and again["dedupe"] == "exact"


def test_what_a_person_vouches_for_is_theirs_to_change(claude):
    rule = ok(write(claude, slot="deploy"))["id"]
    record_update(rule, expected_hash=None, changes={"trust": "trusted"}, actor="owner")
    record_pin(rule, pinned=True, actor="owner")
    claim = ok(write(claude, slot="deploy", text="Everything goes out by rsync on Mondays."))
    assert (claim["status"], claim["conflictsWith"]) == ("conflict", [rule])
    for status in ("active", "resolved", "superseded"):
        answer = claude.post("memory.status", sessionId=session_id(), id=rule, status=status)
        refused(answer, 403, "MEMORY_FORBIDDEN")
    assert Record.objects.get(pk=rule).status == "pinned"


def test_another_claim_about_the_same_slot_is_a_conflict_that_only_the_owner_settles(claude):
    first = ok(write(claude, slot="package manager", text="The package manager is pnpm."))
    second = ok(write(claude, slot="package manager", text="All installs are done with yarn now."))
    assert second["status"] == "conflict" and second["conflictsWith"] == [first["id"]]
    refused(
        claude.post("memory.status", sessionId=session_id(), id=second["id"], status="active"),
        403, "MEMORY_FORBIDDEN",
    )  # fmt: skip


def test_scope_defaults_to_the_deepest_level_and_cannot_exceed_it(caller):
    botty = caller()
    ok(botty.post("session.open", sessionId="s1", agent="botty", cwd=CWD))
    refused(write(botty, sessionId="s1"), 400, "MEMORY_LEVELS_OFF")
    level_enable("s1", "l2")
    assert Record.objects.get(pk=ok(write(botty, sessionId="s1"))["id"]).scope == "session"
    refused(write(botty, sessionId="s1", scope="workspace"), 400, "MEMORY_LEVELS_OFF")
    level_enable("s1", "l3")
    shared = ok(write(botty, sessionId="s1", text="Something to share with everybody here."))
    assert Record.objects.get(pk=shared["id"]).scope == "workspace"


def test_the_owners_own_words_are_trusted(owner, claude):
    answer = ok(write(owner))
    assert Record.objects.get(pk=answer["id"]).trust == "trusted"
    refused(write(owner, sessionId=None), 404, "MEMORY_UNKNOWN_SESSION")


def test_confirmation_holds_back_what_agents_write(claude, owner, settings):
    settings.MEMEX_REQUIRE_CONFIRMATION = True
    answer = ok(write(claude))
    assert answer["status"] == "suggested"
    assert ok(claude.get("memory.search", sessionId=session_id(), q="deploy make ship"))["records"] == []
    refused(
        claude.post("memory.status", sessionId=session_id(), id=answer["id"], status="active"),
        403, "MEMORY_FORBIDDEN",
    )  # fmt: skip
    ok(owner.post("memory.status", id=answer["id"], status="active"))


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "episode"},
        {"kind": "nope"},
        {"text": ""},
        {"confidence": 2},
        {"scope": "world"},
        {"tags": "x"},
    ],
)
def test_what_cannot_be_written(claude, fields):
    refused(write(claude, **fields), 400, "MEMORY_INVALID_BODY")


def test_a_text_that_is_too_large(claude):
    refused(write(claude, text="漢" * 400_000), 413, "MEMORY_TOO_LARGE")


def test_pinning_and_what_is_no_status(claude):
    record = Record.objects.first()
    answer = ok(claude.post("memory.status", sessionId=session_id(), id=record.id, status="pinned"))
    assert answer["record"]["status"] == "pinned"
    refused(
        claude.post("memory.status", sessionId=session_id(), id=record.id, status="gone"),
        400, "MEMORY_INVALID_STATUS",
    )  # fmt: skip
    refused(
        claude.post("memory.status", sessionId=session_id(), id="mem_0123456789", status="pinned"),
        404, "MEMORY_NOT_FOUND",
    )  # fmt: skip


def test_a_level_goes_on_and_never_off(claude, agents):
    answer = ok(claude.post("memory.level", sessionId=session_id(), level="l2"))
    assert answer["levels"] == {"l2": True, "l3": True} and answer["captureScope"] == "workspace"
    for name in ("off", "none", "l1", ""):
        refused(claude.post("memory.level", sessionId=session_id(), level=name), 400, "MEMORY_LEVEL_STICKY")
    assert SessionSettings.objects.get().l2 == 1
    assert worker._nudged(), "its log is read at once"


def test_levels_are_a_right_of_their_own(caller, claude):
    plain = caller("second", agent="claude-code", rights=("read", "write", "capacity"))
    refused(plain.post("memory.level", sessionId=session_id(), level="l2"), 403, "MEMORY_FORBIDDEN")
    assert not SessionSettings.objects.get().l2


def test_cold_and_back(claude, settings):
    total = sum(Record.objects.values_list("tokens", flat=True))
    settings.MEMEX_CAPACITY_TOKENS = total
    answer = ok(
        claude.post("memory.compress", sessionId=session_id(), level="auto", strategy="cold", targetRatio=0.6)
    )
    (report,) = answer["reports"]
    assert report["level"] == "l3" and report["coldMoved"] == 1 and report["beforeHot"] == total
    assert answer["compression"]["count"] == 1 and answer["compression"]["last"]["coldMoved"] == 1
    cold = Record.objects.get(cold=1)
    index = ok(claude.get("memory.index", sessionId=session_id()))
    assert index["coldCount"] == 1 and index["compression"]["count"] == 1
    assert CompressionRun.objects.get().actor == "token:claude-code"
    assert ok(claude.get("memory.record", sessionId=session_id(), id=cold.id))["body"]
    back = ok(claude.post("memory.restore", sessionId=session_id(), id=cold.id))
    assert back["record"]["cold"] is False
    refused(claude.post("memory.restore", sessionId=session_id(), id=cold.id), 400, "MEMORY_NOT_COLD")


def test_what_compression_refuses(claude, owner):
    refused(
        claude.post("memory.compress", sessionId=session_id(), strategy="digest"),
        400, "MEMORY_DIGEST_REQUIRES_MODEL",
    )  # fmt: skip
    refused(claude.post("memory.compress", sessionId=session_id(), level="l2"), 400, "MEMORY_LEVELS_OFF")
    refused(owner.post("memory.compress"), 404, "MEMORY_UNKNOWN_SESSION")
    refused(claude.post("memory.gc", sessionId=session_id(), keepTokens=-1), 400, "MEMORY_INVALID_QUOTA")
    refused(claude.post("memory.gc", sessionId=session_id()), 400, "MEMORY_INVALID_QUOTA")


def test_gc_moves_cold_records_to_the_trash(claude, settings):
    settings.MEMEX_CAPACITY_TOKENS = 10_000_000
    from records.capacity.cold import record_cool

    record_cool([Record.objects.first().id], actor="owner")
    (report,) = ok(claude.post("memory.gc", sessionId=session_id(), keepTokens=0))["reports"]
    assert report["removed"] == 1 and report["bundle"]
    assert Record.objects.count() == 1


def test_an_agent_forgets_what_is_its_own_and_nothing_else(claude):
    written = ok(write(claude))["id"]
    archived = Record.objects.exclude(pk=written).first().id
    refused(claude.post("memory.forget", sessionId=session_id(), ids=[archived]), 403, "MEMORY_FORBIDDEN")
    preview = ok(claude.post("memory.forget", sessionId=session_id(), ids=[written], dryRun=True))
    assert not preview["done"] and Record.objects.filter(pk=written).exists()
    done = ok(claude.post("memory.forget", sessionId=session_id(), ids=[written]))
    assert done["done"] and done["bundle"] and not Record.objects.filter(pk=written).exists()
    refused(claude.post("memory.forget", sessionId=session_id()), 400, "MEMORY_INVALID_BODY")


def test_a_forgotten_session_is_unknown_and_comes_back_by_undo(claude):
    handle = ok(claude.post("session.open", sessionId=session_id(), agent="claude-code", cwd=CWD))["handle"]
    ok(claude.post("session.prestep", sessionId=session_id()))
    done = ok(claude.post("memory.forget", sessionId=session_id(), session=True))
    assert not AgentSession.objects.exists() and not Record.objects.exists()
    assert not OpenedSession.objects.exists() and not Injection.objects.exists()
    refused(claude.get("memory.index", sessionId=session_id()), 404, "MEMORY_UNKNOWN_SESSION")
    refused(claude.post("session.prestep", sessionId=session_id()), 404, "MEMORY_UNKNOWN_SESSION")
    from sessions_app.forget import forget_undo

    forget_undo(done["bundle"], actor="owner")
    assert ok(claude.get("memory.index", sessionId=session_id()))["count"] == 2
    assert OpenedSession.objects.get().handle == handle


def test_a_forgotten_record_counts_as_shown_no_more(claude):
    ok(claude.post("session.prestep", sessionId=session_id()))
    written = ok(write(claude))["id"]
    ok(claude.post("session.prestep", sessionId=session_id()))
    assert written in Injection.objects.get().shown
    ok(claude.post("memory.forget", sessionId=session_id(), ids=[written]))
    assert written not in Injection.objects.get().shown


def test_a_request_that_is_sent_again_is_carried_out_once(claude):
    key = {"Idempotency-Key": "k1"}
    body = {"sessionId": session_id(), "kind": "note", "text": "Remember the tide tables."}
    first = ok(claude.post("memory.write", body, headers=key))
    again = ok(claude.post("memory.write", body, headers=key))
    assert again == first and again["dedupe"] is None
    refused(
        claude.post("memory.write", body | {"text": "Other."}, headers=key), 422, "MEMORY_IDEMPOTENCY_REUSED"
    )
    assert ok(claude.post("memory.write", body))["dedupe"] == "exact"
    refused(
        claude.post("memory.write", body, headers={"Idempotency-Key": "k" * 201}), 400, "MEMORY_INVALID_BODY"
    )


def test_a_request_that_was_refused_may_be_sent_again_under_its_key(claude):
    key = {"Idempotency-Key": "k2"}
    bad = {"sessionId": session_id(), "kind": "note", "text": "x", "scope": "session"}
    refused(claude.post("memory.write", bad, headers=key), 400, "MEMORY_LEVELS_OFF")
    level_enable(session_id(), "l2")
    ok(claude.post("memory.write", bad, headers=key))


def test_the_owners_cookie_alone_changes_nothing(owner, claude):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = owner.client.cookies
    record = Record.objects.first()
    response = strict.post(
        "/api/memory.status",
        json.dumps({"id": record.id, "status": "pinned"}),
        content_type="application/json",
    )
    refused(response, 403, "MEMORY_FORBIDDEN")
    assert Record.objects.get(pk=record.id).status == "active"


def test_read_only_tokens_change_nothing(caller, claude):
    reader = caller("reader", agent="claude-code", rights=("read",))
    record = Record.objects.first()
    for route, fields in (
        ("memory.write", {"kind": "note", "text": "x"}), ("memory.status", {"id": record.id, "status": "pinned"}),
        ("memory.compress", {}), ("memory.restore", {"id": record.id}), ("memory.gc", {"keepTokens": 0}),
        ("memory.forget", {"ids": [record.id]}), ("memory.level", {"level": "l2"}), ("session.prestep", {}),
    ):  # fmt: skip
        refused(reader.post(route, sessionId=session_id(), **fields), 403, "MEMORY_FORBIDDEN")
