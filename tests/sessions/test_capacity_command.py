"""`manage.py memory compress|restore|gc|write|pin|status-set` as a person runs them."""

import json
import subprocess
import sys
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from records.capacity.pools import pools_locked, session_pool
from records.capacity.runs import compression_stats
from records.ids import workspace_key
from records.models import CompressionRun, Record
from records.queries import record_open
from records.scope import OWNER
from sessions_app.archiving import archive_run
from sessions_app.checkup import store_findings
from sessions_app.models import ArchivedCompaction
from sessions_app.workspaces import workspace_joined, workspaces_read

from .stories import ROOT, Store, dump, session_id, write_log

pytestmark = pytest.mark.django_db(transaction=True)
CWD = "/home/dev/demo"


@pytest.fixture
def store(agent_home):
    write_log(agent_home, 1, compactions=4)
    archive_run([agent_home], level="l2")
    return agent_home


@pytest.fixture
def full(store, settings):
    """The session's pool, filled to its capacity."""
    settings.MEMEX_SESSION_CAPACITY_TOKENS = sum(Record.objects.values_list("tokens", flat=True))
    return session_pool(session_id())


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("memory", *arguments, stdout=out)
    return out.getvalue()


def as_json(command: str, *arguments: str) -> Any:
    return json.loads(run(command, "--json", *arguments))


def cold() -> set[str]:
    return set(Record.objects.filter(cold=1).values_list("id", flat=True))


def test_compressing_and_bringing_back(full):
    before = {record.id: record_open(OWNER, record.id).body for record in Record.objects.all()}
    plan = as_json("compress", "--session", session_id(), "--dry-run", "--target-ratio", "0.5")
    assert plan["dryRun"] and plan["records"] and not cold()
    assert "Nothing was changed" in run("compress", "--session", session_id(), "--dry-run")
    done = as_json("compress", "--session", session_id(), "--target-ratio", "0.5")
    assert done["coldMoved"] == len(plan["records"])
    assert cold() == set(plan["records"])
    assert done["afterHot"] == plan["afterHot"] <= done["targetTokens"]
    assert compression_stats([full]).last.actor == "owner"
    assert {record_id: record_open(OWNER, record_id).body for record_id in before} == before
    # What the summaries lost is what a cold record is still found by.
    for record in Record.objects.filter(cold=1):
        assert record.abstract.startswith("paths: ")
    assert list(store_findings(repair=False)) == []
    (first, *_) = plan["records"]
    assert as_json("restore", first)["record"]["cold"] is False
    assert first in run("restore", first)
    assert cold() == set(plan["records"][1:])
    assert list(store_findings(repair=False)) == []


def test_a_rebuild_finds_cold_records_as_they_are(full):
    run("compress", "--session", session_id())
    abstracts = dict(Record.objects.values_list("id", "abstract"))
    before = dump()
    Record.objects.all().delete()
    call_command("reindex", verbosity=0, stdout=StringIO())
    assert dump() == before
    assert dict(Record.objects.values_list("id", "abstract")) == abstracts


def test_gc_takes_what_belongs_to_a_record_along_and_brings_it_back(full):
    run("compress", "--session", session_id(), "--target-ratio", "0.1")
    before, archived = dump(), ArchivedCompaction.objects.count()
    plan = as_json("gc", "--session", session_id(), "--keep-tokens", "0", "--dry-run")
    assert set(plan["records"]) == cold() and plan["bundle"] == ""
    done = as_json("gc", "--session", session_id(), "--keep-tokens", "0")
    assert done["records"] == plan["records"] and done["afterCold"] == 0
    assert ArchivedCompaction.objects.count() == archived - len(plan["records"])
    assert list(store_findings(repair=False)) == []
    # What went does not come back by itself.
    archive_run()
    assert not cold() and Record.objects.count() == archived - len(plan["records"])
    assert "Nothing went" in run("gc", "--session", session_id(), "--keep-tokens", "0")
    run("trash", "restore", done["bundle"])
    assert dump() == before
    assert list(store_findings(repair=False)) == []


