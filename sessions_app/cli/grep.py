"""`memory grep`."""

from collections.abc import Iterator
from itertools import groupby
from shlex import quote
from typing import Any

from records.models import Record
from records.scope import OWNER
from records.search.grep import BadPattern, GrepAnswer, GrepHit
from records.search.grep import grep as records_grep
from sessions_app.fulltext import event_session
from sessions_app.queries import session_get

from .answer import Answer, Refused, visible
from .sessions import folder_key

# A person waits, and can stop it.
_TIMEOUT_S = 60.0
# Of the hits that are shown, so many may come from one record.
_SHARE = 4


def grep(options: dict[str, Any]) -> Answer:
    try:
        answer = records_grep(
            OWNER,
            options["pattern"],
            ignore_case=not options["case_sensitive"],
            literal=options["literal"],
            context=options["context"],
            max_hits=options["limit"],
            max_hits_per_record=max(1, options["limit"] // _SHARE),
            timeout_s=_TIMEOUT_S,
            kinds=options["kind"] or (),
            workspace_key=folder_key(options["workspace"]) if options["workspace"] else None,
            session_id=session_get(options["session"]).pool_session_id if options["session"] else None,
        )
    except BadPattern as error:
        raise Refused(str(error)) from error
    sessions = _sessions(answer)
    return Answer(_json(answer, sessions), _lines(answer, sessions))


def _sessions(answer: GrepAnswer) -> dict[str, str]:
    """By record: where the events that its body leaves out can be read."""
    wanted = {hit.record_id for hit in answer.hits if hit.offset is None}
    return {record.id: event_session(record) for record in Record.objects.filter(pk__in=wanted)}


def _json(answer: GrepAnswer, sessions: dict[str, str]) -> dict[str, Any]:
    return {
        "hits": [
            {
                "recordId": hit.record_id,
                "title": hit.title,
                "cold": hit.cold,
                "line": hit.line_number,
                "offset": hit.offset,
                "seq": hit.seq,
                "sessionId": sessions.get(hit.record_id) if hit.offset is None else None,
                "text": hit.line,
                "spans": hit.spans,
                "cutBefore": hit.cut_before,
                "cutAfter": hit.cut_after,
                "before": hit.before,
                "after": hit.after,
            }
            for hit in answer.hits
        ],
        "recordsSearched": answer.records_searched,
        "truncated": answer.truncated,
        "why": answer.why,
        "capped": sorted(answer.capped),
        "warnings": answer.warnings,
    }


def _lines(answer: GrepAnswer, sessions: dict[str, str]) -> Iterator[str]:
    for (record_id, title), hits in groupby(answer.hits, key=lambda hit: (hit.record_id, hit.title)):
        yield f"{record_id}  {visible(title)}"
        for in_body, group in groupby(hits, key=lambda hit: hit.offset is not None):
            if in_body:
                yield from _text_lines(list(group), "")
                continue
            for seq, lines in groupby(group, key=lambda hit: hit.seq):
                session = quote(visible(sessions.get(record_id) or "SESSION"))
                yield f"  not in the record's text: `manage.py memory read {session} --seq {seq}`"
                yield from _text_lines(list(lines), f"#{seq} ")
        if record_id in answer.capped:
            yield f"  … more in this record: `manage.py memory open {record_id}`, or a higher --limit"
        yield ""
    yield from map(visible, answer.warnings)
    yield _count(answer)
    yield from _advice(answer)


def _text_lines(hits: list[GrepHit], prefix: str) -> Iterator[str]:
    """As grep writes them: `12:` a hit, `13-` context, `--` where lines are left out."""
    shown: dict[int, str] = {}
    for hit in hits:
        for number, line in enumerate(hit.before, hit.line_number - len(hit.before)):
            shown.setdefault(number, f"{number}-{visible(line)}")
        for number, line in enumerate(hit.after, hit.line_number + 1):
            shown.setdefault(number, f"{number}-{visible(line)}")
    for hit in hits:
        cut = f"{'…' if hit.cut_before else ''}{visible(hit.line)}{'…' if hit.cut_after else ''}"
        shown[hit.line_number] = f"{hit.line_number}:{cut}"
    has_context = any(hit.before or hit.after for hit in hits)
    last = 0
    for number in sorted(shown):
        if has_context and last and number > last + 1:
            yield "--"
        yield prefix + shown[number]
        last = number


def _count(answer: GrepAnswer) -> str:
    records = len({hit.record_id for hit in answer.hits})
    return f"{len(answer.hits):,} lines in {records:,} records; {answer.records_searched:,} were searched."


def _advice(answer: GrepAnswer) -> Iterator[str]:
    if answer.why == "hits":
        yield "There are more: --limit N shows them, --workspace, --session or --kind look at fewer records."
    elif answer.why == "time":
        yield (
            f"Stopped after {_TIMEOUT_S:.0f} s, the newest records first: --workspace, --session or --kind "
            "look at fewer records."
        )
    elif not answer.hits and not answer.records_searched:
        yield "No record passes these filters: `manage.py memory list` shows what there is."
    elif not answer.hits:
        yield (
            "Try a part of it. The pattern is a regular expression, taken line by line: -F takes it as plain "
            "text. Superseded, suggested and forgotten records are not searched."
        )
