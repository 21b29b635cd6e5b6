"""The terms of whole texts, by the megabyte: what indexing spends its time on. Pure.

Gives what `terms` gives piece by piece. What a chunk gives is remembered, since sessions repeat most of what
they say.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import add
from typing import NamedTuple

from records.secrets.policy import Find, part_redacted

from .folding import fold_case_kept
from .passages import passages
from .stopwords import ENGLISH
from .terms import (
    EXACT_MAX,
    IDENTIFIER_MAX,
    IDENTIFIERS,
    PARTS,
    PLAIN,
    is_whole,
    pieces,
    stem,
    without_cjk,
)

_REMEMBERED, _REMEMBERED_LENGTH = 100_000, 100

# Signs that are part of nothing.
_SIGNS = b"()[]{}\"'`,;!?*=<>|&%^~"
_SEPARATORS = bytes.maketrans(_SIGNS, b" " * len(_SIGNS))


class Extract(NamedTuple):
    """`terms` and `exact` separated by blanks: terms to rank by, and the identifiers, paths and flags as they
    are written, for fragments. `length`: terms without stop words."""

    terms: str
    exact: str
    length: int


@lru_cache(maxsize=50_000)
def _of_identifier(identifier: str) -> tuple[str, int, bool]:
    """(terms, how many of them count, whether it is more than a word)"""
    parts = PARTS.findall(identifier)
    words = [part.casefold()[:IDENTIFIER_MAX] for part in parts]
    whole = is_whole(identifier, parts)
    terms = [identifier.casefold()] if whole and len(identifier) <= IDENTIFIER_MAX else []
    terms += map(stem, words)
    return " ".join(terms), len(terms) - sum(map(ENGLISH.__contains__, words)), whole


def _of_chunk(chunk: str) -> Extract:
    plain = PLAIN.fullmatch(chunk)
    if plain:
        word = plain[1].lower()
        return Extract(stem(word), "", word not in ENGLISH)
    terms: list[str] = []
    exact: list[str] = []
    length = 0
    for piece in pieces(chunk):
        text = piece[0]
        if piece.lastgroup:
            found = [*text, *map(add, text, text[1:])] if piece.lastgroup == "cjk" else list(text)
            terms += found
            length += len(found)
            continue
        compound = not text.isalnum()
        for identifier in IDENTIFIERS.findall(text):
            said, count, whole = _of_identifier(identifier)
            if said:
                terms.append(said)
            length += count
            compound = compound or whole
        if compound:
            exact.append(text.casefold()[:EXACT_MAX])
    return Extract(" ".join(terms), " ".join(exact), length)


class _Remembered(dict[str, str]):
    """The terms of chunks. In two generations, so that what is said all the time is never forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.exact: dict[str, str] = {}
        self.stops: set[str] = set()
        self._older: dict[str, str] = {}

    def __missing__(self, chunk: str) -> str:
        terms = self._older.get(chunk)
        if terms is None:
            found = _of_chunk(chunk)
            terms = found.terms
            if found.exact:
                self.exact[chunk] = found.exact
            if not found.length and terms:
                self.stops.add(chunk)
        if len(chunk) <= _REMEMBERED_LENGTH:
            self[chunk] = terms
        return terms

    def tidy(self) -> None:
        """Between two texts: forgets what has not been said for long."""
        if len(self) < _REMEMBERED:
            return
        self.exact = {chunk: exact for chunk, exact in self.exact.items() if chunk in self}
        self.stops &= self.keys()
        self._older = dict(self)
        self.clear()


_remembered = _Remembered()


def terms_of_chunk(chunk: str) -> list[str]:
    _remembered.tidy()
    return _remembered[chunk].split()


def extract(text: str) -> Extract:
    return _extract(text, set())


def _extract(text: str, said: set[str]) -> Extract:
    """`said`: the terms are added, as they stand in the text: one or several separated by blanks."""
    terms: list[str] = []
    if not text.isascii():
        text, runs = without_cjk(fold_case_kept(text))
        for run in runs:
            terms.extend(run)
        for run in runs:
            terms.extend(map(add, run, run[1:]))
    _remembered.tidy()
    # Fewer different chunks: what stands in brackets or quotes is the same word. (As bytes: twenty times as fast.)
    chunks = text.encode("utf-8", "replace").translate(_SEPARATORS).decode().split()
    terms += filter(None, map(_remembered.__getitem__, chunks))
    said.update(terms)
    found = " ".join(terms)
    exact = _remembered.exact
    names = [exact[chunk] for chunk in sorted(set(filter(exact.__contains__, chunks)))]
    stops = sum(map(_remembered.stops.__contains__, chunks))
    return Extract(found, " ".join(names), found.count(" ") + 1 - stops if found else 0)


def identifier_spans(folded: str) -> Iterator[tuple[int, int, list[str]]]:
    """(start, end, terms) of what stands between signs in a chunk: words, and identifiers with their parts."""
    for identifier in IDENTIFIERS.finditer(folded):
        terms = [term for part in without_cjk(identifier[0])[0].split() for term in terms_of_chunk(part)]
        if terms:
            yield *identifier.span(), terms


class Piece(NamedTuple):
    """A passage taken apart. `start`, `size`: bytes in the body."""

    terms: str
    exact: str
    length: int
    start: int
    size: int
    seq_start: int | None
    seq_end: int | None


class TakenApart(NamedTuple):
    """A body. `whole`: each of its terms once; `length`: of all pieces together."""

    pieces: list[Piece]
    whole: set[str]
    length: int


def take_apart(body: bytes, finds: Sequence[Find] = ()) -> TakenApart:
    """`finds`: what of it is redacted, in bytes. Passages lie where they do in the body itself."""
    pieces: list[Piece] = []
    said: set[str] = set()
    for passage in passages(body):
        text = passage.text
        if finds:
            start, end = passage.start, passage.start + passage.size
            text = part_redacted(body[start:end], finds, start, end).decode("utf-8", "surrogateescape")
        found = _extract(text, said)
        pieces.append(Piece(*found, passage.start, passage.size, passage.seq_start, passage.seq_end))
    whole = set(" ".join(said).split())
    return TakenApart(pieces, whole, sum(piece.length for piece in pieces))
