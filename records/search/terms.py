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
from operator import itemgetter
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
    rf"|(?:--?|[.@$#])?[^\W{CJK}]+(?:(?:[./:@\\\-+]|::|->)+[^\W{CJK}]+)*(?:\+\+|#)?"
)
_CJK_RUN = re.compile(f"[{CJK}]+")
_IDENTIFIER = re.compile(r"\w+(?:\+\+|#)?")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_A-Za-z]+|[A-Z]+")
# The common case, told by one match: an English word with punctuation around it.
_PLAIN = re.compile(r"[(\[\"'`*]*([A-Za-z]?[a-z]+)[.,:;!?)\]\"'`*]*")


class Sort(StrEnum):
    WORD = "word"
    IDENTIFIER = "identifier"
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
        yield Term(stem(word), Sort.WORD, word in ENGLISH)


def chunk_exact(chunk: str) -> list[str]:
    """What in a chunk is more than a word, folded: paths, identifiers, versions, flags."""
    if _PLAIN.fullmatch(chunk):
        return []
    found = (piece for piece in _PIECE.finditer(fold_case_kept(chunk)) if not (piece["cjk"] or piece["sign"]))
    return [text.casefold()[:EXACT_MAX] for piece in found if _is_compound(text := piece[0])]


def _is_compound(text: str) -> bool:
    return len(_PART.findall(text)) > 1 or not text.isalnum()


def _extract_chunk(chunk: str) -> Extract:
    terms = list(chunk_terms(chunk))
    length = sum(not term.is_stop for term in terms)
    return Extract(" ".join(term.text for term in terms), " ".join(chunk_exact(chunk)), length)


class _Remembered(dict[str, Extract]):
    def __missing__(self, chunk: str) -> Extract:
        found = _extract_chunk(chunk)
        if len(chunk) <= _REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[chunk] = found
        return found


_remembered = _Remembered()
extract_chunk = _remembered.__getitem__
_terms, _exact, _length = itemgetter(0), itemgetter(1), itemgetter(2)


def extract(text: str) -> Extract:
    characters: list[str] = []
    pairs: list[str] = []
    if not text.isascii():
        text, runs = without_cjk(fold_case_kept(text))
        for run in runs:
            characters.extend(run)
            pairs.extend(map("".join, pairwise(run)))
    found = [extract_chunk(chunk) for chunk in text.split()]
    return Extract(
        " ".join([*filter(None, map(_terms, found)), *characters, *pairs]),
        " ".join(filter(None, map(_exact, found))),
        sum(map(_length, found)) + len(characters) + len(pairs),
    )


def is_cjk(term: str) -> bool:
    return _CJK_RUN.match(term) is not None


def without_cjk(folded: str) -> tuple[str, list[str]]:
    """A text with its runs of CJK replaced by blanks, and the runs."""
    runs = _CJK_RUN.findall(folded)
    return (_CJK_RUN.sub(" ", folded), runs) if runs else (folded, [])


def identifier_spans(folded: str) -> Iterator[tuple[int, int, list[str]]]:
    """(start, end, terms) of what stands between signs in a chunk: words, and identifiers with their parts."""
    for identifier in _IDENTIFIER.finditer(folded):
        terms = [
            term
            for part in without_cjk(identifier[0])[0].split()
            for term in extract_chunk(part).terms.split()
        ]
        if terms:
            yield *identifier.span(), terms
