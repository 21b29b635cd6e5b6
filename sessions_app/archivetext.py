"""The words of an archive: card, body and what the summary lost, in one pass over the originals."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from records.secrets.gathering import Gatherer
from records.secrets.policy import Decision

from .archiveplan import Plan
from .blobs import blob_read
from .card import Card, CardBuilder
from .counts import generation_events
from .eventrefs import EventRef, event_refs, mirror_session_id
from .facts import ArchivedEvent
from .logs.events import INJECTED, PERSON, Block
from .lost import CATEGORIES, lost_facts
from .markdown import CONTEXT_HEADING, BodyWriter, Preface, is_named_only
from .models import AgentSession, Compaction, SessionFile
from .queries import Mirrors, event_texts

# What a record's front matter keeps of the losses; the counts are complete.
_LOST_KEPT, _LOST_CHARACTERS = 12, 160


@dataclass(slots=True)
class ArchiveText:
    """`cut`: [first seq, last seq] of events whose text isn't complete in the body; `cut_shown`: [seq,
    characters] of those that are there in part. Card and losses are without what looks like a secret."""

    card: Card
    body: bytes
    lost: dict[str, Any]
    cut: list[list[int]]
    cut_shown: list[list[int]]
    decision: Decision


def archive_text(plan: Plan) -> ArchiveText:
    """Only what the plan owns goes into the body. Memory is bounded by the body's limit, not by how much
    was dropped."""
    session, compaction, dropped = plan.session, plan.compaction, plan.dropped
    mirrors: Mirrors = {}
    summary = _summary(session, compaction, mirrors)
    preface = Preface(
        session_id=plan.origin_id,
        compaction_id=plan.compaction_id,
        seq_start=dropped[0].seq,
        seq_end=dropped[-1].seq,
        events=len(dropped),
        tokens=sum(event.tokens for event in dropped),
    )
    writer, card, secrets = BodyWriter(preface), CardBuilder(), Gatherer()
    pieces = [writer.head(summary, opaque=bool(compaction and compaction.opaque))]
    summary = secrets.text(summary, compaction.summary_seq) if compaction and summary else ""
    for event, clean in _looked_through(secrets, archived_events(session, plan.owned, mirrors)):
        pieces.append(writer.event(event))
        card.add(clean)
    for _, clean in _looked_through(Gatherer(), _said_meanwhile(session, dropped, mirrors)):
        card.add_context(clean)
    pieces.append(writer.end())
    has_summary = compaction is not None and compaction.kind == "compaction"
    lost = lost_facts(card.facts, summary) if has_summary else None
    pieces[1:1] = [writer.lost(lost) if lost else "", CONTEXT_HEADING]
    # Piece by piece: joined as text they would take four bytes a character as soon as one is wide.
    body = b"".join(piece.encode("utf-8", "replace") for piece in pieces)
    return ArchiveText(
        card=card.card(
            summary=summary, seq_start=preface.seq_start, seq_end=preface.seq_end, source=plan.source
        ),
        body=body,
        lost=_lost_kept(lost.to_json()) if lost else {},
        cut=writer.cut_runs,
        cut_shown=[[cut.seq, cut.shown] for cut in writer.cut if cut.shown],
        decision=secrets.decision,
    )


def _looked_through(
    secrets: Gatherer, events: Iterator[ArchivedEvent]
) -> Iterator[tuple[ArchivedEvent, ArchivedEvent]]:
    """Each event, and the same without its secrets: in full, for what a body cuts is searched as well."""
    for event, texts in secrets.through(events, _texts, attrgetter("seq")):
        clean = event
        if texts is not None:
            left = iter(texts)
            blocks = [
                block if is_named_only(block) else replace(block, text=next(left)) for block in event.blocks
            ]
            clean = replace(event, blocks=blocks)
        yield event, clean


def _texts(event: ArchivedEvent) -> list[str]:
    return [block.text for block in event.blocks if not is_named_only(block)]


def _said_meanwhile(
    session: AgentSession, dropped: list[EventRef], mirrors: Mirrors
) -> Iterator[ArchivedEvent]:
    """What a person said between the first and the last event that left, and what led to it."""
    said = generation_events(session, dropped[0].generation).filter(source=PERSON)
    within = said.filter(seq__range=(dropped[0].seq, dropped[-1].seq)).order_by("seq")
    before = said.filter(seq__lt=dropped[0].seq).order_by("-seq")
    refs = list(event_refs(within[:3])) or event_refs(before[:1])
    for text in event_texts(session, refs, mirrors):
        event = text.event
        yield ArchivedEvent(event.seq, event.role, event.source, event.time, text.blocks)


def _summary(session: AgentSession, compaction: Compaction | None, mirrors: Mirrors) -> str:
    if compaction is None or compaction.summary_seq is None:
        return ""
    event = generation_events(session, compaction.generation).filter(seq=compaction.summary_seq)
    for text in event_texts(session, event_refs(event), mirrors):
        return "\n\n".join(block.text for block in text.blocks if block.kind == "text")
    return ""


def archived_events(
    session: AgentSession, events: list[EventRef], mirrors: Mirrors | None = None
) -> Iterator[ArchivedEvent]:
    """These events with their content, one at a time, as a body shows it. Raises MirrorDamaged,
    FileNotFoundError."""
    files: dict[int, list[SessionFile]] = {}
    mirror_id = mirror_session_id(session.session_id, events[0].mirror_id if events else "")
    for file in SessionFile.objects.filter(session_id=mirror_id):
        files.setdefault(file.row, []).append(file)
    for text in event_texts(session, events, mirrors):
        event = text.event
        blocks = text.blocks
        if event.source == INJECTED:
            blocks = [Block("injected")]
        for file in files.get(event.row, ()):
            blocks = [*blocks, _file_block(file)]
        yield ArchivedEvent(event.seq, event.role, event.source, event.time, blocks)


def _file_block(file: SessionFile) -> Block:
    """The content of a file that the event points to, or what is known of it."""
    name = file.path.rsplit("/", 1)[-1]
    if file.state != SessionFile.State.KEPT:
        return Block("file", f"{file.path} ({file.state}, {file.size:,} bytes)", name)
    data = blob_read(file.sha256)
    if b"\0" in data[:8192]:
        return Block("file", f"{file.path} ({len(data):,} bytes, kept as {file.sha256})", name)
    return Block("tool-result", data.decode("utf-8", "replace"), name)


def _lost_kept(lost: dict[str, Any]) -> dict[str, Any]:
    for name in CATEGORIES:
        lost[name] = [value[:_LOST_CHARACTERS] for value in lost[name][:_LOST_KEPT]]
    return lost
