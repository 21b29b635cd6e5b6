"""Whether two texts say the same. Pure.

Taking two claims for one loses a claim; taking one for two costs a record more. So the measure is strict: the
words, stemmed, in their order and without mere fillers, must agree to SAME (a text of fewer than 20 words has to
have all of them), and where they differ, one text has plain words more: none is replaced, and no number, name,
negation or small word such as "from", "off" or "only" comes or goes. "Use npm" and "use pnpm" differ, and so do
"A needs B" and "B needs A", "from A to B" and "to A from B".
"""

import hashlib
from difflib import SequenceMatcher

from .ids import normalise
from .search.extraction import extract
from .search.stopwords import ENGLISH
from .search.terms import Sort, chunk_terms, stem

SAME = 0.95
# Comparing takes time that grows with the square of the words; longer texts are the same or are not.
CHARACTERS_MAX = 20_000
# What the shorter of two such texts has at least, in bytes.
LEAST_SHARE = 0.5
# They come and go with style. Other stop words of a search stay: prepositions say who does what to whom.
_FILLERS = {
    *("a", "an", "the", "is", "are", "was", "were", "be", "been", "being", "am", "it", "its", "this", "that"),
    *(
        "these",
        "those",
        "there",
        "of",
        "we",
        "our",
        "i",
        "my",
        "you",
        "your",
        *"的了是着之其这那个就吗呢吧啊呀么",
    ),
}
# Words that turn a claim around or limit it: these, stemmed like the text, and all other small ones.
_DECISIVE = {
    *("never", "without", "cannot", "none", "neither", "off", "down", "only", "except", "unless", "until"),
    *("before", "after", "more", "less", "most", "least", "always", "sometimes", "instead", "must", "may"),
    *"不没无非未别勿莫禁只仅除前后上下开关把被从到向",
}
_SMALL = frozenset(map(stem, _DECISIVE | ENGLISH))
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
    differences = [opcode for opcode in matcher.get_opcodes() if opcode[0] != "equal"]
    # Words that one text has more, or the other; not both, since that is how a replacement may look as well.
    if len({opcode[0] for opcode in differences}) > 1 or any(
        opcode[0] == "replace" for opcode in differences
    ):
        return False
    extra = [
        word
        for _, start, end, other_start, other_end in differences
        for word in words[start:end] + others[other_start:other_end]
    ]
    if any(word in _SMALL or not word.isalpha() for word in extra):
        return False
    return sorted(extract(one).exact.split()) == sorted(extract(other).exact.split())


def _words(text: str) -> list[str]:
    """In order, stemmed."""
    return [
        term.text
        for chunk in text.split()
        for term in chunk_terms(chunk)
        if term.sort not in _LEFT_OUT and term.text not in _FILLERS
    ]
