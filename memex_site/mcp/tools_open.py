"""memory_open: a record's text, an event's, or the rows of the log behind them."""

import base64
from collections.abc import Iterable

from django.conf import settings

from records import queries
from records.models import Record
from records.services import record_mark_read
from sessions_app.access import Access
from sessions_app.eventspan import SPAN_MAX, EventSpan, record_span, session_span, span_rows, span_text
from sessions_app.originals import NoOriginal, record_rows
from sessions_app.principals import READ

from .parameters import BadCall, Parameter
from .rendering import DATA, Window, day, decoded, events, fenced, line, window
from .tool import RECORD_ID_MAX, Arguments, Tool, reach

MIN_CHARS, MAX_CHARS = 2_000, 60_000
# What is asked for by its place is shown with so much before it: one part of so many.
_BEFORE = 4
_LARGEST = 2**53


def open_(access: Access, given: Arguments) -> str:
    """Record.DoesNotExist, Unreadable."""
    if given["id"] is None and given["seq"] is None:
        raise BadCall(
            "memory_open needs id (memory_search, memory_grep, memory_nav and memory_index name them), or seq "
            "for an event of this session."
        )
    _check_place(given)
    record = None
    if given["id"] is not None:
        record = queries.record_get(access.scope, given["id"])
        # Once for all its pages.
        if not given["offset"] and not access.principal.is_owner:
            record_mark_read([record.id])
    if given["seq"] is not None:
        return _events(access, record, given)
    assert record is not None
    return _rows(record, given) if given["raw"] else _body(access, record, given)


def _check_place(given: Arguments) -> None:
    places = [name for name in ("offset", "around", "line") if given[name] is not None]
    if len(places) > 1:
        raise BadCall(f"Give one of {' and '.join(places)}: each says where to begin.")
    if places and places[0] != "offset" and (given["seq"] is not None or given["raw"]):
        raise BadCall("around and line are places in a record's text: with seq or raw use offset.")
    if given["seq_end"] is not None:
        if given["seq"] is None:
            raise BadCall("seq_end needs seq, where the events begin.")
        if not 0 <= given["seq_end"] - given["seq"] < SPAN_MAX:
            raise BadCall(f"seq_end must lie behind seq, by less than {SPAN_MAX}.")


def _max_chars(given: Arguments) -> int:
    return given["max_chars"] or settings.MEMEX_OPEN_MAX_CHARS


def _body(access: Access, record: Record, given: Arguments) -> str:
    opened = queries.record_open(access.scope, record.id)
    text = opened.body.decode("utf-8", "replace")
    limit = _max_chars(given)
    offset = _offset(text, given, limit)
    page = Window(text[offset : offset + limit], offset, offset + limit < len(text))
    if offset and offset >= len(text):
        raise BadCall(f"offset={offset} is behind the end: this record has {len(text):,} characters.")
    head = _record_head(opened.record)
    of = f"Characters {page.offset:,}–{page.end:,} of {len(text):,}."
    cut = opened.record.provenance.get("cut")
    notes = [_next(page), _cut_note(cut) if isinstance(cut, list) and cut else ""]
    return _answer([*head, of], page.text, notes)


