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
from typing import IO, Any

from backports import zstd

from .logs.rows import RowSplitter

SKIPPABLE = (0x184D2A5E).to_bytes(4, "little")
_PREFIX = 8
# Far more than a header with its lists ever takes.
_HEADER_BYTES = 16 * 1024 * 1024


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
        self._last_offset = 0
        # What can't be read from here on, though it was written; None when all is well.
        self.damage: str | None = None
        self._load()
        self._offsets = [frame.offset for frame in self.frames]

    def _load(self) -> None:
        segments = _segments(self.folder, self.generation)
        for segment in range(max(segments, default=-1) + 1):
            path = segment_path(self.folder, self.generation, segment)
            if segment not in segments:
                self.damage = f"{path} is missing"
                return
            frames, end, size = _frames_of(path, segment)
            for frame in frames:
                if frame.offset != self.length:
                    self.damage = f"{path}: a frame before byte {frame.position} is missing"
                    return
                self.frames.append(frame)
            # A torn tail is what a crash leaves at the very end, and no more.
            if end < size and (segment < max(segments) or _holds_frames(path, end)):
                self.damage = f"{path} is damaged at byte {end}"
                return

    @property
    def length(self) -> int:
        """Bytes of the stream."""
        return self.frames[-1].offset + self.frames[-1].length if self.frames else 0

    @property
    def stored_bytes(self) -> int:
        return sum(frame.size for frame in self.frames)

    def read(self, offset: int, length: int) -> bytes:
        """The stream's bytes from `offset`; fewer only at its end. Raises MirrorDamaged."""
        start = offset - self._last_offset
        if start >= 0 and start + length <= len(self._last[1]):
            return self._last[1][start : start + length]  # most events follow one another
        pieces, end = [], offset + length
        index = max(0, bisect_right(self._offsets, offset) - 1)
        while index < len(self.frames) and offset < end:
            frame = self.frames[index]
            start = offset - frame.offset
            piece = self._frame_bytes(index)[start : start + end - offset]
            pieces.append(piece)
            offset += len(piece)
            index += 1
        if offset < end:
            self._refuse_damage()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def stream(self, offset: int = 0) -> Iterator[bytes]:
        """The stream from `offset` to its end, a frame at a time. Raises MirrorDamaged."""
        first = max(0, bisect_right(self._offsets, offset) - 1)
        for index in range(first, len(self.frames)):
            data = self._frame_bytes(index)
            skip = max(0, offset - self.frames[index].offset)
            if skip < len(data):
                yield data[skip:] if skip else data
        self._refuse_damage()

    def _refuse_damage(self) -> None:
        if self.damage:
            raise MirrorDamaged(f"{self.damage}. Restore it from a backup.")

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
        self._last, self._last_offset = (index, data), frame.offset
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


_Table = tuple[list[Frame], int, int]
_tables: OrderedDict[Path, tuple[int, int, int, _Table]] = OrderedDict()
_TABLES_KEPT = 256


def _segments(folder: Path, generation: int) -> set[int]:
    return {int(path.name[6:10]) for path in folder.glob(f"g{generation:04d}-[0-9][0-9][0-9][0-9].zst")}


def _frames_of(path: Path, segment: int) -> _Table:
    """The whole frames of a segment file, where the last of them ends, and the size of the file."""
    stat = path.stat()
    cached = _tables.get(path)
    if cached and cached[:3] == (stat.st_ino, stat.st_size, stat.st_mtime_ns):
        _tables.move_to_end(path)
        return cached[3]
    frames: list[Frame] = []
    position = 0
    if cached and cached[0] == stat.st_ino and cached[1] < stat.st_size:
        # It has grown, by a frame at each push: whole frames are never written again.
        frames, position = list(cached[3][0]), cached[3][1]
    with path.open("rb") as file:
        while found := _pair_at(file, position):
            header, start = found
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
            position = end
    table = (frames, position, stat.st_size)
    _tables[path] = (stat.st_ino, stat.st_size, stat.st_mtime_ns, table)
    while len(_tables) > _TABLES_KEPT:
        _tables.popitem(last=False)
    return table


def _holds_frames(path: Path, position: int) -> bool:
    """Whether a frame begins anywhere behind `position`."""
    with path.open("rb") as file:
        file.seek(position)
        rest = file.read()
        at = rest.find(SKIPPABLE, 1)
        while at >= 0:
            if _pair_at(file, position + at):
                return True
            at = rest.find(SKIPPABLE, at + 1)
    return False


def _pair_at(file: IO[bytes], position: int) -> tuple[dict[str, Any], int] | None:
    """The header that begins there, and where its frame does."""
    file.seek(position)
    prefix = file.read(_PREFIX)
    if len(prefix) < _PREFIX or not prefix.startswith(SKIPPABLE):
        return None
    size = int.from_bytes(prefix[4:], "little")
    if size > _HEADER_BYTES:
        return None
    try:
        header = json.loads(file.read(size))
    except ValueError:
        return None
    if not isinstance(header, dict) or not all(type(header.get(name)) is int for name in "onrz"):
        return None
    return header, position + _PREFIX + size
