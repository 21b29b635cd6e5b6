"""Documents and queries with known answers, as they lie in a folder and a file. Pure."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from records.header import HeaderError
from records.recordfile import ParsedFile, parse

ENDINGS = frozenset({".md", ".txt"})
NO_CATEGORY = "none"
# How many of its faults a message names.
NAMED = 10

_BOM = b"\xef\xbb\xbf"


class SuiteError(ValueError):
    """The documents or queries can't be measured with; the message says what to mend."""


@dataclass(frozen=True)
class Document:
    """`fields`: what its front matter says, as RecordDraft has it. `problem`: why that could not be read."""

    id: str
    fields: dict[str, Any]
    body: bytes
    problem: str = ""


class Query(NamedTuple):
    text: str
    # Ids of the documents that answer it.
    gold: tuple[str, ...]
    category: str


@dataclass(frozen=True)
class Suite:
    """`missing`: ids that queries name as gold and no document has; they count as not found."""

    documents: list[Document]
    queries: list[Query]
    missing: list[str] = field(default_factory=list)


def suite_read(folder: Path, queries_file: Path) -> Suite:
    """SuiteError."""
    documents = documents_read(folder)
    queries = queries_read(queries_file)
    known = {document.id for document in documents}
    missing = sorted({name for query in queries for name in query.gold} - known)
    if known.isdisjoint(name for query in queries for name in query.gold):
        raise SuiteError(f"{queries_file}: no gold id is a document of {folder}, such as {missing[0]!r}.")
    return Suite(documents, queries, missing)


def documents_read(folder: Path) -> list[Document]:
    """The .md and .txt files directly in `folder`. SuiteError."""
    if not folder.is_dir():
        raise SuiteError(f"{folder}: there is no such folder.")
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
    if not files:
        hint = " Is it its folder docs that is meant?" if (folder / "docs").is_dir() else ""
        raise SuiteError(f"{folder}: there is no .md or .txt file in it.{hint}")
    counted = Counter(path.stem for path in files)
    if twice := [name for name, count in counted.items() if count > 1]:
        raise SuiteError(f"{folder}: documents with the same id: {_named(twice)}.")
    return [_document(path) for path in files]


def _document(path: Path) -> Document:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SuiteError(f"{path}: {error.strerror}.") from error
    problem = ""
    try:
        parsed = parse(data)
    except HeaderError as error:
        parsed, problem = ParsedFile({}, data, [], has_header=False), str(error)
    body = parsed.body.removeprefix(_BOM).decode("utf-8", "replace")
    return Document(path.stem, parsed.draft_fields, body.encode(), problem)


def queries_read(file: Path) -> list[Query]:
    """SuiteError, naming the lines that make no sense."""
    try:
        lines = file.read_bytes().removeprefix(_BOM).splitlines()
    except OSError as error:
        raise SuiteError(f"{file}: {error.strerror}.") from error
    queries: list[Query] = []
    faults: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            queries.append(_query(line))
        except ValueError as error:
            faults.append(f"line {number}: {error}")
    if faults:
        raise SuiteError(f"{file}: {_named(faults, '; ')}.")
    if not queries:
        raise SuiteError(f"{file}: there is no query in it.")
    return queries


def _query(line: bytes) -> Query:
    try:
        given = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"no JSON ({error})") from error
    if not isinstance(given, dict):
        raise ValueError("no JSON object")
    text, gold, category = given.get("query"), given.get("gold"), given.get("category")
    if not isinstance(text, str) or not text.strip():
        raise ValueError('"query" must be a text')
    if not isinstance(gold, list) or not gold or not all(isinstance(name, str) and name for name in gold):
        raise ValueError('"gold" must be a list of document ids')
    if category is not None and not isinstance(category, str):
        raise ValueError('"category" must be a text')
    return Query(text, tuple(dict.fromkeys(gold)), category or NO_CATEGORY)


def _named(names: list[str], separator: str = ", ") -> str:
    return separator.join(_few(names))


def _few(names: list[str]) -> Iterator[str]:
    yield from names[:NAMED]
    if len(names) > NAMED:
        yield f"and {len(names) - NAMED:,} more"
