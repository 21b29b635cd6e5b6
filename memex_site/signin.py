"""Signing in without a password: a link that only someone at this machine's terminal can print."""

import hashlib
import secrets
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.cache import cache

from records.clock import now_ms

from .models import SigninLink

LIFETIME_MS = 15 * 60 * 1000
OWNER_NAME = "owner"

# Tokens can't be guessed anyway; this keeps a runaway script from trying all day.
FAILURES_ALLOWED = 10
FAILURE_WINDOW_SECONDS = 60
FAILURES_KEY = "signin-failures"


@dataclass(frozen=True)
class NewLink:
    path: str
    expires_at: int


def link_create() -> NewLink:
    now = now_ms()
    SigninLink.objects.filter(expires_at__lte=now).delete()
    token = secrets.token_urlsafe(32)
    link = SigninLink.objects.create(token_hash=_hash(token), expires_at=now + LIFETIME_MS)
    return NewLink(path=f"/signin/{token}", expires_at=link.expires_at)


def link_is_good(token: str) -> bool:
    """Whether `token` could be redeemed now; asking does not use it up."""
    return SigninLink.objects.filter(token_hash=_hash(token), expires_at__gt=now_ms()).exists()


def link_redeem(token: str) -> bool:
    """Whether `token` is good; it is used up by asking, however many ask at once."""
    deleted, _ = SigninLink.objects.filter(token_hash=_hash(token), expires_at__gt=now_ms()).delete()
    return deleted == 1


def owner() -> User:
    """The one person this store belongs to, made when first needed, without a password. A right that was
    taken from them would lock everybody out: it is given back."""
    people = User.objects.order_by("pk")
    found = people.filter(username=OWNER_NAME).first() or people.filter(is_superuser=True).first()
    if found is None:
        return User.objects.create_superuser(OWNER_NAME)
    if not (found.is_active and found.is_staff and found.is_superuser):
        found.is_active = found.is_staff = found.is_superuser = True
        found.save()
    return found


def failure_note() -> None:
    cache.set(FAILURES_KEY, cache.get(FAILURES_KEY, 0) + 1, FAILURE_WINDOW_SECONDS)


def failures_exceeded() -> bool:
    return bool(cache.get(FAILURES_KEY, 0) >= FAILURES_ALLOWED)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
