"""Records of an original Memex store are brought in, and its files left as they were."""

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from records import queries
from records.models import Record
from records.scope import OWNER
from records.tombstones import tombstones_add

from .secret_texts import GITHUB

pytestmark = pytest.mark.django_db(transaction=True)
ORIGINAL = """---
id: "mem_0123456789"
kind: "episode"
scope: "workspace"
workspace: "/home/dev/demo"
workspace_key: "0123456789abcdef"
session_id: "session-1"
title: "端口是多少？"
use_when: "Read when the port matters."
status: "active"
trust: "derived"
tokens: 499844
tags: {"source":["compaction-archive"],"where":["src/port.py"]}
links: {}
provenance: {"source":"compaction-archive","sessionId":"session-1","compactionId":"k1","seqStart":3,"seqEnd":6}
created_at: 1700000000000
updated_at: 1700000000000
---

> Archived from session `session-1`.

## Summary
The port is 8123.
"""


@pytest.fixture
def original(tmp_path, memex_home) -> Path:
    folder = tmp_path / "memories"
    for tier, record_id in (("records", "mem_0123456789"), ("cold", "mem_abcdefghij")):
        path = folder / tier / "0123456789abcdef" / f"{record_id}.md"
        path.parent.mkdir(parents=True)
        path.write_text(ORIGINAL.replace("mem_0123456789", record_id).replace('"k1"', f'"{record_id}"'))
    (folder / "records" / "0123456789abcdef" / "notes.md").write_text("no front matter")
    return folder


def test_records_come_in_with_their_ids_and_bodies(original, capsys):
    before = {path: path.read_bytes() for path in original.rglob("*.md")}
    call_command("import_records", str(original), "--json")
    said = capsys.readouterr()
    assert json.loads(said.out) == {
        "found": 3, "created": 2, "there_before": 0, "forgotten": 0, "unreadable": 1,
    }  # fmt: skip
    assert "notes.md" in said.err
    opened = queries.record_open(OWNER, "mem_0123456789")
    assert opened.record.title == "端口是多少？"
    assert opened.record.created_at == 1_700_000_000_000
    assert opened.record.tokens < 100
    assert opened.body.decode().endswith("## Summary\nThe port is 8123.\n")
    assert {path: path.read_bytes() for path in original.rglob("*.md")} == before


def test_again_changes_nothing_and_what_was_forgotten_stays_so(original, capsys):
    tombstones_add([{"kind": "record", "id": "mem_abcdefghij"}])
    for created, there_before in ((1, 0), (0, 1)):
        call_command("import_records", str(original), "--json")
        result = json.loads(capsys.readouterr().out)
        assert (result["created"], result["there_before"], result["forgotten"]) == (created, there_before, 1)
    assert Record.objects.count() == 1


def test_another_folder_is_refused(tmp_path, memex_home):
    with pytest.raises(CommandError, match="no records/ folder"):
        call_command("import_records", str(tmp_path))


def test_what_looks_like_a_secret_comes_in_private_and_again_changes_nothing(original):
    for path in original.glob("*/*/mem_*.md"):
        path.write_text(path.read_text().replace("端口是多少？", GITHUB) + f"token {GITHUB}\n")
    call_command("import_records", str(original))
    records = Record.objects.all()
    assert {(each.scope, tuple(each.tags["sensitive"]), each.title) for each in records} == {
        ("session", ("github-pat",), "«redacted:github-pat»")
    }
    before = [each.content_hash for each in records]
    call_command("import_records", str(original))
    assert [each.content_hash for each in Record.objects.all()] == before
