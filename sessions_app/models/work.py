"""Long tasks, and who does them."""

from django.db import models


class Job(models.Model):
    """Progress, cancel and result of a long task."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    kind = models.CharField(max_length=32)
    state = models.CharField(max_length=12, choices=State, default=State.QUEUED)
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(default=0)
    message = models.TextField(blank=True)
    arguments = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    cancel_requested = models.BooleanField(default=False)
    created_at = models.BigIntegerField()
    updated_at = models.BigIntegerField()

    class Meta:
        db_table = "jobs"

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class Lease(models.Model):
    """Who is the store's one background worker."""

    name = models.CharField(primary_key=True, max_length=32)
    holder = models.CharField(max_length=200)
    heartbeat_at = models.BigIntegerField()

    class Meta:
        db_table = "leases"

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"
