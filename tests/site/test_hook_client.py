"""The hook client as agents start it: a process of its own, against real sockets."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import memex_site.hook_client as hook_client

CLIENT = Path(hook_client.__file__)
PAYLOAD = b'{"session_id": "s1",  "prompt": "\xe4\xbd\xa0\xe5\xa5\xbd"}\n'
ANSWER = '{"hookSpecificOutput": {"additionalContext": "你好"}}'.encode()
TOKEN = "mx_abc"
# What it may take and what a loaded machine may add: without its own limit it would hang for ever.
SLACK_SECONDS = 20

Serve = Callable[[socket.socket], None]


def plain(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def chunked(*parts: bytes, end: bool = True) -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + (b"0\r\n\r\n" if end else b"")
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + body


def request_of(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:"))
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(serve: Serve) -> Iterator[int]:
    """A listening socket that hands each connection to `serve`; its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def loop() -> None:
        while not done.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                serve(connection)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        done.set()
        listener.close()


def answering(answer: bytes) -> Serve:
    def serve(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(answer)

    return serve


@pytest.fixture
def home(tmp_path) -> Path:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "claude-code.token").write_text(TOKEN + "\n")
    return tmp_path


def announce(home: Path, port: int, pid: int | None = None) -> None:
    (home / "server.json").write_text(json.dumps({"pid": pid or os.getpid(), "port": port}))


def command(home: Path, *arguments: str) -> list[str]:
    return [
        sys.executable,
        "-I",
        "-S",
        str(CLIENT),
        *(arguments or ("claude-code", "SessionStart", str(home))),
    ]


def run(home: Path, *arguments: str, payload: bytes = PAYLOAD, **options) -> bytes:
    """What it prints; it must end well whatever happens."""
    ended = subprocess.run(
        command(home, *arguments),
        input=payload,
        capture_output=True,
        timeout=SLACK_SECONDS,
        cwd="/",
        **options,
    )
    assert ended.returncode == 0
    assert ended.stderr == b""
    return ended.stdout


def run_against(home: Path, serve: Serve, **options) -> bytes:
    with serving(serve) as port:
        announce(home, port)
        return run(home, **options)


def test_the_payload_goes_there_unchanged_and_the_answer_comes_back(home):
    seen: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        seen.append(request_of(connection))
        connection.sendall(plain(ANSWER))

    with serving(serve) as port:
        announce(home, port)
        assert run(home) == ANSWER
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert body == PAYLOAD
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /hooks/claude-code/SessionStart HTTP/1.1"
    assert {f"Host: 127.0.0.1:{port}", f"Authorization: Bearer {TOKEN}"} < set(lines)
    assert "Content-Type: application/json" in lines


def test_a_payload_of_megabytes_arrives_whole(home):
    payload = b'{"text": "' + b"x" * (3 * 2**20) + b'"}'
    sizes: list[int] = []

    def serve(connection: socket.socket) -> None:
        sizes.append(len(request_of(connection).partition(b"\r\n\r\n")[2]))
        connection.sendall(plain(ANSWER))

    assert run_against(home, serve, payload=payload) == ANSWER
    assert sizes == [len(payload)]


def test_an_answer_in_chunks_is_put_together(home):
    assert run_against(home, answering(chunked(ANSWER[:7], ANSWER[7:]))) == ANSWER


def test_an_answer_that_comes_byte_by_byte_is_waited_for(home):
    def serve(connection: socket.socket) -> None:
        request_of(connection)
        for place in range(len(answer := plain(b'{"a": 1}'))):
            connection.sendall(answer[place : place + 1])

    assert run_against(home, serve) == b'{"a": 1}'


def test_where_the_store_lies_is_in_the_environment_unless_it_is_said(home):
    with serving(answering(plain(ANSWER))) as port:
        announce(home, port)
        for environment in ({"MEMEX_HOME": str(home)}, {"HOME": str(home), "MEMEX_HOME": "~/."}):
            assert run(home, "claude-code", "Stop", env=environment) == ANSWER


