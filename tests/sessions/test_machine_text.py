import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessions_app.machine_text import classify, person_text

REMINDER = "<system-reminder>\nThe file was changed by a linter.\n</system-reminder>"

MACHINE = [
    (REMINDER, "reminder"),
    (f"\n{REMINDER}\n{REMINDER}\n", "reminder"),
    ("Stop hook feedback:\n- tests are red", "reminder"),
    ('<memex-context form="catalog" id="msg_1">\n3 records\n</memex-context>', "injected"),
    ('<memex-context form="recall" id="msg_2">\ncut short by the agent', "injected"),
    ("[MEMORY CHECKPOINT]\nmem_0123456789 was archived", "injected"),
    ("[MEMORY RECALL]\nport: 8123", "injected"),
    ("[EXTRA CONTEXT CAPACITY / 额外上下文容量]\nL2 0 %", "injected"),
    ("This session is being continued from a previous conversation that ran out of context. …", "summary"),
    ("Another language model started to solve this problem and produced a summary", "summary"),
    ("Earlier work follows.\n\n<compacted-summary>\nPort 8123.\n</compacted-summary>", "summary"),
    ("<environment_context>\n  <cwd>/home/dev/demo</cwd>\n</environment_context>", "environment"),
    ("<user_instructions>\nUse tabs.\n</user_instructions>", "environment"),
    ("<permissions instructions>\nread-only\n</permissions instructions>", "environment"),
    ("# AGENTS.md instructions for /home/dev/demo\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>", "environment"),
    ("# AGENTS.md instructions for /home/dev/demo\n\nUse tabs.", "environment"),
    ("<command-name>/compact</command-name>\n<command-message>compact</command-message>\n<command-args></command-args>", "command"),
    ("<command-name>/model</command-name><command-args>opus</command-args>", "command"),
    ("<local-command-stdout>Compacted</local-command-stdout>", "command"),
    ("<local-command-caveat>Caveat: ignore this.</local-command-caveat>", "command"),
    ("<bash-input>git fetch --all</bash-input>", "command"),
    ("<bash-stdout></bash-stdout><bash-stderr></bash-stderr>", "command"),
    ("<skill>\n<name>review</name>\nRead the diff first.\n</skill>", "instructions"),
    ("Base directory for this skill: /home/demo/skills/review\n\n# Review", "instructions"),
    ("# CLAUDE.md\n\nThis file provides guidance to agents", "instructions"),
    ("<task-notification>\n<status>completed</status>\n</task-notification>\nRead the output file.", "agent-report"),
    ('<subagent_notification>\n{"status": "</subagent_notification>"}\n</subagent_notification>', "agent-report"),
    ("[Request interrupted by user]", "interrupt"),
    ("[Request interrupted by user for tool use]", "interrupt"),
    ("<turn_aborted>\nThe user interrupted the turn.\n</turn_aborted>", "interrupt"),
]  # fmt: skip

PERSON = [
    ("fix the login page", "fix the login page"),
    ("  1. lint failing\n2. new comments  ", "1. lint failing\n2. new comments"),
    ("# Plan\n\nRename the module.", "# Plan\n\nRename the module."),
    (f"{REMINDER}\nfix the login page", "fix the login page"),
    (f"fix the login page\n\n{REMINDER}", "fix the login page"),
    (f"{REMINDER}\nfirst\n{REMINDER}\nsecond\n{REMINDER}", "first\n\nsecond"),
    ('use port 8123\n<memex-context form="catalog" id="msg_1">\n3 records\n</memex-context>', "use port 8123"),
    ("<ide_opened_file>The user opened a.py</ide_opened_file>\nwhat does this do?", "what does this do?"),
    ("[Request interrupted by user]\nno, the other file", "no, the other file"),
    ("# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nrename a.py", "rename a.py"),
    ("<user_query>\nrename a.py\n</user_query>", "rename a.py"),
    ("<timestamp>Monday</timestamp>\n<user_query>\nrename a.py\n</user_query>", "rename a.py"),
    ("<command-message>plan is running…</command-message>\n<command-name>/plan</command-name>\n"
     "<command-args>a todo app with sqlite</command-args>", "/plan a todo app with sqlite"),
    ("<command-name>/plan</command-name><command-args>写一个待办应用</command-args>", "/plan 写一个待办应用"),
    ("why does it say <system-reminder> in my log?", "why does it say <system-reminder> in my log?"),
    ("<system-reminder> is what I see in the log", "<system-reminder> is what I see in the log"),
    ("what is <environment_context>…</environment_context> for?", "what is <environment_context>…</environment_context> for?"),
    ("It printed [Request interrupted by user], why?", "It printed [Request interrupted by user], why?"),
    ("<div>hello</div> is not centred", "<div>hello</div> is not centred"),
    ("端口改成 8123", "端口改成 8123"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), MACHINE)
def test_machine_text_is_told_by_its_ends(text: str, reason: str) -> None:
    assert classify(text) == reason
    assert person_text(text) == ""


@pytest.mark.parametrize(("text", "words"), PERSON)
def test_a_persons_words_are_found_among_machine_text(text: str, words: str) -> None:
    assert classify(text) == ""
    assert person_text(text) == words


def test_an_empty_message_is_no_machines() -> None:
    assert classify(" \n") == ""
    assert person_text(" \n") == ""


def test_a_large_message_is_not_read_through() -> None:
    log = "line\n" * 1_000_000
    assert classify(log) == ""
    assert classify(f"<environment_context>{log}</environment_context>") == "environment"


PIECES = st.sampled_from(
    ["<system-reminder>", "</system-reminder>", "<memex-context a>", "</memex-context>", "<user_query>",
     "<command-args>", "</command-args>", "<command-name>", "</compacted-summary>", "# AGENTS.md instructions",
     "</INSTRUCTIONS>", "[Request interrupted by user", "]", "## My request for Codex:", "<", ">", "\n", " ",
     "words", "字", "\ud800", "\0"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join) | st.text())
@example("<system-reminder>" * 3 + "</system-reminder>")
def test_whatever_a_log_holds_is_either_a_persons_or_a_machines(text: str) -> None:
    reason, words = classify(text), person_text(text)
    assert not (reason and words)
    assert not words or all(piece in text for piece in words.split())


@given(st.text(alphabet="abc 字\n.,", min_size=1).filter(str.strip))
def test_reminders_around_words_never_hide_them(words: str) -> None:
    mixed = f"{REMINDER}\n{words}\n{REMINDER}"
    assert classify(mixed) == ""
    assert person_text(mixed) == words.strip()
