"""The bytes of a log, decompressed and in order. Pure, bounded memory.

`.jsonl` is read as it is; `.zst` and `.zstd` hold one frame or many, with or without a content size,
and may be in the middle of being written.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from backports.zstd import ZstdDecompressor, ZstdError

_COMPRESSED = frozenset({".zst", ".zstd"})
# What follows a frame is handed over as a copy: with frames of a few hundred bytes a larger read costs
# more than it saves.
_READ = 16 * 1024


class StreamDamaged(Exception):
    """A frame that is complete is no valid one. Everything before byte `offset` of the decompressed
    stream was handed out; nothing after it can be had."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(f"damaged at byte {offset} of the decompressed log: {message}")
        self.offset = offset
        self.message = message


def is_compressed(path: Path) -> bool:
    return path.suffix in _COMPRESSED


def read_stream(path: Path, *, start: int = 0, chunk: int = 1 << 20) -> Iterator[bytes]:
    """The stream from byte `start` on, in pieces of about `chunk` bytes.

    Of a frame that is still being written (or was torn by a crash) only whole lines are given. A frame
    larger than `chunk` is handed out before its checksum could be verified. Raises StreamDamaged, and
    OSError when the file cannot be read; both while iterating."""
    with path.open("rb") as file:
        if is_compressed(path):
            yield from _from(start, _decompress(file, chunk))
            return
        file.seek(start)
        while piece := file.read(chunk):
            yield piece


def _from(start: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        if start < len(piece):
            yield piece[start:] if start else piece
        start = max(0, start - len(piece))


def _decompress(file: BinaryIO, chunk: int) -> Iterator[bytes]:
    offset = 0
    data = file.read(_READ)
    while data:
        decoder = ZstdDecompressor()
        # Bytes of this frame that are not handed out: all until its checksum was seen, or, once they
        # are too many, what follows the last line end.
        held = bytearray()
        while not decoder.eof:
            if decoder.needs_input and not data:
                data = file.read(_READ)
                if not data:
                    if lines := _take_lines(held):
                        yield lines
                    return
            try:
                held += decoder.decompress(data, chunk)
            except ZstdError as error:
                raise StreamDamaged(offset, str(error)) from error
            data = b""
            if len(held) > chunk and not decoder.eof and (lines := _take_lines(held)):
                yield lines
                offset += len(lines)
        if held:
            yield bytes(held)
            offset += len(held)
        data = decoder.unused_data or file.read(_READ)


def _take_lines(held: bytearray) -> bytes:
    end = held.rfind(b"\n") + 1
    lines = bytes(held[:end])
    del held[:end]
    return lines
