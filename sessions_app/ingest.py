"""Reads a log into the store: mirror first, then its events, a stretch at a time.

Data flow: source -> rows -> mirror (fsync) -> reader -> effects -> one transaction a stretch. Killed at
any moment, the next run goes on at the last committed row; bytes that are mirrored already are passed
over. The caller holds the archive lock and has asked `levels.may_read`.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from records.ids import workspace_key

from . import sessionfile
from .batch import Batch
from .continuity import generation_for
from .discovery import agent_root
from .eventrefs import events_of_mirror
from .levels import pool_session_id
from .logs import registry
from .logs.events import Head, Known, Reader
from .logs.rows import Row, RowSplitter, decode
from .logs.streams import StreamDamaged, read_stream
from .mirror import Mirror
from .mirrorwriter import MirrorWriter
from .models import AgentSession, Event, Generation, SessionFile, Source

_STRETCH_EVENTS, _STRETCH_BYTES = 8_000, 16 * 1024 * 1024


@dataclass(slots=True)
class Ingested:
    """What reading a source added. `sessions`: it and its inline sub-agents."""

    events: int = 0
    warnings: int = 0
    sessions: list[str] = field(default_factory=list)


def source_is_read(source: Source) -> bool:
    """Nothing has changed since it was read to its end, and what was read is still there."""
    unchanged = (source.read_size, source.read_mtime_ns) == (source.size, source.mtime_ns)
    return unchanged and AgentSession.objects.filter(session_id=source.session_id).exists()


def session_ensure(source: Source) -> AgentSession:
    """The session of a source, made if need be."""
    session = AgentSession.objects.filter(session_id=source.session_id).first()
    if session:
        return session
    pool = pool_session_id(source.session_id, source.parent_id, source.relation)
    key = workspace_key(source.cwd, source.session_id)
    if source.relation == "subagent":
        key = (
            AgentSession.objects.filter(session_id=source.parent_id).values_list("workspace_key", flat=True)
        ).first() or key
    sessionfile.levels_settle(source.session_id, key)
    return AgentSession.objects.create(
        session_id=source.session_id,
        agent=source.agent,
        workspace_key=key,
        cwd=source.cwd,
        parent_id=source.parent_id,
        relation=source.relation,
        pool_session_id=pool,
        is_sample=source.is_sample,
    )


def source_ingest(source: Source, *, take_torn_tail: bool) -> Ingested:
    """Reads what is new in a source. `take_torn_tail`: its last line, though unterminated and not
    complete, is kept too (the session has ended, or a person named this file). Raises FileNotFoundError
    before it leaves a trace of a file that is gone."""
    path = Path(source.path)
    path.stat()
    session = session_ensure(source)
    folder = sessionfile.session_folder(session.workspace_key, session.session_id)
    generation = generation_for(session, folder, path)
    result = Ingested(sessions=[session.session_id])
    whole = True
    if generation is not None:
        batch = Batch(session, generation, agent_root(source.agent, path), source.path)
        stretch = _Stretch(source, session, generation, batch)
        with MirrorWriter(folder, generation.number) as writer:
            whole = stretch.read(writer, path, take_torn_tail=take_torn_tail)
        result.events, result.warnings = batch.event_total, batch.warning_total
        result.sessions = [row.session_id for row in batch.sessions]
        if generation.number:
            ownership_transfer(session, generation.number)
    if whole:
        source.read_size, source.read_mtime_ns = source.size, source.mtime_ns
    session_file_refresh(session, folder, source)
    source.save(update_fields=["read_size", "read_mtime_ns"])
    return result


def session_reparse(session: AgentSession, folder: Path, number: int) -> None:
    """Makes the events of a generation anew from its mirror, for `reindex`."""
    source = Source(agent=session.agent, session_id=session.session_id, cwd=session.cwd,
                    parent_id=session.parent_id, relation=session.relation)  # fmt: skip
    generation, _ = Generation.objects.get_or_create(session=session, number=number)
    batch = Batch(session, generation, settings.MEMEX_HOME, "")
    stretch = _Stretch(source, session, generation, batch)
    stretch.read_chunks(Mirror(folder, number).stream())
    stretch.commit(last=True)


class _Stretch:
    """One pass over one generation."""

    def __init__(self, source: Source, session: AgentSession, generation: Generation, batch: Batch) -> None:
        self.source, self.session, self.generation, self.batch = source, session, generation, batch
        self.offset, self.number = generation.parsed_bytes, generation.parsed_rows
        self.writer: MirrorWriter | None = None
        head = Head(
            agent=source.agent, session_id=session.session_id, cwd=source.cwd, started_at=source.started_at,
            parent_id=source.parent_id, relation=source.relation,
        )  # fmt: skip
        self.reader: Reader = registry.format_of(source.agent).reader(
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
        if tail and take_torn_tail:
            writer.append(self.offset, tail)
            self.batch.warn(self.number, "torn", "the last line is not complete")
        self.commit(last=True)
        return take_torn_tail or not tail

    def read_chunks(self, chunks: Iterator[bytes]) -> bytes:
        """Reads whole rows, and a last one that is complete but for its b"\\n"; gives back what is left."""
        carry: list[bytes] = []
        unread = 0
        for chunk in self._behind_open_tail(chunks):
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                carry.append(chunk)
                continue
            data = b"".join((*carry, chunk[:cut])) if carry else chunk[:cut]
            carry = [chunk[cut:]] if cut < len(chunk) else []
            self._read_rows(data)
            unread += len(data)
            if len(self.batch) >= _STRETCH_EVENTS or unread >= _STRETCH_BYTES:
                self.commit()
                unread = 0
        tail = b"".join(carry)
        found = decode(tail) if tail else None
        if found and found.values and not found.damage:
            self._mirror(tail)
            self.batch.add(self.reader.feed(Row(self.number, self.offset, tail)))
            self.offset += len(tail)
            self.number += 1
            self.generation.open_tail = True
            tail = b""
        return tail

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

    def _read_rows(self, data: bytes) -> None:
        self._mirror(data)
        splitter = RowSplitter(self.offset, self.number)
        feed, add = self.reader.feed, self.batch.add
        for row in splitter.feed(data):
            if effects := feed(row):
                add(effects)
        self.offset, self.number = splitter.offset, splitter.number

    def _mirror(self, data: bytes) -> None:
        if self.writer:
            self.writer.append(self.offset, data)

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


def _known(session: AgentSession, number: int) -> Iterator[Known]:
    if not session.event_count:
        return
    prefix = f"{session.session_id}."
    rows = events_of_mirror(session.session_id, number).order_by("row", "part")
    columns = ("seq", "uid", "ref", "digest", "session_id", "surface", "type", "role")
    for seq, uid, ref, digest, lane, *rest in rows.values_list(*columns).iterator(10_000):
        own = lane == session.session_id
        yield Known(seq, uid, ref, digest, "" if own else lane.removeprefix(prefix), *rest)


def ownership_transfer(session: AgentSession, number: int) -> None:
    """A rewritten log repeats what records own already: its new events belong to the same records."""
    owned: dict[tuple[str, str, str, int], list[str]] = {}
    key = ("type", "uid", "ref", "digest")
    older = Event.objects.filter(session=session, generation__lt=number).exclude(record_id="")
    for *identity, record_id in older.values_list(*key, "record_id"):
        owned.setdefault(tuple(identity), []).append(record_id)
    if not owned:
        return
    changed = []
    for event in Event.objects.filter(session=session, generation=number, record_id="").order_by("seq"):
        if records := owned.get((event.type, event.uid, event.ref, event.digest)):
            event.record_id = records.pop(0)
            changed.append(event)
    Event.objects.bulk_update(changed, ["record_id"], batch_size=500)


def session_file_refresh(session: AgentSession, folder: Path, source: Source | None) -> None:
    """Brings session.json up to what a rebuild needs."""
    data = sessionfile.session_read(folder)
    data.update(
        schema=1,
        session_id=session.session_id,
        agent=session.agent,
        workspace_key=session.workspace_key,
        cwd=session.cwd,
        parent_id=session.parent_id,
        relation=session.relation,
        pool_session_id=session.pool_session_id,
        is_sample=session.is_sample,
        view_generation=session.view_generation,
        ended_at=session.ended_at,
    )
    if source:
        data.setdefault("sources", {})[source.path] = {
            "size": source.size, "mtime_ns": source.mtime_ns, "cwd": source.cwd,
            "started_at": source.started_at, "parent_id": source.parent_id, "relation": source.relation,
        }  # fmt: skip
    data["files"] = {
        file.path: {"row": file.row, "state": file.state, "sha256": file.sha256, "size": file.size}
        for file in SessionFile.objects.filter(session=session).order_by("path")
    }
    sessionfile.session_write(folder, data)
