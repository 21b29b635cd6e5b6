"""Agents' sessions as read from their logs. Every row but switches, jobs and receipts can be rebuilt
from the mirror under MEMEX_HOME/sessions. Times are integer milliseconds UTC."""

from typing import ClassVar

from django.db import models


class AgentSession(models.Model):
    """One conversation of one agent, the part of it that Memex has read (only with a level on)."""

    session_id = models.CharField(primary_key=True, max_length=200)
    agent = models.CharField(max_length=32)
    workspace_key = models.CharField(max_length=100, db_index=True)
    cwd = models.TextField(blank=True)
    title = models.TextField(blank=True)
    # A sub-agent's parent, or the session a fork was taken from.
    parent_id = models.CharField(max_length=200, blank=True, db_index=True)
    relation = models.CharField(
        max_length=16, blank=True, choices=[("subagent", "sub-agent"), ("fork", "fork")]
    )
    # Whose private pool and levels hold: itself, or for a sub-agent its topmost parent.
    pool_session_id = models.CharField(max_length=200, db_index=True)
    model = models.CharField(max_length=120, blank=True)
    context_window = models.BigIntegerField(null=True)
    used_tokens = models.BigIntegerField(null=True)
    started_at = models.BigIntegerField(null=True)
    last_event_at = models.BigIntegerField(null=True)
    ended_at = models.BigIntegerField(null=True)
    event_count = models.BigIntegerField(default=0)
    current_count = models.BigIntegerField(default=0)
    current_tokens = models.BigIntegerField(default=0)
    # Events below this generation belong to a superseded numbering (DSH renumbers at each version).
    view_generation = models.PositiveIntegerField(default=0)
    is_sample = models.BooleanField(default=False)

    class Meta:
        db_table = "agent_sessions"

    def __str__(self) -> str:
        return self.session_id


class Source(models.Model):
    """A log file of an agent. For a session with both levels off this row is all that exists."""

    path = models.TextField(unique=True)
    agent = models.CharField(max_length=32)
    session_id = models.CharField(max_length=200, db_index=True)
    cwd = models.TextField(blank=True)
    size = models.BigIntegerField()
    mtime_ns = models.BigIntegerField()
    started_at = models.BigIntegerField(null=True)
    parent_id = models.CharField(max_length=200, blank=True)
    relation = models.CharField(max_length=16, blank=True)
    missing_since = models.BigIntegerField(null=True)
    is_sample = models.BooleanField(default=False)
    # What it looked like when it was last read to its end, to pass it over until it changes.
    read_size = models.BigIntegerField(default=-1)
    read_mtime_ns = models.BigIntegerField(default=0)
    # Which generation of its session's mirror holds it.
    generation = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "sources"

    def __str__(self) -> str:
        return self.path


