import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app import facts as facts_module
from sessions_app.facts import ArchivedEvent, Facts
from sessions_app.logs.events import Block
from sessions_app.lost import CATEGORIES, LISTED, Lost, what_was_lost
from sessions_app.path_words import looks_like_path, word_facts


def said(text: str, source: str = "person") -> ArchivedEvent:
    return ArchivedEvent(0, "user", source, None, [Block("text", text)])


def call(name: str, arguments: object) -> ArchivedEvent:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ArchivedEvent(0, "assistant", "model", None, [Block("tool-call", text, name)])


def output(text: str, *, is_error: bool = False) -> ArchivedEvent:
    return ArchivedEvent(0, "tool", "tool", None, [Block("tool-result", text, is_error=is_error)])


@pytest.mark.parametrize(
    "word",
    ["src/app.py", "/home/dev/demo/app.py", "app.py", "README.md", "./run", "../lib/x", "~/notes.txt", ".env", "docs/",
     "src/components", "my-package/main", "a/b/c", "C:\\work\\app.py", "C:/home/dev/app.py", "/etc/hosts", "文档/报告.md",
     ".github/workflows/ci.yml", "tests/test_a.py"],
)  # fmt: skip
def test_paths_are_recognised(word: str) -> None:
    assert looks_like_path(word)


@pytest.mark.parametrize(
    "word",
    ["", "/", "word", "and/or", "read/write", "10/12", "2026/01/02", "1.2.3", "v1.2", "3.14", "8080", "example.com",
     "https://example.com/a.py", "example.com/a/b", "e.g", "n/a", "I/O", "HTTP/1.1", "application/json", "Node.js",
     "/compact", "src/*.py", "$HOME/a.py", "a b.py", "cat|src/a.py", "rm -rf src/", "x=src/a.py", "`ls`/a.py",
     "origin/main", "s/old/new/", "/dev/null", "--out/a.py", "a.py;ls", "self.value", "foo(a.py)", "a//b.py", "...",
     "x" * 300 + "/a.py"],
)  # fmt: skip
def test_what_is_no_path_is_not_taken_for_one(word: str) -> None:
    assert not looks_like_path(word)


def test_a_word_is_taken_out_of_its_prose() -> None:
    def paths(word: str) -> tuple[str, ...]:
        known = word_facts(word)
        return known.paths if known else ()

    assert paths("(src/app.py:12:5),") == ("src/app.py",)
    assert paths("`app.py`.") == ("app.py",)
    assert paths("[app.py](/home/dev/demo/app.py)") == ("/home/dev/demo/app.py",)
    assert paths("b/src/app/models.py") == ("src/app/models.py",)
    assert paths("请修改src/app.py和tests/test_a.py。") == ("src/app.py", "tests/test_a.py")
    assert paths("https://example.com/src/app.py") == ()


def test_each_kind_of_loss_is_found() -> None:
    events = [
        said("We decided to keep SQLite for the index. The port must be 8123."),
        call("Bash", {"command": "pytest tests/test_store.py -q"}),
        output("E   ValueError: port taken\n1 failed in 2.31s", is_error=True),
        call("Edit", {"file_path": "/home/dev/demo/app/store.py", "old_string": "a", "new_string": "b"}),
    ]
    lost = what_was_lost(events, "Nothing much happened.")
    assert set(lost.paths) == {"/home/dev/demo/app/store.py", "tests/test_store.py"}
    assert lost.commands == ["pytest tests/test_store.py -q"]
    assert "E ValueError: port taken" in lost.errors
    assert set(lost.numbers) == {"8123", "2.31s"}
    assert "We decided to keep SQLite for the index." in lost.decisions
    assert lost.found == lost.lost


