"""What can be read: index, record, search, grep, nav, assemble, metrics."""

from dataclasses import asdict
from typing import Any, Unpack

from django.db.models import Sum

from records import queries
from records.clock import now_ms
from records.queries import Filters
from records.search import grep as grepping
from records.search.assembling import assemble as assemble_pack
from records.search.search import search as search_records
from records.services import record_mark_read
from sessions_app.access import Access
from sessions_app.figures import PoolFigures, compression, pool_figures
from sessions_app.models import L1Eviction

from .shapes import card_json, hit_json, levels_json, nav_json, pack_json, record_json

INDEX_MAX, SEARCH_MAX = 300, 100
BODY_MAX_CHARS, BODY_MAX_BYTES = 1_000_000, 256 * 1024
CUT = "…[truncated]"


def index(access: Access, *, limit: int = 100, cursor: str = "") -> dict[str, Any]:
    """Figures of the pools and the newest records; with `cursor` those that changed since it was given. A
    client whose own count differs from `count` afterwards has missed a removal, and asks for all. ValueError
    for a cursor that is none."""
    facets = queries.facets(access.scope)
    l2, l3 = pool_figures(access)
    since = _since(cursor)
    page = queries.record_list(access.scope, order="updated", limit=min(limit, INDEX_MAX))
    records = page.records if since is None else [each for each in page.records if each.updated_at > since]
    newest = max((record.updated_at for record in page.records), default=since or 0)
    return {
        "levels": levels_json(access.levels),
        "captureScope": access.levels.capture_scope,
        "scope": access.levels.capture_scope,
        "l2": l2.as_json(),
        "l3": l3.as_json(),
        "compression": compression(access),
        "l1Evicted": evicted(access),
        "capacityTokens": sum(pool.capacity for pool in (l2, l3) if pool.is_on),
        "tokens": facets.tokens,
        "hotTokens": facets.hot_tokens,
        "coldTokens": facets.cold_tokens,
        "coldCount": facets.cold_count,
        "hotCount": facets.hot_count,
        "byKind": facets.by_kind,
        "byKindTokens": facets.by_kind_tokens,
        "byStatus": facets.by_status,
        "count": facets.count,
        "cursor": str(newest),
        "hasMore": page.has_more and len(records) == len(page.records),
        "records": [card_json(record) for record in records],
    }


def _since(cursor: str) -> int | None:
    if not cursor:
        return None
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 16:
        raise ValueError(f"{cursor[:40]!r} is no cursor: give one that an answer has named.")
    return int(cursor)


def evicted(access: Access) -> dict[str, int]:
    """What left the window by evictions, of the session, or of all."""
    rows = L1Eviction.objects.all()
    if not access.is_everything:
        rows = rows.filter(session_id=access.session.session_id if access.session else "")
    return {"count": rows.count(), "tokens": rows.aggregate(sum=Sum("shadowed_tokens"))["sum"] or 0}


def metrics(access: Access) -> dict[str, Any]:
    facets = queries.facets(access.scope)
    l2, l3 = pool_figures(access)
    return {
        "generatedAt": now_ms(),
        "levels": levels_json(access.levels),
        "l2": _metrics(l2),
        "l3": _metrics(l3),
        "visible": {
            "hotTokens": facets.hot_tokens,
            "coldTokens": facets.cold_tokens,
            "count": facets.count,
            "byKind": facets.by_kind,
        },
        "l1Evicted": evicted(access),
        "compression": compression(access),
    }


def _metrics(pool: PoolFigures) -> dict[str, Any]:
    given = pool.as_json()
    names = ("hotTokens", "coldTokens", "hotCount", "coldCount", "capacityTokens")
    return {name: given[name] for name in names}


def record(access: Access, record_id: str, *, offset: int = 0, limit: int = 200_000) -> dict[str, Any]:
    """A window of a record's text, in characters. Record.DoesNotExist, Unreadable."""
    opened = queries.record_open(access.scope, record_id)
    if not access.principal.is_owner:
        record_mark_read([record_id])
    text = opened.body.decode("utf-8", "replace")
    window, is_cut = _window(text, offset, min(limit, BODY_MAX_CHARS))
    return {
        "record": record_json(opened.record),
        "body": window,
        "truncated": is_cut,
        "bodyTruncated": is_cut,
        "bodyOffset": offset,
        "bodyLimit": limit,
        "bodyTotalChars": len(text),
        "path": opened.record.path,
    }


def _window(text: str, offset: int, limit: int) -> tuple[str, bool]:
    window = text[offset : offset + limit]
    data = window.encode("utf-8", "replace")
    if len(data) > BODY_MAX_BYTES:
        return data[:BODY_MAX_BYTES].decode("utf-8", "ignore") + CUT, True
    return window, offset + len(window) < len(text)


def search(access: Access, text: str, *, limit: int = 30, **filters: Unpack[Filters]) -> dict[str, Any]:
    answer = search_records(access.scope, text, limit=min(limit, SEARCH_MAX), **filters)
    return {
        "levels": levels_json(access.levels),
        "records": [hit_json(access.scope, hit) for hit in answer.hits],
        "hint": answer.hint,
        "suggestions": [asdict(each) for each in answer.suggestions],
        "pending": answer.pending,
    }


def grep(
    access: Access,
    pattern: str,
    *,
    ignore_case: bool = True,
    literal: bool = False,
    context: int = 0,
    limit: int = 50,
    **filters: Unpack[Filters],
) -> dict[str, Any]:
    """BadPattern."""
    answer = grepping.grep(
        access.scope, pattern, ignore_case=ignore_case, literal=literal, context=context,
        max_hits=min(limit, grepping.MAX_HITS), **filters,
    )  # fmt: skip
    return {
        "hits": [
            {
                "recordId": hit.record_id,
                "title": hit.title,
                "cold": hit.cold,
                "line": hit.line_number,
                "seq": hit.seq,
                "text": hit.line,
                "spans": [list(span) for span in hit.spans],
                "before": list(hit.before),
                "after": list(hit.after),
            }
            for hit in answer.hits
        ],
        "recordsSearched": answer.records_searched,
        "truncated": answer.truncated,
        "why": answer.why,
        "warnings": list(answer.warnings),
    }


def nav(
    access: Access, path: str = "", *, limit: int = 50, offset: int = 0, sort: str = "updated"
) -> dict[str, Any]:
    """BadPath, ValueError."""
    return nav_json(queries.nav(access.scope, path, limit=limit, offset=offset, sort=sort))


def assemble(access: Access, task: str, *, budget: int, **filters: Unpack[Filters]) -> dict[str, Any]:
    """ValueError for a budget below the least."""
    return pack_json(assemble_pack(access.scope, task, budget=budget, **filters), budget)
