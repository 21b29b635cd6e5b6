"""An agent's log, kept byte for byte: the decompressed stream of its source in zstd frames. No ORM.

A generation is a run of segment files `g0000-0000.zst`, `g0000-0001.zst`, … Each holds pairs of a
skippable frame (a JSON header: where the frame stands in the stream, how many rows come before it) and
a zstd frame of about 256 KB of the stream, so that a file describes itself, survives a torn tail, and
`zstd -dc` reads it. A string of more than 64 KB that was there before (inline images, repeated
histories) is not stored again: the header says where in the stream the first copy stands.
"""

import json
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backports import zstd

from .logs.rows import RowSplitter

SKIPPABLE = (0x184D2A5E).to_bytes(4, "little")
_PREFIX = 8


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
    if not prefix.startswith(SKIPPABLE):
        return None
    try:
        header: dict[str, Any] = json.loads(text)
    except ValueError:
        return None
    return header
