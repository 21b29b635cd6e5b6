"""What answers hold. Every one says ok: true; an error is of the form Refused."""

from typing import Any, Literal

from ninja import Schema
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel


class Output(Schema):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=False)


class Answer(Output):
    ok: Literal[True] = True


class Refused(Output):
    ok: Literal[False]
    code: str
    message: str
    hint: str | None = None


class Levels(Output):
    l2: bool
    l3: bool


class Pool(Output):
    """Tokens of hot records count against the capacity."""

    enabled: bool
    tokens: int
    hot_tokens: int
    cold_tokens: int
    hot_count: int
    cold_count: int
    count: int
    capacity_tokens: int


class Amount(Output):
    count: int
    tokens: int


class Compression(Output):
    """Runs that moved records to the cold tier."""

    count: int
    last: dict[str, Any] | None
    recent: list[dict[str, Any]]


class Card(Output):
    """A record without its text. Times in milliseconds UTC."""

    id: str
    kind: str
    scope: str
    status: str
    trust: str
    title: str
    summary: str
    use_when: str
    tags: Any
    entities: Any
    tokens: int
    bytes: int
    cold: bool
    workspace: str
    session_id: str
    created_at: int
    updated_at: int


class Record(Card):
    slot: str
    confidence: float | None
    abstract: str
    sources: Any
    links: Any
    provenance: Any
    read_count: int
    last_read_at: int | None


class Hit(Card):
    """`marks`: [start, end] in `snippet`; `offset`: where the passage begins in the record's text, in
    characters; seqStart and seqEnd: the events it stands in."""

    score: float
    snippet: str
    marks: list[list[int]]
    reason: str
    offset: int | None
    seq_start: int | None
    seq_end: int | None


class IndexAnswer(Answer):
    levels: Levels
    capture_scope: str
    scope: str
    l2: Pool
    l3: Pool
    compression: Compression
    l1_evicted: Amount
    capacity_tokens: int
    tokens: int
    hot_tokens: int
    cold_tokens: int
    hot_count: int
    cold_count: int
    by_kind: dict[str, int]
    by_kind_tokens: dict[str, int]
    by_status: dict[str, int]
    count: int
    cursor: str
    has_more: bool
    records: list[Card]


class RecordAnswer(Answer):
    record: Record
    body: str
    truncated: bool
    body_truncated: bool
    body_offset: int
    body_limit: int
    body_total_chars: int
    path: str


class SearchAnswer(Answer):
    levels: Levels
    records: list[Hit]
    hint: str
    suggestions: list[dict[str, Any]]
    pending: int


class Line(Output):
    record_id: str
    title: str
    cold: bool
    line: int
    seq: int | None
    text: str
    spans: list[list[int]]
    before: list[str]
    after: list[str]


class GrepAnswer(Answer):
    hits: list[Line]
    records_searched: int
    truncated: bool
    why: str
    warnings: list[str]


class NavAnswer(Answer):
    entries: list[dict[str, Any]]
    total: int
    offset: int
    limit: int
    has_more: bool
    facets: dict[str, dict[str, int]]
    steps: list[str]
    is_partial: bool


class AssembleAnswer(Answer):
    context: str
    used_tokens: int
    budget: int
    sources: list[dict[str, Any]]
    omitted: list[dict[str, Any]]
    hint: str


class MetricsPool(Output):
    hot_tokens: int
    cold_tokens: int
    hot_count: int
    cold_count: int
    capacity_tokens: int


class MetricsAnswer(Answer):
    generated_at: int
    levels: Levels
    l2: MetricsPool
    l3: MetricsPool
    visible: dict[str, Any]
    l1_evicted: Amount
    compression: Compression


class LevelsAnswer(Answer):
    levels: Levels
    capture_scope: str


class ChangedRecordAnswer(Answer):
    record: Record


class CompressAnswer(Answer):
    reports: list[dict[str, Any]]
    compression: Compression


class GcAnswer(Answer):
    reports: list[dict[str, Any]]


class ForgetAnswer(Answer):
    """`bundle`: in the trash, None for a preview."""

    plan: dict[str, Any]
    done: bool
    bundle: str | None


class WriteAnswer(Answer):
    id: str
    status: str
    dedupe: str | None
    similarity: float | None
    conflicts_with: list[str] | None
    scope: str
    sensitive: list[str] | None


class OpenAnswer(Answer):
    session_id: str
    handle: str
    levels: Levels


class EventsAnswer(Answer):
    stored: int
    duplicates: int
    next_seq: int
    evict: dict[str, Any]


class SurfaceAnswer(Answer):
    messages: list[dict[str, Any]]
    used_tokens: int
    cursor: str
    # The window was rewritten since the cursor was given: these are its first messages again.
    restarted: bool
    more: bool


class ReadAnswer(Answer):
    events: list[dict[str, Any]]
    more: bool


class CompactionAnswer(Answer):
    """`state`: archived, already or pending; `missing`: ids that were never pushed."""

    record_id: str | None
    state: str
    missing: list[str]


class PrestepAnswer(Answer):
    messages: list[dict[str, Any]]
    evict: dict[str, Any]


class EvictAnswer(Answer):
    """`message`: once applied, what stands in the window instead."""

    due: bool
    used_tokens: int
    threshold: int
    start_seq: int | None
    end_seq: int | None
    tokens: int
    stops: list[dict[str, Any]]
    plan_id: str | None
    record_id: str | None
    message_id: str | None
    message: str | None


class StatusAnswer(Answer):
    """Without a sign-in the version alone."""

    version: str
    store: dict[str, Any] | None = None
