"""What somebody asks for, taken apart. Pure; any text whatever is a question, none is an error."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .everyday import everyday_terms
from .folding import fold_spaces
from .stopwords import is_chinese_stop
from .terms import Sort, Term, chunk_exact, chunk_terms

# Longer questions are read up to here; a dialogue of several thousand characters is still whole.
QUERY_MAX = 20_000
# Beyond this a question is no phrase that a text could hold word for word.
VERBATIM_MAX = 400
EXACTS_MAX = 8
# Measured: characters weigh half of what pairs do (docs/retrieval.md); the whole of an identifier adds to
# its parts, which count already.
WEIGHTS = {
    Sort.WORD: 1.0,
    Sort.PAIR: 1.0,
    Sort.CHARACTER: 0.5,
    Sort.IDENTIFIER: 0.3,
    Sort.SIGN: 1.0,
    Sort.SCRAP: 0.25,
}

_QUOTED = re.compile(
    '"([^"\n]{2,200})"|`([^`\n]{2,200})`|“([^”\n]{2,200})”|「([^」\n]{2,200})」|『([^』\n]{2,200})』'
)


@dataclass(frozen=True)
class Asked:
    """`weights`: how much each term counts, by how often it was said. `exacts`: folded paths, identifiers and
    quotations that should be found as they stand. `verbatim`: the whole, folded; "" when it is too long."""

    weights: dict[str, float] = field(default_factory=dict)
    exacts: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()
    verbatim: str = ""
    # Terms that stand in for another one: synonyms, and longer words with this beginning.
    aliases: Mapping[str, str] = field(default_factory=dict)
    # Of these, the words that only begin alike.
    similar: frozenset[str] = frozenset()
    # Stop words, and what is said to agents whatever the subject is.
    everyday: frozenset[str] = frozenset()
    # Terms that are a whole identifier.
    names: frozenset[str] = frozenset()
    # The parts of each path, identifier and the like.
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def with_weights(
        self, weights: dict[str, float], aliases: Mapping[str, str], *, similar: bool = False
    ) -> "Asked":
        alike = self.similar | aliases.keys() if similar else self.similar
        return replace(self, weights=weights, aliases={**self.aliases, **aliases}, similar=frozenset(alike))

    @property
    def is_empty(self) -> bool:
        return not (self.weights or self.exacts)


def ask(text: str) -> Asked:
    text = text[:QUERY_MAX].encode("utf-8", "replace").decode().replace("\0", " ")
    chunks = text.split()
    counts: Counter[Term] = Counter()
    parts: dict[str, tuple[str, ...]] = {}
    for chunk in chunks:
        terms = list(chunk_terms(chunk))
        counts.update(terms)
        if exact := next(iter(chunk_exact(chunk)), ""):
            parts[exact] = tuple(dict.fromkeys(term.text for term in terms if term.sort != Sort.IDENTIFIER))
    quoted = tuple(fold_spaces(next(filter(None, found))) for found in _QUOTED.findall(text))
    exacts = dict.fromkeys(
        [*filter(None, quoted), *(exact for chunk in chunks for exact in chunk_exact(chunk))]
    )
    verbatim = fold_spaces(text)
    weights = _weights(counts)
    return Asked(
        weights,
        tuple(exacts)[:EXACTS_MAX],
        quoted,
        verbatim if len(verbatim) <= VERBATIM_MAX else "",
        everyday=everyday_terms(text, weights) | {term.text for term in counts if term.is_stop},
        names=frozenset(term.text for term in counts if term.sort == Sort.IDENTIFIER),
        parts={exact: parts[exact] for exact in list(exacts)[:EXACTS_MAX] if exact in parts},
    )


def _weights(counts: Counter[Term]) -> dict[str, float]:
    """Stop words count when there is nothing else."""
    weights: dict[str, float] = {}
    for term, count in counts.items():
        if not _is_stop(term):
            weights[term.text] = weights.get(term.text, 0.0) + count * WEIGHTS[term.sort]
    return weights or {term.text: float(count) for term, count in counts.items()}


def _is_stop(term: Term) -> bool:
    if term.sort in (Sort.CHARACTER, Sort.PAIR):
        return is_chinese_stop(term.text)
    return term.is_stop
