"""The mirror gives back every byte, whatever was appended in whatever pieces, and after a crash."""

import json
import os
from pathlib import Path

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app import mirrorwriter
from sessions_app.mirror import Mirror, MirrorDamaged, generations, segment_path
from sessions_app.mirrorwriter import MirrorWriter

ROWS = st.lists(st.binary(max_size=300).map(lambda raw: raw.replace(b"\n", b" ")), max_size=40)


def write(folder: Path, stream: bytes, *, pieces: list[int] | None = None) -> None:
    at = 0
    with MirrorWriter(folder) as writer:
        for size in [*(pieces or []), len(stream)]:
            writer.append(at, stream[at : at + size])
            at = min(len(stream), at + size)
            if size % 3 == 0:
                writer.flush()


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, pieces=st.lists(st.integers(1, 2_000), max_size=8), ends=st.booleans())
def test_every_byte_and_every_row_comes_back(tmp_path_factory, rows, pieces, ends):
    folder = tmp_path_factory.mktemp("mirror")
    stream = b"\n".join(rows) + (b"\n" if ends else b"")
    write(folder, stream, pieces=pieces)
    kept = Mirror(folder)
    assert kept.length == len(stream)
    assert b"".join(kept.stream()) == stream
    lines = stream.split(b"\n")
    expected = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    assert list(kept.rows(0, len(lines))) == expected
    for number, line in enumerate(expected):
        assert list(kept.rows(number, number)) == [line]
        offset = sum(map(len, expected[:number]))
        assert kept.read(offset, len(line)) == line


def test_rows_longer_than_frames_are_found(tmp_path):
    rows = [b"a" * 10, os.urandom(700_000).replace(b"\n", b" "), b"b", b"", b"c" * 300_000, b"last"]
    stream = b"".join(row + b"\n" for row in rows)
    write(tmp_path, stream)
    kept = Mirror(tmp_path)
    assert len(kept.frames) > 3
    for number, row in enumerate(rows):
        assert list(kept.rows(number, number)) == [row + b"\n"]
    assert b"".join(kept.rows(1, 4)) == b"".join(row + b"\n" for row in rows[1:5])


def test_long_values_that_repeat_are_stored_once(tmp_path):
    image = os.urandom(200_000).hex()
    other = os.urandom(80_000).hex() + '\\n \\"quoted\\" '
    row = json.dumps({"images": [image, {"again": image}], "text": "short"}).encode()
    odd = b'{"broken": "' + other.encode() + b'", "again": "' + other.encode() + b'"} \xff "unclosed'
    stream = (row + b"\n") * 3 + odd + b"\n" + row + b"\n"
    write(tmp_path, stream)
    kept = Mirror(tmp_path)
    assert b"".join(kept.stream()) == stream
    assert list(kept.rows(4, 4)) == [row + b"\n"]
    assert kept.stored_bytes < len(image) + len(other)
    # A writer that is opened later knows the long values that an earlier one has stored.
    with MirrorWriter(tmp_path) as writer:
        writer.append(len(stream), row + b"\n")
    grown = Mirror(tmp_path)
    assert grown.read(len(stream), len(row)) == row
    assert grown.stored_bytes - kept.stored_bytes < 2_000


def test_zstd_reads_a_segment_without_memex(tmp_path):
    write(tmp_path, b"one\ntwo\n")
    with zstd.open(segment_path(tmp_path, 0, 0)) as file:
        assert file.read() == b"one\ntwo\n"


def test_a_torn_tail_is_dropped_before_the_next_append(tmp_path):
    first, second = os.urandom(5_000).hex().encode() + b"\n", b"second\n"
    write(tmp_path, first)
    write_more = MirrorWriter(tmp_path)
    write_more.append(len(first), second)
    write_more.close()
    path = segment_path(tmp_path, 0, 0)
    whole = path.read_bytes()
    for cut in range(1, len(whole) - Mirror(tmp_path).frames[1].position + 20):
        path.write_bytes(whole[:-cut])
        assert b"".join(Mirror(tmp_path).stream()) == first
        with MirrorWriter(tmp_path) as writer:
            assert writer.length == len(first)
            writer.append(len(first), second)
        assert b"".join(Mirror(tmp_path).stream()) == first + second


def test_bytes_that_are_there_already_are_passed_over(tmp_path):
    stream = b"".join(b'{"row": %d}\n' % number for number in range(1_000))
    write(tmp_path, stream[:5_000])
    with MirrorWriter(tmp_path) as writer:
        writer.append(0, stream[:3_000])
        writer.append(3_000, stream[3_000:])
    assert b"".join(Mirror(tmp_path).stream()) == stream
    with MirrorWriter(tmp_path) as writer, pytest.raises(ValueError, match="cannot append"):
        writer.append(len(stream) + 1, b"gap")


def test_segments_are_sealed_at_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr(mirrorwriter, "SEGMENT_BYTES", 50_000)
    stream = b"".join(os.urandom(2_000).hex().encode() + b"\n" for _ in range(100))
    for start in range(0, len(stream), 40_010):
        with MirrorWriter(tmp_path) as writer:
            writer.append(start, stream[start : start + 40_010])
    assert segment_path(tmp_path, 0, 2).exists()
    assert b"".join(Mirror(tmp_path).stream()) == stream
    # A new segment that a crash left without one whole frame is not appended to.
    last = len(list(tmp_path.glob("*.zst")))
    segment_path(tmp_path, 0, last).write_bytes(b"torn")
    with MirrorWriter(tmp_path) as writer:
        writer.append(len(stream), b"x" * 90_000 + b"\n")
    assert b"".join(Mirror(tmp_path).stream()) == stream + b"x" * 90_000 + b"\n"


def test_damage_names_file_and_place(tmp_path):
    write(tmp_path, os.urandom(9_000).hex().encode() + b"\n")
    path = segment_path(tmp_path, 0, 0)
    data = bytearray(path.read_bytes())
    data[-100] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(MirrorDamaged, match=r"g0000-0000\.zst at byte"):
        Mirror(tmp_path).read(0, 10)


def test_generations_are_kept_apart(tmp_path):
    write(tmp_path, b"zero\n")
    with MirrorWriter(tmp_path, 3) as writer:
        writer.append(0, b"three\n")
    assert generations(tmp_path) == [0, 3]
    assert Mirror(tmp_path, 3).read(0, 99) == b"three\n"
    assert Mirror(tmp_path, 1).length == 0