def test_a_summary_that_says_it_loses_nothing() -> None:
    events = [
        said("我们决定采用 SQLite 做索引。"),
        call("Bash", {"command": "cd /home/dev/demo && make test"}),
        output("make: *** [test] Error 2\nERROR: disk full", is_error=True),
        call("Edit", {"file_path": "/home/dev/demo/app/store.py"}),
        said("the limit is 12,500 rows"),
    ]
    summary = (
        "已决定采用 SQLite 做索引。Ran `make test`; it said **disk full**, and ERROR: disk full again; "
        "make: *** [test] Error 2. Edited `app/store.py` (12500 rows) in /home/dev/demo."
    )
    lost = what_was_lost(events, summary)
    assert lost.lost == dict.fromkeys(CATEGORIES, 0)
    assert all(lost.found[name] for name in CATEGORIES)


def test_a_path_survives_by_its_last_two_parts_only() -> None:
    events = [call("Read", {"file_path": path}) for path in ("/home/dev/demo/app/store.py", "notes.md")]
    assert what_was_lost(events, "See app/store.py and notes.md.").paths == []
    assert what_was_lost(events, "See store.py and my/notes.md.").paths == ["/home/dev/demo/app/store.py"]


def test_a_number_is_not_found_inside_another() -> None:
    assert what_was_lost([said("the port is 812")], "the port is 8123").numbers == ["812"]


def test_without_a_summary_everything_is_lost() -> None:
    lost = what_was_lost([said("always use port 8123 in src/app.py")], "")
    assert lost.lost == lost.found == {"paths": 1, "commands": 0, "errors": 0, "numbers": 1, "decisions": 1}


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({"command": "ls -la"}, "ls -la"),
        ({"cmd": "# list\nls -la\npwd"}, "ls -la"),
        ({"command": ["bash", "-lc", "ls -la"]}, "ls -la"),
        ({"command": ["git", "log", "a b"]}, "git log 'a b'"),
        ({"action": {"type": "exec", "command": ["/bin/zsh", "-lc", "ls -la"]}}, "ls -la"),
    ],
)
def test_commands_are_read_from_every_shape_of_call(arguments: object, command: str) -> None:
    assert list(Facts([call("shell", arguments)]).commands) == [command]


@pytest.mark.parametrize(
    "arguments", ["", "not json", "[1]", '{"command": 5, "path": {"a": 1}}', '{"input": {}}']
)
def test_odd_arguments_name_nothing(arguments: str) -> None:
    facts = Facts([call("shell", arguments)])
    assert list(facts.tools) == ["shell"]
    assert len(facts.commands) == len(facts.paths) == 0


def test_a_patch_names_its_files() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: src/app.py\n@@\n-a\n+b\n*** Add File: docs/new.md\n*** End Patch"
    )
    for arguments in (patch, {"input": patch}):
        assert set(Facts([call("apply_patch", arguments)]).paths) == {"src/app.py", "docs/new.md"}


def test_code_and_prose_about_errors_are_no_errors() -> None:
    text = "\n".join(
        ["12→    raise ValueError('x')", "src/a.py:3: except ValueError: pass", '    t.Fatalf("failed: %v", err)',
         "- Error handling is under-tested: see below", "The error handling was rewritten."]
    )  # fmt: skip
    assert list(Facts([output(text)]).errors) == []


def test_errors_are_taken_from_what_tools_print() -> None:
    text = "\n".join(
        ["collecting", "src/app.ts:3:5 - error TS2345: wrong type", "error[E0308]: mismatched types",
         "ls: nowhere: No such file or directory", "FAIL demo/store [build failed]", "错误：磁盘已满"]
    )  # fmt: skip
    assert list(Facts([output(text)]).errors) == text.split("\n")[1:]


def test_a_failed_call_reports_what_comes_after_its_exit_code() -> None:
    assert list(Facts([output("Exit code 2\nno rule to make target", is_error=True)]).errors) == [
        "no rule to make target"
    ]
    codex = "Chunk ID: 1\nProcess exited with code 1\nOutput:\nmerge conflict in a.py\n"
    assert list(Facts([output(codex, is_error=True)]).errors) == ["merge conflict in a.py"]


