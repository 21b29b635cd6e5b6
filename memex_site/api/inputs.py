"""What requests may say. An unknown field is refused by name."""

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from records.ids import RECORD_ID
from records.models import Kind, Status
from records.queries import Filters
from records.search.assembling import BUDGET
from sessions_app.operations.reading import BODY_MAX_CHARS, INDEX_MAX, SEARCH_MAX

TEXT_MAX = 1_000_000
_INT_MAX = 2**53 - 1

RecordId = Annotated[str, Field(pattern=f"^{RECORD_ID.pattern}$")]
Count = Annotated[int, Field(ge=0, le=_INT_MAX)]
KindName = Annotated[Kind, Field(strict=False)]
StatusName = Annotated[Status, Field(strict=False)]
# records.queries.ORDERS, as a type.
Order = Literal["updated", "created", "oldest", "tokens", "read", "title"]


class Query(Schema):
    """In an address, where everything is text."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=False)


class Body(Schema):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=False)


class NamesSession(Schema):
    session_id: Annotated[str | None, Field(max_length=200, description="The session that asks.")] = None
    cwd: Annotated[
        str | None,
        Field(max_length=4_096, description="Instead of it a folder that the token is limited to."),
    ] = None


class SessionQuery(Query, NamesSession):
    pass


class SessionBody(Body, NamesSession):
    pass


class IndexQuery(SessionQuery):
    limit: Annotated[int, Field(ge=1, le=INDEX_MAX)] = 100
    cursor: Annotated[str, Field(max_length=40)] = ""


class RecordQuery(SessionQuery):
    id: RecordId
    offset: Count = 0
    limit: Annotated[int, Field(ge=1, le=BODY_MAX_CHARS)] = 200_000


class Filtered(Schema):
    """Which records are meant."""

    kind: Annotated[list[KindName], Field(max_length=20, default_factory=list)]
    status: Annotated[list[StatusName], Field(max_length=10, default_factory=list)]
    tag: Annotated[str | None, Field(max_length=200)] = None
    agent: Annotated[str | None, Field(max_length=32)] = None
    cold: bool | None = None

    @property
    def filters(self) -> Filters:
        return {
            "kinds": self.kind,
            "statuses": self.status,
            "tag": self.tag,
            "agent": self.agent,
            "cold": self.cold,
        }


class SearchQuery(SessionQuery, Filtered):
    q: Annotated[str, Field(max_length=20_000)]
    limit: Annotated[int, Field(ge=1, le=SEARCH_MAX)] = 30


class Grepped(Filtered):
    pattern: Annotated[str, Field(min_length=1, max_length=2_000)]
    literal: bool = False
    case_sensitive: bool = False
    context: Annotated[int, Field(ge=0, le=20)] = 0
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class GrepQuery(SessionQuery, Grepped):
    pass


class GrepBody(SessionBody, Grepped):
    pass


class Browsed(Schema):
    path: Annotated[str, Field(max_length=2_000)] = ""
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    offset: Count = 0
    sort: Order = "updated"


class NavQuery(SessionQuery, Browsed):
    pass


class NavBody(SessionBody, Browsed):
    pass


class Assembled(Filtered):
    task: Annotated[str, Field(min_length=1, max_length=20_000)]
    budget: Annotated[int, Field(ge=100, le=200_000)] = BUDGET


class AssembleQuery(SessionQuery, Assembled):
    pass


class AssembleBody(SessionBody, Assembled):
    pass


class StatusBody(SessionBody):
    id: RecordId
    status: Literal["pinned", "active", "resolved", "superseded"]


class LevelBody(SessionBody):
    level: Annotated[str, Field(max_length=16)]


class RestoreBody(SessionBody):
    id: RecordId


class CompressBody(SessionBody):
    level: Literal["l2", "l3", "auto"] = "auto"
    strategy: Literal["cold", "digest"] = "cold"
    target_ratio: Annotated[float | None, Field(ge=0.1, le=0.95, strict=False)] = None
    min_age_ms: Count | None = None


class GcBody(SessionBody):
    keep_tokens: Count


class ForgetBody(SessionBody):
    """Records by id, or the session itself with all that is private to it."""

    ids: Annotated[list[RecordId], Field(max_length=500, default_factory=list)]
    session: bool = False
    dry_run: bool = False


class WriteBody(SessionBody):
    kind: KindName
    text: Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
    title: Annotated[str | None, Field(max_length=160)] = None
    summary: Annotated[str | None, Field(max_length=4_000)] = None
    use_when: Annotated[str | None, Field(max_length=1_000)] = None
    tags: dict[str, list[str]] | list[str] | None = None
    entities: Annotated[list[str] | None, Field(max_length=100)] = None
    slot: Annotated[str | None, Field(max_length=200)] = None
    confidence: Annotated[float | None, Field(ge=0, le=1, strict=False)] = None
    scope: Literal["session", "workspace"] | None = None
    links: dict[str, Any] | None = None


class OpenBody(Body):
    session_id: Annotated[str, Field(min_length=1, max_length=200)]
    agent: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
    cwd: Annotated[str, Field(max_length=4_096)] = ""
    title: Annotated[str, Field(max_length=500)] = ""
    parent_session_id: Annotated[str, Field(max_length=200)] = ""
    context_window: Annotated[int | None, Field(ge=1_000, le=_INT_MAX)] = None


class PrestepBody(Body):
    session_id: Annotated[str, Field(min_length=1, max_length=200)]
    text: Annotated[str, Field(max_length=TEXT_MAX)] = ""
    ack: Annotated[list[str], Field(max_length=100, default_factory=list)]
    dry_run: bool = False


class CompactionBody(Body):
    session_id: Annotated[str, Field(min_length=1, max_length=200)]
    compaction_id: Annotated[str, Field(min_length=1, max_length=200)]
    summary: Annotated[str, Field(max_length=TEXT_MAX)] = ""
    removed_ids: Annotated[list[str], Field(max_length=200_000)]
    trigger: Annotated[str, Field(max_length=16)] = ""
    tokens_before: Count | None = None
    tokens_after: Count | None = None


class EvictBody(Body):
    session_id: Annotated[str, Field(min_length=1, max_length=200)]
    mode: Literal["plan", "apply", "undo"]
    context_window: Annotated[int | None, Field(ge=1_000, le=_INT_MAX)] = None
    used_tokens: Count | None = None
    plan_id: Annotated[str | None, Field(max_length=200)] = None


class SurfaceQuery(Query):
    session_id: Annotated[str, Field(min_length=1, max_length=200)]
    after: Annotated[str, Field(max_length=80)] = ""


class ReadQuery(Query):
    session_id: Annotated[str, Field(min_length=1, max_length=200)]
    first: Annotated[int, Field(ge=0, le=_INT_MAX, alias="from")] = 0
    last: Annotated[int | None, Field(ge=0, le=_INT_MAX, alias="to")] = None
    raw: bool = False
