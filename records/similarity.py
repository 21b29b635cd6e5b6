"""Whether two texts say the same. Pure.

Taking two claims for one loses a claim; taking one for two costs a record more. So the measure is strict:
the words that carry meaning, stemmed and in their order, must agree to SAME (a text of fewer than 20 such
words has to have all of them), and where they differ, one text has plain words more: none is replaced, and no
number, name or negation comes or goes. "Use npm" and "use pnpm" differ, "A needs B" and "B needs A" as well.
"""

import hashlib
from difflib import SequenceMatcher

from .ids import normalise
from .search.stopwords import is_chinese_stop
from .search.terms import Sort, chunk_terms, extract

SAME = 0.95
# Comparing takes time that grows with the square of the words; longer texts are the same or are not.
CHARACTERS_MAX = 20_000
# What the shorter of two such texts has at least, in bytes.
LEAST_SHARE = 0.5
_NEGATIONS = frozenset(
    {"no", "not", "never", "without", "cannot", "nor", "none", "neither", "t", *"不没无非未别勿莫禁"}
)
_LEFT_OUT = frozenset({Sort.IDENTIFIER, Sort.PAIR})


def text_hash(text: str) -> str:
    """Of texts that differ in width, case and spacing alone it is the same."""
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def similarity(one: str, other: str) -> float:
    """From 0 to 1; SAME or more only when both say the same."""
    if max(len(one), len(other)) > CHARACTERS_MAX:
        return 1.0 if normalise(one) == normalise(other) else 0.0
    words, others = _words(one), _words(other)
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    ratio = matcher.ratio()
    if ratio < SAME or _same_claims(matcher, words, others, one, other):
        return ratio
    return SAME - 0.01


def _same_claims(
    matcher: "SequenceMatcher[str]", words: list[str], others: list[str], one: str, other: str
) -> bool:
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        if tag == "replace":
            return False
        extra = [] if tag == "equal" else words[start:end] + others[other_start:other_end]
        if any(word in _NEGATIONS or not word.isalpha() for word in extra):
            return False
    return sorted(extract(one).exact.split()) == sorted(extract(other).exact.split())


def _words(text: str) -> list[str]:
    """The words that carry meaning, and negations, in order."""
    return [
        term.text
        for chunk in text.split()
        for term in chunk_terms(chunk)
        if term.sort not in _LEFT_OUT
        and (term.text in _NEGATIONS or not (term.is_stop or is_chinese_stop(term.text)))
    ]
