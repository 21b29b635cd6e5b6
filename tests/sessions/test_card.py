import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.card import (
    SUMMARY_CHARACTERS,
    TITLE_CHARACTERS,
    USE_WHEN_CHARACTERS,
    Card,
    build_card,
    has_pending_steps,
    one_line,
    summary_gist,
)
from sessions_app.facts import ArchivedEvent
from sessions_app.logs.events import Block

ROLES = {"person": "user", "model": "assistant", "tool": "tool", "agent": "user", "harness": "user"}


def text(source: str, *texts: str) -> ArchivedEvent:
    return ArchivedEvent(0, ROLES[source], source, None, [Block("text", one) for one in texts])


def call(name: str, **arguments: object) -> ArchivedEvent:
    return ArchivedEvent(0, "assistant", "model", None, [Block("tool-call", json.dumps(arguments), name)])


def failure(output: str) -> ArchivedEvent:
    return ArchivedEvent(0, "tool", "tool", None, [Block("tool-result", output, is_error=True)])


def card_of(*events: ArchivedEvent, summary: str = "") -> Card:
    return build_card(events, summary=summary, seq_start=3, seq_end=40)


def test_the_title_is_the_first_thing_a_person_said() -> None:
    card = card_of(
        text("harness", "<environment_context>…</environment_context>"),
        text("model", "Hello."),
        text("person", "<system-reminder>be brief</system-reminder>"),
        text("person", "<system-reminder>be brief</system-reminder>\nfix the\n  login page"),
        text("person", "now the tests"),
        summary="The login page was fixed.",
    )
    assert card.title == "fix the login page"


@pytest.mark.parametrize(
    ("events", "summary", "title"),
    [
        ([text("model", "I read the code."), text("agent", "Review the diff.")], "S", "Review the diff."),
        ([text("model", "", "I read the code.")], "S", "I read the code."),
        ([text("harness", "noise")], "\nThe login page\nwas fixed", "The login page was fixed"),
        ([], "", "Events #3–#40"),
    ],
)
def test_without_a_person_the_next_best_gives_the_title(
    events: list[ArchivedEvent], summary: str, title: str
) -> None:
    assert card_of(*events, summary=summary).title == title


def test_long_titles_are_cut_at_a_word() -> None:
    title = card_of(text("person", "word " * 100)).title
    assert len(title) <= TITLE_CHARACTERS
    assert title.endswith("word…")
    assert one_line("字" * 300, 20) == "字" * 19 + "…"
    assert one_line("exactly ten", 11) == "exactly ten"


def test_the_summary_is_the_agents_cut() -> None:
    card = card_of(text("person", "fix it"), summary="The login page was fixed. " * 200)
    assert card.summary.startswith("The login page was fixed.")
    assert len(card.summary) <= SUMMARY_CHARACTERS


def test_without_a_summary_three_sayings_stand_for_it() -> None:
    sayings = [text("person", f"saying {number}") for number in range(5)]
    assert card_of(*sayings).summary == "saying 0\nsaying 1\nsaying 2"
    assert card_of(text("model", "I read the code.")).summary == "I read the code."


def test_the_harness_words_around_a_summary_are_left_out() -> None:
    wrapped = (
        "This session is being continued from a previous conversation that ran out of context. "
        "It is summarised below:\n\nAnalysis:\nthinking\n\nSummary:\n1. Primary Request:\n   Fix it.\n\n"
        "If you need specific details from before compaction, read the transcript."
    )
    assert summary_gist(wrapped) == "1. Primary Request:\n   Fix it."
    assert summary_gist("<analysis>\nx\n</analysis>\n\n<summary>\nFixed.\n</summary>") == "Fixed."
    assert summary_gist("This session is being continued from before.\n\nFixed.") == "Fixed."
    assert summary_gist("Plain.") == "Plain."


def test_use_when_names_paths_else_tools_else_the_range() -> None:
    opening = "Read when continuing the work archived at seq #3–#40; it covers "
    edits = [call("Edit", file_path=f"src/part{number}.py") for number in range(5)]
    assert card_of(*edits).use_when == f"{opening}src/part4.py, src/part3.py, src/part2.py."
    assert card_of(call("Search", query="x")).use_when == f"{opening}Search."
    assert card_of(text("person", "hello")).use_when == f"{opening}#3–#40."