SILENT = {
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "no body": plain(b""),
    "refused token": plain(b'{"ok": false}', "401 Unauthorized"),
    "server error": plain(b"<h1>Server Error</h1>", "500 Internal Server Error"),
    "moved": b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
    "a page": plain(b"<html></html>"),
    "a list": plain(b"[1]"),
    "cut short": plain(ANSWER)[:-3],
    "cut short inside": plain(b'{"a": {"b": 1}, "c": 2}')[:-9],
    "no length": b"HTTP/1.1 200 OK\r\n\r\n" + ANSWER,
    "lengths that disagree": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\n" + ANSWER,
    "a length below nothing": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + ANSWER,
    "chunks without an end": chunked(ANSWER, end=False),
    "a chunk without a size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "too large": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n{}\r\n\r\n",
    "noise": bytes(range(256)) * 2000,
    "closed at once": b"",
}


@pytest.mark.parametrize("answer", SILENT.values(), ids=SILENT.keys())
def test_what_is_no_complete_answer_is_passed_over_in_silence(home, answer):
    assert run_against(home, answering(answer)) == b""


def hangs(connection: socket.socket) -> None:
    request_of(connection)
    connection.recv(1)


def drips(connection: socket.socket) -> None:
    request_of(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{")
    while True:
        connection.sendall(b" ")
        time.sleep(0.05)


def reads_nothing(connection: socket.socket) -> None:
    time.sleep(SLACK_SECONDS / 2)


@pytest.mark.parametrize(
    ("serve", "payload"),
    [(hangs, PAYLOAD), (drips, PAYLOAD), (reads_nothing, b'{"a": "' + b"x" * 3_900_000 + b'"}')],
    ids=["hangs", "drips", "reads nothing"],
)
def test_a_server_that_does_not_come_to_an_end_is_left(home, serve, payload):
    started = time.monotonic()
    assert run_against(home, serve, payload=payload) == b""
    assert time.monotonic() - started < SLACK_SECONDS / 2


def test_an_agent_that_never_ends_its_payload_is_left(home):
    announce(home, 1)
    with subprocess.Popen(
        command(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(PAYLOAD)
        process.stdin.flush()
        assert process.wait(SLACK_SECONDS) == 0
        assert process.stdout.read() + process.stderr.read() == b""


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_without_a_server_there_is_silence(home):
    assert run(home) == b""
    announce(home, closed_port())
    assert run(home) == b""
    (home / "server.json").write_text('{"pid": 1, "port"')
    assert run(home) == b""


def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    "what", ["no token", "empty token", "two lines", "server gone", "payload", "no payload"]
)
def test_nothing_is_sent(home, what):
    heard: list[bytes] = []
    payload = {"payload": b"x" * (hook_client.PAYLOAD_BYTES + 1), "no payload": b""}.get(what, PAYLOAD)
    token = home / "agents" / "claude-code.token"
    with serving(lambda connection: heard.append(connection.recv(1))) as port:
        announce(home, port, pid=ended_pid() if what == "server gone" else None)
        if what == "no token":
            token.unlink()
        elif what in ("empty token", "two lines"):
            token.write_text("" if what == "empty token" else "mx_a\nX-More: b")
        assert run(home, payload=payload) == b""
    assert heard == []


@pytest.mark.parametrize(
    "arguments", [(), ("claude-code",), ("../x", "Stop"), ("codex", "Stop\r\nX: y"), ("代码", "Stop")]
)
def test_arguments_that_make_no_sense_do_no_harm(home, arguments):
    assert run(home, *(arguments or ("",))) == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_can_be_stopped_quietly(home, number):
    arrived = threading.Event()

    def serve(connection: socket.socket) -> None:
        request_of(connection)
        arrived.set()
        connection.recv(1)

    with serving(serve) as port:
        announce(home, port)
        with subprocess.Popen(
            command(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            process.stdin.write(PAYLOAD)
            process.stdin.close()
            arrived.wait(SLACK_SECONDS)
            process.send_signal(number)
            assert process.wait(SLACK_SECONDS) == 0
            assert process.stdout.read() + process.stderr.read() == b""


def test_an_agent_that_does_not_read_the_answer_costs_nothing(home):
    with serving(answering(plain(b'{"a": "' + b"x" * 200_000 + b'"}'))) as port:
        announce(home, port)
        with subprocess.Popen(
            command(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            process.stdout.close()
            process.stdin.write(PAYLOAD)
            process.stdin.close()
            assert process.wait(SLACK_SECONDS) == 0
            assert process.stderr.read() == b""


def test_it_needs_nothing_but_the_interpreter():
    """Each module more is time that the agent waits."""
    code = f"import sys; sys.argv = ['x']; sys.path.insert(0, {str(CLIENT.parent)!r}); import hook_client; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"socket", "signal", "json", "re", "enum", "django"} & set(loaded)
