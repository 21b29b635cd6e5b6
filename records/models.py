"""The projection of record files in SQLite. Files are the truth; every row here can be rebuilt.

Tables keep the names and columns of the original store, so that existing readers work.
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q


class Kind(models.TextChoices):
    EPISODE = "episode"
    OPEN_THREAD = "open-thread"
    DECISION = "decision"
    CONSTRAINT = "constraint"
    FACT = "fact"
    PREFERENCE = "preference"
    PROCEDURE = "procedure"
    NOTE = "note"
    CHECKPOINT = "checkpoint"
    DIGEST = "digest"


class Scope(models.TextChoices):
    SESSION = "session"
    WORKSPACE = "workspace"


class Status(models.TextChoices):
    ACTIVE = "active"
    PINNED = "pinned"
    SUGGESTED = "suggested"
    CONFLICT = "conflict"
    RESOLVED = "resolved"
    SUPERSEDED = "superseded"
    TRASHED = "trashed"


HIDDEN = (Status.SUPERSEDED, Status.SUGGESTED, Status.TRASHED)
# SQLite reads a partial index only for a query that repeats its condition, term by term: these filters serve
# both. With `IN` it doesn't recognise them.
SHOWN_Q = ~Q(status="superseded") & ~Q(status="suggested") & ~Q(status="trashed")
HOT_Q = Q(cold=0) & (Q(status="active") | Q(status="pinned"))


# Archived text is derived; nobody says the same on purpose.
WRITTEN_Q = ~Q(trust="derived")


class IsSensitive(models.Func):
    """Whether a record has the tag for what looks like a secret, as an index has it."""

    template = "json_type(%(expressions)s, '$.sensitive') IS NOT NULL"
    output_field = models.BooleanField()


SENSITIVE_Q = Q(IsSensitive("tags"))


class TextHash(models.Func):
    """writing.text_hash of a record that was written, as an index has it: in words that never differ."""

    function = "json_extract"
    template = "json_extract(%(expressions)s, '$.textHash')"
    output_field = models.TextField()

    def __init__(self) -> None:
        super().__init__("provenance")


class Trust(models.TextChoices):
    TRUSTED = "trusted"
    AGENT = "agent"
    DERIVED = "derived"


class Record(models.Model):
    """One record file. Times are integer milliseconds UTC."""

    id = models.CharField(primary_key=True, max_length=45)
    schema = models.PositiveSmallIntegerField(default=1)
    kind = models.CharField(max_length=16, choices=Kind)
    scope = models.CharField(max_length=16, choices=Scope)
    workspace = models.TextField(blank=True)
    workspace_key = models.CharField(max_length=100)
    session_id = models.CharField(max_length=200, blank=True)
    title = models.CharField(max_length=160)
    summary = models.TextField(blank=True)
    use_when = models.TextField(blank=True)
    status = models.CharField(max_length=16, choices=Status, default=Status.ACTIVE)
    trust = models.CharField(max_length=16, choices=Trust)
    confidence = models.FloatField(null=True)
    slot = models.CharField(max_length=200, blank=True)
    tokens = models.BigIntegerField(default=1)
    tags = models.JSONField(default=dict, db_column="tags_json")
    entities = models.JSONField(default=list, db_column="entities_json")
    sources = models.JSONField(default=list, db_column="sources_json")
    links = models.JSONField(default=dict, db_column="links_json")
    provenance = models.JSONField(default=dict, db_column="provenance_json")
    created_at = models.BigIntegerField()
    updated_at = models.BigIntegerField()
    # Only in the database, never in the file:
    bytes = models.BigIntegerField(default=0)
    # An integer, since a BooleanField's filter becomes `NOT cold` and misses the index.
    cold = models.PositiveSmallIntegerField(default=0)
    abstract = models.TextField(blank=True)
    path = models.TextField()
    content_hash = models.CharField(max_length=64)
    read_count = models.PositiveIntegerField(default=0)
    last_read_at = models.BigIntegerField(null=True)

    class Meta:
        db_table = "records"
        indexes: ClassVar = [
            models.Index(fields=["created_at"], name="records_created_index"),
            models.Index(fields=["updated_at", "id"], name="records_updated_index"),
            # A pool's records in order: all that are shown, those of a kind, everything.
            models.Index(
                fields=["workspace_key", "scope", "updated_at", "id"],
                name="records_pool_updated",
                condition=SHOWN_Q,
            ),
            models.Index(
                fields=["workspace_key", "scope", "kind", "updated_at", "id"],
                name="records_pool_kind",
                condition=SHOWN_Q,
            ),
            models.Index(fields=["workspace_key", "scope", "created_at"], name="records_pool_created"),
            models.Index(fields=["session_id", "updated_at", "id"], name="records_session"),
            # What a catalog chooses from, in a pool and for the owner of all.
            models.Index(
                fields=["workspace_key", "scope", "updated_at", "id"], name="records_hot", condition=HOT_Q
            ),
            models.Index(
                fields=["workspace_key", "scope", "cold", "updated_at", "id"],
                name="records_pool_pinned",
                condition=Q(status="pinned"),
            ),
            models.Index(
                fields=["cold", "updated_at", "id"], name="records_pinned", condition=Q(status="pinned")
            ),
            models.Index(
                fields=["workspace_key", "scope", "kind", "updated_at", "id"],
                name="records_pool_threads",
                condition=HOT_Q & Q(kind="open-thread"),
            ),
            models.Index(
                fields=["kind", "updated_at", "id"],
                name="records_threads",
                condition=HOT_Q & Q(kind="open-thread"),
            ),
            # What was written on purpose: the same text, and what is about the same.
            models.Index(
                models.F("workspace_key"),
                models.F("scope"),
                TextHash(),
                name="records_text_hash",
                condition=WRITTEN_Q,
            ),
            models.Index(
                fields=["workspace_key", "scope", "slot"], name="records_slot", condition=~Q(slot="")
            ),
            models.Index(fields=["created_at", "id"], name="records_sensitive", condition=SENSITIVE_Q),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.title}"


class PoolTotal(models.Model):
    """Running totals, changed in the transaction that changes the records; `doctor` verifies them."""

    workspace_key = models.CharField(max_length=100)
    scope = models.CharField(max_length=16)
    session_id = models.CharField(max_length=200, blank=True)
    kind = models.CharField(max_length=16)
    status = models.CharField(max_length=16)
    cold = models.PositiveSmallIntegerField()
    count = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)

    class Meta:
        db_table = "pool_totals"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace_key", "scope", "session_id", "kind", "status", "cold"],
                name="pool_total_key",
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["session_id"], name="pool_totals_session"),
            # The owner's sums over many sessions, read off in the order they are grouped in.
            models.Index(
                fields=["kind", "status", "cold", "count", "tokens", "bytes"], name="pool_totals_sums"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workspace_key}/{self.scope}/{self.kind}: {self.count}"


class SearchEntry(models.Model):
    """A record in the search indexes: its number there, and whether the body index is behind.

    Changed in the transaction that changes the record, so that a crash leaves nothing unindexed. An entry
    without a record is one whose passages are still to be taken out.
    """

    number = models.BigAutoField(primary_key=True)
    record = models.OneToOneField(
        Record, on_delete=models.DO_NOTHING, db_constraint=False, related_name="search_entry"
    )
    workspace_key = models.CharField(max_length=100)
    scope = models.CharField(max_length=16)
    session_id = models.CharField(max_length=200, blank=True)
    # Counts the changes, so that one that comes while the passages are written is not taken for done.
    version = models.BigIntegerField(default=1)
    # An integer, like Record.cold.
    pending = models.PositiveSmallIntegerField(default=1)

    class Meta:
        db_table = "search_entries"
        indexes: ClassVar = [
            models.Index(
                fields=["workspace_key", "scope", "number"], name="search_pending", condition=Q(pending=1)
            ),
            models.Index(fields=["session_id", "workspace_key"], name="search_session"),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.record_id}"


class CompressionRun(models.Model):
    """A run of `compress` on one pool, whoever asked for it. Not rebuilt from files."""

    id = models.AutoField(primary_key=True)
    # Whose pool it was (L2), or which session asked (L3; "" when none did).
    session_id = models.CharField(max_length=200, blank=True)
    # The shared pool's workspaces; none for a session's own.
    workspace_keys = models.JSONField(default=list)
    level = models.CharField(max_length=8)
    strategy = models.CharField(max_length=16)
    # Tokens.
    before_hot = models.BigIntegerField()
    after_hot = models.BigIntegerField()
    # Records.
    cold_moved = models.IntegerField(default=0)
    digests = models.IntegerField(default=0)
    llm_calls = models.IntegerField(default=0)
    # A line each; "" when all went well.
    errors = models.TextField(blank=True)
    # Milliseconds UTC; how long it took, None while it runs and of one that was killed.
    created_at = models.BigIntegerField()
    duration_ms = models.BigIntegerField(null=True)
    actor = models.CharField(max_length=200)

    class Meta:
        db_table = "compression_runs"
        indexes: ClassVar = [models.Index(fields=["session_id"], name="compression_runs_session")]

    def __str__(self) -> str:
        return f"{self.level} {self.strategy}: {self.cold_moved} records"
