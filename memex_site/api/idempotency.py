"""Idempotency-Key: a request that is sent again, since its answer was lost, is not carried out again."""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest

from memex_site.models import IdempotencyKey
from records.clock import now_ms
from sessions_app.principals import Principal

KEPT_MS = 24 * 60 * 60 * 1000
# Whoever was at it for longer is taken for dead; what it did is found out by doing it again.
WORKING_MS = 60 * 1000
KEY_MAX = 200

View = Callable[..., dict[str, Any]]


class KeyReused(Exception):
    """MEMORY_IDEMPOTENCY_REUSED: the key stands for another request."""


class StillWorking(Exception):
    """MEMORY_BUSY: the first request under this key is not answered yet."""


def once(view: View) -> View:
    """Only answers are kept: a request that was refused may be sent again."""

    @wraps(view)
    def answering(request: HttpRequest, *args: Any, **kwargs: Any) -> dict[str, Any]:
        key = request.headers.get("Idempotency-Key")
        if not key:
            return view(request, *args, **kwargs)
        if len(key) > KEY_MAX:
            raise ValueError(f"An Idempotency-Key has at most {KEY_MAX} characters.")
        row, answer = _claim(request, key)
        if answer is not None:
            return answer
        try:
            answer = view(request, *args, **kwargs)
        except BaseException:
            row.delete()
            raise
        row.answer = answer
        row.save(update_fields=["answer"])
        return answer

    return answering


def _claim(request: HttpRequest, key: str) -> tuple[IdempotencyKey, dict[str, Any] | None]:
    principal: Principal = request.auth  # type: ignore[attr-defined]  # ninja puts it there
    digest = hashlib.sha256(request.path.encode() + b"\0" + request.body).hexdigest()
    now = now_ms()
    try:
        with transaction.atomic():
            IdempotencyKey.objects.filter(created_at__lt=now - KEPT_MS).delete()
            row, is_new = IdempotencyKey.objects.get_or_create(
                token_id=principal.token_id or 0,
                key=key,
                defaults={"request_hash": digest, "created_at": now},
            )
            if is_new:
                return row, None
            if row.request_hash != digest:
                raise KeyReused("This Idempotency-Key was used for another request.")
            if row.answer is not None:
                return row, row.answer
            if now - row.created_at < WORKING_MS:
                raise StillWorking("The first request under this Idempotency-Key is not answered yet.")
            row.created_at = now
            row.save(update_fields=["created_at"])
            return row, None
    except IntegrityError:
        raise StillWorking("The first request under this Idempotency-Key is not answered yet.") from None
