import hashlib
import sqlite3
import stat
from contextlib import closing

import pytest

from records import home


@pytest.mark.parametrize("name", ["0123456789abcdef", "session-1.b_c", "a" * 100])
def test_a_harmless_segment_is_used_as_it_is(name):
    assert home.safe_segment(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "con",
        "NUL.txt",
        "lpt1",
        "a" * 101,
        "项目",
        "a\n",
        ".hidden",
        "\ud800",
    ],
)
def test_any_other_segment_is_hashed(name):
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    assert home.safe_segment(name) == f"s_{digest[:24]}"


def test_the_layout_is_private(memex_home):
    folders = [memex_home, home.records_dir(), home.cold_dir(), home.sessions_dir(), home.trash_dir()]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    assert stat.S_IMODE(home.index_path().stat().st_mode) == 0o600


def test_making_the_home_twice_changes_nothing(memex_home):
    (home.records_dir() / "kept").write_text("x")
    home.ensure_home()
    assert (home.records_dir() / "kept").read_text() == "x"


def test_the_store_of_another_program_is_refused(memex_home):
    with closing(sqlite3.connect(home.index_path())) as database:
        database.execute("CREATE TABLE records (id TEXT PRIMARY KEY)")
    with pytest.raises(home.ForeignStore, match=r"manage\.py import_records"):
        home.ensure_home()


def test_our_own_database_is_accepted(memex_home):
    with closing(sqlite3.connect(home.index_path())) as database:
        database.execute("CREATE TABLE records (id TEXT PRIMARY KEY)")
        database.execute("CREATE TABLE django_migrations (id INTEGER)")
    home.ensure_home()


def test_a_damaged_database_is_not_taken_for_a_foreign_one(memex_home):
    home.index_path().write_bytes(b"no database at all, but long enough to have a header of its own" * 20)
    home.ensure_home()