def test_use_when_stays_within_its_limit() -> None:
    events = [call("Edit", file_path=f"src/{'deep/' * 30}part{number}.py") for number in range(3)]
    use_when = card_of(*events).use_when
    assert len(use_when) <= USE_WHEN_CHARACTERS
    assert use_when.endswith(".py.")


def test_tags_hold_what_was_worked_on() -> None:
    events = [
        *(call("Edit", file_path=f"src/part{number}.py") for number in range(20)),
        *(call("Bash", command=f"make step{number}\nmake more") for number in range(20)),
        *(failure(f"ERROR: number {number} of these") for number in range(9)),
    ]
    card = build_card(events, summary="", seq_start=1, seq_end=2, source="session-end")
    assert card.tags["source"] == ["session-end"]
    assert card.tags["where"] == [f"src/part{number}.py" for number in range(19, 7, -1)]
    assert card.tags["tools"] == ["Bash", "Edit"]
    assert card.tags["issue"] == [f"ERROR: number {number} of these" for number in range(5)]
    assert card.tags["commands"] == [f"make step{number}" for number in range(19, 7, -1)]


def test_a_command_never_passes_for_a_path() -> None:
    card = card_of(call("Bash", command="cat src/*.py | grep x > /tmp/out.txt && rm -rf $HOME/x"))
    assert card.tags["where"] == ["/tmp/out.txt"]


def test_one_file_is_named_once_however_it_is_written() -> None:
    paths = ("/home/dev/demo/src/app.py", "src/app.py", "./src/app.py", "docs/", "src/other.py")
    where = card_of(*(call("Edit", path=path) for path in paths)).tags["where"]
    assert sorted(where) == ["docs", "src/app.py", "src/other.py"]


def test_empty_tags_are_left_out() -> None:
    assert card_of(text("person", "hello")).tags == {"source": ["compaction-archive"]}


def test_an_unanswered_message_makes_an_open_thread() -> None:
    question, answer = text("person", "which port?"), text("model", "8123.")
    assert card_of(question).open_thread
    assert card_of(answer, question).open_thread
    assert card_of(question, call("Bash", command="ls")).open_thread
    assert not card_of(question, answer).open_thread
    assert not card_of(question, answer, text("person", "<system-reminder>x</system-reminder>")).open_thread
    assert card_of(
        answer, ArchivedEvent(0, "user", "person", None, [Block("image", "", "image/png")])
    ).open_thread


@pytest.mark.parametrize(
    "summary",
    [
        "7. Pending Tasks:\n   - Run the tests\n\n8. Current Work:\n   none",
        "7. Pending Tasks:\n   - None\n\n9. Optional Next Step:\n   Run the tests.",
        "## Next Steps\n\n1. Run the tests\n2. Commit",
        "**Remaining work:** run the tests",
        "- TODO: run the tests",
        "## 待办事项\n- 运行测试",
        "下一步：运行测试",
        "## Pending Jobs\n\nThe tests must be completed.",
    ],
)
def test_pending_steps_make_an_open_thread(summary: str) -> None:
    assert has_pending_steps(summary)
    assert card_of(summary=summary).open_thread


@pytest.mark.parametrize(
    "summary",
    [
        "",
        "All is well. The next steps were taken.",
        "7. Pending Tasks:\n   - None explicitly pending - all is done\n\n8. Current Work:\n   Committing.",
        "9. Optional Next Step:\n   No explicit next step requested.",
        "9. Optional Next Step:\n   All requested work appears complete. The build is green.",
        "## Pending Tasks\n\n## Current Work\nCommitting.",
        "**Next steps:** N/A",
        "## 待办事项\n- 无\n",
        "下一步：没有",
    ],
)
def test_finished_work_is_no_open_thread(summary: str) -> None:
    assert not has_pending_steps(summary)


@given(
    st.lists(st.tuples(st.sampled_from(sorted(ROLES)), st.text(max_size=300)), max_size=8),
    st.text(max_size=300) | st.just("\ud800" * 2_000),
)
def test_every_card_keeps_its_limits(said: list[tuple[str, str]], summary: str) -> None:
    card = card_of(*(text(source, one) for source, one in said), summary=summary)
    assert 0 < len(card.title) <= TITLE_CHARACTERS
    assert len(card.title.splitlines()) == 1
    assert len(card.summary) <= SUMMARY_CHARACTERS
    assert len(card.use_when) <= USE_WHEN_CHARACTERS
    json.dumps([card.title, card.summary, card.use_when, card.tags], ensure_ascii=False).encode()