def test_a_pool_must_be_named_and_free(full):
    for command in (["compress"], ["gc", "--keep-tokens", "0"], ["write", "Text."]):
        with pytest.raises(CommandError, match="--workspace DIR"):
            run(*command)
        with pytest.raises(CommandError, match="not both"):
            run(*command, "--workspace", CWD, "--session", session_id())
    with pools_locked([full]), pytest.raises(CommandError, match="already"):
        run("compress", "--session", session_id())
    with pytest.raises(CommandError, match="language model"):
        run("compress", "--session", session_id(), "--strategy", "digest")
    with pytest.raises(CommandError, match=r"0\.1 and 0\.95"):
        run("compress", "--session", session_id(), "--target-ratio", "2")
    assert not CompressionRun.objects.exists()


@pytest.mark.usefixtures("store")
def test_writing_for_a_folder_and_for_a_session():
    shared = as_json(
        "write",
        "Use pnpm.",
        "--workspace",
        CWD,
        "--kind",
        "decision",
        "--slot",
        "package manager",
        "--tag",
        "tools",
    )
    record = Record.objects.get(pk=shared["id"])
    assert (record.scope, record.workspace_key, record.trust) == (
        "workspace",
        workspace_key(CWD, ""),
        "trusted",
    )
    assert (record.kind, record.tags, shared["status"]) == ("decision", {"topic": ["tools"]}, "active")
    assert "known already (exact)" in run("write", "use  pnpm.", "--workspace", CWD)
    other = as_json("write", "Use npm.", "--workspace", CWD, "--slot", "package manager")
    assert (other["status"], other["conflictsWith"]) == ("conflict", [shared["id"]])
    private = as_json("write", "Use yarn.", "--session", session_id())
    record = Record.objects.get(pk=private["id"])
    assert (record.scope, record.session_id, record.workspace) == ("session", session_id(), CWD)
    with pytest.raises(CommandError, match="text is empty"):
        run("write", " ", "--workspace", CWD)
    assert list(store_findings(repair=False)) == []


@pytest.mark.usefixtures("memex_home")
def test_joined_folders_are_one_pool(memex_home):
    (memex_home / "workspaces.json").write_text(
        json.dumps({**workspaces_read(), "joins": [["a", "b"], ["c", "d"]]})
    )
    assert workspace_joined("b") == {"a", "b"}
    assert workspace_joined("e") == {"e"}


@pytest.mark.usefixtures("store")
def test_pinning_and_setting_a_status():
    record_id = Record.objects.values_list("id", flat=True)[0]
    assert as_json("pin", record_id)["record"]["status"] == "pinned"
    assert "is active" in run("pin", record_id, "--unpin")
    assert as_json("status-set", record_id, "resolved")["record"]["status"] == "resolved"
    with pytest.raises(CommandError):
        run("status-set", record_id, "trashed")
    with pytest.raises(CommandError, match="No such record"):
        run("restore", "mem_0000000000")


def test_a_text_comes_from_stdin_byte_for_byte(tmp_path):
    store = Store(tmp_path)
    write_log(store.agent, compactions=1)
    text = b"# From a file\r\n\r\n  tabs\t\xe6\x95\xb0\xe6\x8d\xae\n\n"

    def write(data: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "manage.py", "memory", "write", "--json", "-", "--workspace", CWD],
            cwd=ROOT,
            env=store.env,
            input=data,
            capture_output=True,
            check=False,
        )

    done = write(text)
    assert done.returncode == 0, done.stderr
    opened = store.json("memory", "open", json.loads(done.stdout)["id"])
    assert opened["body"].encode() == text
    for data, why in ((b"\xff", b"no UTF-8"), (b"x" * 1_000_001, b"more than"), (b"", b"empty")):
        refused = write(data)
        assert refused.returncode == 1 and why in refused.stderr
