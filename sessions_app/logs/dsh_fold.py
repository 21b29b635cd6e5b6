"""What DSH's model sees, folded from the log's surface operations; and the numbering of its events.
Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from .dsh_values import as_count

Ranges = list[int | list[int]]


def ranges_pack(numbers: Iterable[int]) -> Ranges:
    """Runs of three and more consecutive numbers as [first, last]; the order is kept."""
    packed: Ranges = []
    run: list[int] = []
    for number in numbers:
        if run and number != run[-1] + 1:
            packed += _run_pack(run)
            run = []
        run.append(number)
    return packed + _run_pack(run)


def _run_pack(run: list[int]) -> Ranges:
    return [[run[0], run[-1]]] if len(run) > 2 else [*run]


def ranges_unpack(packed: Sequence[int | list[int]]) -> list[int]:
    numbers: list[int] = []
    for item in packed:
        if isinstance(item, int):
            numbers.append(item)
        else:
            numbers.extend(range(item[0], item[1] + 1))
    return numbers


class Numbering:
    """Event numbers: the log's own, or one after the last where it gives none."""

    def __init__(self, following: int = 0, gaps: Iterable[list[int]] = ()) -> None:
        self.following = following
        self.gaps = [list(gap) for gap in gaps]  # [first, last] of numbers that were left out

    def take(self, given: Any) -> int | None:
        """The number of the next event; None if an earlier event has it."""
        seq = as_count(given)
        if seq is None or seq == self.following:
            seq = self.following
        elif seq > self.following:
            self.gaps.append([self.following, seq - 1])
        else:
            return seq if self._fill(seq) else None
        self.following = seq + 1
        return seq

    def has(self, seq: int) -> bool:
        return 0 <= seq < self.following and not any(first <= seq <= last for first, last in self.gaps)

    def _fill(self, seq: int) -> bool:
        for index, (first, last) in enumerate(self.gaps):
            if first <= seq <= last:
                parts = ([first, seq - 1], [seq + 1, last])
                self.gaps[index : index + 1] = [part for part in parts if part[0] <= part[1]]
                return True
        return False


class Window:
    """The events in the model's window, in the order in which it sees them."""

    def __init__(self, nodes: Iterable[int] = ()) -> None:
        self.nodes = list(nodes)

    def append(self, seq: int) -> None:
        self.nodes.append(seq)

    def span(self, start: int | None, end: int | None) -> list[int]:
        """The events from `start` to `end` by place; [] when that is no span."""
        if start not in self.nodes or end not in self.nodes:
            return []
        return self.nodes[self.nodes.index(start) : self.nodes.index(end) + 1]

    def replace(self, gone: Sequence[int], by: int) -> None:
        """`by` takes the place of the first of `gone`."""
        place = self.nodes.index(gone[0])
        left = set(gone)
        self.nodes = [
            *self.nodes[:place],
            by,
            *(seq for seq in self.nodes[place + 1 :] if seq not in left),
        ]

    def ordered(self, seqs: Iterable[int]) -> list[int]:
        """`seqs` once each, by their place in the window; last those that are not in it."""
        places = {seq: place for place, seq in enumerate(self.nodes)}
        return sorted(dict.fromkeys(seqs), key=lambda seq: places.get(seq, len(places)))
