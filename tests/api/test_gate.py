"""What is decided in front of Django, over the wire."""

import json

import pytest

from memex_site.rates import Rates
from tests.servers import environment_of, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(environment_of(tmp_path_factory.mktemp("gate"))) as running:
        yield running


@pytest.fixture(scope="module")
def token(server):
    token = server.token("poller", "--workspace", "/w/demo")
    # The first use is noted, which is a write; polls come after it.
    server.request("GET", "/api/memory.index?cwd=/w/demo", token=token)
    return token


POLL = "/api/memory.index?cwd=/w/demo"


def test_a_poll_that_ends_in_304_never_reaches_django(server, token):
    response, body = server.request("GET", POLL, token=token)
    assert response.status == 200 and json.loads(body)["ok"]
    etag = response.headers["ETag"]
    again, body = server.request("GET", POLL, token=token, If_None_Match=etag)
    assert (again.status, body) == (304, b"")
    assert again.headers["ETag"] == etag
    # Django's answers carry the policy of its middleware.
    assert "Content-Security-Policy" in response.headers
    assert "Content-Security-Policy" not in again.headers


def test_after_any_write_the_answer_is_worked_out_anew(server, token):
    response, _ = server.request("GET", POLL, token=token)
    etag = response.headers["ETag"]
    server.token("another")
    again, _ = server.request("GET", POLL, token=token, If_None_Match=etag)
    assert again.status == 304 and "Content-Security-Policy" in again.headers
    server.manage("memory", "level", "--workspace", "/w/demo", "l3")
    changed, body = server.request("GET", POLL, token=token, If_None_Match=etag)
    assert changed.status == 200 and json.loads(body)["levels"]["l3"]


def test_a_revoked_token_gets_no_304(server):
    token = server.token("gone", "--workspace", "/w/demo")
    server.request("GET", POLL, token=token)
    response, _ = server.request("GET", POLL, token=token)
    etag = response.headers["ETag"]
    server.request("GET", POLL, token=token, If_None_Match=etag)
    server.manage("agent_token", "revoke", "gone")
    again, body = server.request("GET", POLL, token=token, If_None_Match=etag)
    assert again.status == 401 and json.loads(body)["code"] == "MEMORY_UNAUTHENTICATED"


def test_another_tokens_etag_is_worth_nothing(server, token):
    response, _ = server.request("GET", POLL, token=token)
    other, _ = server.request("GET", POLL, token="mx_nothing", If_None_Match=response.headers["ETag"])
    assert other.status == 401


@pytest.mark.parametrize("path", ["/api/status", "/hooks/codex/Stop", "/mcp", "/api/docs"])
def test_foreign_hosts_and_origins_are_turned_away(server, token, path):
    method = "GET" if path.startswith("/api") else "POST"
    for headers, status in (
        ({"Host": "evil.example"}, 400),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://127.0.0.1:{server.port + 1}"}, 403),
    ):
        response, body = server.request(
            method, path, {} if method == "POST" else None, token=token, **headers
        )
        assert response.status == status, (headers, body)
        assert json.loads(body)["code"] == "MEMORY_FORBIDDEN"
    mine, _ = server.request("GET", "/api/status", Origin=f"http://127.0.0.1:{server.port}")
    assert mine.status == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server, token):
    response, body = server.request("POST", "/api/memory.grep", b"x" * (8 * 1024 * 1024 + 1), token=token)
    assert response.status == 413 and json.loads(body)["code"] == "MEMORY_TOO_LARGE"


def test_who_asks_too_often_is_told_when_to_come_back(server):
    token = server.token("eager", "--workspace", "/w/demo")
    for _ in range(3_000):
        response, body = server.request("GET", "/api/nothing", token=token)
        if response.status == 429:
            break
    assert response.status == 429, "1,200 a minute are allowed"
    assert json.loads(body)["code"] == "MEMORY_RATE_LIMITED"
    assert int(response.headers["Retry-After"]) >= 1


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_fills_up_evenly():
    clock = Clock()
    rates = Rates(clock)
    assert all(rates.wait(b"a") == 0 for _ in range(1_200))
    assert rates.wait(b"a") == 1
    assert rates.wait(b"b") == 0
    clock.now = 30.0
    assert all(rates.wait(b"a") == 0 for _ in range(600))
    assert rates.wait(b"a") == 1
    rates.give_back(b"a", 1.0)
    assert rates.wait(b"a") == 0


def test_callers_that_are_forgotten_begin_anew():
    rates = Rates(Clock())
    for number in range(Rates.MOST + 10):
        rates.wait(str(number).encode())
    assert len(rates._buckets) == Rates.MOST
