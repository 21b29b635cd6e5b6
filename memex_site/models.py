from typing import ClassVar

from django.db import models


class SigninLink(models.Model):
    """A link not used yet: using it deletes the row. Of its token only the SHA-256 is kept."""

    token_hash = models.CharField(primary_key=True, max_length=64)
    expires_at = models.BigIntegerField()  # milliseconds UTC

    class Meta:
        db_table = "signin_links"

    def __str__(self) -> str:
        return f"until {self.expires_at}"


class AgentToken(models.Model):
    """What an agent shows to be let in. Of the token itself only the SHA-256 is kept. A revoked one keeps its
    row: a backup that is put back must not revive it."""

    name = models.CharField(max_length=64)
    token_hash = models.CharField(max_length=64, unique=True)
    # Whose sessions it may act for, as logs and hooks bring them; "" = those that it opened itself.
    agent = models.CharField(max_length=32, blank=True)
    rights = models.JSONField(default=list)
    # [[workspace key, folder], …]; empty: not limited to some.
    workspaces = models.JSONField(default=list)
    created_at = models.BigIntegerField()
    # Written at most every five minutes.
    last_used_at = models.BigIntegerField(null=True)
    revoked_at = models.BigIntegerField(null=True)

    class Meta:
        db_table = "agent_tokens"

    def __str__(self) -> str:
        return self.name


class IdempotencyKey(models.Model):
    """An answer that was given, for a request that is sent again under the same key."""

    # 0: the owner.
    token_id = models.BigIntegerField()
    key = models.CharField(max_length=200)
    # SHA-256 of the route and the body: under one key there is one request.
    request_hash = models.CharField(max_length=64)
    # NULL while it is worked on.
    answer = models.JSONField(null=True)
    created_at = models.BigIntegerField()

    class Meta:
        db_table = "idempotency_keys"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["token_id", "key"], name="idempotency_key_unique")
        ]

    def __str__(self) -> str:
        return self.key
