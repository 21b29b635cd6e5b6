"""What the bench measures on: copies that nobody takes for one another."""

import pytest

from sessions_app.bench import logs_multiply
from sessions_app.discovery import head_read
from tests.sessions.stories import as_bytes, session_id, story


def test_copies_have_ids_of_their_own(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = as_bytes(story(1, compactions=1))
    (logs / "plain.jsonl").write_bytes(lines)
    (logs / "named.jsonl").write_bytes(lines.replace(session_id(1).encode(), b"fork-session"))
    copies = logs_multiply(logs, tmp_path / "copies", 1)
    heads = [head_read(copy) for copy in copies]
    ids = [head.session_id for head in heads if head]
    assert len(ids) == len(copies) > 4
    assert len(set(ids)) == len(ids)
    assert "fork-session-1" in ids


def test_a_folder_without_logs_is_refused(tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"nothing": "of the kind"}\n')
    with pytest.raises(ValueError, match=r"no plain \.jsonl log"):
        logs_multiply(tmp_path, tmp_path / "copies", 1)
