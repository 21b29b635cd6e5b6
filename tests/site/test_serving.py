import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from memex_site import background, serving

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def environment(tmp_path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MEMEX_")}
    agents = {name: str(tmp_path / name) for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "DSH_HOME")}
    return clean | agents | {"MEMEX_HOME": str(tmp_path / "store"), "PYTHONUNBUFFERED": "1"}


def manage(environment, *arguments):
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def listener():
    """Some other program that holds a port, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_serving_from_start_to_end(environment, tmp_path):
    refused = manage(environment, "serve", "--port", "0")
    assert refused.returncode == 1
    assert "manage.py migrate" in refused.stderr

    assert manage(environment, "migrate", "-v0").returncode == 0
    process = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", "0"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        greeting = [process.stdout.readline() for _ in range(3)]
        port = int(greeting[0].split()[2].rsplit(":", 1)[1].strip("/"))
        assert f"http://127.0.0.1:{port}/signin/" in greeting[1]
        link = greeting[1].split()[-1]

        with urllib.request.urlopen(link) as response:
            assert response.headers["Server"] == "Memex"
            assert "Sign in on this browser" in response.read().decode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/static/app.css") as response:
            assert response.headers["Content-Type"].startswith("text/css")

        other = json.loads(manage(environment, "signin_link", "--json").stdout)
        assert other["running"] is True
        assert other["url"].startswith(f"http://127.0.0.1:{port}/signin/")

        again = manage(environment, "serve", "--port", str(port))
        assert again.returncode == 1
        assert f"Memex is already running at http://127.0.0.1:{port}/" in again.stderr
        assert "make run PORT=" in again.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert link.rsplit("/", 1)[1] not in rest
    assert not (tmp_path / "store" / "server.json").exists()


def test_a_port_that_cannot_be_used_is_explained(environment, listener):
    manage(environment, "migrate", "-v0")
    taken = manage(environment, "serve", "--port", str(listener))
    assert taken.returncode == 1
    assert f"Port {listener} is taken by another program" in taken.stderr
    assert "make run PORT=8420" in taken.stderr
    impossible = manage(environment, "serve", "--port", "70000")
    assert impossible.returncode == 1
    assert "Port 70000 can't be used" in impossible.stderr


def test_a_foreign_store_is_refused(environment, tmp_path):
    import sqlite3

    store = tmp_path / "store"
    store.mkdir()
    with sqlite3.connect(store / "index.db") as database:
        database.execute("CREATE TABLE records (id TEXT)")
    database.close()
    ended = manage(environment, "serve")
    assert ended.returncode == 1
    assert "import_records" in ended.stderr


def test_the_address_is_left_while_serving_only(settings, tmp_path):
    settings.MEMEX_HOME = tmp_path
    with serving.announced(9000):
        assert json.loads((tmp_path / "server.json").read_bytes())["port"] == 9000
    assert not (tmp_path / "server.json").exists()


def test_the_address_of_a_later_server_stays(settings, tmp_path):
    settings.MEMEX_HOME = tmp_path
    with serving.announced(9000), serving.announced(9001):
        pass
    assert not (tmp_path / "server.json").exists()
    with serving.announced(9000):
        (tmp_path / "server.json").write_text('{"pid": 1, "port": 9002}')
    assert (tmp_path / "server.json").exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"port": null}', '{"port": "x"}', "\0"])
def test_a_damaged_address_is_no_server(settings, tmp_path, content):
    settings.MEMEX_HOME = tmp_path
    (tmp_path / "server.json").write_text(content)
    assert serving.running_port() is None


def test_the_worker_runs_until_it_is_asked_to_end(monkeypatch, tmp_path):
    (tmp_path / "example_worker.py").write_text(
        "ended = []\ndef start(stop):\n    stop.wait()\n    ended.append(True)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(background, "WORKER", "example_worker")
    end = background.start_background()
    assert any(thread.name == "memex-worker" for thread in threading.enumerate())
    end()
    assert sys.modules.pop("example_worker").ended == [True]


def test_a_worker_that_fails_leaves_the_server_alone(monkeypatch, tmp_path, caplog):
    (tmp_path / "failing_worker.py").write_text("def start(stop):\n    raise OSError('disk full')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(background, "WORKER", "failing_worker")
    background.start_background()()
    assert "background worker ended" in caplog.text
    sys.modules.pop("failing_worker")


def test_without_a_worker_there_is_nothing_to_end(monkeypatch):
    monkeypatch.setattr(background, "WORKER", "memex_site.no_such_worker")
    before = threading.active_count()
    background.start_background()()
    assert threading.active_count() == before
