import os
import stat
import subprocess
import sys

import pytest

from records import files


def leftovers(folder):
    return [path.name for path in folder.rglob("*") if files.TEMP_NAME.fullmatch(path.name)]


def test_a_file_is_written_privately_into_private_folders(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    files.write_atomic(path, b"one")
    files.write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (
        stat.S_IMODE(path.parent.stat().st_mode) == stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    )
    assert leftovers(tmp_path) == []


def test_a_batch_larger_than_one_group_arrives_whole(tmp_path):
    items = [(tmp_path / str(n % 3) / f"{n}.md", str(n).encode()) for n in range(files.GROUP * 2 + 5)]
    files.write_batch(items)
    assert all(path.read_bytes() == data for path, data in items)
    assert leftovers(tmp_path) == []


def test_nothing_appears_when_a_batch_breaks_off(tmp_path):
    def items():
        yield tmp_path / "first", b"1"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError), files.staging() as stage:
        stage.add(items())
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_folder_gives_an_error_and_no_half_state(tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    with pytest.raises(NotADirectoryError):
        files.write_batch([(tmp_path / "a", b"1"), (blocked / "b", b"2")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blocked"]


def test_publishing_without_replacing_leaves_an_existing_file(tmp_path):
    (tmp_path / "taken").write_bytes(b"theirs")
    with pytest.raises(FileExistsError), files.staging() as stage:
        stage.add([(tmp_path / "free", b"1"), (tmp_path / "taken", b"2")])
        stage.publish(replace=False)
    assert stage.published == [tmp_path / "free"]
    assert (tmp_path / "taken").read_bytes() == b"theirs"
    assert leftovers(tmp_path) == []


def test_moving_creates_the_folder_and_never_replaces(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    files.move(tmp_path / "a", tmp_path / "deep" / "b")
    assert (tmp_path / "deep" / "b").read_bytes() == b"1"
    (tmp_path / "c").write_bytes(b"2")
    with pytest.raises(FileExistsError):
        files.move(tmp_path / "c", tmp_path / "deep" / "b")
    assert (tmp_path / "c").exists()


def test_a_temporary_file_is_left_over_once_its_writer_is_gone(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert files.is_leftover(tmp_path / f".memex-{ended.pid}-0123456789abcdef.tmp")
    assert not files.is_leftover(tmp_path / f".memex-{os.getpid()}-0123456789abcdef.tmp")
    assert not files.is_leftover(tmp_path / "mem_0123456789.md")


def test_too_little_free_disk_is_refused(settings, tmp_path):
    settings.MEMEX_HOME = tmp_path / "not" / "there" / "yet"
    settings.MEMEX_MIN_FREE_MB = 2**40
    with pytest.raises(files.StoreFull, match="nothing new is stored"):
        files.ensure_free_space()
    settings.MEMEX_MIN_FREE_MB = 0
    files.ensure_free_space()
