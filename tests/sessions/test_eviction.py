"""What may leave a window: the rules that hold for every window, and each rule by itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.eviction import WindowEvent, first_turn_end, may_go, plan

WINDOW = 1_000


@st.composite
def windows(draw: st.DrawFn) -> list[WindowEvent]:
    """Turns of a person, answers, and tool calls, several at once, some never answered, some answered late
    and some without ids."""
    events: list[WindowEvent] = []
    waiting: list[str] = []
    for kind in draw(st.sampled_from(["", "um", "summ"])) + draw(st.text("umcctttmmskpxi", max_size=40)):
        seq = len(events)
        size = draw(st.integers(10, 120))
        chars = draw(st.sampled_from([size * 4, size * 4, 900, 5_000]))
        common = {"seq": seq, "tokens": size, "chars": chars}
        match kind:
            case "s":
                events.append(WindowEvent(role="system", **common))
            case "u":
                events.append(WindowEvent(role="user", opens_turn=True, **common))
            case "m":
                events.append(WindowEvent(role="assistant", **common))
            case "c":
                calls = [f"c{seq}-{number}" for number in range(draw(st.integers(1, 3)))]
                waiting += calls
                events.append(WindowEvent(role="assistant", calls=frozenset(calls), **common))
            case "t" if waiting:
                answers = {waiting.pop(draw(st.integers(0, len(waiting) - 1)))}
                events.append(WindowEvent(role="tool", answers=frozenset(answers), **common))
            case "t" | "x":
                events.append(WindowEvent(role="tool", **common))
            case "k":
                events.append(WindowEvent(role="user", kept="the summary of a compaction stays", **common))
            case "p":
                events.append(WindowEvent(role="user", is_placeholder=True, **common))
            case "i":
                events.append(WindowEvent(role="user", has_image=True, **common))
    # As in a window that was rewritten: its order isn't that of the seqs.
    if draw(st.booleans()):
        events = [WindowEvent(**{**fields(event), "seq": 1_000 - event.seq}) for event in events]
    return events


def fields(event: WindowEvent) -> dict[str, object]:
    return {name: getattr(event, name) for name in WindowEvent.__dataclass_fields__}


@settings(max_examples=400)
@given(windows(), st.integers(400, 2_000), st.integers(100, 6_000), st.floats(0, 0.4), st.floats(0.1, 0.7))
def test_every_plan_keeps_the_rules(events, used, max_chars, retain_ratio, evict_at_ratio):
    found = plan(
        events, WINDOW, used,
        evict_at_ratio=evict_at_ratio, retain_ratio=retain_ratio, max_chars=max_chars,
    )  # fmt: skip
    assert found.due == (used >= found.threshold == int(WINDOW * evict_at_ratio))
    assert found == plan(
        events, WINDOW, used,
        evict_at_ratio=evict_at_ratio, retain_ratio=retain_ratio, max_chars=max_chars,
    )  # fmt: skip
    if not found.seqs:
        assert (found.start_seq, found.end_seq, found.tokens) == (None, None, 0)
        return
    assert found.due
    places = [index for index, event in enumerate(events) if event.seq in found.seqs]
    first, last = places[0], places[-1]
    gone = events[first : last + 1]
    assert tuple(event.seq for event in gone) == found.seqs
    assert (gone[0].seq, gone[-1].seq) == (found.start_seq, found.end_seq)
    assert sum(event.tokens for event in gone) == found.tokens
    # Bounded, and of what may go.
    assert sum(event.chars for event in gone if not event.is_placeholder) <= max_chars
    assert not [
        event for event in gone if event.role in ("system", "developer") or event.kept or event.has_image
    ]
    # Balanced: no answer without its call in the window, no call without its answer.
    before = set().union(*(event.calls for event in events[:first]))
    inside = set().union(*(event.calls for event in gone))
    after = set().union(*(event.answers for event in events[last + 1 :]))
    assert not inside & after
    assert not before & set().union(*(event.answers for event in gone))
    assert not (events[last + 1].role == "tool" and not events[last + 1].answers)
    assert not (gone[0].role == "tool" and not gone[0].answers)
    # What anchors the window stays, and so does its end.
    assert first >= first_turn_end(events, int(WINDOW * retain_ratio)) > 0
    assert last < len(events) - 1
    kept = sum(event.tokens for event in events[last + 1 :])
    assert kept >= int(WINDOW * retain_ratio)
    assert may_go(events, found.seqs, max_chars=max_chars)
    # Again and again until nothing may go: each round goes on where the last one ended.
    place = WindowEvent(-1, "user", 1, 1, is_placeholder=True)
    rest = [*events[:first], place, *events[last + 1 :]]
    again = plan(
        rest, WINDOW, used, evict_at_ratio=evict_at_ratio, retain_ratio=retain_ratio, max_chars=max_chars
    )
    assert again.seqs != (-1,), "a placeholder alone isn't worth another"
    assert not may_go(rest, found.seqs, max_chars=max_chars)


def say(seq: int, role: str = "assistant", tokens: int = 100, **how: object) -> WindowEvent:
    return WindowEvent(seq, role, tokens, int(str(how.pop("chars", tokens * 4))), **how)


def conversation(count: int = 10) -> list[WindowEvent]:
    """A person and an agent in turn; 100 tokens each."""
    return [say(seq, "assistant" if seq % 2 else "user", opens_turn=not seq % 2) for seq in range(count)]


def test_nothing_is_planned_below_the_threshold():
    assert plan(conversation(), 1_000, 599) == plan([], 1_000, 0)
    assert not plan(conversation(), 1_000, 599).due


def test_the_oldest_go_but_for_the_first_turn_and_the_newest():
    found = plan(conversation(), 1_000, 600)
    assert (found.start_seq, found.end_seq, found.tokens) == (2, 5, 400)
    assert found.stops == [(6, "the newest events stay")]


def test_system_prompt_and_first_turn_stay():
    events = [say(0, "system"), *[say(event.seq + 1, event.role, opens_turn=event.opens_turn)
              for event in conversation()]]  # fmt: skip
    assert plan(events, 1_000, 900).start_seq == 3


def test_a_span_ends_before_an_image_and_the_next_begins_behind_it():
    events = conversation()
    events[3] = say(3, has_image=True)
    found = plan(events, 1_000, 900)
    assert (found.seqs, found.stops) == ((2,), [(3, "it holds an image")])
    events[2] = say(2, "user", is_placeholder=True)
    assert plan(events, 1_000, 900).seqs == (4, 5)


def test_a_placeholder_leaves_with_the_next_span():
    events = conversation()
    events[2] = say(20, "user", is_placeholder=True)
    assert plan(events, 1_000, 900).seqs == (20, 3, 4, 5)


def test_an_event_that_is_too_long_for_a_batch_stays():
    events = conversation()
    events[3] = say(3, chars=5_000)
    found = plan(events, 1_000, 900, max_chars=4_000)
    assert (found.seqs, found.stops) == ((2,), [(3, "it alone is longer than 4,000 characters")])


def test_a_batch_is_bounded():
    found = plan(conversation(), 1_000, 900, max_chars=800)
    assert (found.seqs, found.stops) == ((2, 3), [(4, "max 800 characters at once")])


def test_a_call_and_its_result_stay_together_on_both_sides():
    events = conversation()
    events[5] = say(5, calls=frozenset({"a", "b"}))
    events[6] = say(6, "tool", answers=frozenset({"a"}))
    events[7] = say(7, "tool", answers=frozenset({"b"}))
    found = plan(events, 1_000, 900)
    assert found.seqs == (2, 3)
    assert found.stops == [(6, "the newest events stay"), (4, "a question and its answer stay together")]


def test_a_call_in_the_middle_of_an_answer_marks_the_end():
    events = conversation()
    events[4] = say(4)
    events[5] = say(5, calls=frozenset({"a"}))
    events[6] = say(6, "tool", answers=frozenset({"a"}))
    found = plan(events, 1_000, 900)
    assert (found.seqs, found.stops[1]) == ((2, 3, 4), (5, "a tool call and its result stay together"))


def test_a_result_without_an_id_stays_with_what_it_answers():
    events = conversation()
    events[5] = say(5, calls=frozenset({"a"}))
    events[6] = say(6, "tool")
    assert plan(events, 1_000, 900).seqs == (2, 3)


def test_a_call_that_was_given_up_long_ago_does_not_block_what_follows():
    events = conversation()
    events[3] = say(3, calls=frozenset({"never-answered"}))
    assert plan(events, 1_000, 900).seqs == (2, 3, 4, 5)


def test_a_call_that_waits_for_its_answer_is_not_parted_from_it():
    events = [*conversation(), say(10, calls=frozenset({"open"}))]
    assert plan(events, 1_000, 900, retain_ratio=0).seqs == tuple(range(2, 10))


def test_an_agent_that_works_alone_keeps_the_task_and_its_first_answer():
    events = [say(0, "user", opens_turn=True), say(1, calls=frozenset({"a"})),
              say(2, "tool", answers=frozenset({"a"})), *[say(seq) for seq in range(3, 12)]]  # fmt: skip
    assert plan(events, 1_000, 900).seqs == tuple(range(3, 8))


def test_nothing_goes_while_a_compaction_is_under_way():
    found = plan(conversation(), 1_000, 900, open_compaction=9)
    assert (found.due, found.seqs, found.stops) == (True, (), [(9, "a compaction is under way")])


def test_a_window_that_is_one_short_turn_has_nothing_to_give():
    found = plan(conversation(2), 100, 90)
    assert (found.due, found.seqs, found.stops) == (True, (), [(1, "the first turn stays")])


def test_what_would_give_back_less_than_its_placeholder_takes_stays():
    events = conversation()
    events[2] = say(2, "user", tokens=9)
    events[3] = say(3, has_image=True)
    assert plan(events, 1_000, 900).seqs == (4, 5)
