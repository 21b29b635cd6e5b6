"""A regular expression over the whole text of records: their bodies, and what was cut out of these.

Data flow: the rows in scope, newest first, in batches -> ripgrep says which of their files hold a match ->
those are read, and RE2 finds the lines. So a batch costs what ripgrep takes, the newest come first, and
who has enough stops. Then the events that long bodies leave out are read from where they are kept.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from time import monotonic
from typing import NamedTuple, Unpack

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Case, IntegerField, Q, QuerySet, When

from records import places
from records.fulltext import overflow_q, overflow_shown
from records.home import home
from records.models import Record
from records.places import Place
from records.queries import Filters, records_filtered
from records.rows import chunks
from records.scope import Scope
from records.secrets.policy import SENSITIVE, is_redacted
from records.secrets.redaction import body_redacted, original_offset

from . import grep_rg
from .grep_pattern import BadPattern, Pattern, pattern_compile
from .grep_scan import LineHit, TimeUp, body_start, lines_matching

__all__ = ["BadPattern", "Grep", "GrepAnswer", "GrepHit", "grep", "grep_stream"]

MAX_HITS, MAX_HITS_PER_RECORD, TIMEOUT_S = 200, 50, 10.0
CONTEXT_MAX = 50
# Records of the first batches: what is in many records is in these already, and while ripgrep looks through
# the second, the rows of all others are read. Those go by what fits into a command's arguments.
BATCHES = (200, 3_000)
_ARGUMENT_BYTES = min(512 * 1024, os.sysconf("SC_ARG_MAX") // 4)
_POINTER_BYTES = 8
# Below this a process costs more than it saves.
RIPGREP_FROM_BYTES = 2 * 1024 * 1024
_OVERFLOW_RECORDS = 20


@dataclass(frozen=True, slots=True)
class GrepHit:
    """A line. `line_number` from 1 and `offset` in bytes count from the beginning of the record's body;
    without an offset the line was cut out of the body, and stands in the text of event `seq`.

    `seq`: the event's block that the line stands in. `line`: at most 300 characters, with `spans` (start,
    end) of the matches in it; `before` and `after`: lines of context."""

    record_id: str
    title: str
    cold: bool
    created_at: int
    line_number: int
    offset: int | None
    seq: int | None
    line: str
    spans: tuple[tuple[int, int], ...]
    cut_before: bool
    cut_after: bool
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GrepAnswer:
    """`hits`: the newest record first, then by line. `why` not all of them are there: `time`, `hits` (there
    are more than were asked for), `record` (more in the records `capped`), or "" when all are."""

    hits: list[GrepHit]
    records_searched: int
    why: str
    capped: frozenset[str]
    warnings: tuple[str, ...]

    @property
    def truncated(self) -> bool:
        return bool(self.why)


class _Target(NamedTuple):
    id: str
    workspace_key: str
    cold: int
    created_at: int
    title: str
    bytes: int
    # Below MEMEX_HOME.
    path: str
    tags: str
    has_overflow: int

    @property
    def place(self) -> Place:
        return places.place_of(self.id, self.workspace_key, cold=bool(self.cold))


@dataclass
class Grep:
    """Iterated over once, gives hits as they are found; the fields below are right when it has ended."""

    records: QuerySet[Record]
    pattern: Pattern
    context: int
    max_hits: int
    max_hits_per_record: int
    timeout_s: float
    records_searched: int = 0
    why: str = ""
    capped: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    _deadline: float = 0.0
    _counts: dict[str, int] = field(default_factory=dict)
    _overflowing: list[_Target] = field(default_factory=list)

    def __iter__(self) -> Iterator[GrepHit]:
        self._deadline = monotonic() + self.timeout_s
        given = 0
        try:
            for hit in chain(self._in_bodies(), self._in_overflow()):
                if given >= self.max_hits:
                    self.why = "hits"
                    return
                given += 1
                yield hit
        except TimeUp:
            self.why = "time"
        else:
            self.why = "record" if self.capped else ""

    def _in_bodies(self) -> Iterator[GrepHit]:
        batches = self._batches()
        batch = next(batches, None)
        while batch:
            with self._search(batch) as search:
                # The rows of the next are read while ripgrep works on this one.
                following = next(batches, None)
                found = search.files_matching() if search else None
            self._overflowing += (target for target in batch if target.has_overflow)
            for target in batch:
                if found is None or target.path in found:
                    yield from self._capped(target.id, self._in_body(target))
                self.records_searched += 1
            batch = following

    def _batches(self) -> Iterator[list[_Target]]:
        records = self.records
        for size in BATCHES:
            batch = _targets(records, limit=size)
            if batch:
                yield batch
            if len(batch) < size:
                return
            records = self.records.filter(_older_than(batch[-1]))
        batch, room = [], _ARGUMENT_BYTES
        for target in _targets(records):
            room -= len(target.path) + 1 + _POINTER_BYTES
            if batch and room < 0:
                yield batch
                batch, room = [], _ARGUMENT_BYTES
            batch.append(target)
        if batch:
            yield batch

    def _search(self, batch: list[_Target]) -> AbstractContextManager[grep_rg.Search | None]:
        """None: each of these is read."""
        program = grep_rg.binary()
        if program is None or sum(target.bytes for target in batch) < RIPGREP_FROM_BYTES:
            return nullcontext()
        return grep_rg.Search(
            program,
            self.pattern.ripgrep,
            [target.path for target in batch],
            folder=home(),
            deadline=self._deadline,
        )

    def _in_body(self, target: _Target) -> Iterator[GrepHit]:
        data = _read(target.place)
        if data is None:
            return
        hidden = b""
        if SENSITIVE in target.tags and self._is_redacted(target):
            start = body_start(data)
            hidden, data = data[start:], data[:start] + body_redacted(data[start:])
        for found in lines_matching(
            data,
            self.pattern.re2,
            start=body_start(data),
            context=self.context,
            deadline=self._deadline,
        ):
            offset = original_offset(hidden, found.offset) if hidden else found.offset
            yield _hit(found, target, offset=offset, seq=found.seq)

    def _is_redacted(self, target: _Target) -> bool:
        given = self.records.filter(pk=target.id).values_list("provenance", flat=True).first()
        return given is not None and is_redacted(given)

    def _in_overflow(self) -> Iterator[GrepHit]:
        for chunk in chunks(self._overflowing, _OVERFLOW_RECORDS):
            known = self.records.in_bulk([target.id for target in chunk])
            for target in chunk:
                if record := known.get(target.id):
                    yield from self._capped(record.id, self._cut_from(record, target))

    def _cut_from(self, record: Record, target: _Target) -> Iterator[GrepHit]:
        for event in overflow_shown(record, self.warnings.append):
            data = event.text.encode("utf-8", "replace")
            beyond = len(event.text[: event.shown].encode("utf-8", "replace"))
            for found in lines_matching(
                data, self.pattern.re2, beyond=beyond, context=self.context, deadline=self._deadline
            ):
                yield _hit(found, target, offset=None, seq=event.seq)

    def _capped(self, record_id: str, hits: Iterable[GrepHit]) -> Iterator[GrepHit]:
        for hit in hits:
            count = self._counts.get(record_id, 0)
            if count >= self.max_hits_per_record:
                self.capped.add(record_id)
                return
            self._counts[record_id] = count + 1
            yield hit


def grep_stream(
    scope: Scope,
    pattern: str,
    *,
    ignore_case: bool = True,
    literal: bool = False,
    context: int = 0,
    max_hits: int = MAX_HITS,
    max_hits_per_record: int = MAX_HITS_PER_RECORD,
    timeout_s: float = TIMEOUT_S,
    **filters: Unpack[Filters],
) -> Grep:
    """Hits in bodies, the newest record first, then those in what bodies leave out. Raises BadPattern."""
    return Grep(
        records=records_filtered(scope, **filters),
        pattern=pattern_compile(pattern, ignore_case=ignore_case, literal=literal),
        context=max(0, min(context, CONTEXT_MAX)),
        max_hits=max_hits,
        max_hits_per_record=max_hits_per_record,
        timeout_s=timeout_s,
    )


def grep(
    scope: Scope,
    pattern: str,
    *,
    ignore_case: bool = True,
    literal: bool = False,
    context: int = 0,
    max_hits: int = MAX_HITS,
    max_hits_per_record: int = MAX_HITS_PER_RECORD,
    timeout_s: float = TIMEOUT_S,
    **filters: Unpack[Filters],
) -> GrepAnswer:
    """`pattern`: RE2's syntax, line by line; `literal`: plain text. `context`: lines before and after, at
    most 50. Raises BadPattern, whose message says what to do instead."""
    run = grep_stream(
        scope,
        pattern,
        ignore_case=ignore_case,
        literal=literal,
        context=context,
        max_hits=max_hits,
        max_hits_per_record=max_hits_per_record,
        timeout_s=timeout_s,
        **filters,
    )
    hits = sorted(run, key=lambda hit: (hit.offset is None, hit.offset is None and hit.seq, hit.line_number))
    hits.sort(key=lambda hit: (hit.created_at, hit.record_id), reverse=True)
    return GrepAnswer(hits, run.records_searched, run.why, frozenset(run.capped), tuple(run.warnings))


def _older_than(target: _Target) -> Q:
    # Two conditions, of which SQLite can use the first with an index.
    return Q(created_at__lte=target.created_at) & (Q(created_at__lt=target.created_at) | Q(id__lt=target.id))


def _targets(records: QuerySet[Record], limit: int | None = None) -> list[_Target]:
    """The newest first."""
    # A number: from a truth value Django would make one for each row.
    flag = Case(When(overflow_q(), then=1), default=0, output_field=IntegerField())
    rows = records.annotate(has_overflow=flag).order_by("-created_at", "-id").values_list(*_Target._fields)
    try:
        sql, parameters = rows[:limit].query.sql_with_params()
    except EmptyResultSet:
        return []
    # Straight from the cursor: the ORM's own iteration costs as much as the query.
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(map(_Target._make, cursor.fetchall()))


def _hit(found: LineHit, target: _Target, *, offset: int | None, seq: int | None) -> GrepHit:
    return GrepHit(
        record_id=target.id,
        title=target.title,
        cold=bool(target.cold),
        created_at=target.created_at,
        line_number=found.number,
        offset=offset,
        seq=seq,
        line=found.line,
        spans=found.spans,
        cut_before=found.cut_before,
        cut_after=found.cut_after,
        before=found.before,
        after=found.after,
    )


def _read(place: Place) -> bytes | None:
    """None when the file has gone, or can't be read."""
    for each in (place, place.other_tier):
        try:
            return places.read(each).data
        except OSError:
            continue
    return None
