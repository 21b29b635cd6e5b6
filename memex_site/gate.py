"""In front of Django: who may knock, how often, and polls that can be answered at once.

Raw ASGI answers twenty times as many requests a second as Django does, and agents poll. So what needs no
database is decided here for /api/, /hooks/ and /mcp: Host and Origin, the size of a body, the rate of a token,
and a poll whose answer can't have changed, because nothing in the database has.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from .polls import PollCache
from .rates import Rates

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
# Django's own type says more than the protocol does.
App = Callable[[Any, Receive, Send], Awaitable[None]]

GUARDED = ("/api/", "/hooks/", "/mcp")
BODY_MAX_BYTES = 8 * 1024 * 1024
# A batch of an agent's events, and what else it may be wrapped in.
EVENTS_MAX_BYTES = 16 * 1024 * 1024
_EVENTS = "/api/session.events"
# A 304 costs nearly nothing, and counts a tenth.
POLL_COST = 0.1


class Gate:
    """`hosts`: names that the server answers to, without a port."""

    def __init__(self, django: App, mcp: App, hosts: Iterable[str], polls: PollCache) -> None:
        self._django, self._mcp = django, mcp
        self._hosts = frozenset(hosts)
        self._polls, self._rates = polls, Rates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(GUARDED):
            await self._django(scope, receive, send)
            return
        headers = _headers(scope)
        problem = self._refused(scope, headers)
        token = headers.get(b"authorization", b"")
        if problem is None and token:
            problem = self._too_often(token, POLL_COST)
        if problem is not None:
            await _refuse(send, *problem)
            return
        if token and (etag := self._polls.known(scope, token, headers.get(b"if-none-match", b""))):
            await _answer(send, 304, b"", {b"ETag": etag})
            return
        if token and (problem := self._too_often(token, 1 - POLL_COST)):
            await _refuse(send, *problem)
            return
        if scope["path"] in ("/mcp", "/mcp/"):
            await self._mcp(scope, receive, send)
            return
        await self._django(scope, receive, self._watched(scope, token, send))

    def _refused(self, scope: Scope, headers: Mapping[bytes, bytes]) -> tuple[Any, ...] | None:
        if not self._is_ours(headers.get(b"host", b"")):
            return 400, "MEMORY_FORBIDDEN", "This server answers to its own names only."
        origin = headers.get(b"origin")
        if origin is not None and not self._is_same(origin, headers.get(b"host", b"")):
            return 403, "MEMORY_FORBIDDEN", "Requests from other sites' pages are not taken."
        most = EVENTS_MAX_BYTES if scope["path"] == _EVENTS else BODY_MAX_BYTES
        try:
            length = int(headers.get(b"content-length", b"0"))
        except ValueError:
            return 400, "MEMORY_INVALID_BODY", "Content-Length is no number."
        if length > most:
            return 413, "MEMORY_TOO_LARGE", f"A body here has {most:,} bytes at most."
        return None

    def _is_ours(self, host: bytes) -> bool:
        return _name(host.decode("latin-1")) in self._hosts

    def _is_same(self, origin: bytes, host: bytes) -> bool:
        """A page of ours, by whichever of our names; a page of another port is another site."""
        try:
            parts = urlsplit(origin.decode("latin-1"))
            port = parts.port or 80
        except ValueError:
            return False
        mine = _port(host.decode("latin-1"))
        return parts.scheme == "http" and parts.hostname in _bare(self._hosts) and port == mine

    def _too_often(self, token: bytes, cost: float) -> tuple[Any, ...] | None:
        wait = self._rates.wait(hashlib.sha256(token).digest(), cost)
        if not wait:
            return None
        said = f"More than {Rates.PER_MINUTE:,} requests a minute: wait {wait} s."
        return 429, "MEMORY_RATE_LIMITED", said, {b"Retry-After": str(wait).encode()}

    def _watched(self, scope: Scope, token: bytes, send: Send) -> Send:
        """Remembers the answer of a poll, with the state of the database before it was worked out."""
        if not token or not PollCache.is_poll(scope):
            return send
        stamp = self._polls.stamp()

        async def watching(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start" and message["status"] in (200, 304):
                for name, value in message["headers"]:
                    if name.lower() == b"etag":
                        self._polls.note(scope, token, value, stamp)
                if message["status"] == 304:
                    self._rates.give_back(hashlib.sha256(token).digest(), 1 - POLL_COST)
            await send(message)

        return watching


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """The last of each name; two of one are no honest client's."""
    return dict(scope["headers"])


def _name(host: str) -> str:
    """`host` without its port."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _port(host: str) -> int:
    try:
        return int(host.rpartition(":")[2])
    except ValueError:
        return 80


def _bare(hosts: Iterable[str]) -> set[str]:
    return {host.strip("[]") for host in hosts}


async def _refuse(
    send: Send, status: int, code: str, message: str, headers: Mapping[bytes, bytes] | None = None
) -> None:
    body = json.dumps({"ok": False, "code": code, "message": message}).encode()
    await _answer(
        send, status, body, {b"Content-Type": b"application/json; charset=utf-8", **(headers or {})}
    )


async def _answer(send: Send, status: int, body: bytes, headers: Mapping[bytes, bytes]) -> None:
    given = [
        *headers.items(),
        (b"Content-Length", str(len(body)).encode()),
        (b"X-Content-Type-Options", b"nosniff"),
    ]
    if status == 304:
        given = [pair for pair in given if pair[0] != b"Content-Length"]
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": body})
    # Lets others have their turn: a client that polls without pause would keep the loop to itself.
    await asyncio.sleep(0)