def _offset(text: str, given: Arguments, limit: int) -> int:
    at = given["around"]
    if given["line"] is not None:
        at = _line_start(text, given["line"])
    if at is None:
        return int(given["offset"] or 0)
    begin = max(0, min(at, len(text)) - limit // _BEFORE)
    # From the beginning of a line, where there is one near.
    newline = text.find("\n", begin, at)
    return newline + 1 if begin and newline >= 0 else begin


def _line_start(text: str, number: int) -> int:
    at = 0
    for _ in range(number - 1):
        at = text.find("\n", at) + 1
        if not at:
            raise BadCall(
                f"line={number} is behind the end: this record has {text.count(chr(10)) + 1:,} lines."
            )
    return at


def _cut_note(cut: list[object]) -> str:
    spans = ", ".join(f"#{a}" if a == b else f"#{a}–#{b}" for a, b in _pairs(cut)[:20])
    return (
        f"Very long events are cut in this text ({spans}): with seq= the whole event is read."
        if spans
        else ""
    )


def _pairs(cut: list[object]) -> list[tuple[int, int]]:
    return [
        (each[0], each[1])
        for each in cut
        if isinstance(each, list) and len(each) == 2 and all(isinstance(end, int) for end in each)
    ]


def _record_head(record: Record) -> list[str]:
    given = record.provenance
    first, last = given.get("seqStart"), given.get("seqEnd")
    span = events(first, last) if isinstance(first, int) else ""
    status = record.status if record.status != "active" else ""
    facts = (record.id, record.kind, status, "cold" if record.cold else "", day(record.created_at), span)
    return [line(record.title), " · ".join(filter(None, facts))]


def _rows(record: Record, given: Arguments) -> str:
    try:
        page = window(decoded(record_rows(record)), given["offset"] or 0, _max_chars(given))
    except NoOriginal:
        raise BadCall(f"{record.id} was written, not archived from a log: leave raw out.") from None
    return _raw_answer(_record_head(record), page)


def _events(access: Access, record: Record | None, given: Arguments) -> str:
    first = given["seq"]
    last = first if given["seq_end"] is None else given["seq_end"]
    span = _span(access, record, first, last)
    if span is None or not span.events.exists():
        raise BadCall(_no_events(access, record, first, last))
    head = _record_head(record) if record else []
    head.append(f"{events(first, last)} of session {line(span.session.session_id, 80)}")
    offset, limit = given["offset"] or 0, _max_chars(given)
    if given["raw"]:
        return _raw_answer(head, window(decoded(span_rows(span)), offset, limit))
    page = window(_cleaned(span_text(span)), offset, limit)
    return _answer(head, page.text, [_next(page)])


def _span(access: Access, record: Record | None, first: int, last: int) -> EventSpan | None:
    if record is not None:
        return record_span(record, first, last)
    if access.session is None:
        raise BadCall(
            "seq alone names an event of your own session: give session, or the id of the record that has it."
        )
    return session_span(access.session.session_id, first, last) if access.levels.any else None


def _no_events(access: Access, record: Record | None, first: int, last: int) -> str:
    asked = events(first, last)
    if record is None:
        return " ".join(filter(None, (f"This session has no {asked}.", reach(access))))
    given = record.provenance
    if not isinstance(given.get("seqStart"), int):
        return f"{record.id} was written, not archived from a log: open it without seq."
    return (
        f"{record.id} doesn't hold {asked}: it has events of #{given['seqStart']}–#{given.get('seqEnd')}, without "
        "those that an earlier record has."
    )


def _cleaned(pieces: Iterable[str]) -> Iterable[str]:
    return (piece.encode("utf-8", "replace").decode() for piece in pieces)


def _raw_answer(head: list[str], page: Window) -> str:
    text, how = page.text, "Rows of the log, byte for byte."
    if any("\udc80" <= sign <= "\udcff" for sign in text):
        text = base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")
        how = "Rows of the log, byte for byte, in base64: they are not UTF-8."
    return _answer([*head, how], text, [_next(page)])


def _next(page: Window) -> str:
    if page.has_more:
        return f"There is more: the same call with offset={page.end} for the rest."
    if not page.text and page.offset:
        return f"Nothing stands at offset={page.offset}: the text ends before."
    return "That is the end."


def _answer(head: list[str], text: str, notes: list[str]) -> str:
    return "\n".join((*head, DATA, fenced(text), *filter(None, notes)))


OPEN = Tool(
    "memory_open",
    "Open memory",
    "Read what a search, a catalog or a receipt names: a record's text in pages; with seq the whole text of single "
    "events, also where the record cuts them; with raw the log's original rows, byte for byte. Use it before you "
    "rely on a detail: cards and summaries leave things out.",
    READ,
    open_,
    (
        Parameter("id", "string", 'The record, such as "mem_1a2b3c4d5e".', low=1, high=RECORD_ID_MAX),
        Parameter(
            "seq",
            "integer",
            "An event by its number (#12): of the record, or without id of your own session.",
            low=0,
            high=_LARGEST,
        ),
        Parameter("seq_end", "integer", "The last of several events.", low=0, high=_LARGEST),
        Parameter(
            "offset",
            "integer",
            "Where to begin, in characters, as the answer before names it.",
            low=0,
            high=_LARGEST,
        ),
        Parameter(
            "around",
            "integer",
            "A place in the record's text, in characters, to be read with what stands before it.",
            low=0,
            high=_LARGEST,
        ),
        Parameter(
            "line", "integer", "A line of the record's text, as memory_grep names it.", low=1, high=_LARGEST
        ),
        Parameter(
            "max_chars",
            "integer",
            f"Characters of a page; by default {settings.MEMEX_OPEN_MAX_CHARS:,}.",
            low=MIN_CHARS,
            high=MAX_CHARS,
        ),
        Parameter("raw", "boolean", "The original rows of the log.", default=False),
    ),
    max_chars=2 * MAX_CHARS,
)
