"""What a search answers with."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Card(NamedTuple):
    """A record as a hit shows it."""

    number: int
    id: str
    kind: str
    scope: str
    status: str
    trust: str
    title: str
    summary: str
    use_when: str
    abstract: str
    tags: Any
    entities: Any
    workspace: str
    workspace_key: str
    session_id: str
    tokens: int
    bytes: int
    cold: int
    path: str
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Snippet:
    """At most 300 characters of a text. `marks`: (start, end) in `text` of what was asked for."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    cut_before: bool = False
    cut_after: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was found. `legs`: `passage`, `card`, `all terms`, `fragment`, `verbatim`; `fields` of the
    card that hold a term; `terms` that were found, `aliases` by a synonym, `similar` by
    their beginning."""

    legs: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        parts = [", ".join(self.legs)]
        if self.terms:
            parts.append("terms: " + ", ".join(self.terms))
        if self.fields:
            parts.append("in " + ", ".join(self.fields))
        if self.aliases:
            parts.append("by synonym (alias): " + ", ".join(self.aliases))
        if self.similar:
            parts.append("by words that begin alike: " + ", ".join(self.similar))
        return "; ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A record and the best place in it. `offset`: bytes in its body where the passage begins, None when the
    card was found or the passage stands in an event that the body cuts; `seq_start`, `seq_end`: events.
    `score` compares hits of one question; `relevance` is absolute (see there), 0 when it isn't known."""

    card: Card
    score: float
    snippet: Snippet
    reason: Reason
    offset: int | None = None
    seq_start: int | None = None
    seq_end: int | None = None
    relevance: float = 0.0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A next step when there is no hit. `kind`: `words` or `tag`: ask for `query` instead, which resembles it;
    `filter`: ask again without the filters named in `value`; `workspace`: in the one with the key `value`;
    `grep`: look for `query` as it stands. `text`: the same in words, with counts; no full stop."""

    kind: str
    text: str
    query: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """`hint`: what to do next when there is no hit, in sentences; `suggestions`: the same for programs.
    `pending`: records whose text is not searched yet, only their cards."""

    hits: list[SearchHit] = field(default_factory=list)
    hint: str = ""
    pending: int = 0
    # Of the bare queries to the engine, without reading or ranking.
    engine_seconds: float = 0.0
    suggestions: list[Suggestion] = field(default_factory=list)