def test_machine_text_and_summaries_name_nothing() -> None:
    text = "We decided to use port 8123 in src/app.py"
    reminder = f"<system-reminder>{text}</system-reminder>"
    events = [said(text, source) for source in ("harness", "injected", "summary")] + [said(reminder)]
    assert what_was_lost(events, "").found == dict.fromkeys(CATEGORIES, 0)


def test_what_matters_most_comes_first() -> None:
    events = [output("docs/listed.md"), said("see docs/said.md"), call("Edit", {"path": "docs/edited.md"})]
    assert what_was_lost(events, "").paths == ["docs/edited.md", "docs/said.md", "docs/listed.md"]
    recent = [said("see docs/early.md"), said("see docs/late.md")]
    assert what_was_lost(recent, "").paths == ["docs/late.md", "docs/early.md"]


def test_lists_are_cut_and_counts_are_not() -> None:
    lost = what_was_lost([said(f"see docs/page{number}.md") for number in range(100)], "")
    assert len(lost.paths) == LISTED
    assert lost.paths[0] == "docs/page99.md"
    assert lost.lost["paths"] == lost.found["paths"] == 100


def test_only_the_two_ends_of_a_long_text_are_scanned() -> None:
    filler = "filler\n" * 10_000
    middle = f"docs/head.md\n{filler}docs/middle.md\n{filler}docs/tail.md"
    assert set(Facts([said(middle)]).paths) == {"docs/head.md", "docs/tail.md"}


def test_tool_output_is_scanned_up_to_a_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "OUTPUT_TOTAL", 50)
    events = [output(f"docs/page{number}.md " + "x" * 30) for number in range(5)]
    facts = Facts(
        [*events, output("ERROR: still seen", is_error=True), call("Read", {"path": "docs/last.md"})]
    )
    assert list(facts.paths) == ["docs/page0.md", "docs/page1.md", "docs/last.md"]
    assert list(facts.errors) == ["ERROR: still seen"]


def test_values_and_remembered_words_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "VALUES_KEPT", 10)
    monkeypatch.setattr(facts_module, "_REMEMBERED", 10)
    facts = Facts(said(f"word{number} docs/page{number}.md docs/page0.md") for number in range(50))
    assert len(facts.paths) == 10
    assert facts.paths.ranked()[0] == "docs/page0.md"


def test_json_round_trip() -> None:
    lost = what_was_lost([said("always use port 8123 in src/app.py"), output("ERROR: disk full")], "")
    assert Lost.from_json(json.loads(json.dumps(lost.to_json()))) == lost
    assert Lost.from_json({}) == Lost()


def test_every_run_finds_the_same_in_the_same_order() -> None:
    program = (
        "from sessions_app.facts import *; from sessions_app.lost import *\n"
        "words = ' '.join(f'docs/page{n}.md {n}.5s' for n in range(60))\n"
        "print(what_was_lost([ArchivedEvent(0, 'user', 'person', None, [Block('text', words)])], ''))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.getcwd()},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(runs) == 1
    assert "docs/page0.md" in runs.pop()


KINDS = st.sampled_from(["text", "tool-call", "tool-result", "reasoning", "image", "file", "opaque", "other"])
SOURCES = st.sampled_from(
    ["person", "model", "tool", "harness", "summary", "injected", "agent", "unheard-of"]
)
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()) | st.sampled_from("/.:\n` 0错误\ud800\0"))


@given(st.lists(st.tuples(KINDS, SOURCES, ANY_TEXT, st.booleans()), max_size=6), ANY_TEXT)
def test_anything_can_be_compared_and_stored(pieces: list[tuple[str, str, str, bool]], summary: str) -> None:
    events = [
        ArchivedEvent(0, "user", source, None, [Block(kind, text, text[:9], is_error)])
        for kind, source, text, is_error in pieces
    ]
    lost = what_was_lost(events, summary)
    json.dumps(lost.to_json(), ensure_ascii=False).encode()
    assert all(lost.lost[name] <= lost.found[name] for name in CATEGORIES)
    assert all(looks_like_path(path) for path in lost.paths)
