"""Text like that of agents' sessions, in any amount, made up quickly and the same every time. Pure.

What decides the speed of an index is kept as it is measured in real sessions: words by Zipf's law with stop
words on top, a fifth of them identifiers and paths, of which most come again and some are new each time,
15 % Chinese, words that a document repeats, error lines, events below headings.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from operator import add
from random import Random

from records.tokens import CHARACTERS_PER_TOKEN, TOKENS_PER_WIDE_CHARACTER, estimate

SEED = 1
_WORDS, _NAMES, _CHINESE_WORDS = 40_000, 200_000, 20_000
# What documents are about, and names are made of.
_KNOWN_WORDS, _KNOWN_NAMES = 10_000, 20_000
# Of what stands between blanks, in real sessions: 22 % more than a word.
_NAMES_SHARE = 0.2
_CHINESE_SHARE = 0.15
_ERROR_SHARE = 0.25
# Every seventh word is one of a few dozen that a document is about; every eightieth was never seen before.
_TOPIC_EVERY, _TOPIC_WORDS, _FRESH_EVERY = 7, 40, 80
# A third of the text was there before in its document: files that are read again. And an event says each of
# its words about twice.
_REPEATED_SHARE, _SAID = 0.33, 2
# What stands between two words of prose, and of code and a tool's output.
_PROSE = (*[" "] * 16, ", ", ". ", ".\n")
_OUTPUT = (*[" "] * 7, " = ", "(", ", ", "):\n    ", "; ", "\n", '": "', "[0].", " -> ", "\n    ")
_OUTPUT_SHARE = 0.6
_CHARACTERS_PER_CHUNK = 8
_EVENT_TOKENS = (30, 60, 120, 250, 600)
_ROLES = ("user", "assistant", "tool", "tool")
_STOPS = "the to of a and in is it for that on with be as at this not are was or by from but if an have"
_ONSETS = (*"bcdfghjklmnprstvw", "st", "tr", "pl", "gr")
_SYLLABLES = tuple(onset + rest for onset in _ONSETS for rest in (*"aeiou", "ai", "er", "on", "in", "el"))
_ERRORS = (
    "TypeError: {0}() got an unexpected keyword argument '{1}'",
    "ModuleNotFoundError: No module named '{1}'",
    "AssertionError: expected {0} to be {2}, got {3}",
    'File "{1}", line {2}, in {0}',
    "fatal: {0}: {1} exited with status {3} after {2} ms",
)


class Sort(StrEnum):
    """What a question is made of."""

    QUESTION = "question"
    IDENTIFIER = "identifier"
    CHINESE = "chinese"
    FRAGMENT = "fragment"
    ERROR = "error line"


# The mix of questions: as often as it stands here.
MIX = (Sort.QUESTION,) * 4 + (Sort.IDENTIFIER,) * 2 + (Sort.CHINESE,) * 2 + (Sort.FRAGMENT, Sort.ERROR)


@dataclass(frozen=True)
class Text:
    """A document. `names`, `errors`, `chinese`: pieces of its body, to ask for."""

    number: int
    title: str
    summary: str
    tags: list[str]
    body: str
    names: list[str]
    errors: list[str]
    chinese: list[str]
    topic: list[str]


@dataclass(frozen=True)
class Question:
    sort: Sort
    text: str


class Corpus:
    """A vocabulary, and documents and questions made of it: each depends on its number alone."""

    def __init__(self, seed: int = SEED) -> None:
        self._seed = seed
        random = _random(seed)
        words = _words(random, _WORDS)
        self._plain = words
        stops = _STOPS.split()
        self._names = _names(random, words, _NAMES)
        weights = _zipf(len(stops) + len(words), 1.2)
        names = _zipf(len(self._names), 1.1)
        scale = sum(weights) * _NAMES_SHARE / (1 - _NAMES_SHARE) / sum(names)
        self._chunks = [*stops, *words, *self._names]
        self._weights = list(accumulate([*weights, *(weight * scale for weight in names)]))
        self._chinese = _chinese_words(random, _CHINESE_WORDS)
        self._chinese_weights = list(accumulate(_zipf(len(self._chinese), 1.0)))

    def text(self, number: int, tokens: int) -> Text:
        """A body of about so many tokens, as the store estimates them."""
        random = _random(f"{self._seed}:{number}")
        words = random.choices(self._plain[:_KNOWN_WORDS], k=_TOPIC_WORDS * 3 // 4)
        names = random.choices(self._names[:_KNOWN_NAMES], k=_TOPIC_WORDS // 4)
        topic = words + names
        made = Text(
            number,
            title=" ".join(["About", *random.sample(topic, 5)]),
            summary=" ".join(random.sample(topic, 12)) + ".",
            tags=random.sample(topic, 3),
            body="",
            names=names,
            errors=[],
            chinese=[],
            topic=topic,
        )
        body: list[str] = []
        before: list[str] = []
        left, seq = tokens, 0
        while left > 0:
            if len(before) > 3 and random.random() < _REPEATED_SHARE:
                content = random.choice(before)
            else:
                content = self._content(random, made, min(left, random.choice(_EVENT_TOKENS)))
                before.append(content)
            role = random.choice(_ROLES)
            heading = f"### [#{seq}] {role} · claude-code · 2026-11-30T10:{seq % 60:02d}Z\n\n"
            body.append(f"{heading}{content}\n\n")
            left -= estimate(body[-1])
            seq += 1
        together = "".join(body)
        return replace(made, body=together, names=[name for name in made.names if name in together])

    def texts(self, count: int, tokens: int) -> Iterator[Text]:
        return (self.text(number, tokens) for number in range(count))

    def _content(self, random: Random, made: Text, tokens: int) -> str:
        """Of an event."""
        if random.random() < _CHINESE_SHARE:
            return self._chinese_text(random, made, tokens)
        count = max(4, tokens * CHARACTERS_PER_TOKEN // _CHARACTERS_PER_CHUNK)
        pool = random.choices(self._chunks, cum_weights=self._weights, k=max(4, count // _SAID))
        chunks = random.choices(pool, k=count)
        chunks[::_TOPIC_EVERY] = random.choices(made.topic, k=len(chunks[::_TOPIC_EVERY]))
        for at in range(_FRESH_EVERY // 2, count, _FRESH_EVERY):
            chunks[at] = _fresh(random, chunks[at - 1])
            made.names.append(chunks[at])
        if random.random() < _ERROR_SHARE:
            error = _error(random, self._names)
            made.errors.append(error)
            chunks[count // 2] += f"\n{error}\n"
        between = _OUTPUT if random.random() < _OUTPUT_SHARE else _PROSE
        return "".join(map(add, chunks, random.choices(between, k=count)))

    def _chinese_text(self, random: Random, made: Text, tokens: int) -> str:
        # Words of two characters, a sign after every eight.
        count = max(4, round(tokens / TOKENS_PER_WIDE_CHARACTER / 2.1))
        words = random.choices(self._chinese, cum_weights=self._chinese_weights, k=count)
        clauses = ["".join(words[at : at + 8]) for at in range(0, count, 8)]
        made.chinese.append(random.choice(clauses))
        return "，".join(clauses) + "。"

    def question(self, text: Text, turn: int) -> Question:
        """The sort goes by `turn`; of a text without what that sort needs, a question in words."""
        random = _random(f"{self._seed}:{text.number}:{turn}")
        sort = MIX[turn % len(MIX)]
        given = {
            Sort.IDENTIFIER: text.names,
            Sort.FRAGMENT: [name for name in text.names if len(name) >= 10],
            Sort.CHINESE: text.chinese,
            Sort.ERROR: text.errors,
        }.get(sort)
        if not given:
            words = random.sample(text.topic, min(random.randint(3, 6), len(text.topic)))
            common = random.choices(self._plain[:2_000], k=2)
            return Question(Sort.QUESTION, f"what did we say about the {' '.join([*words, *common])}?")
        piece = random.choice(given)
        if sort is Sort.FRAGMENT:
            start = random.randint(1, len(piece) - 8)
            piece = piece[start : start + random.randint(5, 7)]
        elif sort is Sort.CHINESE:
            length = min(len(piece), random.randint(4, 10))
            start = random.randint(0, len(piece) - length)
            piece = piece[start : start + length]
        return Question(sort, piece)


def _random(seed: int | str) -> Random:
    return Random(seed)  # noqa: S311 - text, not secrets


def _zipf(count: int, exponent: float) -> list[float]:
    return [1 / (rank + 2.7) ** exponent for rank in range(count)]


def _words(random: Random, count: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(random.choices(_SYLLABLES, k=random.choice((1, 2, 2, 3, 3, 4))))] = None
    return list(found)


def _names(random: Random, words: list[str], count: int) -> list[str]:
    """Identifiers, paths, modules, flags, classes."""
    weights = list(accumulate(_zipf(_KNOWN_WORDS, 1.0)))
    parts = random.choices(words[:_KNOWN_WORDS], cum_weights=weights, k=3 * count)
    made = []
    for at in range(0, 3 * count, 3):
        one, two, three = parts[at : at + 3]
        made.append(
            random.choice(
                (
                    f"{one}_{two}",
                    f"{one}_{two}_{three}",
                    f"{one}{two.title()}{three.title()}",
                    f"src/{one}/{two}/{three}.py",
                    f"tests/{one}/test_{two}.py",
                    f"{one}.{two}",
                    f"--{one}-{two}",
                    f"{one.title()}{two.title()}Error",
                )
            )
        )
    return made


def _fresh(random: Random, word: str) -> str:
    number = random.getrandbits(40)
    return random.choice((f"{word}:{number % 2_000}", f"{number:010x}", f"{word}_{number % 100_000}"))


def _error(random: Random, names: list[str]) -> str:
    one, two = random.choices(names, k=2)
    return random.choice(_ERRORS).format(one, two, random.randint(1, 999), random.randint(1, 99))


def _chinese_words(random: Random, count: int) -> list[str]:
    """Of the 3,755 common characters, which GB 2312 lists first."""
    pairs = (bytes((high, low)) for high in range(0xB0, 0xD8) for low in range(0xA1, 0xFF))
    characters = [pair.decode("gb2312", "ignore") for pair in pairs]
    known = random.sample(found := list(filter(None, characters)), len(found))
    weights = list(accumulate(_zipf(len(known), 0.9)))
    lengths = random.choices((1, 2, 3, 4), weights=(20, 60, 12, 8), k=count)
    words = ["".join(random.choices(known, cum_weights=weights, k=length)) for length in lengths]
    # The most common ones are short.
    return sorted(words[:500], key=len) + words[500:]
