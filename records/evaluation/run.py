"""Loads a suite into the store and asks its queries, in the ordinary ways.

Data flow: documents -> drafts -> records_write and bodies_sync, as an import does -> `search` as the owner
-> rankings, of which `figures` makes figures.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

from records.abstracts import first_text
from records.fields import SUMMARY_MAX, TITLE_MAX, USE_WHEN_MAX
from records.ids import archive_id
from records.recordfile import RecordDraft
from records.rows import chunks
from records.scope import OWNER
from records.search.indexing import bodies_sync
from records.search.results import SearchHit
from records.search.search import search
from records.services import records_write

from .figures import Ranking
from .suite import Document, Query

LIMIT = 50
WORKSPACE_KEY = "evaluation"
# All documents are of one moment: how new a record is plays no part.
_WHEN = 1_700_000_000_000
_BATCH = 50


@dataclass(frozen=True)
class Miss:
    """A query whose first document that answers is not the first that was found. `rank` None: it is not
    among the best LIMIT; `expected` is the best one that answers, else the first of the query's gold."""

    query: Query
    rank: int | None
    expected: str
    expected_reason: str
    first: str
    first_reason: str


class Loaded:
    """The documents of a suite in the store. `names`: their ids by those of their records."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def ask(self, query: Query) -> Ranking:
        started = perf_counter()
        answer = search(OWNER, query.text, limit=LIMIT)
        seconds = perf_counter() - started
        return Ranking(query, tuple(self.names[hit.card.id] for hit in answer.hits), seconds)

    def rankings(self, queries: Iterable[Query]) -> list[Ranking]:
        """After one search that doesn't count: the first of a process opens what all others use."""
        given = list(queries)
        for query in given[:1]:
            self.ask(query)
        return [self.ask(query) for query in given]

    def misses(self, rankings: Iterable[Ranking], most: int) -> list[Miss]:
        missed = (ranking for ranking in rankings if ranking.rank != 1)
        return [self._miss(ranking) for ranking in islice(missed, most)]

    def _miss(self, ranking: Ranking) -> Miss:
        hits = search(OWNER, ranking.query.text, limit=LIMIT).hits
        found = {self.names[hit.card.id]: hit for hit in hits}
        first = next(iter(found), "")
        gold = ranking.query.gold
        expected = next((name for name in found if name in gold), gold[0])
        return Miss(
            ranking.query,
            ranking.rank,
            expected,
            _reason(found.get(expected)),
            first,
            _reason(found.get(first)),
        )


def _reason(hit: SearchHit | None) -> str:
    return hit.reason.text if hit else ""


def documents_load(documents: Iterable[Document]) -> Loaded:
    """Writes them as records of one workspace, and indexes their text."""
    names: dict[str, str] = {}
    for batch in chunks(_drafts(documents, names), _BATCH):
        records_write(batch, actor="evaluation", verb="import")
    bodies_sync()
    return Loaded(names)


def _drafts(documents: Iterable[Document], names: dict[str, str]) -> Iterator[RecordDraft]:
    for document in documents:
        draft = draft_of(document)
        names[draft.id] = document.id
        yield draft


def draft_of(document: Document) -> RecordDraft:
    given = document.fields
    title = given.get("title", "").strip() or first_text(document.body.decode(), TITLE_MAX)
    return RecordDraft(
        id=archive_id(WORKSPACE_KEY, document.id, length=20),
        kind=given.get("kind", "note"),
        scope="workspace",
        workspace_key=WORKSPACE_KEY,
        title=next(iter(title[:TITLE_MAX].splitlines()), "").strip() or document.id[:TITLE_MAX],
        summary=given.get("summary", "")[:SUMMARY_MAX],
        use_when=given.get("use_when", "")[:USE_WHEN_MAX],
        tags=given.get("tags", {}),
        entities=given.get("entities", []),
        trust="agent",
        created_at=_WHEN,
        body=document.body,
    )
