"""The one place that touches tantivy: folders of passages that are ranked by their terms.

A panic of the engine is a BaseException, and a huge limit aborts the process: both end here. A folder that
can't be read is reported as `IndexDamaged`; whoever catches it builds the folder anew from the records.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import tantivy
from tantivy import Occur, Query

from .sums import sums_write

# Of the fields below and of what is put into them; another number builds every folder anew.
VERSION = 1
LIMIT_MAX = 2_000
HEAP_BYTES = 30_000_000

_NUMBERS = ("record", "part", "at", "tail", "size", "seq_start", "seq_end", "length", "total")
# Numbers are unsigned; this one stands for none.
_NONE = 2**53


class Part:
    """What a passage is of."""

    CARD, BODY, OVERFLOW = 0, 1, 2


class IndexDamaged(Exception):
    """The folder's files can't be read; the index has to be built anew."""


class IndexBusy(Exception):
    """Another process writes to this folder."""


@dataclass(slots=True)
class Entry:
    """A passage to be indexed. `record`: its record's number. `at`, `size`: where its text stands: bytes from
    the start of the body, or of an event's text (Part.OVERFLOW); `tail`: bytes from there to the end of the
    body, by which it is found in the file, whose head changes. `length`: terms without stop words; `total`:
    those of the whole record."""

    record: int
    part: int
    terms: str
    exact: str
    at: int
    size: int
    seq_start: int | None
    seq_end: int | None
    length: int
    tail: int = 0
    total: int = 0
    session: str = ""
    # Of a card: every term of its record, once.
    whole: str = ""


class Hit(NamedTuple):
    score: float
    record: int
    part: int
    at: int
    tail: int
    size: int
    seq_start: int | None
    seq_end: int | None
    length: int
    total: int


@dataclass(slots=True)
class Statistics:
    """Of one folder: how many passages and records, and how long they are on average (terms)."""

    passages: int = 0
    records: int = 0
    passage_length: float = 1.0
    record_length: float = 1.0

    @classmethod
    def of_all(cls, folders: Sequence["Statistics"]) -> "Statistics":
        passages = sum(each.passages for each in folders)
        records = sum(each.records for each in folders)
        total = sum(each.passages * each.passage_length for each in folders)
        return cls(passages, records, max(1.0, total / max(1, passages)), max(1.0, total / max(1, records)))


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("terms", tokenizer_name="blanks", index_option="freq")
    builder.add_text_field("exact", tokenizer_name="trigrams", index_option="basic")
    builder.add_text_field("whole", tokenizer_name="blanks", index_option="basic")
    builder.add_text_field("session", tokenizer_name="raw", index_option="basic")
    for name in _NUMBERS:
        builder.add_unsigned_field(name, indexed=name in ("record", "part"), fast=True)
    return builder.build()


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if "LockBusy" in str(error):
            raise IndexBusy(str(path)) from error
        raise IndexDamaged(f"{path}: {error}") from error


def _open(path: Path) -> tantivy.Index:
    index = tantivy.Index(_schema(), str(path))
    for name, tokenizer in (
        ("blanks", tantivy.Tokenizer.whitespace()),
        ("trigrams", tantivy.Tokenizer.ngram(3, 3)),
    ):
        index.register_tokenizer(name, tantivy.TextAnalyzerBuilder(tokenizer).build())
    return index


class Folder:
    """A folder as it is to be searched; sees what other processes have written after `refresh()`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        with _guarded(path):
            self._index = _open(path)
            self._schema = self._index.schema
        self.refresh()

    def refresh(self) -> None:
        meta = (self.path / "meta.json").stat()
        stamp = (meta.st_mtime_ns, meta.st_ino)
        if stamp == self._stamp:
            return
        with _guarded(self.path):
            self._index.reload()
            self._searcher = self._index.searcher()
            self.statistics = self._measure()
        self._stamp = stamp

    def _measure(self) -> Statistics:
        passages = self._searcher.num_docs
        if not passages:
            return Statistics()
        averages: Any = {"length": {"avg": {"field": "length"}}, "total": {"sum": {"field": "length"}}}
        found = self._searcher.aggregate(Query.all_query(), averages)
        # Every record has one card. (doc_freq would count deleted ones.)
        card = Query.term_query(self._schema, "part", Part.CARD)
        found_cards: Any = self._searcher.search(card, 1, count=True)
        records = int(found_cards.count) or 1
        total = found["total"]["value"]
        return Statistics(passages, records, max(1.0, total / passages), max(1.0, total / records))

    def numbers(self) -> set[int]:
        """Of all records in the folder."""
        with _guarded(self.path):
            card = Query.term_query(self._schema, "part", Part.CARD)
            hits = self._searcher.search(card, self._searcher.num_docs + 1, count=False).hits
            addresses = [address for _, address in hits]
            return set(map(int, filter(None, self._searcher.fast_field_values("record", addresses))))

    def frequency(self, term: str) -> int:
        """How many passages hold a term."""
        with _guarded(self.path):
            return self._searcher.doc_freq("terms", term)

    def records_with(self, term: str) -> int:
        """How many records hold a term, wherever."""
        with _guarded(self.path):
            return self._searcher.doc_freq("whole", term)

    def with_prefix(self, prefix: str, limit: int) -> list[str]:
        with _guarded(self.path):
            return [term for term, _ in self._searcher.terms_with_prefix("terms", prefix, limit=limit)]

    def any_of(self, weights: dict[str, float], limit: int, only: Query | None = None) -> list[Hit]:
        """The best passages with any of these terms."""
        clauses = [
            (Occur.Should, Query.boost_query(self._term(term), weight)) for term, weight in weights.items()
        ]
        return self._search(clauses, limit, only)

    def all_of(self, terms: Iterable[str], limit: int, only: Query | None = None) -> list[Hit]:
        return self._search([(Occur.Must, self._term(term)) for term in terms], limit, only)

    def records_of_all(self, terms: Iterable[str], limit: int, only: Query | None = None) -> list[Hit]:
        """The cards of records that hold all of these terms, wherever."""
        clauses = [(Occur.Must, Query.term_query(self._schema, "whole", term, "basic")) for term in terms]
        return self._search(clauses, limit, only)

    def containing(self, fragment: str, limit: int, only: Query | None = None) -> list[Hit]:
        """Passages whose identifiers and paths have all trigrams of `fragment` (3 characters or more)."""
        trigrams = {fragment[at : at + 3] for at in range(len(fragment) - 2)}
        with _guarded(self.path):
            rarest = sorted(trigrams, key=lambda trigram: self._searcher.doc_freq("exact", trigram))[:12]
        clauses = [(Occur.Must, Query.term_query(self._schema, "exact", part, "basic")) for part in rarest]
        return self._search(clauses, limit, only)

    def of_sessions(self, session_ids: Iterable[str]) -> Query:
        return Query.term_set_query(self._schema, "session", sorted(session_ids))

    def of_records(self, numbers: Iterable[int]) -> Query:
        return Query.term_set_query(self._schema, "record", sorted(numbers))

    def _term(self, term: str) -> Query:
        return Query.term_query(self._schema, "terms", term, "freq")

    def _search(self, clauses: Sequence[tuple[Occur, Query]], limit: int, only: Query | None) -> list[Hit]:
        if not clauses or not self._searcher.num_docs:
            return []
        with _guarded(self.path):
            query = Query.boolean_query(list(clauses))
            if only is not None:
                query = Query.boolean_query(
                    [(Occur.Must, query), (Occur.Must, Query.const_score_query(only, 0.0))]
                )
            hits = self._searcher.search(query, max(1, min(limit, LIMIT_MAX)), count=False).hits
            return self._hits(hits)

    def _hits(self, hits: Sequence[tuple[float, Any]]) -> list[Hit]:
        addresses = [address for _, address in hits]
        columns = [self._searcher.fast_field_values(name, addresses) for name in _NUMBERS]
        return [
            Hit(
                score, int(record), int(part), int(at), int(tail), int(size),
                _number(seq_start), _number(seq_end), int(length), int(total),
            )
            for (score, _), record, part, at, tail, size, seq_start, seq_end, length, total in zip(
                hits, *columns, strict=True
            )
        ]  # fmt: skip


