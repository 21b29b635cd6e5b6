"""What the pages of records show, made from queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from .hit_contexts import PASSAGE_ANCHOR, Found, Row, found_of, hit_rows, marker, marks_query
from .ids import is_record_id
from .markdown_html import Window, anchored, before, link_events, marked, render, window
from .models import Kind, Record, Status
from .page_filters import ORDERS, Filters
from .queries import Facets, OpenedRecord, facets, record_list
from .scope import OWNER
from .search.search import search
from .templatetags.foreign import visible

PAGE_SIZE = 50
# Hits while one types, and when somebody asks for more of them.
HITS_FEW, HITS_MANY = 20, 100
PINNED_SHOWN, THREADS_SHOWN = 6, 4
LOST_CATEGORIES = ("paths", "commands", "errors", "numbers", "decisions")
# The section of an archive's body that lists what the summary lost, and the one that follows it.
_LOST_HEADING = "Lost by the summary"
_CONTEXT_MARK = b"\n## Archived context\n"
LOST_ANCHOR = "lost-by-the-summary"
_MARK = "<mark>"


@dataclass(frozen=True)
class WorkspaceChoice:
    key: str
    folder: str


@dataclass(frozen=True)
class KindChoice:
    """`share`: of the hot tokens, in per cent."""

    value: str
    label: str
    count: int
    share: int


@dataclass(frozen=True)
class MemoryPage:
    """`tops`: (what they are, the query that lists them, records) above an unfiltered list; `found`: what a search said besides its hits, None when there was nothing to search for; `limit`: of
    its hits."""

    filters: Filters
    rows: list[Row]
    totals: Facets
    next_query: str = ""
    found: Found | None = None
    limit: int = HITS_FEW
    tops: Sequence[tuple[str, str, Sequence[Record]]] = ()

    @property
    def amount(self) -> str:
        """How many records match; counted no further than the first page."""
        return f"more than {PAGE_SIZE}" if self.next_query else str(len(self.rows))

    @property
    def is_full(self) -> bool:
        """There may be more hits than are shown."""
        return len(self.rows) >= self.limit

    @property
    def more_hits(self) -> str:
        """The query of the page that shows more of them; "" when there are none."""
        is_few = self.found is not None and self.is_full and self.limit < HITS_MANY
        return self.filters.query(more="1") if is_few else ""

    # The choices are asked for with the form alone, not with every letter that is typed.
    @cached_property
    def _places(self) -> list[tuple[str, str, str | None]]:
        return list(
            Record.objects.order_by("workspace", "workspace_key")
            .values_list("workspace_key", "workspace", "provenance__agent")
            .distinct()
        )

    @property
    def workspaces(self) -> list[WorkspaceChoice]:
        folders = {key: folder or key for key, folder, _ in self._places}
        return [WorkspaceChoice(key, folder) for key, folder in folders.items()]

    @property
    def agents(self) -> list[str]:
        return sorted({agent for _, _, agent in self._places if agent})

    @property
    def kinds(self) -> list[KindChoice]:
        """Those that occur."""
        counts, tokens = self.totals.by_kind, self.totals.hot_by_kind
        total = self.totals.hot_tokens or 1
        return [
            KindChoice(kind.value, kind.label, counts[kind], round(100 * tokens.get(kind, 0) / total))
            for kind in Kind
            if counts.get(kind)
        ]

    @property
    def waiting(self) -> int:
        """Records that wait for a confirmation."""
        return self.totals.by_status.get(Status.SUGGESTED, 0)

    @property
    def conflicts(self) -> int:
        return self.totals.by_status.get(Status.CONFLICT, 0)

    @property
    def statuses(self) -> list[tuple[str, str, int]]:
        counts = self.totals.by_status
        return [(status.value, status.label, counts[status]) for status in Status if counts.get(status)]

    @property
    def orders(self) -> tuple[tuple[str, str], ...]:
        return ORDERS


def memory_page(filters: Filters, after: str = "", *, limit: int = HITS_FEW) -> MemoryPage:
    """With text: the best hits, at most `limit`. Without: a page of the list; ValueError for a cursor that is
    none."""
    if filters.q:
        answer = search(filters.visible, filters.q, limit=limit, **filters.of_records)
        rows, found = hit_rows(answer, filters.q), found_of(answer, filters)
        return MemoryPage(filters, rows, facets(OWNER), found=found, limit=limit)
    page = record_list(
        filters.visible,
        order=filters.order or ORDERS[0][0],
        after_cursor=after or None,
        limit=PAGE_SIZE,
        **filters.of_records,
    )
    next_query = filters.query(after=page.next_cursor) if page.next_cursor else ""
    rows = [Row(record) for record in page.records]
    tops = [] if after or filters != Filters() else _tops()
    return MemoryPage(filters, rows, facets(OWNER), next_query, tops=tops)


def _tops() -> list[tuple[str, str, Sequence[Record]]]:
    """What one comes back for."""
    pinned = record_list(OWNER, statuses=[Status.PINNED], limit=PINNED_SHOWN).records
    threads = record_list(
        OWNER, kinds=[Kind.OPEN_THREAD], statuses=[Status.ACTIVE], limit=THREADS_SHOWN
    ).records
    found = [("Pinned", "status=pinned", pinned), ("Open threads", "kind=open-thread", threads)]
    return [each for each in found if each[2]]


@dataclass(frozen=True)
class LostCategory:
    """What a summary lost of one kind of thing: `lost` of `found`; `values` are a few of them, and `kept`
    are listed in the record's body."""

    name: str
    found: int
    lost: int
    values: list[str]
    kept: int = 0
    is_open: bool = False


