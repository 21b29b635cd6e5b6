"""What an agent runs at each of its hooks: hands the agent's JSON to the running Memex, prints its answer.

    python3 -I -S hook_client.py AGENT EVENT [MEMEX_HOME] < payload.json

It may never be in the agent's way: done within LIMIT_SECONDS, exit status 0, nothing printed but a complete
answer, nothing on stderr. An agent waits for it at each prompt, so it imports the C modules alone: with
`socket`, `signal` and `os` the interpreter takes twice as long to start.
"""

import _signal  # type: ignore[import-not-found]  # has no stub
import _socket
import posix
import sys

LIMIT_SECONDS = 1.4  # 1.5 in all: the interpreter has started already
PAYLOAD_BYTES = 4 * 2**20
ANSWER_BYTES = 2**20
HEAD_BYTES = 64 * 2**10
CHUNK = 64 * 2**10


class Nothing(Exception):
    """There is nothing to print."""


def main(arguments: list[str]) -> None:
    agent, event = arguments[0], arguments[1]
    if not (agent.replace("-", "").isalnum() and event.isalnum() and (agent + event).isascii()):
        raise Nothing
    home = arguments[2] if len(arguments) > 2 else _home()
    payload = _payload()
    token = _read(f"{home}/agents/{agent}.token").decode("ascii").strip()
    if not token.isprintable() or not token or " " in token:
        raise Nothing
    port = _port(_read(f"{home}/server.json"))
    answer = _ask(port, f"/hooks/{agent}/{event}", token, payload)
    if answer[:1] == b"{" and answer.rstrip()[-1:] == b"}":
        _write(answer)


def _home() -> str:
    environment = posix.environ
    named = environment.get(b"MEMEX_HOME") or environment[b"HOME"] + b"/.memex"
    if named.startswith(b"~/"):
        named = environment[b"HOME"] + named[1:]
    return named.decode("utf-8", "surrogateescape")


def _payload() -> bytes:
    data = bytearray()
    while part := posix.read(0, CHUNK):
        data += part
        if len(data) > PAYLOAD_BYTES:
            raise Nothing
    if not data:
        raise Nothing
    return bytes(data)


def _read(path: str) -> bytes:
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK)
    return posix.read(descriptor, CHUNK)


def _port(address: bytes) -> int:
    """From `{"pid": …, "port": …}`. Nothing if that process is gone: the token is for no other program that
    may listen on its port now."""
    try:  # noqa: SIM105  # contextlib would be one module more
        posix.kill(_number(address, b'"pid"'), 0)
    except PermissionError:
        pass
    return _number(address, b'"port"')


def _number(text: bytes, name: bytes) -> int:
    after = text[text.index(name) + len(name) :].lstrip(b" :")
    digits = after[: len(after) - len(after.lstrip(b"0123456789"))]
    return int(digits)


def _ask(port: int, path: str, token: str, payload: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\nConnection: close\r\n\r\n"
    )
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    connection.connect(("127.0.0.1", port))
    connection.sendall(head.encode("ascii") + payload)
    received = bytearray()
    while b"\r\n\r\n" not in received:
        if len(received) > HEAD_BYTES:
            raise Nothing
        _more(connection, received)
    lines, _, rest = bytes(received).partition(b"\r\n\r\n")
    status, *headers = lines.split(b"\r\n")
    version, _, outcome = status.partition(b" ")
    if not version.startswith(b"HTTP/1.") or outcome.split(b" ")[0] != b"200":
        raise Nothing
    return _body(connection, _headers(headers), bytearray(rest))


def _headers(lines: list[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        if found.setdefault(name.lower(), value.strip().lower()) != value.strip().lower():
            found[name.lower()] = b""
    return found


def _body(connection: _socket.socket, headers: dict[bytes, bytes], received: bytearray) -> bytes:
    """All of it or Nothing: an answer that ends with the connection can't be told from one cut short."""
    if headers.get(b"transfer-encoding") == b"chunked":
        return _chunks(connection, received)
    length = headers.get(b"content-length", b"")
    if not length.isdigit() or int(length) > ANSWER_BYTES:
        raise Nothing
    while len(received) < int(length):
        _more(connection, received)
    return bytes(received[: int(length)])


def _chunks(connection: _socket.socket, received: bytearray) -> bytes:
    body = bytearray()
    while True:
        while b"\r\n" not in received:
            _more(connection, received)
        line, _, rest = bytes(received).partition(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        if not size:
            return bytes(body)
        received = bytearray(rest)
        if size < 0 or len(body) + size > ANSWER_BYTES:
            raise Nothing
        while len(received) < size + 2:
            _more(connection, received)
        if received[size : size + 2] != b"\r\n":
            raise Nothing
        body += received[:size]
        del received[: size + 2]


def _more(connection: _socket.socket, received: bytearray) -> None:
    part = connection.recv(CHUNK)
    if not part or len(received) > 2 * ANSWER_BYTES:
        raise Nothing
    received += part


def _write(answer: bytes) -> None:
    while answer:
        answer = answer[posix.write(1, answer) :]


def _leave(*_: object) -> None:
    posix._exit(0)


if __name__ == "__main__":
    try:
        # One limit over all of it: whatever call it blocks in, the timer ends it.
        for number in (_signal.SIGALRM, _signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
            _signal.signal(number, _leave)
        _signal.setitimer(_signal.ITIMER_REAL, LIMIT_SECONDS)
        main(sys.argv[1:])
    except BaseException:  # noqa: S110  # silent on purpose: whatever is printed reaches the agent
        pass
    # Without the interpreter's own end: flushing to a closed pipe would print an error.
    posix._exit(0)
