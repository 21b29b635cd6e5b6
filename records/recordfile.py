"""A record as a file: Markdown below a block of YAML. Pure; never raises for what people do by hand,
except for a block that can't be read at all (`header.HeaderError`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import header
from .fields import (
    FIELDS,
    KINDS,
    SCHEMA,
    SCOPES,
    STATUSES,
    SUMMARY_MAX,
    TEXTS,
    TITLE_MAX,
    TRUSTS,
    USE_WHEN_MAX,
    coerce,
)
from .ids import is_record_id
from .secrets.policy import is_sensitive
from .tokens import estimate_bytes


class NewerSchemaError(ValueError):
    """The file was written by a later version: it is read, never rewritten."""


@dataclass(kw_only=True)
class RecordDraft:
    """Times in milliseconds UTC; `created_at` is when it happened. Text is kept as UTF-8 can hold it."""

    id: str
    kind: str
    scope: str
    workspace_key: str
    title: str
    trust: str
    created_at: int
    # Bytes are UTF-8, as from a caller that has megabytes of it.
    body: str | bytes
    workspace: str = ""
    session_id: str = ""
    summary: str = ""
    use_when: str = ""
    status: str = "active"
    confidence: float | None = None
    slot: str = ""
    # 0: estimated from the body. updated_at 0: created_at.
    tokens: int = 0
    tags: dict[str, list[str]] = field(default_factory=dict)
    entities: list[Any] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    links: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    updated_at: int = 0
    schema: int = SCHEMA
    extra: dict[str, Any] = field(default_factory=dict)
    # The same id with more characters of its hash, should this one be taken by something else.
    id_at: Callable[[int], str] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in TEXTS:
            setattr(self, name, header.clean(getattr(self, name)))
        if isinstance(self.body, str):
            self.body = header.clean(self.body)
        self.tokens = self.tokens or max(1, estimate_bytes(self.body_bytes))
        self.updated_at = self.updated_at or self.created_at

    @property
    def body_bytes(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclass(frozen=True)
class ParsedFile:
    """`draft_fields`: what the block says, as RecordDraft has it, without what is missing or senseless."""

    draft_fields: dict[str, Any]
    body: bytes
    problems: list[str]
    has_header: bool

    @property
    def is_newer(self) -> bool:
        return int(self.draft_fields.get("schema", SCHEMA)) > SCHEMA


def validate(draft: RecordDraft) -> None:
    """ValueError, naming what is wrong."""
    if not is_record_id(draft.id):
        raise ValueError(f"{draft.id!r} is no record id.")
    for name, value, allowed in (
        ("kind", draft.kind, KINDS),
        ("scope", draft.scope, SCOPES),
        ("status", draft.status, STATUSES),
        ("trust", draft.trust, TRUSTS),
    ):
        if value not in allowed:
            raise ValueError(
                f"{draft.id}: {name} must be one of {', '.join(sorted(allowed))}, not {value!r}."
            )
    if not draft.workspace_key:
        raise ValueError(f"{draft.id}: workspace_key is missing.")
    # A record with a secret in it may be its owner's alone.
    if draft.scope == "session" and not draft.session_id and not is_sensitive(draft.tags):
        raise ValueError(f"{draft.id}: a session's record needs its session_id.")
    if draft.schema != SCHEMA:
        raise ValueError(f"{draft.id}: only schema {SCHEMA} is written.")
    if known := draft.extra.keys() & set(FIELDS):
        raise ValueError(f"{draft.id}: extra repeats {', '.join(sorted(known))}.")
    check_card({name: getattr(draft, name) for name in ("title", "summary", "use_when")})


def check_card(fields: Mapping[str, Any]) -> None:
    """The limits of those card fields that are given."""
    title = fields.get("title")
    if title is not None and (not title.strip() or title.splitlines() != [title]):
        raise ValueError("title must be one line of text.")
    for name, limit in (("title", TITLE_MAX), ("use_when", USE_WHEN_MAX), ("summary", SUMMARY_MAX)):
        if len(fields.get(name) or "") > limit:
            raise ValueError(f"{name} has more than {limit} characters.")


def render(draft: RecordDraft) -> bytes:
    fields = {name: getattr(draft, name) for name in FIELDS}
    return f"---\n{header.dump(fields | draft.extra)}---\n\n".encode() + draft.body_bytes


def body_of(data: bytes) -> bytes:
    """The body of a file, also when its block can't be read."""
    try:
        return parse(data).body
    except header.HeaderError:
        parts = header.split(data)
        return data[parts.body :] if parts else data


def parse(data: bytes) -> ParsedFile:
    parts = header.split(data)
    if parts is not None:
        try:
            fields, problems = coerce(header.load(data[parts.start : parts.end]))
            return ParsedFile(fields, data[parts.body :], problems, has_header=True)
        except header.NoHeaderError:
            pass
    return ParsedFile({"extra": {}}, data, ["has no front matter"], has_header=False)


def replace_front_matter(data: bytes, changes: Mapping[str, Any]) -> bytes:
    """`data` with these fields changed and every byte of the body kept.

    Other fields keep their lines, and comments theirs, as far as that is possible. A file without a
    block gets one that holds the changes only.
    """
    parsed = parse(data)
    if parsed.is_newer:
        raise NewerSchemaError("The file has a newer schema than this version writes.")
    changed, problems = coerce(header.load(header.dump(changes).encode()))
    if problems:
        raise ValueError("; ".join(problems))
    parts = header.split(data) if parsed.has_header else None
    if parts is None:
        return f"---\n{header.dump(changes)}---\n\n".encode() + data
    wanted = {**parsed.draft_fields, **changed}
    wanted["extra"] = {**parsed.draft_fields["extra"], **changed["extra"]}
    spliced = data[: parts.start] + _splice(data[parts.start : parts.end], changes) + data[parts.end :]
    if _fields_of(spliced) == wanted:
        return spliced
    return data[: parts.start] + header.dump(_ordered(wanted)).encode() + data[parts.end :]


def _fields_of(data: bytes) -> dict[str, Any] | None:
    try:
        return parse(data).draft_fields
    except header.HeaderError:
        return None


def _ordered(fields: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: fields[name] for name in FIELDS if name in fields}
    return {**known, **fields["extra"]}


def _splice(block: bytes, changes: Mapping[str, Any]) -> bytes:
    newline = "\r\n" if b"\r\n" in block else "\n"
    lines = block.decode("utf-8", "replace").split("\n")[:-1]
    for name, value in changes.items():
        first = next((n for n, line in enumerate(lines) if line.startswith(f"{name}:")), len(lines))
        last = next((n for n in range(first + 1, len(lines)) if _starts_field(lines[n])), len(lines))
        lines[first:last] = [f"{name}: {header.to_json(value)}{newline}".removesuffix("\n")]
    return "".join(f"{line}\n" for line in lines).encode()


def _starts_field(line: str) -> bool:
    return line[:1].strip() not in ("", "-")
