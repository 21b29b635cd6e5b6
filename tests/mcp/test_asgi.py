import asyncio
import json
import logging

import pytest

from memex_site.mcp import asgi

from .conftest import token_of

pytestmark = pytest.mark.django_db(transaction=True)

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def token(memex_home) -> str:
    return token_of().token


async def status_of(token: str) -> int:
    """Of a POST to PATH."""
    body = json.dumps(PING).encode()
    sent = []
    given = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if given:
            return given.pop()
        return await asyncio.get_running_loop().create_future()

    async def send(message):
        sent.append(message)

    headers = {
        "host": "127.0.0.1:8420",
        "authorization": f"Bearer {token}",
        "content-type": "application/json",
        "accept": "application/json",
    }
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await asgi.mcp_app(scope, receive, send)
    return sent[0]["status"]


def test_it_is_started_once_and_anew_when_it_has_died(token) -> None:
    async def run():
        assert await status_of(token) == 200
        first = asgi._running()
        assert await status_of(token) == 200
        assert asgi._running() is first
        first.task.cancel()
        await asyncio.wait([first.task])
        assert await status_of(token) == 200
        assert asgi._running() is not first

    asyncio.run(run())


def test_when_it_cannot_start_the_next_request_tries_again(token, monkeypatch, caplog) -> None:
    def fails():
        raise OSError("no memory")

    async def run():
        with monkeypatch.context() as broken:
            broken.setattr(asgi, "_new_manager", fails)
            assert await status_of(token) == 503
        assert await status_of(token) == 200

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert "no memory" in caplog.text


def test_who_is_not_let_in_does_not_start_it(memex_home) -> None:
    async def run():
        assert await status_of("mx_none") == 401
        assert asyncio.get_running_loop() not in asgi._hosts

    asyncio.run(run())
