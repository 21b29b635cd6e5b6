"""What the pages of records show, made from queries."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.http import QueryDict

from .ids import is_record_id
from .markdown_html import Window, anchored, link_events, render, window
from .models import Kind, Record, Scope, Status
from .queries import Facets, OpenedRecord, facets, record_list
from .scope import OWNER
from .scope import Scope as Visible
from .templatetags.foreign import visible

PAGE_SIZE = 50
LOST_CATEGORIES = ("paths", "commands", "errors", "numbers", "decisions")
# The section of an archive's body that lists what the summary lost, and the one that follows it.
_LOST_HEADING = "Lost by the summary"
_CONTEXT_MARK = b"\n## Archived context\n"
LOST_ANCHOR = "lost-by-the-summary"


@dataclass(frozen=True)
class _OnePool(Visible):
    """The owner's view of one scope."""

    pool: str = ""

    def q(self) -> Q:
        return Q(scope=self.pool)


@dataclass(frozen=True)
class Filters:
    """Of the Memory page, as its address has them; "" = not filtered by it."""

    q: str = ""
    kind: str = ""
    status: str = ""
    scope: str = ""
    tier: str = ""
    workspace: str = ""
    agent: str = ""
    session: str = ""
    tag: str = ""
    order: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> "Filters":
        given = {name: query.get(name, "").replace("\0", "").strip() for name in cls.__dataclass_fields__}
        allowed = {
            "kind": Kind.values,
            "status": Status.values,
            "scope": Scope.values,
            "tier": ["hot", "cold"],
            "order": [value for value, _ in ORDERS],
        }
        for name, values in allowed.items():
            if given[name] not in values:
                given[name] = ""
        return cls(**given)

    @property
    def is_any(self) -> bool:
        return any(value for name, value in asdict(self).items() if name != "order")

    @property
    def is_narrowed(self) -> bool:
        """By one of the choices that a small screen folds away."""
        return any((self.kind, self.status, self.scope, self.tier, self.workspace, self.agent))

    def query(self, **more: str) -> str:
        return urlencode({name: value for name, value in (asdict(self) | more).items() if value})

    @property
    def without_session(self) -> str:
        return self.query(session="")

    @property
    def without_tag(self) -> str:
        return self.query(tag="")


ORDERS = (("created", "newest"), ("oldest", "oldest"), ("tokens", "largest"), ("title", "title"))


@dataclass(frozen=True)
class WorkspaceChoice:
    key: str
    folder: str


@dataclass(frozen=True)
class MemoryPage:
    filters: Filters
    records: list[Record]
    next_query: str
    totals: Facets
    workspaces: list[WorkspaceChoice]
    agents: list[str]

    @property
    def found(self) -> str:
        """How many records match; counted no further than the first page."""
        return f"more than {PAGE_SIZE}" if self.next_query else str(len(self.records))

    @property
    def kinds(self) -> list[tuple[str, str, int]]:
        """(value, label, records) of the kinds that occur."""
        counts = self.totals.by_kind
        return [(kind.value, kind.label, counts[kind]) for kind in Kind if counts.get(kind)]

    @property
    def statuses(self) -> list[tuple[str, str, int]]:
        counts = self.totals.by_status
        return [(status.value, status.label, counts[status]) for status in Status if counts.get(status)]

    @property
    def orders(self) -> tuple[tuple[str, str], ...]:
        return ORDERS

    @property
    def hot_share(self) -> list[tuple[str, int]]:
        """Each kind's share of all tokens in per cent, the largest first."""
        total = self.totals.tokens or 1
        shares = ((kind, round(100 * count / total)) for kind, count in self.totals.by_kind_tokens.items())
        return sorted((share for share in shares if share[1]), key=lambda share: -share[1])


def memory_page(filters: Filters, after: str = "") -> MemoryPage:
    """ValueError for a cursor that is none."""
    page = record_list(
        _OnePool(None, is_owner=True, pool=filters.scope) if filters.scope else OWNER,
        kinds=[filters.kind] if filters.kind else (),
        statuses=[filters.status] if filters.status else (),
        workspace_key=filters.workspace or None,
        session_id=filters.session or None,
        cold=None if not filters.tier else filters.tier == "cold",
        tag=filters.tag or None,
        text=filters.q or None,
        agent=filters.agent or None,
        order=filters.order or "created",
        after_cursor=after or None,
        limit=PAGE_SIZE,
    )
    places = list(
        Record.objects.order_by("workspace", "workspace_key")
        .values_list("workspace_key", "workspace", "provenance__agent")
        .distinct()
    )
    folders = {key: folder or key for key, folder, _ in places}
    return MemoryPage(
        filters=filters,
        records=page.records,
        next_query=filters.query(after=page.next_cursor) if page.next_cursor else "",
        totals=facets(OWNER),
        workspaces=[WorkspaceChoice(key, folder) for key, folder in folders.items()],
        agents=sorted({agent for _, _, agent in places if agent}),
    )


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
class BodyPart:
    """A part of a record's body as safe HTML; `next_start`: the byte where the next one begins."""

    html: str
    next_start: int | None
    size: int


def body_part(opened: OpenedRecord, start: int, session_url: str) -> BodyPart:
    part: Window = window(opened.body, start)
    html = anchored(render(visible(part.text)), _LOST_HEADING, LOST_ANCHOR)
    return BodyPart(
        link_events(html, session_url) if session_url else html, part.next_start, len(opened.body)
    )
