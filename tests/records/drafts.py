"""Drafts and writes for tests."""

from records.ids import archive_id
from records.recordfile import RecordDraft
from records.services import record_write

WHEN = 1_700_000_000_000


def make_draft(compaction: str = "c1", *, session: str = "s1", **changes) -> RecordDraft:
    values = {
        "id": archive_id(session, compaction),
        "kind": "episode",
        "scope": "workspace",
        "workspace": "/home/dev/demo",
        "workspace_key": "0123456789abcdef",
        "session_id": session,
        "title": f"What {compaction} was about",
        "summary": "A summary.",
        "use_when": "Read when continuing.",
        "trust": "derived",
        "tags": {"source": ["compaction-archive"], "where": ["src/a.py"]},
        "provenance": {
            "source": "compaction-archive",
            "agent": "claude-code",
            "sessionId": session,
            "compactionId": compaction,
        },
        "created_at": WHEN,
        "body": f"> Archived.\n\n## Summary\nThe text of {compaction}.\n",
    }
    return RecordDraft(**(values | changes))


def write(compaction: str = "c1", **changes) -> str:
    return record_write(make_draft(compaction, **changes), actor="test", verb="archive").record_id
