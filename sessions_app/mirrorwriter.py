"""Writes the mirror. No ORM."""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from backports import zstd

from records.files import fsync_dir

from .mirror import SKIPPABLE, Mirror, MirrorDamaged, segment_path

FRAME_BYTES = 256 * 1024
SEGMENT_BYTES = 64 * 1024 * 1024
REPEATED_VALUE_BYTES = 64 * 1024
_LEVEL = 3
_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: _LEVEL,
    zstd.CompressionParameter.checksum_flag: 1,
}
_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)


class MirrorWriter:
    """Appends to one generation. Its caller holds the store's archive lock: one writer at a time."""

    def __init__(self, folder: Path, generation: int = 0) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder, self.generation = folder, generation
        mirror = Mirror(folder, generation)
        if mirror.damage:
            raise MirrorDamaged(f"{mirror.damage}. Nothing is appended to it: restore it from a backup.")
        last = mirror.frames[-1] if mirror.frames else None
        self._segment = last.segment if last else 0
        self._drop_torn_tail(last.position + last.size if last else 0)
        self.length = mirror.length
        self._rows = (last.rows + mirror.read(last.offset, last.length).count(b"\n")) if last else 0
        self._seen = {value[0]: (value[1], value[2]) for frame in mirror.frames for value in frame.values}
        self._literal: list[memoryview] = []
        self._literal_size = 0
        self._frame_start = self.length
        self._repeats: list[list[int]] = []
        self._values: list[list[Any]] = []
        self._file: IO[bytes] | None = None
        self._is_synced = True
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
        if self._file and not self._is_synced:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._is_synced = True

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
            self._literal.append(piece)
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
            self._is_synced = False
            file.write(SKIPPABLE + len(text).to_bytes(4, "little") + text + data)

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
            fsync_dir(self.folder)
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
