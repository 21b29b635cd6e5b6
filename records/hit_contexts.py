"""What a page shows of a search: the passage with its marks, why it was found, and the way to its place."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import urlencode

from .models import Record
from .page_filters import Filters
from .search.folding import fold_case_kept
from .search.query import QUERY_MAX, ask
from .search.results import Reason, SearchAnswer, SearchHit, Snippet
from .search.scoring import Spotter
from .search.snippets import marks
from .search.terms import Sort, chunk_terms, is_cjk, without_cjk

Marks = Callable[[str], list[tuple[int, int]]]

PASSAGE_ANCHOR = "passage"
_WORDS_SHOWN = 8
# In an address: words that were found and are not in the question as it was typed.
_ALSO_MAX = 40
_LEGS = {"verbatim": "verbatim", "all terms": "all words", "fragment": "part of a longer word"}
_FIELDS = {"use_when": "when to read"}
# Of Markdown, what says nothing in a line of running text.
_MARKUP = re.compile(r"^(?:#{1,6} |`{3,}|~{3,}|> )", re.MULTILINE)
_SIGNS_AROUND = re.compile(r"^\W+|\W+$")


@dataclass(frozen=True)
class HitView:
    """`pieces`: (text, whether it was asked for), to be escaped; `place`: the query and anchor of the record's
    page that lead to the passage; `seq`: of the event it stands in; `is_cut`: the record leaves that part of
    the event out."""

    pieces: list[tuple[str, bool]]
    reason: str
    place: str
    cut_before: bool = False
    cut_after: bool = False
    seq: int | None = None
    seq_end: int | None = None
    is_cut: bool = False
    is_passage: bool = False


@dataclass(frozen=True)
class Suggestion:
    """`address`: the query of the page that searches for it; "" when it is only said."""

    text: str
    address: str = ""


@dataclass(frozen=True)
class Found:
    """An answer besides its hits. `pending`: records of which only the cards are searched yet."""

    hint: str = ""
    pending: int = 0
    suggestions: list[Suggestion] = field(default_factory=list)


@dataclass(frozen=True)
class Question:
    """`words`: by term of the index, how the question says it, `refreshing` for `refresh`; `cjk`: its runs of
    Chinese, Japanese and Korean, folded."""

    text: str
    words: Mapping[str, str]
    cjk: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Question":
        words: dict[str, str] = {}
        for chunk in text[:QUERY_MAX].split():
            terms = list(chunk_terms(chunk))
            for term in terms:
                is_whole = len(terms) == 1 or term.sort == Sort.IDENTIFIER
                words.setdefault(term.text, _SIGNS_AROUND.sub("", chunk) or chunk if is_whole else term.text)
        return cls(text, words, tuple(without_cjk(fold_case_kept(text[:QUERY_MAX]))[1]))


@dataclass(frozen=True)
class Row:
    """A line of the Memory page."""

    record: Record
    hit: HitView | None = None


def hit_rows(answer: SearchAnswer, text: str) -> list[Row]:
    """The hits in their order, in one query. A record may have been forgotten a moment ago."""
    question = Question.of(text)
    records = Record.objects.in_bulk([hit.card.id for hit in answer.hits])
    return [
        Row(records[hit.card.id], hit_view(hit, question)) for hit in answer.hits if hit.card.id in records
    ]


def found_of(answer: SearchAnswer, filters: Filters) -> Found:
    suggestions = [
        Suggestion(each.text, filters.query(q=each.query) if getattr(each, "query", "") else "")
        for each in getattr(answer, "suggestions", ())
    ]
    return Found(answer.hint, answer.pending, suggestions)


def hit_view(hit: SearchHit, question: Question) -> HitView:
    shown = list(pieces(hit.snippet, question))
    has_event = hit.seq_start is not None
    return HitView(
        pieces=[(_MARKUP.sub("", text) if not is_asked else text, is_asked) for text, is_asked in shown],
        reason=reason_words(hit.reason, question, [text for text, is_asked in shown if is_asked]),
        place=_place(hit, question),
        cut_before=hit.snippet.cut_before,
        cut_after=hit.snippet.cut_after,
        seq=hit.seq_start,
        seq_end=hit.seq_end if hit.seq_end != hit.seq_start else None,
        is_cut=hit.offset is None and has_event,
        is_passage=hit.offset is not None,
    )


def _place(hit: SearchHit, question: Question) -> str:
    also = [
        term
        for term in (*hit.reason.terms, *hit.reason.aliases, *hit.reason.similar)
        if term not in question.words
    ]
    query = marks_query(question.text, " ".join(also[:_ALSO_MAX]))
    if hit.offset is None:
        return f"?{query}"
    return f"?{urlencode({'from': hit.offset})}&{query}#{PASSAGE_ANCHOR}"


def marks_query(text: str, also: str) -> str:
    """The part of a record's address that says what to mark; "" for nothing."""
    given = {"q": text, "also": also}
    return urlencode({name: value for name, value in given.items() if value})


