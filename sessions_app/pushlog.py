"""The log of a pushed session, which Memex keeps itself: whether it may be written, and how.

Rows go to the mirror (fsync) and are then read from it like any other log's. Killed in between, the rows
that are whole are read by the next push or archive run; of one that is torn a warning is left, and its
sender, who got no answer, sends it again.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction

from records.files import ensure_free_space
from records.tombstones import is_forgotten

from .batch import Batch
from .ingest import session_ensure, session_file_refresh
from .levels import LevelsOff, SessionForgotten, SessionPaused, levels_of
from .locks import archive_lock
from .logs.dsh_fold import ranges_unpack
from .mirror import Mirror
from .mirrorwriter import MirrorWriter
from .models import AgentSession, Event, Generation, Source
from .pushsource import PREFIX, push_path
from .queries import SessionNotFound
from .sessionfile import session_folder, workspace_key_of
from .sourcepass import pool_of
from .stretch import Stretch
from .workspaces import is_paused

# How long a push waits for an import that holds the store.
WAIT_SECONDS = 20.0
# A pushed log is never rewritten.
GENERATION = 0


class PushConflict(Exception):
    """MEMORY_CONFLICT: the session is read from its agent's own log, which the message names."""


@dataclass(slots=True)
class PushLog:
    """A pushed session, open for writing: whoever has one holds the archive lock."""

    source: Source
    session: AgentSession
    generation: Generation
    folder: Path

    @property
    def next_seq(self) -> int:
        return int(self.generation.reader_state.get("next", 0))

    @property
    def window(self) -> list[int]:
        """The seqs in the window, in the model's order."""
        return ranges_unpack(self.generation.reader_state.get("nodes", ()))

    def tokens_of(self, seqs: Sequence[int]) -> int:
        wanted = set(seqs)
        if not wanted:
            return 0
        events = Event.objects.filter(session=self.session, generation=GENERATION)
        within = events.filter(seq__range=(min(wanted), max(wanted))).values_list("seq", "tokens")
        return sum(tokens for seq, tokens in within if seq in wanted)

    def ids_known(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        events = Event.objects.filter(session=self.session, generation=GENERATION)
        for start in range(0, len(ids), 500):
            within = events.filter(uid__in=ids[start : start + 500])
            found.update(within.values_list("uid", flat=True))
        return found

    def append(self, rows: Sequence[bytes]) -> None:
        """Adds rows, each without its b"\\n", and reads them. Raises StoreFull before it writes."""
        if not rows:
            return
        ensure_free_space()
        if not self.source.size:
            # From here on it is a pushed session, whose rows are read as such.
            self.source.size = sum(map(len, rows))
            self.source.save(update_fields=["size"])
        with MirrorWriter(self.folder, GENERATION) as writer:
            torn = writer.length and Mirror(self.folder, GENERATION).read(writer.length - 1, 1) != b"\n"
            writer.append(writer.length, (b"\n" if torn else b"") + b"\n".join(rows) + b"\n")
        self.source.mtime_ns = time.time_ns()
        self.read_rest()

    def read_rest(self) -> int:
        """Reads what is in the mirror and has no events yet; how many there were."""
        mirror, generation = Mirror(self.folder, GENERATION), self.generation
        if mirror.length <= generation.parsed_bytes:
            return 0
        batch = Batch(self.session, generation, settings.MEMEX_HOME, self.source.path)
        stretch = Stretch(self.source, self.session, generation, batch)
        stretch.read_chunks(mirror.stream(generation.parsed_bytes))
        stretch.commit(last=True)
        self.source.size = self.source.read_size = _disk_bytes(self.folder)
        self.source.read_mtime_ns = self.source.mtime_ns
        session_file_refresh(self.session, self.folder, self.source)
        self.source.save(update_fields=["size", "mtime_ns", "read_size", "read_mtime_ns"])
        return batch.event_total


def push_source(session_id: str) -> Source:
    """The source row of a pushed session that may be written and read now. Raises SessionForgotten,
    PushConflict, SessionNotFound, LevelsOff, SessionPaused: in this order, so that an off session is never
    asked about its pause."""
    refuse_forgotten(session_id)
    source = Source.objects.filter(path=push_path(session_id)).first()
    if source is None or not source.size:
        refuse_log(session_id)
    if source is None:
        raise SessionNotFound(f"No session {session_id!r} was opened.")
    refuse_off(session_id, pool_of(source), source.cwd)
    return source


def refuse_forgotten(session_id: str, pool_id: str = "") -> None:
    for name in (session_id, pool_id):
        if name and is_forgotten("session", name):
            raise SessionForgotten(f"{name} was forgotten. `memory trash restore` brings it back.")


def refuse_log(session_id: str) -> None:
    path = log_path(session_id)
    if path:
        raise PushConflict(f"Session {session_id} is read from {path}; nothing can be pushed to it.")
    if Generation.objects.filter(session_id=session_id, parsed_bytes__gt=0).exists():
        raise PushConflict(
            f"Session {session_id} was read from a log that is gone; nothing can be pushed to it."
        )


def refuse_off(session_id: str, pool_id: str, cwd: str = "") -> None:
    refuse_forgotten(session_id, pool_id)
    key = workspace_key_of(pool_id, cwd)
    if not levels_of(pool_id, key).any:
        raise LevelsOff(f"L2 and L3 are off for session {session_id}: nothing of it is kept.")
    if is_paused((session_id, pool_id), key):
        raise SessionPaused(f"Session {session_id} is paused: nothing of it is kept until it is resumed.")


def log_path(session_id: str) -> str:
    """The agent's own log that a session is read from; "" when there is none."""
    logs = Source.objects.filter(session_id=session_id).exclude(path__startswith=PREFIX)
    return logs.order_by("-mtime_ns").values_list("path", flat=True).first() or ""


@contextmanager
def push_log(session_id: str) -> Iterator[PushLog]:
    """Opens a pushed session for writing, and reads what an earlier push left unread. Raises what
    `push_source` does, and StoreBusy."""
    push_source(session_id)  # before: an off session needn't wait for the lock
    with archive_lock(WAIT_SECONDS):
        log = _opened(push_source(session_id))
        log.read_rest()
        yield log


def _opened(source: Source) -> PushLog:
    session = session_ensure(source)
    with transaction.atomic():
        if session._state.adding:
            session.save(force_insert=True)
        generation, _ = Generation.objects.get_or_create(session=session, number=GENERATION)
    return PushLog(source, session, generation, session_folder(session.workspace_key, session.session_id))


def pushes_unread() -> Iterator[Source]:
    """Sessions in whose mirror a push that was killed may have left rows that were not read. Told by the sizes
    of files, so that a pass over many sessions costs little; by their times two writes can't be told apart
    that follow each other closely."""
    for source in Source.objects.filter(path__startswith=PREFIX).order_by("path"):
        folder = session_folder(workspace_key_of(source.session_id, source.cwd), source.session_id)
        if _disk_bytes(folder) != source.size:
            yield source


def _disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob(f"g{GENERATION:04d}-*.zst"))


def push_read(source: Source) -> int:
    """Reads what is left to read of a pushed session, if it may be; how many events. The caller holds the
    archive lock."""
    try:
        source = push_source(source.session_id)
    except (SessionForgotten, LevelsOff, SessionPaused):
        return 0
    log = _opened(source)
    events = log.read_rest()
    # Frames may have been written anew without a row that is new.
    source.size = source.read_size = _disk_bytes(log.folder)
    source.save(update_fields=["size", "read_size"])
    return events
