"""Which events may leave an agent's window to make room, and where such a span has to end. Pure.

From the front of the window stay: the system prompt and the first turn, which anchor style and task. From
its end: the newest events worth `retain_ratio` of the window. In between the oldest events go, up to
`max_chars` at once, and a span never parts a tool call from its result.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

EVICT_AT_RATIO = 0.6
RETAIN_RATIO = 0.35
MAX_CHARS = 250_000
# A span of less than this part of the window is left: its placeholder would take as much.
_WORTH_IT = 100
_KEPT_ROLES = frozenset(("system", "developer"))


@dataclass(frozen=True, slots=True)
class WindowEvent:
    """An event in the window. `opens_turn`: a person (or the agent's parent) asks for
    something, or a summary says what they asked for. `kept`:
    why it never leaves, though its role would let it ("" = it may). `is_placeholder`: it stands for a span that
    left before, and leaves with the next, or the window would fill up with them. `calls` and `answers`: ids of the tool
    calls that it makes and answers; a result without an id answers what stands before it."""

    seq: int
    role: str
    tokens: int
    chars: int
    opens_turn: bool = False
    has_image: bool = False
    kept: str = ""
    is_placeholder: bool = False
    calls: frozenset[str] = frozenset()
    answers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Plan:
    """`start_seq` to `end_seq`: the first and last event of the span by their place in the window, None when
    nothing may go; `seqs`: all of it. `stops`: where a span had to end, and why."""

    due: bool
    threshold: int
    start_seq: int | None = None
    end_seq: int | None = None
    tokens: int = 0
    seqs: tuple[int, ...] = ()
    stops: list[tuple[int, str]] = field(default_factory=list)


def threshold(context_window: int, evict_at_ratio: float = EVICT_AT_RATIO) -> int:
    """Tokens from which on an eviction is due."""
    return int(context_window * evict_at_ratio)


def plan(
    events: Sequence[WindowEvent],
    context_window: int,
    used_tokens: int,
    *,
    evict_at_ratio: float = EVICT_AT_RATIO,
    retain_ratio: float = RETAIN_RATIO,
    max_chars: int = MAX_CHARS,
    open_compaction: int | None = None,
) -> Plan:
    """The oldest span that may go, when one is due. `events`: the window, in the model's order.
    `open_compaction`: the event that began a compaction which has not ended; nothing goes meanwhile."""
    limit = threshold(context_window, evict_at_ratio)
    if used_tokens < limit:
        return Plan(False, limit)
    if open_compaction is not None:
        return Plan(True, limit, stops=[(open_compaction, "a compaction is under way")])
    retain = int(context_window * retain_ratio)
    first, stop = first_turn_end(events, retain), _tail_start(events, retain)
    cuts = _cuts(events)
    stops: list[tuple[int, str]] = []
    if first >= stop and events:
        return Plan(True, limit, stops=[(events[min(first, len(events) - 1)].seq, "the first turn stays")])
    for start, end, why in _runs(events, first, stop, max_chars):
        stops.append((events[end].seq, why))
        span = _balanced(events, cuts, start, end, keep_questions=end == stop)
        if span is None:
            continue
        if span[1] < end:
            pair = "a question and its answer" if events[span[1]].opens_turn else "a tool call and its result"
            stops.append((events[span[1]].seq, f"{pair} stay together"))
        chosen = events[span[0] : span[1]]
        tokens = sum(event.tokens for event in chosen)
        if sum(event.tokens for event in chosen if not event.is_placeholder) < context_window // _WORTH_IT:
            continue
        seqs = tuple(event.seq for event in chosen)
        return Plan(True, limit, seqs[0], seqs[-1], tokens, seqs, stops)
    return Plan(True, limit, stops=stops)


def may_go(events: Sequence[WindowEvent], seqs: Collection[int], *, max_chars: int = MAX_CHARS) -> bool:
    """Whether these events, planned before, are still a span of this window that may leave it."""
    places = [place for place, event in enumerate(events) if event.seq in set(seqs)]
    if not places or len(places) != len(seqs) or places[-1] - places[0] + 1 != len(places):
        return False
    chosen = events[places[0] : places[-1] + 1]
    cuts = _cuts(events)
    return (
        cuts[places[0]]
        and cuts[places[-1] + 1]
        and not any(_why_kept(event, max_chars) for event in chosen)
        and sum(map(_chars, chosen)) <= max_chars
    )


def first_turn_end(events: Sequence[WindowEvent], retain: int) -> int:
    """The place behind the first turn: where the second one begins, or stood. A first turn of more than `retain`
    tokens, in which an agent works on alone, is kept as far as its first answer and what its tools gave."""
    opening = next((place for place, event in enumerate(events) if event.opens_turn), None)
    if opening is None:
        # Nobody asked for anything: what opens the window is all that can anchor it.
        return next((place for place, event in enumerate(events) if event.role not in _KEPT_ROLES), -1) + 1
    after = (
        place
        for place in range(opening + 1, len(events))
        if events[place].opens_turn or events[place].is_placeholder
    )
    end = next(after, len(events))
    if end < len(events) and sum(event.tokens for event in events[:end]) <= retain:
        return end
    return _first_answer_end(events, opening + 1, end)


def _first_answer_end(events: Sequence[WindowEvent], place: int, end: int) -> int:
    while place < end and events[place].role != "assistant":
        place += 1
    while place < end and events[place].role == "assistant":
        place += 1
    while place < end and events[place].role == "tool":
        place += 1
    return place


def _tail_start(events: Sequence[WindowEvent], retain: int) -> int:
    """The place of the first event that stays because it is new."""
    place, tokens = len(events), 0
    while place > 0 and (tokens < retain or place == len(events)):
        place -= 1
        tokens += events[place].tokens
    return place


def _why_kept(event: WindowEvent, max_chars: int) -> str:
    if event.role in _KEPT_ROLES:
        return f"{event.role} messages stay"
    if event.kept:
        return event.kept
    if event.has_image:
        return "it holds an image"
    if event.chars > max_chars:
        return f"it alone is longer than {max_chars:,} characters"
    return ""


def _chars(event: WindowEvent) -> int:
    """What an event adds to a batch. A placeholder is short, and is to leave with the next span."""
    return 0 if event.is_placeholder else event.chars


def _runs(
    events: Sequence[WindowEvent], first: int, stop: int, max_chars: int
) -> Iterator[tuple[int, int, str]]:
    """Runs of events that may go, as places [start, end), each as long as one batch may be, and why it ends
    at `end`."""
    start, chars = first, 0
    for place in range(first, stop):
        why = _why_kept(events[place], max_chars)
        if not why and chars + _chars(events[place]) <= max_chars:
            chars += _chars(events[place])
            continue
        if place > start:
            yield start, place, why or f"max {max_chars:,} characters at once"
        start, chars = (place + 1, 0) if why else (place, _chars(events[place]))
    if stop > start:
        yield start, stop, "the newest events stay"


def _cuts(events: Sequence[WindowEvent]) -> list[bool]:
    """For each place whether the window may be cut before it; the last is the end of the window."""
    bound = [0] * (len(events) + 2)  # +1 where a pair begins, -1 where it ends
    called: dict[str, int] = {}
    step = _last_step(events)
    for place, event in enumerate(events):
        begins = [called.pop(name) for name in event.answers if name in called]
        if event.role == "tool" and not event.answers and place:
            begins.append(place - 1)
        for begin in begins:
            bound[begin + 1] += 1
            bound[place + 1] -= 1
        called.update(dict.fromkeys(event.calls, place))
    # Calls that nothing answered yet bind all that follows; further back they were given up.
    for begin in {place for place in called.values() if place >= step}:
        bound[begin + 1] += 1
    open_pairs, cuts = 0, []
    for place in range(len(events) + 1):
        open_pairs += bound[place]
        cuts.append(open_pairs == 0)
    return cuts


def _last_step(events: Sequence[WindowEvent]) -> int:
    """The place of the last message that isn't a tool's result: only its calls may still be answered."""
    places = (place for place in range(len(events) - 1, -1, -1) if events[place].role != "tool")
    return next(places, 0)


def _balanced(
    events: Sequence[WindowEvent], cuts: Sequence[bool], start: int, end: int, *, keep_questions: bool
) -> tuple[int, int] | None:
    """The longest part of the places [start, end) that parts no pair, and (`keep_questions`) doesn't end with
    a question whose answer stays; None when there is none."""
    while start < end and not cuts[start]:
        start += 1
    while end > start and (not cuts[end] or (keep_questions and events[end - 1].opens_turn)):
        end -= 1
    return (start, end) if end > start else None
