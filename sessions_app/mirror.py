"""An agent's log, kept byte for byte: the decompressed stream of its source in zstd frames. No ORM.

A generation is a run of segment files `g0000-0000.zst`, `g0000-0001.zst`, … Each holds pairs of a
skippable frame (a JSON header: where the frame stands in the stream, how many rows come before it) and
a zstd frame of about 256 KB of the stream, so that a file describes itself, survives a torn tail, and
`zstd -dc` reads it. A string of more than 64 KB that was there before (inline images, repeated
histories) is not stored again: the header says where in the stream the first copy stands.
"""

import hashlib
import json
import os
import re
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from backports import zstd

from .logs.rows import RowSplitter

FRAME_BYTES = 256 * 1024
SEGMENT_BYTES = 64 * 1024 * 1024
REPEATED_VALUE_BYTES = 64 * 1024
_LEVEL = 3
_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: _LEVEL,
    zstd.CompressionParameter.checksum_flag: 1,
}
_SKIPPABLE = (0x184D2A5E).to_bytes(4, "little")
_PREFIX = 8
_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)


class MirrorDamaged(Exception):
    """A frame in the middle of a mirror can't be read: file and offset are in the message."""


@dataclass(slots=True)
class Frame:
    offset: int  # of its first byte in the stream
    length: int  # bytes of the stream it covers
    rows: int  # b"\n" before it
    segment: int
    position: int  # of the zstd frame in the segment file
    size: int
    repeats: list[list[int]]  # [where in this frame, length, stream offset of the first copy]
    values: list[list[Any]]  # long strings first seen here: [sha256[:32], stream offset, length]


def segment_path(folder: Path, generation: int, segment: int) -> Path:
    return folder / f"g{generation:04d}-{segment:04d}.zst"


def generations(folder: Path) -> list[int]:
    """The generations that have bytes in this folder."""
    return sorted({int(path.name[1:5]) for path in folder.glob("g[0-9][0-9][0-9][0-9]-*.zst")})


class Mirror:
    """Reads one generation. Cheap to make again: frame tables are cached by file size."""

    def __init__(self, folder: Path, generation: int = 0) -> None:
        self.folder = folder
        self.generation = generation
        self.frames: list[Frame] = []
        self._last: tuple[int, bytes] = (-1, b"")
        segment = 0
        while (path := segment_path(folder, generation, segment)).exists():
            self.frames.extend(_frames_of(path, segment))
            segment += 1
        self._offsets = [frame.offset for frame in self.frames]

    @property
    def length(self) -> int:
        """Bytes of the stream."""
        return self.frames[-1].offset + self.frames[-1].length if self.frames else 0

    @property
    def stored_bytes(self) -> int:
        return sum(frame.size for frame in self.frames)

    def read(self, offset: int, length: int) -> bytes:
        """The stream's bytes from `offset`; fewer only at its end."""
        pieces, end = [], offset + length
        index = max(0, bisect_right(self._offsets, offset) - 1)
        while index < len(self.frames) and offset < end:
            frame = self.frames[index]
            start = offset - frame.offset
            piece = self._frame_bytes(index)[start : start + end - offset]
            pieces.append(piece)
            offset += len(piece)
            index += 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def stream(self, offset: int = 0) -> Iterator[bytes]:
        """The stream from `offset` to its end, a frame at a time."""
        first = max(0, bisect_right(self._offsets, offset) - 1)
        for index in range(first, len(self.frames)):
            data = self._frame_bytes(index)
            skip = max(0, offset - self.frames[index].offset)
            if skip < len(data):
                yield data[skip:] if skip else data

    def rows(self, first: int, last: int) -> Iterator[bytes]:
        """Rows `first` to `last`, inclusive, each with its b"\\n" (the stream's last may have none)."""
        # The last frame that begins before the wanted row does. It may begin within an earlier row,
        # whose end is then the splitter's first piece and passed over.
        index = max(0, bisect_left(self.frames, first, key=lambda frame: frame.rows) - 1)
        if index >= len(self.frames):
            return
        splitter = RowSplitter(number=self.frames[index].rows)
        for data in self.stream(self.frames[index].offset):
            for row in splitter.feed(data):
                if row.number > last:
                    return
                if row.number >= first:
                    yield row.raw + b"\n"
        if splitter.tail and first <= splitter.number <= last:
            yield splitter.tail

    def _frame_bytes(self, index: int) -> bytes:
        if self._last[0] == index:
            return self._last[1]
        data = self._literal(index)
        frame = self.frames[index]
        if frame.repeats:
            data = self._with_repeats(data, frame.repeats)
        self._last = (index, data)
        return data

    def _literal(self, index: int) -> bytes:
        """What is stored of a frame: all but the values that stand elsewhere in the stream."""
        frame = self.frames[index]
        path = segment_path(self.folder, self.generation, frame.segment)
        try:
            with path.open("rb") as file:
                file.seek(frame.position)
                return zstd.decompress(file.read(frame.size))
        except (zstd.ZstdError, OSError) as error:
            raise MirrorDamaged(f"{path} at byte {frame.position}: {error}") from error

    def _with_repeats(self, data: bytes, repeats: list[list[int]]) -> bytes:
        pieces, taken, written = [], 0, 0
        for where, length, first_copy in repeats:
            literal = where - written
            pieces.append(data[taken : taken + literal])
            taken += literal
            pieces.append(self._first_copy(first_copy, length))
            written = where + length
        pieces.append(data[taken:])
        return b"".join(pieces)

    def _first_copy(self, offset: int, length: int) -> bytes:
        # A first copy is stored in full, so only literals are read: frames that repeat values of frames
        # that repeat values would otherwise be followed to any depth.
        pieces, end = [], offset + length
        index = bisect_right(self._offsets, offset) - 1
        while offset < end:
            frame = self.frames[index]
            start = offset - frame.offset
            elsewhere = sum(size for where, size, _ in frame.repeats if where < start)
            until = min(end, frame.offset + frame.length) - frame.offset
            pieces.append(self._literal(index)[start - elsewhere : until - elsewhere])
            offset = frame.offset + until
            index += 1
        return b"".join(pieces)


