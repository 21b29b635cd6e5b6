import random
from pathlib import Path

import pytest
from backports.zstd import compress
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.logs.streams import StreamDamaged, is_compressed, read_stream

from .dsh_builder import zstd_frame

LINES = [b'{"n": 0}\n', b'{"n": 1, "text": "first"}\n{"n": 2}\n', b'{"n": 3}\n{"n": 4, "text": "last"}\n']
RANDOM = random.Random(7)
SKIPPABLE = (0x184D2A53).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"notes"


def read(path: Path, start: int = 0, chunk: int = 1 << 20) -> bytes:
    return b"".join(read_stream(path, start=start, chunk=chunk))


def read_damaged(path: Path, chunk: int = 1 << 20) -> tuple[bytes, StreamDamaged]:
    got = []
    with pytest.raises(StreamDamaged) as damage:
        got.extend(read_stream(path, chunk=chunk))
    return b"".join(got), damage.value


@pytest.mark.parametrize(
    ("name", "compressed"),
    [("a.jsonl", False), ("a.jsonl.zst", True), ("session.v4.jsonl.zstd", True), ("zstd.jsonl", False)],
)
def test_the_name_says_whether_a_log_is_compressed(name: str, compressed: bool):
    assert is_compressed(Path(name)) is compressed


def test_a_plain_log_is_read_as_it_is_even_without_a_last_line_end(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    assert read(path) == b'{"a": 1}\n{"b"'
    assert list(read_stream(path, chunk=4))[:2] == [b'{"a"', b": 1}"]


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.zst", "log.jsonl.zstd"])
def test_a_start_beyond_the_end_gives_nothing(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(zstd_frame(LINES[0]) if is_compressed(path) else LINES[0])
    assert list(read_stream(path, start=len(LINES[0]))) == []
    assert list(read_stream(path, start=10_000)) == []


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.zst", "log.jsonl.zstd"])
def test_an_empty_file_gives_nothing(tmp_path, name):
    (tmp_path / name).touch()
    assert list(read_stream(tmp_path / name)) == []


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.zstd"])
def test_a_file_that_vanished_raises(tmp_path, name):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / name)


def test_one_frame_larger_than_a_piece_comes_in_pieces_of_whole_lines(tmp_path):
    data = b"".join(
        b'{"n": %d, "text": "%s"}\n' % (n, RANDOM.randbytes(40).hex().encode()) for n in range(2000)
    )
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(compress(data))
    pieces = list(read_stream(path, chunk=4096))
    assert b"".join(pieces) == data
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert max(map(len, pieces)) <= 3 * 4096


def test_a_line_longer_than_a_piece_is_read_whole(tmp_path):
    data = b'{"text": "' + b"x" * 100_000 + b'"}\n{"n": 1}\n'
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(compress(data))
    assert read(path, chunk=1000) == data


@given(
    batches=st.lists(st.binary(min_size=1, max_size=60).map(lambda line: line + b"\n"), max_size=12),
    start=st.integers(0, 900),
    chunk=st.integers(1, 50),
)
def test_many_frames_read_like_one_stream(tmp_path_factory, batches, start, chunk):
    path = tmp_path_factory.mktemp("frames") / "log.jsonl.zstd"
    path.write_bytes(b"".join(map(zstd_frame, batches)))
    assert read(path, start, chunk) == b"".join(batches)[start:]


def test_a_last_frame_torn_at_any_byte_gives_whole_lines_only(tmp_path):
    path = tmp_path / "session.jsonl.zstd"
    before = b"".join(map(zstd_frame, LINES[:2]))
    last = zstd_frame(LINES[2])
    for kept in range(len(last)):
        path.write_bytes(before + last[:kept])
        tail = read(path).removeprefix(b"".join(LINES[:2]))
        assert LINES[2].startswith(tail)
        assert tail == b"" or tail.endswith(b"\n")
    path.write_bytes(before + last)
    assert read(path) == b"".join(LINES)


def test_lines_of_a_torn_frame_are_saved_and_its_partial_line_is_not(tmp_path):
    lines = [b'{"n": %d, "text": "%s"}\n' % (n, RANDOM.randbytes(400).hex().encode()) for n in range(500)]
    whole = zstd_frame(b"".join(lines))
    path = tmp_path / "session.jsonl.zstd"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    saved = read(path)
    assert saved.endswith(b"\n")
    assert b"".join(lines).startswith(saved)
    # zstd decodes by blocks of 128 KB: of 400 KB two at least are whole.
    assert len(saved) > 200_000


def test_a_torn_frame_goes_on_where_it_was_left_when_it_is_complete(tmp_path):
    lines = [b'{"n": %d, "text": "%s"}\n' % (n, RANDOM.randbytes(400).hex().encode()) for n in range(500)]
    whole = zstd_frame(b"".join(lines))
    path = tmp_path / "session.jsonl.zstd"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    first = read(path)
    path.write_bytes(whole)
    assert first + read(path, len(first)) == b"".join(lines)


def test_a_bad_checksum_ends_the_stream_after_what_precedes_it(tmp_path):
    frames = [bytearray(zstd_frame(lines)) for lines in LINES]
    frames[1][-1] ^= 0xFF
    path = tmp_path / "session.jsonl.zstd"
    path.write_bytes(b"".join(frames))
    got, damage = read_damaged(path)
    assert got == LINES[0]
    assert damage.offset == len(LINES[0])
    assert "checksum" in damage.message


def test_the_offset_of_damage_counts_from_the_start_of_the_log(tmp_path):
    path = tmp_path / "session.jsonl.zstd"
    path.write_bytes(zstd_frame(LINES[0]) + zstd_frame(LINES[1]) + b"no frame")
    with pytest.raises(StreamDamaged) as damage:
        list(read_stream(path, start=5))
    assert damage.value.offset == len(LINES[0]) + len(LINES[1])


@pytest.mark.parametrize("garbage", [b"\0" * 64, b"plain text, no frame"])
def test_what_is_no_frame_is_damage(tmp_path, garbage):
    path = tmp_path / "session.jsonl.zstd"
    path.write_bytes(zstd_frame(LINES[0]) + garbage + zstd_frame(LINES[1]))
    got, damage = read_damaged(path)
    assert got == LINES[0]
    assert damage.offset == len(LINES[0])


def test_a_bad_checksum_of_a_frame_larger_than_a_piece_is_reported(tmp_path):
    data = b"".join(b'{"n": %d}\n' % n for n in range(5000))
    frame = bytearray(zstd_frame(data))
    frame[-1] ^= 0xFF
    path = tmp_path / "session.jsonl.zstd"
    path.write_bytes(frame)
    got, damage = read_damaged(path, chunk=1000)
    assert data.startswith(got)
    assert damage.offset == len(got)


def test_skippable_frames_are_skipped(tmp_path):
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(SKIPPABLE + zstd_frame(LINES[0]) + SKIPPABLE + zstd_frame(LINES[1]) + SKIPPABLE)
    assert read(path) == LINES[0] + LINES[1]


def test_frame_magic_inside_the_data_starts_no_frame(tmp_path):
    line = b'"' + b"\x28\xb5\x2f\xfd" * 10 + b'"\n'
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(compress(line, level=-5) + zstd_frame(LINES[0]))
    assert read(path) == line + LINES[0]
