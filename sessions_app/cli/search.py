"""`memory search|nav|assemble`."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from shlex import quote
from textwrap import shorten
from typing import Any

from filelock import Timeout

from records import queries
from records.hit_contexts import Question, reason_words
from records.scope import OWNER
from records.search.assembling import Assembled
from records.search.assembling import assemble as assemble_pack
from records.search.indexing import bodies_sync
from records.search.results import SearchAnswer, SearchHit, Snippet
from records.search.search import search as search_records
from sessions_app.fulltext import event_session
from sessions_app.operations.shapes import card_json, character_offset, nav_json, pack_json
from sessions_app.queries import session_get

from .answer import Answer, Refused, size, visible, when
from .sessions import folder_key

_SUMMARY_MAX = 160
_WAIT_SECONDS = 30
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def search(options: dict[str, Any]) -> Answer:
    _catch_up()
    answer = search_records(OWNER, options["text"], limit=options["limit"], **_filters(options))
    ways = [_way(hit) for hit in answer.hits]
    data = {
        "hits": [_hit_json(hit, way) for hit, way in zip(answer.hits, ways, strict=True)],
        "hint": answer.hint,
        "suggestions": [asdict(each) for each in answer.suggestions],
        "pending": answer.pending,
    }
    return Answer(data, _search_lines(answer, ways, options["text"], is_bold=options["bold"]))


def _catch_up() -> None:
    """A person would rather wait than be told to ask again; nobody else may be there to do it."""
    with suppress(Timeout):
        bodies_sync(timeout=_WAIT_SECONDS)


def _filters(options: dict[str, Any]) -> queries.Filters:
    return {
        "kinds": options["kind"] or (),
        "statuses": options["status"] or (),
        "workspace_key": folder_key(options["workspace"]) if options["workspace"] else None,
        "session_id": session_get(options["session"]).pool_session_id if options["session"] else None,
        "cold": options["cold"],
        "tag": options["tag"],
        "agent": options["agent"],
    }


def _way(hit: SearchHit) -> tuple[str, int | None]:
    """(what opens the passage, its offset in characters of the body); hits give bytes."""
    record_id = hit.card.id
    if hit.offset is not None:
        offset = character_offset(OWNER, hit)
        return f"memory open {record_id}" + (f" --offset {offset}" if offset is not None else ""), offset
    if hit.seq_start is not None:
        session = event_session(queries.record_get(OWNER, record_id))
        return f"memory read {quote(visible(session or 'SESSION'))} --seq {_span(hit, '')}", None
    return f"memory open {record_id}", None


def _span(hit: SearchHit, sign: str) -> str:
    last = "" if hit.seq_end in (None, hit.seq_start) else f"{'–' if sign else '-'}{sign}{hit.seq_end}"
    return f"{sign}{hit.seq_start}{last}"


def _hit_json(hit: SearchHit, way: tuple[str, int | None]) -> dict[str, Any]:
    return {
        **card_json(hit.card),
        "workspaceKey": hit.card.workspace_key,
        "score": hit.score,
        "passage": {
            "text": hit.snippet.text,
            "marks": hit.snippet.marks,
            "cutBefore": hit.snippet.cut_before,
            "cutAfter": hit.snippet.cut_after,
        },
        "reason": {**asdict(hit.reason), "text": hit.reason.text},
        "byteOffset": hit.offset,
        "offset": way[1],
        "seqStart": hit.seq_start,
        "seqEnd": hit.seq_end,
        "open": way[0],
    }


def _reason(hit: SearchHit, question: Question) -> str:
    marked = [hit.snippet.text[start:end] for start, end in hit.snippet.marks]
    return reason_words(hit.reason, question, marked)


def _search_lines(
    answer: SearchAnswer, ways: list[tuple[str, int | None]], text: str, *, is_bold: bool
) -> Iterator[str]:
    question = Question.of(text)
    for rank, (hit, (command, _)) in enumerate(zip(answer.hits, ways, strict=True), 1):
        card = hit.card
        marks = "".join(
            f" [{mark}]"
            for mark in (card.status if card.status != "active" else "", "cold" * card.cold)
            if mark
        )
        yield f"{rank}. {card.id}  {card.kind}  {when(card.created_at)}  {visible(card.title)}{marks}"
        for line in _passage(hit.snippet, is_bold=is_bold):
            yield f"   {line}"
        many = "s" if hit.seq_end not in (None, hit.seq_start) else ""
        events = f"event{many} {_span(hit, '#')}; " if hit.seq_start is not None else ""
        yield f"   {events}{visible(_reason(hit, question))}"
        yield f"   manage.py {command}"
        yield ""
    if answer.hits and answer.pending:
        yield f"The text of {answer.pending:,} new records is not searched yet, only their titles and summaries."
    if not answer.hits:
        yield from _next_steps(answer)


def _passage(shown: Snippet, *, is_bold: bool) -> Iterator[str]:
    """Its lines, without those that are empty, what was asked for in bold."""
    text = visible(shown.text, keep_lines=True)
    start, end = (_BOLD, _PLAIN) if is_bold else ("", "")
    pieces: list[str] = ["… " if shown.cut_before else ""]
    at = 0
    for first, last in shown.marks:
        # A line that ends inside a mark ends its bold.
        marked = text[first:last].replace("\n", f"{end}\n{start}")
        pieces += [text[at:first], start, marked, end]
        at = last
    pieces += [text[at:], " …" if shown.cut_after else ""]
    return (line for line in "".join(pieces).split("\n") if line.strip())


def _next_steps(answer: SearchAnswer) -> Iterator[str]:
    if not answer.suggestions:
        yield answer.hint
        return
    yield answer.hint.split(". ")[0].removesuffix(".") + "."
    if answer.pending:
        yield f"The text of {answer.pending:,} new records is not searched yet: ask again in a moment."
    for each in answer.suggestions:
        given = quote(visible(each.query))
        command = {"words": f"search {given}", "tag": f"search {given}", "grep": f"grep -F -- {given}"}.get(
            each.kind
        )
        yield f"- {visible(each.text)}" + (f": manage.py memory {command}" if command else "")


def nav(options: dict[str, Any]) -> Answer:
    try:
        found = queries.nav(
            OWNER, options["path"], limit=options["limit"], offset=options["offset"], sort=options["sort"]
        )
    except queries.BadPath as error:
        raise Refused(visible(str(error))) from error
    return Answer(nav_json(found), _nav_lines(found))


def _nav_lines(found: queries.Nav) -> Iterator[str]:
    for entry in found.entries:
        time = f"  {when(entry.time)}" if entry.time is not None else ""
        is_record = entry.id == entry.path
        kind = f"  {entry.type}" if is_record else ""
        yield f"{visible(entry.path)}{kind}{time}  {visible(entry.title)}"
        summary = shorten(entry.summary, _SUMMARY_MAX, placeholder=" …")
        if summary:
            yield f"   {visible(summary)}"
    last = found.offset + len(found.entries)
    yield f"{len(found.entries):,} of {found.total:,}." + (
        f" The next: --offset {last}" if found.has_more else ""
    )
    if found.is_partial:
        yield f"Counted among the newest {queries.GROUPED_MAX:,} records."
    if found.steps:
        yield f"Steps from here: {', '.join(found.steps)}."


def assemble(options: dict[str, Any]) -> Answer:
    _catch_up()
    try:
        pack = assemble_pack(OWNER, options["task"], budget=options["budget"], **_filters(options))
    except ValueError as error:
        raise Refused(str(error)) from error
    return Answer(pack_json(pack, options["budget"]), _pack_lines(pack, options["budget"]))


def _pack_lines(pack: Assembled, budget: int) -> Iterator[str]:
    if not pack.sources:
        yield visible(pack.hint or "Nothing fits.")
    else:
        yield visible(pack.context, keep_lines=True)
        yield ""
    yield f"{pack.used_tokens:,} of {budget:,} tokens; {len(pack.sources)} passages."
    for left in pack.omitted:
        yield f"- left out: {left.id}  {size(left.tokens)} tokens  {visible(left.title)} ({left.why})"
