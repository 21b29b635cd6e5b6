"""One form for text that means the same: width, case, accents, simplified and traditional Chinese. Pure.

Character by character, without looking at the neighbours: a part of a text is folded like the whole.
"""

import re
import unicodedata
from functools import cache

import opencc

# Han, kana, hangul: scripts whose words are not set apart by spaces.
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"

_ACCENTS = "\u00c0-\u024f\u0300-\u03ff\u0400-\u052f\u1e00-\u1fff"
_ACCENTED = re.compile(f"[{_ACCENTS}]")


@cache
def _simplified() -> dict[int, str]:
    """Traditional characters to simplified ones, about 4,200."""
    blocks = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xF900, 0xFB00))
    characters = [chr(code) for block in blocks for code in block]
    # A line each, so that none is converted as part of a word.
    converted = opencc.OpenCC("t2s").convert("\n".join(characters)).split("\n")
    return {ord(old): new for old, new in zip(characters, converted, strict=True) if old != new}


@cache
def _unfolded() -> re.Pattern[str]:
    """A traditional character, or one with an accent."""
    return re.compile(f"[{_ACCENTS}{''.join(map(chr, _simplified()))}]")


def fold_case_kept(text: str) -> str:
    """`text` folded except for its case, by which identifiers are split."""
    if text.isascii():
        return text
    # All of it is dear, and most text needs none.
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    if not _unfolded().search(text):
        return text
    text = text.translate(_simplified())
    if not _ACCENTED.search(text):
        return text
    decomposed = unicodedata.normalize("NFD", text)
    # Accents of Latin and Greek go; marks that make another letter (kana, hangul) are put back together.
    kept = "".join(mark for mark in decomposed if not "\u0300" <= mark <= "\u036f")
    return unicodedata.normalize("NFC", kept)


def fold(text: str) -> str:
    return text.lower() if text.isascii() else fold_case_kept(text).casefold()


def fold_spaces(text: str) -> str:
    """Folded, with every run of white space as one blank: the form in which a text contains another."""
    return " ".join(fold(text).split())


def case_and_spaces(folded_case_kept: str) -> str:
    """What is left to do after `fold_case_kept`."""
    return " ".join(folded_case_kept.casefold().split())
