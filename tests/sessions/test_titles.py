import pytest

from sessions_app.models import AgentSession
from sessions_app.titles import TITLE_CHARACTERS, session_title

COMMAND = "<command-message>tidy is running…</command-message> <command-name>/tidy</command-name> "
REMINDER = "<system-reminder> The file list changed. "


def titled(title="", relation="", **words):
    session = AgentSession(session_id="s1", cwd="/w/demo", title=title, relation=relation)
    for name in ("first", "plain", "told"):
        setattr(session, f"{name}_words", words.get(name))
    return session_title(session)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Please look at the harbour", "Please look at the harbour"),
        (f"{COMMAND}<command-args>sort the old logs</command-args>", "/tidy sort the old logs"),
        (f"{REMINDER}</system-reminder> Now fix it", "Now fix it"),
        ("<div> should not be red", "<div> should not be red"),
        ("", "/w/demo"),
        (COMMAND, "/w/demo"),
    ],
)
def test_a_title_is_what_a_person_said(words, shown):
    assert titled(first=words) == shown
    assert titled(words) == shown


@pytest.mark.parametrize("length", [199, 200])
def test_markup_that_a_preview_cut_through_is_known_as_well(length):
    cut = (f"{COMMAND}<command-args>sort the old logs " + "and more " * 30)[:length]
    assert titled(first=cut).startswith("/tidy sort the old logs and more")
    assert titled(first=(REMINDER + "x " * 200)[:length], plain="Now fix it") == "Now fix it"
    words = ("<div> should not be red " * 20)[:length]
    assert titled(first=words).startswith("<div> should not be red")


def test_a_long_one_is_cut_at_a_word():
    title = titled(first="harbour " * 24)
    assert title.endswith("harbour…")
    assert len(title) <= TITLE_CHARACTERS


def test_a_sub_agent_is_called_by_what_it_was_told():
    inherited = {"first": "The parent's words", "told": "Search the logs"}
    assert titled(relation="subagent", **inherited) == "Search the logs"
    assert titled(**inherited) == "The parent's words"
    assert titled(told="Search the logs") == "Search the logs"