class MirrorWriter:
    """Appends to one generation. Its caller holds the store's archive lock: one writer at a time."""

    def __init__(self, folder: Path, generation: int = 0) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder, self.generation = folder, generation
        mirror = Mirror(folder, generation)
        last = mirror.frames[-1] if mirror.frames else None
        self._segment = last.segment if last else 0
        self._drop_torn_tail(last.position + last.size if last else 0)
        self.length = mirror.length
        self._rows = (last.rows + mirror.read(last.offset, last.length).count(b"\n")) if last else 0
        self._seen = {value[0]: (value[1], value[2]) for frame in mirror.frames for value in frame.values}
        self._literal: list[bytes] = []
        self._literal_size = 0
        self._frame_start = self.length
        self._repeats: list[list[int]] = []
        self._values: list[list[Any]] = []
        self._file: IO[bytes] | None = None
        self._pool = ThreadPoolExecutor(1)
        self._waiting: list[tuple[dict[str, Any], Future[bytes]]] = []

    def __enter__(self) -> "MirrorWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, offset: int, data: bytes) -> None:
        """Adds whole rows, or the unterminated last one, that stand at `offset` of the stream. What is
        there already, from a run that was killed before its rows were committed, is passed over."""
        if offset > self.length:
            raise ValueError(f"mirror ends at {self.length}, cannot append at {offset}")
        if offset < self.length:
            data = data[self.length - offset :]
        if len(data) < REPEATED_VALUE_BYTES:
            self._add_literal(data)
            return
        # Rows are short as a rule: take the long ones apart, pass the others on in one piece.
        at = 0
        for match in _long_rows(data):
            self._add_literal(data[at : match[0]])
            self._add_long_row(data[match[0] : match[1]])
            at = match[1]
        self._add_literal(data[at:] if at else data)

    def flush(self) -> None:
        """Everything appended so far is on disk when this returns."""
        self._end_frame()
        self._write_waiting(all_of_them=True)
        if self._file:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._pool.shutdown()
            if self._file:
                self._file.close()
                self._file = None

    def _add_literal(self, data: bytes) -> None:
        view = memoryview(data)
        while len(view):
            piece = view[: FRAME_BYTES - self._literal_size]
            self._literal.append(bytes(piece))
            self._literal_size += len(piece)
            self.length += len(piece)
            view = view[len(piece) :]
            if self._literal_size >= FRAME_BYTES:
                self._end_frame()

    def _add_long_row(self, row: bytes) -> None:
        at = 0
        for match in _STRING.finditer(row):
            start, end = match.span(1)
            if end - start < REPEATED_VALUE_BYTES:
                continue
            digest = hashlib.sha256(row[start:end]).hexdigest()[:32]
            self._add_literal(row[at:start])
            first = self._seen.get(digest)
            if first and first[1] == end - start:
                if first[0] + first[1] > self._frame_start:
                    self._end_frame()  # a frame repeats what earlier frames hold
                self._repeats.append([self.length - self._frame_start, end - start, first[0]])
                self.length += end - start
            else:
                self._seen[digest] = (self.length, end - start)
                self._values.append([digest, self.length, end - start])
                self._add_literal(row[start:end])
            at = end
        self._add_literal(row[at:])

    def _end_frame(self) -> None:
        length = self.length - self._frame_start
        if not length:
            return
        literal = b"".join(self._literal)
        header: dict[str, Any] = {"o": self._frame_start, "n": length, "r": self._rows}
        if self._repeats:
            header["b"] = self._repeats
        if self._values:
            header["v"] = self._values
        self._rows += literal.count(b"\n")
        # Compression releases the interpreter lock: the next rows are parsed meanwhile.
        self._waiting.append((header, self._pool.submit(zstd.compress, literal, options=_OPTIONS)))
        self._literal, self._literal_size = [], 0
        self._repeats, self._values, self._frame_start = [], [], self.length
        self._write_waiting(all_of_them=len(self._waiting) > 16)

    def _write_waiting(self, *, all_of_them: bool) -> None:
        while self._waiting and (all_of_them or self._waiting[0][1].done()):
            header, future = self._waiting.pop(0)
            data = future.result()
            header["z"] = len(data)
            text = json.dumps(header, separators=(",", ":")).encode()
            file = self._open_segment()
            file.write(_SKIPPABLE + len(text).to_bytes(4, "little") + text + data)

    def _open_segment(self) -> IO[bytes]:
        if self._file and self._file.tell() < SEGMENT_BYTES:
            return self._file
        if self._file:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        path = segment_path(self.folder, self.generation, self._segment)
        if path.exists() and path.stat().st_size >= SEGMENT_BYTES:
            self._segment += 1
            path = segment_path(self.folder, self.generation, self._segment)
        is_new = not path.exists()
        self._file = path.open("ab")
        if is_new:
            path.chmod(0o600)
            _fsync_folder(self.folder)
        return self._file

    def _drop_torn_tail(self, end: int) -> None:
        segment = self._segment
        while (torn := segment_path(self.folder, self.generation, segment := segment + 1)).exists():
            torn.unlink()  # holds no whole frame, else it would be the last segment
        path = segment_path(self.folder, self.generation, self._segment)
        if path.exists() and path.stat().st_size > end:
            with path.open("rb+") as file:
                file.truncate(end)
                os.fsync(file.fileno())


