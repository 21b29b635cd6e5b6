"""The server's address: who holds it, and where this store's server says it listens."""

import http.client
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from records.files import write_atomic

HOST = "127.0.0.1"
DEFAULT_PORT = 8420
# Sent as the Server header: how one Memex recognises another on a port.
SERVER_NAME = "Memex"
PROBE_SECONDS = 2.0
# Request line and headers; 16 KiB are usual, and too few for 5,000 characters in an address.
REQUEST_HEAD_BYTES = 128 * 1024


def url(port: int, path: str = "/") -> str:
    return f"http://{HOST}:{port}{path}"


def try_bind(port: int) -> None:
    """Raises the OSError that the server would meet."""
    with socket.socket() as probe:
        # As the server itself will bind: a port whose last server has just ended counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))


def port_is_memex(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=PROBE_SECONDS)
    try:
        connection.request("HEAD", "/signin/")
        return connection.getresponse().getheader("Server") == SERVER_NAME
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def announced(port: int) -> Iterator[None]:
    """Leaves the port in MEMEX_HOME for other commands, for as long as this process serves it."""
    file = _address_file()
    mine = json.dumps({"pid": os.getpid(), "port": port}).encode()
    write_atomic(file, mine)
    try:
        yield
    finally:
        # Another server of this store may have started since, on another port.
        if file.exists() and file.read_bytes() == mine:
            file.unlink()


def running_port() -> int | None:
    """Where this store's server answers now, if one does."""
    try:
        port = int(json.loads(_address_file().read_bytes())["port"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return port if port_is_memex(port) else None


def _address_file() -> Path:
    return Path(settings.MEMEX_HOME) / "server.json"
