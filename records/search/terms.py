"""The one extractor of terms, for what is indexed and for what is asked. Pure.

A text is taken apart at white space into chunks, and each chunk into
- words, stemmed (English, Snowball): "deployments," -> "deploy";
- identifiers as a whole and their parts at case, digits, "_" and other signs:
  "getHttpURL" -> "gethttpurl", "get", "http", "url";
- runs of Chinese, Japanese and Korean as single characters and as pairs of neighbours;
- a few signs that stand for something: emoji, the "++" of "C++".

What a chunk gives is remembered, since sessions repeat most of what they say; hence many megabytes a second.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import Stemmer

from .folding import CJK, fold_case_kept
from .stopwords import ENGLISH

# A longer one is text without spaces (base64, minified code), or a line of Chinese.
IDENTIFIER_MAX = 64
EXACT_MAX = 240
_REMEMBERED, _REMEMBERED_LENGTH = 100_000, 100

_stemmer = Stemmer.Stemmer("english", 0)

# What stands between white space and is more than a word: paths, versions, flags, addresses.
_PIECE = re.compile(
    rf"(?P<cjk>[{CJK}]+)|(?P<sign>[\u2190-\u2bff\U0001f000-\U0001faff])"
    rf"|(?:--?|[.@$#])?[^\W{CJK}]+(?:[./:@\\\-+]+[^\W{CJK}]+)*(?:\+\+|#)?"
)
_CJK_RUN = re.compile(f"[{CJK}]+")
_IDENTIFIER = re.compile(r"\w+(?:\+\+|#)?")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_A-Za-z]+|[A-Z]+")
# Signs that are part of nothing.
_SIGNS = b"()[]{}\"'`,;!?*=<>|&%^~"
_SEPARATORS = bytes.maketrans(_SIGNS, b" " * len(_SIGNS))
# The common case, told by one match: an English word with punctuation around it.
_PLAIN = re.compile(r"[(\[\"'`*]*([A-Za-z]?[a-z]+)[.,:;!?)\]\"'`*]*")


class Sort(StrEnum):
    WORD = "word"
    IDENTIFIER = "identifier"
    # Of an identifier, one or two characters: the "e" of "E0308".
    SCRAP = "scrap"
    CHARACTER = "character"
    PAIR = "pair"
    SIGN = "sign"


class Term(NamedTuple):
    text: str
    sort: Sort
    is_stop: bool = False


class Extract(NamedTuple):
    """`terms` and `exact` separated by blanks: terms to rank by, and the identifiers, paths and flags as they
    are written, for fragments. `length`: terms without stop words."""

    terms: str
    exact: str
    length: int


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    return str(_stemmer.stemWord(word))


def chunk_terms(chunk: str) -> Iterator[Term]:
    """The terms of text without white space."""
    plain = _PLAIN.fullmatch(chunk)
    if plain:
        word = plain[1].lower()
        yield Term(stem(word), Sort.WORD, word in ENGLISH)
        return
    for piece in _PIECE.finditer(fold_case_kept(chunk)):
        text = piece[0]
        if piece["cjk"]:
            yield from (Term(character, Sort.CHARACTER) for character in text)
            yield from (Term(text[at : at + 2], Sort.PAIR) for at in range(len(text) - 1))
        elif piece["sign"]:
            yield Term(text, Sort.SIGN)
        else:
            for identifier in _IDENTIFIER.findall(text):
                yield from _identifier_terms(identifier)


def _identifier_terms(identifier: str) -> Iterator[Term]:
    parts = _PART.findall(identifier)
    whole = identifier.casefold()
    if (len(parts) > 1 or identifier[-1] in "+#") and len(whole) <= IDENTIFIER_MAX:
        yield Term(whole, Sort.IDENTIFIER)
    for part in parts:
        word = part.casefold()[:IDENTIFIER_MAX]
        sort = Sort.SCRAP if len(parts) > 1 and len(word) <= 2 else Sort.WORD
        yield Term(stem(word), sort, word in ENGLISH)


def chunk_exact(chunk: str) -> list[str]:
    """What in a chunk is more than a word, folded: paths, identifiers, versions, flags."""
    if _PLAIN.fullmatch(chunk):
        return []
    found = (piece for piece in _PIECE.finditer(fold_case_kept(chunk)) if not (piece["cjk"] or piece["sign"]))
    return [text.casefold()[:EXACT_MAX] for piece in found if _is_compound(text := piece[0])]


def _is_compound(text: str) -> bool:
    return not text.isalnum() or len(_PART.findall(text)) > 1


def _extract_chunk(chunk: str) -> Extract:
    """What `chunk_terms` and `chunk_exact` give, in one pass: this is what indexing spends its time on."""
    plain = _PLAIN.fullmatch(chunk)
    if plain:
        word = plain[1].lower()
        return Extract(stem(word), "", word not in ENGLISH)
    terms: list[str] = []
    exact: list[str] = []
    stops = 0
    for piece in _PIECE.finditer(fold_case_kept(chunk)):
        text = piece[0]
        if piece.lastgroup:
            terms.extend(text)
            if piece.lastgroup == "cjk":
                terms.extend(map("".join, pairwise(text)))
            continue
        compound = not text.isalnum()
        for identifier in _IDENTIFIER.findall(text):
            parts = _PART.findall(identifier)
            if len(parts) > 1 or identifier[-1] in "+#":
                compound = True
                if len(identifier) <= IDENTIFIER_MAX:
                    terms.append(identifier.casefold())
            for part in parts:
                word = part.casefold()[:IDENTIFIER_MAX]
                stops += word in ENGLISH
                terms.append(stem(word))
        if compound:
            exact.append(text.casefold()[:EXACT_MAX])
    return Extract(" ".join(terms), " ".join(exact), len(terms) - stops)


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
            found = _extract_chunk(chunk)
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
    characters: list[str] = []
    pairs: list[str] = []
    if not text.isascii():
        text, runs = without_cjk(fold_case_kept(text))
        for run in runs:
            characters.extend(run)
            pairs.extend(map("".join, pairwise(run)))
    _remembered.tidy()
    # Fewer different chunks: what stands in brackets or quotes is the same word. (As bytes: twenty times as fast.)
    chunks = text.encode("utf-8", "replace").translate(_SEPARATORS).decode().split()
    found = " ".join(filter(None, map(_remembered.__getitem__, chunks)))
    exact = _remembered.exact
    names = [exact[chunk] for chunk in sorted(exact.keys() & chunks)]
    if characters:
        found = " ".join(filter(None, (found, *characters, *pairs)))
    stops = sum(map(_remembered.stops.__contains__, chunks))
    return Extract(found, " ".join(names), found.count(" ") + 1 - stops if found else 0)


def is_cjk(term: str) -> bool:
    return _CJK_RUN.match(term) is not None


def without_cjk(folded: str) -> tuple[str, list[str]]:
    """A text with its runs of CJK replaced by blanks, and the runs."""
    runs = _CJK_RUN.findall(folded)
    return (_CJK_RUN.sub(" ", folded), runs) if runs else (folded, [])


def identifier_spans(folded: str) -> Iterator[tuple[int, int, list[str]]]:
    """(start, end, terms) of what stands between signs in a chunk: words, and identifiers with their parts."""
    for identifier in _IDENTIFIER.finditer(folded):
        terms = [term for part in without_cjk(identifier[0])[0].split() for term in terms_of_chunk(part)]
        if terms:
            yield *identifier.span(), terms
