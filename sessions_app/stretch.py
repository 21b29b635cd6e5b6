"""One pass over one generation: rows to the mirror, to the reader, to the database, a stretch at a time."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

from .batch import Batch
from .eventrefs import events_of_mirror
from .injection.messages import messages_in
from .logs.events import Effect, Head, Known, Reader
from .logs.rows import MAX_PARSED_ROW, Row, RowSplitter, decode
from .logs.streams import StreamDamaged, read_stream
from .mirrorwriter import MirrorWriter
from .models import AgentSession, Generation, Source
from .pushsource import format_for

log = logging.getLogger(__name__)

_STRETCH_EVENTS, _STRETCH_BYTES = 8_000, 16 * 1024 * 1024


class Stretch:
    """`offset` and `number` are where the next row begins; they move row by row and are committed with
    the events of the rows before."""

    def __init__(self, source: Source, session: AgentSession, generation: Generation, batch: Batch) -> None:
        self.source, self.session, self.generation, self.batch = source, session, generation, batch
        self.offset, self.number = generation.parsed_bytes, generation.parsed_rows
        self.writer: MirrorWriter | None = None
        # Bytes of the row that begins at `offset` which are in the mirror, since it is too long to hold.
        self._ahead = 0
        head = Head(
            agent=source.agent, session_id=session.session_id, cwd=source.cwd, started_at=source.started_at,
            parent_id=source.parent_id, relation=source.relation,
        )  # fmt: skip
        self.reader: Reader = format_for(session.session_id, source.agent).reader(
            head, generation.reader_state or None, _known(session, generation.number)
        )

    def read(self, writer: MirrorWriter, path: Path, *, take_torn_tail: bool) -> bool:
        """False when a last line that is not complete was left for later."""
        self.writer = writer
        try:
            tail = self.read_chunks(read_stream(path, start=self.offset))
        except StreamDamaged as damage:
            tail = b""
            self.batch.warn(self.number, "damaged-stream", f"{damage}")
        is_torn = bool(tail or self._ahead)
        if is_torn and take_torn_tail:
            self._mirror(tail)
            self.batch.warn(self.number, "torn", "the last line is not complete")
        self.commit(last=True)
        return take_torn_tail or not is_torn

    def read_chunks(self, chunks: Iterator[bytes]) -> bytes:
        """Reads whole rows, and a last one that is complete but for its b"\\n"; gives back what is left."""
        carry: list[bytes] = []
        unread = 0
        for chunk in self._behind_open_tail(chunks):
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                carry.append(chunk)
                if sum(map(len, carry)) > MAX_PARSED_ROW:
                    self._pass_on(b"".join(carry))
                    carry = []
                continue
            data = b"".join((*carry, chunk[:cut])) if carry else chunk[:cut]
            carry = [chunk[cut:]] if cut < len(chunk) else []
            self._read_rows(self._end_of_long_row(data))
            unread += len(data)
            if len(self.batch) >= _STRETCH_EVENTS or unread >= _STRETCH_BYTES:
                self.commit()
                unread = 0
        tail = b"".join(carry)
        found = decode(tail) if tail and not self._ahead else None
        if found and found.values and not found.damage:
            self._mirror(tail)
            self.batch.add(self._effects(Row(self.number, self.offset, tail)))
            self.offset += len(tail)
            self.number += 1
            self.generation.open_tail = True
            tail = b""
        return tail

    def commit(self, *, last: bool = False) -> None:
        if self.writer:
            self.writer.flush()
        self.batch.commit(
            parsed_bytes=self.offset,
            parsed_rows=self.number,
            reader_state=self.reader.state(),
            now=int(time.time() * 1000),
            last=last,
        )

    def _behind_open_tail(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            if self.generation.open_tail and chunk:
                self.generation.open_tail = False
                if chunk.startswith(b"\n"):
                    self._mirror(b"\n")
                    self.offset += 1
                    chunk = chunk[1:]
                else:
                    self.number -= 1  # the same line goes on: what follows is glued to it
            yield chunk

    def _pass_on(self, piece: bytes) -> None:
        """A piece of a row that is too long to be read: to the mirror, and out of memory."""
        self._mirror(piece)
        self._ahead += len(piece)

    def _end_of_long_row(self, data: bytes) -> bytes:
        """What follows the end of the row that was passed on; all of `data` if none was."""
        if not self._ahead:
            return data
        end = data.index(b"\n") + 1
        self._mirror(data[:end])
        self.batch.warn(self.number, "too-long", f"{self._ahead + end:,} bytes: kept, not read")
        self.offset += self._ahead + end
        self.number += 1
        self._ahead = 0
        return data[end:]

    def _read_rows(self, data: bytes) -> None:
        self._mirror(data)
        self.batch.delivered(messages_in(data))
        splitter = RowSplitter(self.offset, self.number)
        effects_of, add = self._effects, self.batch.add
        for row in splitter.feed(data):
            if effects := effects_of(row):
                add(effects)
        self.offset, self.number = splitter.offset, splitter.number

    def _effects(self, row: Row) -> list[Effect]:
        try:
            return self.reader.feed(row)
        except Exception as error:
            # Whatever shape it has that nobody thought of: it costs a warning, and stays in the mirror.
            log.exception("Row %d of %s could not be read", row.number, self.source.path)
            self.batch.warn(row.number, "unreadable", f"{type(error).__name__}: {error}")
            return []

    def _mirror(self, data: bytes) -> None:
        if self.writer:
            self.writer.append(self.offset + self._ahead, data)


def _known(session: AgentSession, number: int) -> Iterator[Known]:
    if not session.event_count:
        return
    prefix = f"{session.session_id}."
    rows = events_of_mirror(session.session_id, number).order_by("row", "part")
    columns = ("seq", "uid", "ref", "digest", "session_id", "surface", "type", "role")
    for seq, uid, ref, digest, lane, *rest in rows.values_list(*columns).iterator(10_000):
        own = lane == session.session_id
        yield Known(seq, uid, ref, digest, "" if own else lane.removeprefix(prefix), *rest)
