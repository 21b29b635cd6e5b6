"""What Memex knows of the agents that talk to it, and what it has told them. Not rebuilt from files."""

from typing import ClassVar

from django.db import models


class OpenedSession(models.Model):
    """A session that an agent spoke to Memex about. Of one with both levels off this is all there is: like a
    log's source row it holds no title and no text."""

    session_id = models.CharField(primary_key=True, max_length=200)
    # Names the session in injected text and in MCP calls: random, and worth nothing without the token.
    handle = models.CharField(max_length=32, unique=True)
    agent = models.CharField(max_length=32)
    cwd = models.TextField(blank=True)
    parent_id = models.CharField(max_length=200, blank=True)
    context_window = models.BigIntegerField(null=True)
    # The token that opened it. NULL: its agent's logs or hooks brought it.
    token_id = models.BigIntegerField(null=True, db_index=True)
    opened_at = models.BigIntegerField()
    heard_at = models.BigIntegerField()

    class Meta:
        db_table = "opened_sessions"

    def __str__(self) -> str:
        return self.session_id


class Injection(models.Model):
    """What a session has been shown in its present window, so that nothing is said twice."""

    session_id = models.CharField(primary_key=True, max_length=200)
    # Record ids, the oldest first.
    shown = models.JSONField(default=list)
    last_recall = models.CharField(max_length=64, blank=True)
    catalog_digest = models.CharField(max_length=64, blank=True)
    # A window begins: whoever can inject next brings the catalog.
    is_fresh = models.BooleanField(default=True)
    # The compaction or eviction with which the window began; with a leading "?" it is the one before, and
    # the log is still to say which one came.
    window = models.CharField(max_length=201, blank=True)
    injected_at = models.BigIntegerField(null=True)
    # Counts the changes: what two requests say at once must not be said twice.
    version = models.BigIntegerField(default=0)
    noticed_at = models.BigIntegerField(null=True)
    noticed_percent = models.JSONField(default=dict)

    class Meta:
        db_table = "injections"

    def __str__(self) -> str:
        return self.session_id


class Receipt(models.Model):
    """What an agent is to be told about an archive; delivered by the injection point."""

    session_id = models.CharField(max_length=200, db_index=True)
    record_id = models.CharField(max_length=45)
    created_at = models.BigIntegerField()
    offered = models.PositiveSmallIntegerField(default=0)
    offered_at = models.BigIntegerField(null=True)
    # The injected messages that offered it, between blanks: one of them seen in the log, or acknowledged, it
    # is delivered.
    message_ids = models.TextField(blank=True)
    delivered_at = models.BigIntegerField(null=True)

    class Meta:
        db_table = "receipts"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session_id", "record_id"], name="receipt_key")
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.record_id}"
