"""Every route of the OpenAPI documents, with whatever they say may come and with what may not.

In short here; `FUZZ_EXAMPLES=500` in the environment of pytest makes it long.
"""

import json
import os
from urllib.parse import urljoin

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from tests.servers import environment_of, serving
from tests.sessions.stories import session_id, write_log

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "12"))
CODES = {
    400: {
        "MEMORY_INVALID_BODY", "MEMORY_INVALID_QUERY", "MEMORY_INVALID_ID", "MEMORY_INVALID_STATUS",
        "MEMORY_INVALID_QUOTA", "MEMORY_LEVEL_STICKY", "MEMORY_LEVELS_OFF", "MEMORY_DIGEST_REQUIRES_MODEL",
        "MEMORY_NOT_COLD",
    },
    401: {"MEMORY_UNAUTHENTICATED"}, 403: {"MEMORY_FORBIDDEN"},
    404: {"MEMORY_UNKNOWN_SESSION", "MEMORY_NOT_FOUND"}, 405: {"MEMORY_METHOD_NOT_ALLOWED"},
    409: {"MEMORY_CONFLICT", "MEMORY_BUSY"}, 413: {"MEMORY_TOO_LARGE"}, 422: {"MEMORY_IDEMPOTENCY_REUSED"},
    429: {"MEMORY_RATE_LIMITED"}, 507: {"MEMORY_STORE_FULL"},
}  # fmt: skip
SESSIONS = [session_id(1), "pushed", "nobody's", ""]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    write_log(folder / "claude-code", 1)
    with serving(environment_of(folder)) as running:
        running.manage("archive", "--level", "l3")
        yield running


@pytest.fixture(scope="module")
def token(server):
    token = server.token("claude-code", "--scope", "read,write,capacity,levels")
    server.request("POST", "/api/session.open", {"sessionId": "pushed", "agent": "botty"}, token=token)
    server.request("POST", "/api/memory.level", {"sessionId": "pushed", "level": "l2"}, token=token)
    return token


def operations(server, path):
    document = schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}{path}")
    return [found.ok() for found in document.get_all_operations()]


@pytest.mark.parametrize("document", ["/api/openapi.json", "/hooks/openapi.json"])
def test_no_request_makes_the_server_fail(server, token, document):
    found = operations(server, document)
    assert len(found) >= (25 if document.startswith("/api") else 1)
    with requests.Session() as session:
        for operation in found:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                try:
                    strategy = operation.as_strategy(generation_mode=mode)
                except Exception as error:  # a route without anything to get wrong
                    assert mode is GenerationMode.NEGATIVE, (operation.label, error)
                    continue
                _try(operation, strategy, session, token, server)


def _try(operation, strategy, session, token, server):
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
        phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=strategy, name=st.sampled_from([*SESSIONS, None]))
    def run(case, name):
        # Most made-up names stand for no session: half of the time a real one is asked for.
        if name is not None:
            if isinstance(case.body, dict) and "sessionId" in case.body:
                case.body["sessionId"] = name
            if case.query and "sessionId" in case.query:
                case.query["sessionId"] = name
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {token}"}
        try:
            response = case.call(session=session, timeout=30)
        except (requests.exceptions.InvalidHeader, UnicodeError):
            return  # can't be sent at all
        _check(operation.label, response)

    try:
        run()
    except Unsatisfiable:
        # Nothing can be wrong with a route that takes nothing.
        assert operation.path == "/api/status", operation.label
    except schemathesis.errors.SchemathesisError as error:
        assert "negative" in str(error).lower() or "Can not generate" in str(error), (operation.label, error)


def _check(label, response):
    status, body = response.status_code, response.content
    assert status < 500, (label, status, body[:500])
    if status in (204, 304):
        return
    answer = json.loads(body)
    if status == 200:
        assert answer.get("ok", True) is True, (label, answer)
        return
    assert answer["ok"] is False and answer["message"], (label, status, answer)
    assert answer["code"] in CODES[status], (label, status, answer)
    assert "pydantic" not in body.decode().lower() and "Traceback" not in body.decode(), answer


ODD = [
    b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b"\xef\xbb\xbf{}", b'{"sessionId": NaN}', b"1e999",
    b'{"sessionId": "\\ud800"}', b'{"a": 1, "a": 2}', b"[" * 5_000, b'{"sessionId": "' + b"x" * 300 + b'"}',
    b'{"sessionId": "\\u0000"}',
]  # fmt: skip


def test_bodies_that_no_schema_describes(server, token):
    paths = sorted({operation.path for operation in operations(server, "/api/openapi.json")})
    base = f"http://127.0.0.1:{server.port}"
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {token}"
        for path in paths:
            for body in ODD:
                _check(path, session.post(urljoin(base, path), data=body, timeout=30))
            for query in (
                "sessionId=%00",
                "sessionId=%ff&q=%ff",
                "sessionId=a&sessionId=b",
                "limit=1e9",
                "&&=&==",
            ):
                _check(path, session.get(f"{base}{path}?{query}", timeout=30))