class Generation(models.Model):
    """One byte stream of a session's mirror: a source, as long as it only grew."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="generations")
    number = models.PositiveIntegerField()
    # How far events have been read: every byte before is mirrored, parsed and committed.
    parsed_bytes = models.BigIntegerField(default=0)
    parsed_rows = models.BigIntegerField(default=0)
    # What the reader needs to go on from there; opaque here.
    reader_state = models.JSONField(default=dict)
    # The last row had no b"\n" yet, but was complete.
    open_tail = models.BooleanField(default=False)

    class Meta:
        db_table = "generations"
        constraints: ClassVar = [models.UniqueConstraint(fields=["session", "number"], name="generation_key")]

    def __str__(self) -> str:
        return f"{self.session_id} g{self.number}"


class Surface(models.TextChoices):
    CURRENT = "current", "in context"
    SHADOWED = "shadowed", "compacted away"
    LOG_ONLY = "log-only", "never shown"


class Event(models.Model):
    """One event of a session. Its text is not here: it is read from the mirror."""

    # No index of its own: event_key begins with it.
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="events", db_index=False)
    seq = models.BigIntegerField()
    # Where it stands: (generation, row) of the session's mirror, or of that of `mirror_id` (inline
    # sub-agents). Numbers and not keys, so that a rebuild gives the same rows.
    mirror_id = models.CharField(max_length=200, blank=True)
    generation = models.PositiveIntegerField(default=0)
    row = models.BigIntegerField()
    offset = models.BigIntegerField()
    length = models.BigIntegerField()
    part = models.PositiveIntegerField(default=0)
    type = models.CharField(max_length=80)
    role = models.CharField(max_length=16, blank=True)
    source = models.CharField(max_length=24, blank=True)
    time = models.BigIntegerField(null=True)
    tokens = models.BigIntegerField(default=0)
    uid = models.CharField(max_length=120, blank=True)
    ref = models.CharField(max_length=120, blank=True)
    digest = models.BigIntegerField(default=0)
    # NULL: it cannot be told whether the model sees it.
    surface = models.CharField(max_length=10, null=True, choices=Surface)  # noqa: DJ001
    shadowed_by = models.BigIntegerField(null=True)
    inherited = models.BooleanField(default=False)
    # The record that owns it: the first archive that took it out of the window.
    record_id = models.CharField(max_length=45, blank=True)
    preview = models.CharField(max_length=200, blank=True)

    class Meta:
        db_table = "events"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "generation", "seq"], name="event_key"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["session", "shadowed_by"],
                name="event_shadowed_by",
                condition=models.Q(shadowed_by__isnull=False),
            ),
            models.Index(fields=["record_id"], name="event_record", condition=~models.Q(record_id="")),
        ]

    def __str__(self) -> str:
        return f"{self.session_id} #{self.seq}"


class SessionFile(models.Model):
    """A file that a log points to, copied into blobs/ when first seen."""

    class State(models.TextChoices):
        KEPT = "kept"
        MISSING = "missing"
        TOO_LARGE = "too-large"
        OUTSIDE = "outside"  # not below the agent's folder: never followed

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="files")
    path = models.TextField()
    row = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=State)
    sha256 = models.CharField(max_length=64, blank=True, db_index=True)
    size = models.BigIntegerField(default=0)

    class Meta:
        db_table = "session_files"
        constraints: ClassVar = [models.UniqueConstraint(fields=["session", "path"], name="session_file_key")]

    def __str__(self) -> str:
        return self.path


class Compaction(models.Model):
    """A compaction, microcompact or prune as found in a log, before and after it is archived."""

    class State(models.TextChoices):
        READY = "ready"  # may be archived
        PENDING = "pending"  # its replacement, or its summary, has not been seen yet
        ARCHIVED = "archived"
        INHERITED = "inherited"  # archived under the session it happened in
        EMPTY = "empty"  # removed nothing
        FAILED = "failed"  # the agent gave it up
        FORGOTTEN = "forgotten"  # its record was, and stays so

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="compactions")
    compaction_id = models.CharField(max_length=200)
    kind = models.CharField(max_length=16)  # compaction | microcompact | prune
    state = models.CharField(max_length=12, choices=State)
    generation = models.PositiveIntegerField(default=0)
    # The event that did it, and the one that holds the summary.
    at_seq = models.BigIntegerField()
    summary_seq = models.BigIntegerField(null=True)
    # The session it happened in, when a replayed prefix brought it here.
    origin_session_id = models.CharField(max_length=200, blank=True)
    trigger = models.CharField(max_length=16, blank=True)
    tokens_before = models.BigIntegerField(null=True)
    tokens_after = models.BigIntegerField(null=True)
    provider = models.CharField(max_length=120, blank=True)
    model = models.CharField(max_length=120, blank=True)
    confirmed = models.BooleanField(default=True)
    opaque = models.BooleanField(default=False)
    time = models.BigIntegerField(null=True)
    # The events that left the window by it: [[first seq, last seq], …].
    dropped = models.JSONField(default=list)
    missing = models.JSONField(default=list)
    # Counts by category of what the summary lost, and a few of each; filled when archived.
    lost = models.JSONField(default=dict)
    record_id = models.CharField(max_length=45, blank=True)

    class Meta:
        db_table = "compactions"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "compaction_id"], name="compaction_key"),
        ]
        indexes: ClassVar = [models.Index(fields=["state"], name="compaction_state")]

    def __str__(self) -> str:
        return f"{self.session_id} {self.compaction_id}"


class SessionSettings(models.Model):
    """The sticky switches of a session; session.json in its mirror holds the same."""

    session_id = models.CharField(primary_key=True, max_length=200)
    l2 = models.PositiveSmallIntegerField(default=0)
    l3 = models.PositiveSmallIntegerField(default=0)
    updated_at = models.BigIntegerField()

    class Meta:
        db_table = "session_settings"
        verbose_name_plural = "session settings"

    def __str__(self) -> str:
        return self.session_id


class ArchivedCompaction(models.Model):
    session_id = models.CharField(max_length=200)
    compaction_id = models.CharField(max_length=200)
    record_id = models.CharField(max_length=45, db_index=True)
    created_at = models.BigIntegerField()

    class Meta:
        db_table = "archived_compactions"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session_id", "compaction_id"], name="archived_compaction_key")
        ]

    def __str__(self) -> str:
        return f"{self.compaction_id} -> {self.record_id}"


class L1Eviction(models.Model):
    session_id = models.CharField(max_length=200)
    start_seq = models.BigIntegerField()
    end_seq = models.BigIntegerField()
    record_id = models.CharField(max_length=45, db_index=True)
    shadowed_tokens = models.BigIntegerField()
    created_at = models.BigIntegerField()

    class Meta:
        db_table = "l1_evictions"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session_id", "start_seq", "end_seq"], name="l1_eviction_key")
        ]

    def __str__(self) -> str:
        return f"{self.session_id} #{self.start_seq}-#{self.end_seq}"


class ImportWarning(models.Model):
    """Something a log got wrong. One a row and code; the rest of the file is read all the same."""

    path = models.TextField()
    row = models.BigIntegerField(null=True)
    code = models.CharField(max_length=40)
    message = models.TextField()
    session_id = models.CharField(max_length=200, blank=True, db_index=True)
    created_at = models.BigIntegerField()

    class Meta:
        db_table = "import_warnings"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["path", "row", "code"], name="import_warning_key")
        ]

    def __str__(self) -> str:
        return f"{self.path}:{self.row} {self.code}"