def lost_categories(lost: Any) -> list[LostCategory]:
    """From a record's provenance or a compaction. A file edited by hand may hold anything."""
    if not isinstance(lost, dict):
        return []
    counts, losses = lost.get("found"), lost.get("lost")
    if not isinstance(counts, dict) or not isinstance(losses, dict):
        return []
    categories = [
        LostCategory(name, _number(counts.get(name)), _number(losses.get(name)), _texts(lost.get(name)))
        for name in LOST_CATEGORIES
        if counts.get(name)
    ]
    first = next((category for category in categories if category.lost), None)
    return [replace(category, is_open=category is first) for category in categories]


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


@dataclass(frozen=True)
class RecordPage:
    """`lost_address`: where the record's body lists what the summary lost; "" when it does not."""

    record: Record
    lost: list[LostCategory]
    lost_address: str = ""

    @property
    def given(self) -> dict[str, Any]:
        given: dict[str, Any] = self.record.provenance
        return given

    @property
    def session_id(self) -> str:
        """The session it happened in, "" when it was written by hand."""
        return str(self.given.get("sessionId") or "")

    @property
    def has_original(self) -> bool:
        return "rows" in self.given

    @property
    def links(self) -> list[tuple[str, list[str]]]:
        """(what they are, record ids); what is no id, in a file edited by hand, leads nowhere."""
        found = []
        for name, value in self.record.links.items():
            ids = [value] if isinstance(value, str) else _texts(value)
            found.append(
                (name.replace("_", " "), [record_id for record_id in ids if is_record_id(record_id)])
            )
        return [link for link in found if link[1]]

    @property
    def tags(self) -> list[tuple[str, list[str]]]:
        return [(name, _texts(values)) for name, values in self.record.tags.items() if values]


def record_page(record: Record, body: bytes = b"") -> RecordPage:
    lost = lost_categories(record.provenance.get("lost"))
    start = _lost_start(body)
    if start is None:
        return RecordPage(record, lost)
    kept = _lost_counts(body[start:].split(_CONTEXT_MARK, 1)[0])
    address = f"#{LOST_ANCHOR}" if start < _first_end(body) else f"?from={start}#{LOST_ANCHOR}"
    return RecordPage(
        record, [replace(category, kept=kept.get(category.name, 0)) for category in lost], address
    )


def _lost_start(body: bytes) -> int | None:
    """The byte where the section begins; before the archived text, which can't pass for it."""
    found = body.find(f"\n## {_LOST_HEADING}\n".encode(), 0, body.find(_CONTEXT_MARK) + 1)
    return found + 1 if found >= 0 else None


def _lost_counts(section: bytes) -> Mapping[str, int]:
    """Values by category: a line `- paths: `a`, `b`` each."""
    lines = (line.partition(b": ") for line in section.split(b"\n") if line.startswith(b"- "))
    return {name[2:].decode("utf-8", "replace"): values.count(b"`, `") + 1 for name, _, values in lines}


def _first_end(body: bytes) -> int:
    """Where the first part of a body ends."""
    return window(body, 0).next_start or len(body)


@dataclass(frozen=True)
class Wanted:
    """What of a body is asked for: from which byte on, and what to mark in it (as in `marker`). `start` None:
    no place in it, but all of it."""

    start: int | None = None
    q: str = ""
    also: str = ""

    @property
    def is_hit(self) -> bool:
        return bool(self.q) and self.start is not None

    @property
    def marks_query(self) -> str:
        return marks_query(self.q, self.also)

    @property
    def search_query(self) -> str:
        return marks_query(self.q, "")


@dataclass(frozen=True)
class BodyPart:
    """A part of a record's body as safe HTML. `lead`: a little of what stands before it; `next_start`: the
    byte where the next one begins; `has_anchor`: its first mark is what PASSAGE_ANCHOR leads to."""

    html: str
    next_start: int | None
    size: int
    lead: str = ""
    has_anchor: bool = False


def body_part(opened: OpenedRecord, wanted: Wanted, session_url: str, *, with_lead: bool) -> BodyPart:
    start = wanted.start or 0
    part: Window = window(opened.body, start)
    mark = marker(wanted.q, wanted.also)

    def html_of(text: str) -> str:
        html = anchored(render(visible(text)), _LOST_HEADING, LOST_ANCHOR)
        html = link_events(html, session_url) if session_url else html
        return marked(html, mark) if mark else html

    lead = html_of(before(opened.body, start)) if with_lead and start else ""
    html = html_of(part.text)
    has_anchor = with_lead and wanted.is_hit and _MARK in html
    if has_anchor:
        html = html.replace(_MARK, f'<mark id="{PASSAGE_ANCHOR}">', 1)
    return BodyPart(html, part.next_start, len(opened.body), lead, has_anchor)
