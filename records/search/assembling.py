"""A reading pack for a task: the best passages of the store, whole, within a budget of tokens.

Data flow: search -> the passage of each hit, read again from its record (places) -> packing.
"""

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Unpack

from records import places
from records.fulltext import overflow_shown
from records.listing import Filters, records_filtered
from records.models import Record
from records.recordfile import body_of
from records.scope import Scope
from records.secrets.policy import is_redacted
from records.secrets.redaction import body_redacted, redacted_offset

from .packing import BUDGET, Assembled, Candidate, Omitted, pack
from .passages import Passage, passages
from .results import SearchHit
from .search import search

__all__ = ["BUDGET", "Assembled", "assemble"]

HITS = 30
# Of the best score.
FLOOR = 0.5
# The text of events that a body cuts is in the mirror, and dear.
_OVERFLOW_MAX = 10
_FOCUS_MIN = 40
# Bytes: more than two passages have.
_NEAR = 16_000
_EVENT = b"### [#"


class _Found(NamedTuple):
    """A passage and its neighbours in the same events, "" where there are none."""

    text: str
    start: int | None = None
    before: str = ""
    after: str = ""


def assemble(
    scope: Scope,
    task: str,
    *,
    hits: Sequence[SearchHit] | None = None,
    budget: int = BUDGET,
    **filters: Unpack[Filters],
) -> Assembled:
    """What is known about a task, to be read within `budget` tokens (100 or more). `hits`: of a search that
    was made already; those that the scope doesn't see are passed over. ValueError for a smaller budget."""
    hint = ""
    if hits is None:
        answer = search(scope, task, limit=HITS, **filters)
        hits, hint = answer.hits, answer.hint
    visible = {
        record.id: record
        for record in records_filtered(scope, **filters).filter(pk__in=[hit.card.id for hit in hits])
    }
    # What only shares a word with the task would fill the pack up rather than help.
    floor = FLOOR * max((hit.score for hit in hits), default=0.0)
    candidates: list[Candidate] = []
    unreadable: list[Omitted] = []
    overflows = 0
    for hit in hits:
        record = visible.get(hit.card.id)
        if record is None or hit.score < floor:
            continue
        overflows += hit.offset is None and hit.seq_start is not None
        found = _found(record, hit, with_overflow=overflows <= _OVERFLOW_MAX)
        if found is None:
            unreadable.append(Omitted(record.id, record.title, 0, "its text can't be read"))
        else:
            candidates.append(_candidate(record, hit, found))
    packed = pack(candidates, budget)
    packed.omitted.extend(unreadable)
    return packed if packed.sources else Assembled(omitted=packed.omitted, hint=hint)


def _candidate(record: Record, hit: SearchHit, found: _Found) -> Candidate:
    label = [record.kind, datetime.fromtimestamp(record.created_at / 1000, UTC).strftime("%Y-%m-%d")]
    if hit.seq_start is not None:
        last = f"–#{hit.seq_end}" if hit.seq_end not in (None, hit.seq_start) else ""
        label.append(f"event{'s' if last else ''} #{hit.seq_start}{last}")
    if record.status != "active":
        label.append(record.status)
    return Candidate(
        record.id, record.title, " · ".join(label), found.text, found.start, hit.seq_start, hit.seq_end,
        found.before, found.after, _focus(found.text, hit.snippet.text),
    )  # fmt: skip


def _focus(text: str, shown: str) -> int:
    """Where what the hit shows begins, unless that is near the end."""
    at = text.find(shown)
    return at if at > 0 and len(text) - at >= len(shown) >= _FOCUS_MIN else 0


def _found(record: Record, hit: SearchHit, *, with_overflow: bool) -> _Found | None:
    """None when the text is gone."""
    if hit.offset is None and hit.seq_start is not None:
        return (_in_overflow(record, hit) if with_overflow else None) or _Found(hit.snippet.text)
    body = _body(record)
    if body is None:
        return None
    if is_redacted(record.provenance):
        return _in_redacted(body, record, hit)
    if hit.offset is None:
        # Its card was found: what it says in short, else how it begins.
        return _Found(record.summary) if record.summary.strip() else _around(body, 0)
    return _around(body, hit.offset) or _Found(hit.snippet.text)


def _in_redacted(body: bytes, record: Record, hit: SearchHit) -> _Found | None:
    shown = body_redacted(body)
    if hit.offset is None:
        return _Found(record.summary) if record.summary.strip() else _around(shown, 0)
    found = _around(shown, redacted_offset(body, hit.offset))
    return found._replace(start=hit.offset) if found else _Found(hit.snippet.text)


def _body(record: Record) -> bytes | None:
    place = places.find(places.place_of(record.id, record.workspace_key, cold=bool(record.cold)))
    try:
        return body_of(places.read(place).data) if place else None
    except OSError:
        return None


def _around(body: bytes, offset: int) -> _Found | None:
    """The passage that begins here. Only the text near it is taken apart: bodies have a megabyte."""
    following = passages(body[offset : offset + _NEAR])
    passage = next(following, None)
    if passage is None:
        return None
    after = next(following, None)
    return _Found(
        _readable(passage.text),
        offset + passage.start,
        "" if passage.start else _before(body, offset),
        _readable(after.text) if after is not None and _same_events(passage, after) else "",
    )


def _before(body: bytes, offset: int) -> str:
    """The passage of the same event that ends here."""
    if body.startswith(_EVENT, offset):
        return ""
    start = max(0, offset - _NEAR)
    heading = body.rfind(b"\n" + _EVENT, start, offset)
    # Without one the event is long, and any line will do to begin with.
    start = heading + 1 if heading >= 0 else body.find(b"\n", start, offset) + 1 if start else 0
    last = deque(passages(body[start:offset]), maxlen=1)
    return _readable(last[0].text) if last else ""


def _same_events(one: Passage, other: Passage) -> bool:
    return (one.seq_start, one.seq_end) == (other.seq_start, other.seq_end)


def _readable(text: str) -> str:
    """Bytes that are no UTF-8 were kept as surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _in_overflow(record: Record, hit: SearchHit) -> _Found | None:
    """The passage of a long event around what the hit shows of it."""
    for event in overflow_shown(record, seq=hit.seq_start):
        at = event.text.find(hit.snippet.text)
        if at >= 0:
            data = event.text[event.shown :].encode("utf-8", "surrogatepass")
            offset = len(event.text[event.shown : max(at, event.shown)].encode("utf-8", "surrogatepass"))
            # Back to where a line begins, as passages do.
            found = _around(data, data.rfind(b"\n", 0, offset) + 1)
            return found._replace(start=None) if found else None
    return None
