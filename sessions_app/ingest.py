"""Reads a log into the store: mirror first, then its events, a stretch at a time.

Data flow: source -> rows -> mirror (fsync) -> reader -> effects -> one transaction a stretch. Killed at
any moment, the next run goes on at the last committed row; bytes that are mirrored already are passed
over. The caller holds the archive lock and has asked `levels.may_read`.
"""

from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.db import transaction

from records.ids import workspace_key

from . import sessionfile
from .batch import Batch
from .continuity import generation_for
from .discovery import agent_root
from .levels import pool_session_id
from .mirror import Mirror
from .mirrorwriter import MirrorWriter
from .models import AgentSession, Event, Generation, SessionFile, Source
from .stretch import Stretch

# What session.json keeps of a file that the log points to.
_FILE_FIELDS = ("row", "state", "sha256", "size")


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
    """The session of a source; a new one is not saved yet."""
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
    return AgentSession(
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
    generation, has_more = generation_for(session, folder, path)
    _rows_make(session, generation)
    result = Ingested(sessions=[session.session_id])
    whole = True
    if has_more:
        batch = Batch(session, generation, agent_root(source.agent, path), source.path)
        stretch = Stretch(source, session, generation, batch)
        with MirrorWriter(folder, generation.number) as writer:
            whole = stretch.read(writer, path, take_torn_tail=take_torn_tail)
        result.events, result.warnings = batch.event_total, batch.warning_total
        result.sessions = [row.session_id for row in batch.sessions]
        if generation.number and result.events:
            ownership_transfer(session, generation.number)
    source.generation = generation.number
    if whole:
        source.read_size, source.read_mtime_ns = source.size, source.mtime_ns
    session_file_refresh(session, folder, source)
    source.save(update_fields=["read_size", "read_mtime_ns", "generation"])
    return result


def _rows_make(session: AgentSession, generation: Generation) -> None:
    """Of what is new, in one transaction."""
    if generation.pk is None:
        with transaction.atomic():
            if session._state.adding:
                session.save(force_insert=True)
            generation.save(force_insert=True)


def session_reparse(session: AgentSession, folder: Path, number: int) -> None:
    """Makes the events of a generation anew from its mirror, for `reindex`."""
    source = Source(agent=session.agent, session_id=session.session_id, cwd=session.cwd,
                    parent_id=session.parent_id, relation=session.relation)  # fmt: skip
    generation, _ = Generation.objects.get_or_create(session=session, number=number)
    batch = Batch(session, generation, settings.MEMEX_HOME, "")
    stretch = Stretch(source, session, generation, batch)
    stretch.read_chunks(Mirror(folder, number).stream())
    stretch.commit(last=True)


def ownership_transfer(session: AgentSession, number: int) -> None:
    """A rewritten log repeats what records own already: its new events belong to the same records."""
    identity = ("type", "uid", "ref", "digest")
    owned = Event.objects.filter(session=session).exclude(record_id="")
    versions: dict[tuple[object, ...], dict[int, list[str]]] = {}
    for *key, version, record_id in owned.exclude(generation=number).values_list(
        *identity, "generation", "record_id"
    ):
        versions.setdefault(tuple(key), {}).setdefault(version, []).append(record_id)
    # Each stands for one event, though several versions of the log hold it: what says the same again later
    # is new.
    free = {key: max(found.values(), key=len) for key, found in versions.items()}
    for *key, record_id in owned.filter(generation=number).values_list(*identity, "record_id"):
        if record_id in free.get(tuple(key), ()):
            free[tuple(key)].remove(record_id)
    if not any(free.values()):
        return
    changed = []
    for event in Event.objects.filter(session=session, generation=number, record_id="").order_by("seq"):
        if records := free.get((event.type, event.uid, event.ref, event.digest)):
            event.record_id = records.pop(0)
            changed.append(event)
    Event.objects.bulk_update(changed, ["record_id"], batch_size=500)


def session_file_refresh(session: AgentSession, folder: Path, source: Source) -> None:
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
    data.setdefault("sources", {})[source.path] = {
        "size": source.size, "mtime_ns": source.mtime_ns, "cwd": source.cwd,
        "started_at": source.started_at, "parent_id": source.parent_id, "relation": source.relation,
        "read_size": source.read_size, "read_mtime_ns": source.read_mtime_ns,
        "generation": source.generation,
    }  # fmt: skip
    # How much of each was read: less than that in the mirror is a loss that a rebuild must not hide.
    parsed = session.generations.order_by("number").values_list("number", "parsed_bytes")
    data["generations"] = {str(number): parsed_bytes for number, parsed_bytes in parsed}
    files = SessionFile.objects.filter(session=session).order_by("path")
    data["files"] = {
        path: dict(zip(_FILE_FIELDS, values, strict=True))
        for path, *values in files.values_list("path", *_FILE_FIELDS)
    }
    sessionfile.session_write(folder, data)
