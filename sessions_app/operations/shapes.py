"""Records as JSON says them."""

from dataclasses import asdict
from typing import Any

from records import queries
from records.capacity.compress import CompressionReport
from records.models import Record
from records.scope import Scope
from records.search.packing import Assembled
from records.search.results import Card, SearchHit
from records.services import Unreadable
from sessions_app.levels import Levels


def levels_json(levels: Levels) -> dict[str, bool]:
    return {"l2": levels.l2, "l3": levels.l3}


def card_json(card: Record | Card) -> dict[str, Any]:
    """A record without its text."""
    return {
        "id": card.id,
        "kind": card.kind,
        "scope": card.scope,
        "status": card.status,
        "trust": card.trust,
        "title": card.title,
        "summary": card.summary,
        "useWhen": card.use_when,
        "tags": card.tags,
        "entities": card.entities,
        "tokens": card.tokens,
        "bytes": card.bytes,
        "cold": bool(card.cold),
        "workspace": card.workspace,
        "sessionId": card.session_id,
        "createdAt": card.created_at,
        "updatedAt": card.updated_at,
    }


def record_json(record: Record) -> dict[str, Any]:
    return {
        **card_json(record),
        "slot": record.slot,
        "confidence": record.confidence,
        "abstract": record.abstract,
        "sources": record.sources,
        "links": record.links,
        "provenance": record.provenance,
        "readCount": record.read_count,
        "lastReadAt": record.last_read_at,
    }


def hit_json(scope: Scope, hit: SearchHit) -> dict[str, Any]:
    """`offset`: where the passage begins, in characters of the record's text, as memory.record takes it."""
    return {
        **card_json(hit.card),
        "score": hit.score,
        "snippet": hit.snippet.text,
        "marks": [list(mark) for mark in hit.snippet.marks],
        "reason": hit.reason.text,
        "offset": character_offset(scope, hit),
        "seqStart": hit.seq_start,
        "seqEnd": hit.seq_end,
    }


def character_offset(scope: Scope, hit: SearchHit) -> int | None:
    if hit.offset is None:
        return None
    try:
        body = queries.record_open(scope, hit.card.id).body
    except (Record.DoesNotExist, Unreadable):
        return None
    return len(body[: hit.offset].decode("utf-8", "replace"))


def nav_json(found: queries.Nav) -> dict[str, Any]:
    return {
        "entries": [entry._asdict() for entry in found.entries],
        "total": found.total,
        "offset": found.offset,
        "limit": found.limit,
        "hasMore": found.has_more,
        "facets": found.facets,
        "steps": list(found.steps),
        "isPartial": found.is_partial,
    }


def pack_json(pack: Assembled, budget: int) -> dict[str, Any]:
    return {
        "context": pack.context,
        "usedTokens": pack.used_tokens,
        "budget": budget,
        "sources": [
            {
                "id": source.id,
                "title": source.title,
                "seqStart": source.seq_start,
                "seqEnd": source.seq_end,
                "byteOffset": source.offset,
                "tokens": source.tokens,
                "isCut": source.is_cut,
            }
            for source in pack.sources
        ],
        "omitted": [asdict(left) for left in pack.omitted],
        "hint": pack.hint,
    }


def compression_json(report: CompressionReport) -> dict[str, Any]:
    return {
        "level": str(report.pool.level),
        "targetTokens": report.target_tokens,
        "beforeHot": report.before_hot,
        "afterHot": report.after_hot,
        "coldMoved": report.cold_moved,
        "freedTokens": report.freed_tokens,
        "errors": report.errors,
    }