def marker(text: str, also: str = "") -> Marks | None:
    """Where a text holds what was asked for. `also`: further terms, as the index has them, between blanks."""
    question, asked = Question.of(text), ask(text)
    terms = [*asked.weights, *also.split()[:_ALSO_MAX]]
    terms = [term for term in terms if len(term) > 1 or not is_cjk(term) or term in question.cjk]
    # One or two letters would be marked inside every other word.
    spans = [span for span in (*asked.exacts, asked.verbatim) if len(span) > 2 or not span.isascii()]
    if not terms and not any(spans):
        return None
    spotter = Spotter(terms)
    return lambda shown: marks(shown, spotter, [span for span in spans if span])


def pieces(snippet: Snippet, question: Question) -> Iterator[tuple[str, bool]]:
    """A passage cut into what is marked and what is not."""
    text, at = snippet.text, 0
    has_pairs = any(end - start > 1 and is_cjk(text[start]) for start, end in snippet.marks)
    for start, end in snippet.marks:
        character = fold_case_kept(text[start:end])
        # Where a pair of them was found, a single character that was asked for as part of a word says nothing.
        if has_pairs and len(character) == 1 and is_cjk(character) and character not in question.cjk:
            continue
        if start > at:
            yield text[at:start], False
        yield text[start:end], True
        at = end
    if at < len(text):
        yield text[at:], False


def reason_words(reason: Reason, question: Question, marked: Iterable[str] = ()) -> str:
    """Why something was found, in the words of whoever asked, and of the passage (`marked`)."""
    parts = [_LEGS[leg] for leg in _LEGS if leg in reason.legs]
    if "card" in reason.legs and not reason.fields:
        parts.append("in the card")
    found = [term for term in reason.terms if term in question.words]
    if found:
        words = [question.words[term] for term in found if not is_cjk(term)]
        parts.append("terms: " + _few([*words, *_stretches(question.cjk, frozenset(found))]))
    if reason.fields:
        parts.append("in " + _few(_FIELDS.get(name, name) for name in reason.fields))
    said = {term.text: text for text in marked for term in chunk_terms(text)}
    for name, terms in (("as in: ", reason.similar), ("by synonym: ", reason.aliases)):
        if terms:
            parts.append(name + _few(said.get(term, term) for term in terms))
    return "; ".join(parts)


def _stretches(runs: Iterable[str], found: frozenset[str]) -> Iterator[str]:
    """Of Chinese in a question the parts that were found: neighbouring pairs as one word, single characters
    only where there are no pairs."""
    for run in runs:
        stretch = ""
        pairs = ["".join(pair) for pair in pairwise(run)]
        for pair in pairs:
            if pair in found:
                stretch = stretch + pair[1] if stretch else pair
            elif stretch:
                yield stretch
                stretch = ""
        if stretch:
            yield stretch
        if found.isdisjoint(pairs):
            yield from (character for character in run if character in found)


def _few(values: Iterable[str]) -> str:
    shown = list(dict.fromkeys(values))
    more = len(shown) - _WORDS_SHOWN
    return ", ".join(shown[:_WORDS_SHOWN]) + (f" and {more} more" if more > 0 else "")
