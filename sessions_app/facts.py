"""Gathers in one pass what an archive's events name: files, tools, commands, failures, numbers, decisions.

Pure. Both the card and the comparison with the agent's summary are made from it. Time and memory are
bounded whatever the log: a block is scanned up to a limit (head and tail, where tools put what matters),
only until a total is used up, and each kind of fact keeps a limited number of values. The same events give the same facts in any run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from .extract import (
    call_arguments,
    call_commands,
    call_paths,
    command_line,
    decision_sentences,
    error_lines,
    excerpt,
    failure_lines,
    output_excerpt,
)
from .logs.events import AGENT, MODEL, PERSON, Block
from .logs.rows import clean
from .machine_text import person_text
from .path_words import WordFacts, word_facts, worth_a_look

# Characters scanned of one block: what people and models write, what tools print, and why they failed.
TEXT_HEAD, TEXT_TAIL = 20_000, 5_000
OUTPUT_HEAD, OUTPUT_TAIL = 600, 600
FAILURE_HEAD, FAILURE_TAIL = 4_000, 2_000
# Characters scanned in one archive; from then on only commands, files named in calls and failed calls count.
TEXT_TOTAL, OUTPUT_TOTAL = 12_000_000, 12_000_000
VALUES_KEPT = 20_000
_COMMAND_CHARACTERS = 4_000
_CONCLUSION = 200
# Distinct words, known from one archive to the next: the sessions of a project speak of the same files.
_REMEMBERED = 100_000
_named: dict[str, WordFacts] = {}
_dull: set[str] = set()

# A file that was worked on matters more than one that a listing happened to print.
_ACTED_ON, _SAID, _PRINTED = 3, 2, 1


@dataclass(slots=True)
class ArchivedEvent:
    """An event with its content. `source` is one of logs.events' sources, `time` ms UTC."""

    seq: int
    role: str
    source: str
    time: int | None = None
    blocks: list[Block] = field(default_factory=list)


class Tally:
    """Values with how much they weigh and when they were last seen; the first VALUES_KEPT of them."""

    def __init__(self) -> None:
        self._seen: dict[str, list[int]] = {}

    def add(self, value: str, weight: int, order: int) -> None:
        if entry := self._seen.get(value):
            entry[0] += weight
            entry[1] = order
        elif len(self._seen) < VALUES_KEPT:
            self._seen[value] = [weight, order]

    def ranked(self) -> list[str]:
        """Heaviest first; of equal ones the most recently seen, then as they first appeared."""
        return sorted(self._seen, key=self._seen.__getitem__, reverse=True)

    def __iter__(self) -> Iterator[str]:
        """In order of first appearance."""
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)


class Facts:
    def __init__(self, events: Iterable[ArchivedEvent] = ()) -> None:
        self.paths, self.tools, self.commands = Tally(), Tally(), Tally()
        self.errors, self.numbers, self.decisions = Tally(), Tally(), Tally()
        self._order = 0
        self._text_left, self._output_left = TEXT_TOTAL, OUTPUT_TOTAL
        for event in events:
            self.add(event)

    def add(self, event: ArchivedEvent) -> None:
        _forget_words()
        for block in event.blocks:
            self._order += 1
            if block.kind == "tool-call":
                self._add_call(block)
            elif block.kind == "tool-result":
                self._add_output(block)
            elif block.kind == "text" and event.source in (PERSON, MODEL, AGENT):
                self._add_said(block.text, event.source)

    def _add_call(self, block: Block) -> None:
        if block.name:
            self.tools.add(clean(block.name), 1, self._order)
        arguments = call_arguments(clean(block.text))
        for path in call_paths(arguments):
            self.paths.add(path, _ACTED_ON, self._order)
        for command in call_commands(arguments):
            if line := command_line(command):
                self.commands.add(line, 1, self._order)
            self._add_words(set(command[:_COMMAND_CHARACTERS].split()), _ACTED_ON, numbers=False)

    def _add_output(self, block: Block) -> None:
        if self._output_left <= 0 and not block.is_error:
            return
        head, tail = (FAILURE_HEAD, FAILURE_TAIL) if block.is_error else (OUTPUT_HEAD, OUTPUT_TAIL)
        text = clean(output_excerpt(block.text, head, tail))
        self._output_left -= len(text)
        for line in failure_lines(text) if block.is_error else error_lines(text):
            self.errors.add(line, 1, self._order)
        # Of a listing only what has a directory is taken for a path; what counts is at the end.
        words = {word for word in text.split() if "/" in word}
        words.update(text[-_CONCLUSION:].split())
        self._add_words(words, _PRINTED, measured_only=True)

    def _add_said(self, text: str, source: str) -> None:
        if self._text_left <= 0:
            return
        said = clean(excerpt(text if source == MODEL else person_text(text), TEXT_HEAD, TEXT_TAIL))
        self._text_left -= len(said)
        self._add_words(set(said.split()), _SAID)
        for sentence in decision_sentences(said, by_person=source == PERSON):
            self.decisions.add(sentence, _ACTED_ON if source == PERSON else _PRINTED, self._order)
        if source == PERSON:
            for line in error_lines(said):
                self.errors.add(line, 1, self._order)

    def _add_words(
        self, words: set[str], weight: int, *, numbers: bool = True, measured_only: bool = False
    ) -> None:
        # Words repeat: each distinct one is looked at once, the rest is set arithmetic.
        found = []
        for word in words - _dull:
            known = _named.get(word)
            if known is None:
                known = word_facts(word) if worth_a_look(word) else None
                if known is None:
                    _dull.add(word)
                    continue
                _named[word] = known
            found.append((word, known))
        # Sorted, because the order of a set differs from run to run and a record must not.
        found.sort(key=itemgetter(0))
        for _, known in found:
            for path in known.paths:
                self.paths.add(path, weight, self._order)
            if numbers:
                for value in known.measured if measured_only else known.numbers:
                    self.numbers.add(value, weight, self._order)


def _forget_words() -> None:
    if len(_dull) + len(_named) > _REMEMBERED:
        _dull.clear()
        _named.clear()
