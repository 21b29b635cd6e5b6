"""The one extractor of terms, for what is indexed and for what is asked. Pure.

A text is taken apart at white space into chunks, and each chunk into
- words, stemmed (English, Snowball): "deployments," -> "deploy";
- identifiers as a whole and their parts at case, digits, "_" and other signs:
  "getHttpURL" -> "gethttpurl", "get", "http", "url";
- runs of Chinese, Japanese and Korean as single characters and as pairs of neighbours;
- a few signs that stand for something: emoji, the "++" of "C++".

`extraction` does the same to whole texts, by the megabyte.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import Stemmer

from .folding import CJK, fold_case_kept
from .stopwords import ENGLISH

# A longer one is text without spaces (base64, minified code), or a line of Chinese.
IDENTIFIER_MAX = 64
EXACT_MAX = 240

_stemmer = Stemmer.Stemmer("english", 0)

# What stands between white space and is more than a word: paths, versions, flags, addresses.
_PIECES = re.compile(
    rf"(?P<cjk>[{CJK}]+)|(?P<sign>[\u2190-\u2bff\U0001f000-\U0001faff])"
    rf"|(?:--?|[.@$#])?[^\W{CJK}]+(?:[./:@\\\-+]+[^\W{CJK}]+)*(?:\+\+|#)?"
)
# The same where there are no others than ASCII characters: three times as fast.
_ASCII_PIECES = re.compile(r"(?:--?|[.@$#])?\w+(?:[./:@\\\-+]+\w+)*(?:\+\+|#)?", re.ASCII)
_CJK_RUN = re.compile(f"[{CJK}]+")
IDENTIFIERS = re.compile(r"\w+(?:\+\+|#)?")
PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_A-Za-z]+|[A-Z]+")
# The common case, told by one match: an English word with punctuation around it.
PLAIN = re.compile(r"[(\[\"'`*]*([A-Za-z]?[a-z]+)[.,:;!?)\]\"'`*]*")


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


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    return str(_stemmer.stemWord(word))


def pieces(chunk: str) -> Iterator[re.Match[str]]:
    """Of text without white space, folded. `lastgroup`: "cjk", "sign", None for the others."""
    return _ASCII_PIECES.finditer(chunk) if chunk.isascii() else _PIECES.finditer(fold_case_kept(chunk))


def chunk_terms(chunk: str) -> Iterator[Term]:
    """The terms of text without white space."""
    plain = PLAIN.fullmatch(chunk)
    if plain:
        word = plain[1].lower()
        yield Term(stem(word), Sort.WORD, word in ENGLISH)
        return
    for piece in pieces(chunk):
        text = piece[0]
        if piece.lastgroup == "cjk":
            yield from (Term(character, Sort.CHARACTER) for character in text)
            yield from (Term(text[at : at + 2], Sort.PAIR) for at in range(len(text) - 1))
        elif piece.lastgroup:
            yield Term(text, Sort.SIGN)
        else:
            for identifier in IDENTIFIERS.findall(text):
                yield from _identifier_terms(identifier)


def is_whole(identifier: str, parts: Sequence[str]) -> bool:
    """That it is more than its one part."""
    return len(parts) > 1 or identifier[-1] in "+#"


def _identifier_terms(identifier: str) -> Iterator[Term]:
    parts = PARTS.findall(identifier)
    whole = identifier.casefold()
    if is_whole(identifier, parts) and len(whole) <= IDENTIFIER_MAX:
        yield Term(whole, Sort.IDENTIFIER)
    for part in parts:
        word = part.casefold()[:IDENTIFIER_MAX]
        sort = Sort.SCRAP if len(parts) > 1 and len(word) <= 2 else Sort.WORD
        yield Term(stem(word), sort, word in ENGLISH)


def chunk_exact(chunk: str) -> list[str]:
    """What in a chunk is more than a word, folded: paths, identifiers, versions, flags."""
    if PLAIN.fullmatch(chunk):
        return []
    found = (piece for piece in pieces(chunk) if not piece.lastgroup)
    return [text.casefold()[:EXACT_MAX] for piece in found if _is_compound(text := piece[0])]


def _is_compound(text: str) -> bool:
    return not text.isalnum() or len(PARTS.findall(text)) > 1


def is_cjk(term: str) -> bool:
    return _CJK_RUN.match(term) is not None


def without_cjk(folded: str) -> tuple[str, list[str]]:
    """A text with its runs of CJK replaced by blanks, and the runs."""
    runs = _CJK_RUN.findall(folded)
    return (_CJK_RUN.sub(" ", folded), runs) if runs else (folded, [])
