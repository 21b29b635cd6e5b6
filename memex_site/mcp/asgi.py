"""MCP over streamable HTTP, in front of Django: stateless, one JSON answer a request.

daphne has no lifespan, so the SDK's manager is started by the first request, in a task of its own that runs as
long as the event loop does; one that has died is replaced by the next request.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sessions_app.principals import Principal

from .threads import in_thread

HOSTS = ("127.0.0.1", "localhost", "[::1]")

logger = logging.getLogger(__name__)


async def mcp_app(scope: Any, receive: Any, send: Any) -> None:
    if scope["method"] != "POST":
        # Nothing is ever sent unasked, and there is no session to end.
        await _answer(send, 405, "MEMORY_METHOD", "MCP is spoken by POST here.", [(b"allow", b"POST")])
        return
    principal = await _verified(scope)
    if principal is None:
        challenge = [(b"www-authenticate", b'Bearer realm="memex"')]
        message = "This needs a token that works: manage.py agent_token create NAME makes one."
        await _answer(send, 401, "MEMORY_UNAUTHENTICATED", message, challenge)
        return
    try:
        manager = await asyncio.shield(_running().ready)
    except Exception:
        # Why, the log says already.
        await _answer(send, 503, "MEMORY_UNAVAILABLE", "MCP could not be started; the server's log says why.")
        return
    from .callers import PRINCIPAL

    await manager.handle_request({**scope, PRINCIPAL: principal}, receive, send)


async def _verified(scope: Any) -> Principal | None:
    # Models can be imported once Django is set up, which comes after this module.
    from memex_site.tokens import token_verify

    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            return await in_thread(token_verify, token.strip()) if scheme.lower() == "bearer" else None
    return None


async def _answer(
    send: Any, status: int, code: str, message: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    body = json.dumps({"ok": False, "code": code, "message": message}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


class _Host:
    """The SDK's manager and the task that it lives in."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.ready: asyncio.Future[Any] = loop.create_future()
        self.task = loop.create_task(self._run(loop), name="memex-mcp")

    async def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            # Importing the SDK takes a second, in which no page would be served.
            manager = await loop.run_in_executor(None, _new_manager)
            async with manager.run():
                self.ready.set_result(manager)
                await asyncio.Event().wait()
        except Exception as error:
            logger.exception("MCP ended; the next request starts it again")
            if not self.ready.done():
                self.ready.set_exception(error)
        finally:
            self.ready.cancel()


_hosts: WeakKeyDictionary[asyncio.AbstractEventLoop, _Host] = WeakKeyDictionary()


def _running() -> _Host:
    loop = asyncio.get_running_loop()
    host = _hosts.get(loop)
    if host is None or host.task.done():
        host = _hosts[loop] = _Host(loop)
    return host


def _new_manager() -> Any:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    from .callers import http_door
    from .server import build_server

    return StreamableHTTPSessionManager(
        app=build_server(http_door()),
        stateless=True,
        json_response=True,
        security_settings=TransportSecuritySettings(
            allowed_hosts=[name for host in HOSTS for name in (host, f"{host}:*")],
            allowed_origins=[name for host in HOSTS for name in (f"http://{host}", f"http://{host}:*")],
        ),
    )