def _long_rows(data: bytes) -> Iterator[tuple[int, int]]:
    start = 0
    while len(data) - start >= REPEATED_VALUE_BYTES:
        # The last b"\n" within reach, or else the row is a long one.
        cut = data.rfind(b"\n", start, start + REPEATED_VALUE_BYTES)
        if cut >= 0:
            start = cut + 1
            continue
        end = data.find(b"\n", start + REPEATED_VALUE_BYTES)
        end = len(data) if end < 0 else end + 1
        yield start, end
        start = end


_tables: "OrderedDict[Path, tuple[int, int, list[Frame]]]" = OrderedDict()
_TABLES_KEPT = 256


def _frames_of(path: Path, segment: int) -> list[Frame]:
    """The whole frames of a segment file; a torn last one is left out."""
    stat = path.stat()
    cached = _tables.get(path)
    if cached and cached[:2] == (stat.st_size, stat.st_mtime_ns):
        _tables.move_to_end(path)
        return cached[2]
    frames: list[Frame] = []
    with path.open("rb") as file:
        position = 0
        while len(prefix := file.read(_PREFIX)) == _PREFIX:
            header_size = int.from_bytes(prefix[4:], "little")
            header = _header(prefix, file.read(header_size))
            if header is None:
                break
            start = position + _PREFIX + header_size
            end = start + header["z"]
            if end > stat.st_size:
                break
            frames.append(
                Frame(
                    header["o"],
                    header["n"],
                    header["r"],
                    segment,
                    start,
                    header["z"],
                    header.get("b", []),
                    header.get("v", []),
                )
            )
            file.seek(end)
            position = end
    _tables[path] = (stat.st_size, stat.st_mtime_ns, frames)
    while len(_tables) > _TABLES_KEPT:
        _tables.popitem(last=False)
    return frames


def _header(prefix: bytes, text: bytes) -> dict[str, Any] | None:
    if not prefix.startswith(_SKIPPABLE):
        return None
    try:
        header: dict[str, Any] = json.loads(text)
    except ValueError:
        return None
    return header


def _fsync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
