"""Carries out what a reader said: the rows of one stretch of a log, in one transaction."""

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from records.secrets.glances import glances

from .blobs import BlobRefused, file_keep
from .counts import session_counts_take
from .eventrefs import lanes_of
from .injection.receipts import receipts_delivered
from .logs.events import (
    CURRENT,
    SHADOWED,
    CompactionFact,
    Effect,
    FileRef,
    NewEvent,
    Restored,
    RowWarning,
    SessionFact,
    Shadowed,
)
from .logs.rows import clean
from .models import AgentSession, Compaction, Generation, ImportWarning, SessionFile

# Taken from a NewEvent as they are; then what it does not know: session, mirror, generation, record.
_TAKEN = (
    "seq", "row", "offset", "length", "part", "type", "role", "source", "time", "tokens", "uid", "ref",
    "digest", "surface", "shadowed_by", "inherited", "preview",
)  # fmt: skip
_taken = attrgetter(*_TAKEN)
_ADDED = ("session_id", "mirror_id", "generation", "record_id")
_INSERT_EVENT = (
    f"INSERT INTO events ({', '.join(chr(34) + name + chr(34) for name in (*_TAKEN, *_ADDED))}) "  # noqa: S608
    f"VALUES ({', '.join(['%s'] * len((*_TAKEN, *_ADDED)))})"
)
_SHADOW = (
    "UPDATE events SET surface = 'shadowed', shadowed_by = %s "
    "WHERE session_id = %s AND generation = %s AND seq = %s"
)
_RESTORE = (
    "UPDATE events SET surface = 'current', shadowed_by = NULL "
    "WHERE session_id = %s AND generation = %s AND seq = %s"
)
_FACT_FIELDS = ("title", "model", "context_window", "used_tokens", "parent_id", "relation")
# An archive is final: what a log says again of a compaction does not take it back.
_SETTLED = (Compaction.State.ARCHIVED, Compaction.State.INHERITED, Compaction.State.EMPTY)


def ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Runs of consecutive numbers as [first, last], order kept."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def unranged(pairs: Iterable[Iterable[int]]) -> list[int]:
    return [number for first, last in pairs for number in range(first, last + 1)]


def _events_insert(cursor: CursorWrapper, rows: list[tuple[Any, ...]]) -> None:
    try:
        with transaction.atomic():
            cursor.executemany(_INSERT_EVENT, rows)
    except UnicodeEncodeError:
        # A lone surrogate that a reader let through: rare, so that looking for it first would cost more.
        cursor.executemany(
            _INSERT_EVENT,
            [tuple(clean(value) if isinstance(value, str) else value for value in row) for row in rows],
        )