def _number(value: Any) -> int | None:
    return None if value is None or value >= _NONE else int(value)


@dataclass(slots=True)
class Writer:
    """Puts passages into a folder; nothing is there before `commit`."""

    path: Path
    _index: tantivy.Index
    _writer: tantivy.IndexWriter
    added: int = field(default=0)
    # Since the last commit.
    has_changes: bool = field(default=False)

    def remove(self, records: Iterable[int]) -> None:
        self.has_changes = True
        with _guarded(self.path):
            for number in records:
                # By query: deleting by term would take the number for a signed one, and find nothing.
                self._writer.delete_documents_by_query(Query.term_query(self._index.schema, "record", number))

    def clear(self) -> None:
        self.has_changes = True
        with _guarded(self.path):
            self._writer.delete_all_documents()

    def add(self, entry: Entry) -> None:
        self.has_changes = True
        document = tantivy.Document()
        document.add_text("terms", entry.terms)
        if entry.exact:
            document.add_text("exact", entry.exact)
        if entry.whole:
            document.add_text("whole", entry.whole)
        if entry.session:
            document.add_text("session", entry.session)
        values = (
            entry.record, entry.part, entry.at, entry.tail, entry.size, _unsigned(entry.seq_start),
            _unsigned(entry.seq_end), entry.length, entry.total,
        )  # fmt: skip
        for name, value in zip(_NUMBERS, values, strict=True):
            document.add_unsigned(name, value)
        with _guarded(self.path):
            self._writer.add_document(document)
        self.added += 1

    def commit(self) -> None:
        with _guarded(self.path):
            self._writer.commit()
        self.has_changes = False


def _unsigned(value: int | None) -> int:
    return _NONE if value is None else value


@contextmanager
def writing(path: Path, *, heap_bytes: int = HEAP_BYTES) -> Iterator[Writer]:
    """The caller holds the store's lock for bodies. Without `commit` nothing is changed. Segments are merged
    before it ends: hundreds of small ones would make every search slow. IndexBusy, IndexDamaged."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _guarded(path):
        index = _open(path)
        inner = index.writer(heap_bytes, 1)
    writer = Writer(path, index, inner)
    try:
        yield writer
    finally:
        with _guarded(path):
            if writer.has_changes:
                # It ends merges as well, and leaves their files behind: not after a commit.
                inner.rollback()
            inner.wait_merging_threads()
        sums_write(path)


def remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
