import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from memex_site import home
from memex_site.checks import home_is_private

ROOT = Path(__file__).resolve().parents[2]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_key_is_made_once_and_private(tmp_path):
    key = home.secret_key(tmp_path)
    assert home.secret_key(tmp_path) == key
    assert mode(tmp_path / "secret_key") == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_starts_at_the_same_moment_agree_on_one_key(tmp_path):
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        with ThreadPoolExecutor(8) as pool:
            keys = set(pool.map(home.secret_key, [folder] * 8))
        assert len(keys) == 1


def test_a_key_someone_else_wrote_meanwhile_is_kept(tmp_path):
    path = tmp_path / "secret_key"
    path.write_text("first")
    home._create_once(path, "second")
    assert path.read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 80])
def test_a_damaged_key_stops_the_start(tmp_path, content):
    (tmp_path / "secret_key").write_bytes(content)
    with pytest.raises(ImproperlyConfigured, match="secret_key"):
        home.secret_key(tmp_path)


def test_a_new_store_is_for_its_user_alone(tmp_path):
    folder = tmp_path / "a" / "store"
    home.prepare(folder)
    assert mode(folder) == 0o700
    assert mode(folder / "index.db") == 0o600


def test_preparing_again_keeps_the_database(tmp_path):
    (tmp_path / "index.db").write_bytes(b"content")
    home.prepare(tmp_path)
    assert (tmp_path / "index.db").read_bytes() == b"content"


def test_a_file_in_place_of_the_store_is_refused(tmp_path):
    (tmp_path / "store").write_text("a file")
    with pytest.raises(ImproperlyConfigured, match="MEMEX_HOME"):
        home.prepare(tmp_path / "store")


def test_a_store_inside_the_checkout_is_refused(tmp_path):
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    link = tmp_path / "link"
    link.symlink_to(checkout)
    for folder in (checkout, checkout / "data", link / "data", checkout / "x" / ".." / "data"):
        with pytest.raises(ImproperlyConfigured, match="MEMEX_HOME"):
            home.refuse_inside(folder, checkout)
    home.refuse_inside(tmp_path / "checkout-data", checkout)
    home.refuse_inside(tmp_path, checkout)


def test_a_folder_open_to_others_is_warned_of(settings, tmp_path):
    settings.MEMEX_HOME = tmp_path
    tmp_path.chmod(0o755)
    assert [warning.id for warning in home_is_private()] == ["memex.W001"]
    tmp_path.chmod(0o700)
    assert home_is_private() == []


def manage(*arguments, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MEMEX_")}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_wrong_environment_stops_every_command(tmp_path):
    store = tmp_path / "store"
    for wrong, said in {
        "MEMEX_TRASH_DAYS": "MEMEX_TRASH_DAYS is 0; the least is 1",
        "MEMEX_TRASHDAYS": "MEMEX_TRASHDAYS is not a setting of Memex. Did you mean MEMEX_TRASH_DAYS?",
    }.items():
        ended = manage("check", MEMEX_HOME=str(store), **{wrong: "0"})
        assert ended.returncode != 0
        assert said in ended.stderr
    inside = manage("check", MEMEX_HOME=str(ROOT / "data"))
    assert inside.returncode != 0
    assert "inside the program's own folder" in inside.stderr
    assert not store.exists()
    assert not (ROOT / "data").exists()