class Batch:
    """Collects effects of one generation; `commit` writes them together with how far it was read.

    `source_path` "": a rebuild, whose warnings were given when the log was read."""

    def __init__(self, session: AgentSession, generation: Generation, root: Path, source_path: str) -> None:
        self.session, self.generation, self.root, self.source_path = session, generation, root, source_path
        self.event_total = 0
        self.warning_total = 0
        prefix = f"{session.session_id}."
        self._lanes = {lane.session_id.removeprefix(prefix): lane for lane in lanes_of(session.session_id)}
        self._lanes[""] = session
        self._clear()

    def _clear(self) -> None:
        self._events: list[NewEvent] = []
        # Filled when something asks for them.
        self._places: dict[tuple[str, int], NewEvent] = {}
        self._shadows: list[tuple[int, str, int, int]] = []
        self._restores: list[tuple[str, int, int]] = []
        self._facts: list[CompactionFact] = []
        self._session_facts: list[SessionFact] = []
        self._files: list[FileRef] = []
        self._warnings: list[RowWarning] = []
        self._delivered: list[str] = []

    def __len__(self) -> int:
        return len(self._events)

    @property
    def sessions(self) -> list[AgentSession]:
        """The session and its inline sub-agents."""
        return list(self._lanes.values())

    def add(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case NewEvent():
                    self._events.append(effect)
                case Shadowed():
                    self._shadow_add(effect)
                case Restored():
                    self._restore_add(effect)
                case CompactionFact():
                    self._facts.append(effect)
                case SessionFact():
                    self._session_facts.append(effect)
                case FileRef():
                    self._files.append(effect)
                case RowWarning():
                    self._warnings.append(effect)

    def _shadow_add(self, effect: Shadowed) -> None:
        session_id, number = self._lane(effect.lane).session_id, self.generation.number
        for new in islice(self._events, len(self._places), None):
            self._places[new.lane, new.seq] = new
        for seq in effect.seqs:
            # Most are still waiting to be written; only the others cost an update.
            if event := self._places.get((effect.lane, seq)):
                event.surface, event.shadowed_by = SHADOWED, effect.by
            else:
                self._shadows.append((effect.by, session_id, number, seq))

    def _restore_add(self, effect: Restored) -> None:
        session_id, number = self._lane(effect.lane).session_id, self.generation.number
        back = set(effect.seqs)
        for event in self._events:
            if event.lane == effect.lane and event.seq in back:
                event.surface, event.shadowed_by = CURRENT, None
                back.discard(event.seq)
        self._shadows = [row for row in self._shadows if row[1] != session_id or row[3] not in back]
        self._restores += [(session_id, number, seq) for seq in sorted(back)]

    def _event_rows(self) -> Iterator[tuple[Any, ...]]:
        own, number = self.session.session_id, self.generation.number
        main = (own, "", number, "")
        previews = glances([event.preview for event in self._events])
        for event, preview in zip(self._events, previews, strict=True):
            event.preview = preview
            if event.lane:
                yield (*_taken(event), self._lane(event.lane).session_id, own, number, "")
            else:
                yield _taken(event) + main

    def delivered(self, message_ids: Iterable[str]) -> None:
        """The log shows that the agent has these messages of ours."""
        self._delivered += message_ids

    def warn(self, row: int, code: str, message: str) -> None:
        self._warnings.append(RowWarning(row, code, message))

    def commit(
        self, *, parsed_bytes: int, parsed_rows: int, reader_state: dict[str, Any], now: int, last: bool
    ) -> None:
        """`last`: the pass ends here, so that the sessions' counts are brought up to date as well."""
        files = [self._file_row(reference) for reference in self._files]
        generation = self.generation
        generation.parsed_bytes, generation.parsed_rows = parsed_bytes, parsed_rows
        generation.reader_state = reader_state
        self._session_facts_apply()
        # Made before: others may want to write meanwhile.
        rows = list(self._event_rows())
        with transaction.atomic():
            generation.save()
            with connection.cursor() as cursor:
                if rows:
                    _events_insert(cursor, rows)
                # In this order: what left again after it had come back is among the first no longer.
                if self._restores:
                    cursor.executemany(_RESTORE, self._restores)
                if self._shadows:
                    cursor.executemany(_SHADOW, self._shadows)
            self._compactions_save()
            if files:
                SessionFile.objects.bulk_create(files, ignore_conflicts=True)
            if self._warnings and self.source_path:
                self._warnings_save(now)
            receipts_delivered(self._delivered)
            for session in self.sessions:
                if last:
                    session_counts_take(session)
                session.save()
        self.event_total += len(self._events)
        self.warning_total += len(self._warnings)
        self._clear()

    def _warnings_save(self, now: int) -> None:
        rows = [
            ImportWarning(
                path=self.source_path, row=warning.row, code=warning.code, message=clean(warning.message),
                session_id=self.session.session_id, created_at=now,
            )
            for warning in self._warnings
        ]  # fmt: skip
        ImportWarning.objects.bulk_create(rows, ignore_conflicts=True)

    def _lane(self, lane: str) -> AgentSession:
        session = self._lanes.get(lane)
        if session is None:
            main = self.session
            session = self._lanes[lane] = AgentSession(
                session_id=f"{main.session_id}.{lane}",
                agent=main.agent,
                workspace_key=main.workspace_key,
                cwd=main.cwd,
                parent_id=main.session_id,
                relation="subagent",
                pool_session_id=main.pool_session_id,
                view_generation=self.generation.number,
                is_sample=main.is_sample,
            )
        return session

    def _session_facts_apply(self) -> None:
        for fact in self._session_facts:
            session = self._lane(fact.lane)
            for name in _FACT_FIELDS:
                if value := fact.values.get(name):
                    # A log names its parent once; a source that is known to be a sub-agent stays one.
                    if name in ("parent_id", "relation") and getattr(session, name):
                        continue
                    if name == "title":
                        (value,) = glances([str(value)])
                    setattr(session, name, clean(value) if isinstance(value, str) else value)
        times: dict[str, list[int]] = {}
        for event in self._events:
            if event.time is not None:
                times.setdefault(event.lane, []).append(event.time)
        for lane, found in times.items():
            session, low, high = self._lane(lane), min(found), max(found)
            session.started_at = low if session.started_at is None else min(session.started_at, low)
            session.last_event_at = (
                high if session.last_event_at is None else max(session.last_event_at, high)
            )
        # Every lane that is spoken of has its session before its events are written.
        for lane in {fact.lane for fact in self._facts} | {event.lane for event in self._events}:
            self._lane(lane)

    def _compactions_save(self) -> None:
        """Each once, though it may have been spoken of several times."""
        if not self._facts:
            return
        lanes = {self._lane(fact.lane).session_id for fact in self._facts}
        names = {fact.compaction_id[:200] for fact in self._facts}
        known = Compaction.objects.filter(session_id__in=lanes, compaction_id__in=names)
        rows = {(row.session_id, row.compaction_id): row for row in known}
        for fact in self._facts:
            key = (self._lane(fact.lane).session_id, fact.compaction_id[:200])
            row = rows.get(key)
            if row is None:
                row = rows[key] = Compaction(session_id=key[0], compaction_id=key[1])
            self._compaction_fill(row, fact)
        for row in rows.values():
            row.save()

    def _compaction_fill(self, row: Compaction, fact: CompactionFact) -> None:
        state = fact.state
        if state == Compaction.State.READY and not fact.dropped:
            state = Compaction.State.EMPTY
        if row.state not in _SETTLED:
            row.state = state
        for name in (
            "kind", "at_seq", "summary_seq", "origin_session_id", "trigger", "tokens_before", "tokens_after",
            "provider", "model", "confirmed", "opaque", "time", "missing",
        ):  # fmt: skip
            value = getattr(fact, name)
            setattr(row, name, clean(value) if isinstance(value, str) else value)
        row.dropped = ranges(fact.dropped)
        row.generation = self.generation.number

    def _file_row(self, reference: FileRef) -> SessionFile:
        row = SessionFile(session=self.session, path=clean(reference.path), row=reference.row)
        try:
            row.sha256, row.size = file_keep(reference.path, self.root)
            row.state = SessionFile.State.KEPT
        except BlobRefused as refused:
            row.state, row.size = refused.state, refused.size
        return row
