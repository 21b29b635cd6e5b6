"""`manage.py memory grep` as a person runs it."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from sessions_app.archiving import archive_run

from .stories import Store, session_id, write_log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def store(agent_home):
    write_log(agent_home, 1, compactions=2, word="harbour")
    write_log(agent_home, 2, compactions=1, word="数据库", cwd="/home/dev/other")
    archive_run([agent_home], level="l2")
    return agent_home


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("memory", *arguments, stdout=out)
    return out.getvalue()


def as_json(command: str, *arguments: str) -> Any:
    return json.loads(run(command, "--json", *arguments))


def test_it_runs_as_a_process(tmp_path):
    store = Store(tmp_path)
    write_log(store.agent, compactions=1)
    assert b"No record passes" in store.run("memory", "grep", "harbour")
    store.run("archive", str(store.agent), "--level", "l2")
    assert len(store.json("memory", "grep", "look at the harbour")["hits"]) == 4


@pytest.mark.usefixtures("store")
def test_lines_stand_under_their_record():
    answer = as_json("grep", "look at the HARBOUR")
    assert not answer["truncated"]
    assert answer["recordsSearched"] == 3
    hits = answer["hits"]
    assert [hit["text"][-3:] for hit in hits] == [f"{n}.{t}" for n in (1, 0) for t in range(4)]
    first = hits[0]
    start, end = first["spans"][0]
    assert first["text"][start:end] == "look at the harbour"
    body = as_json("open", first["recordId"])["body"]
    assert body.splitlines()[first["line"] - 1] == first["text"]
    assert body.encode()[first["offset"] :].decode().startswith(first["text"])
    lines = run("grep", "look at the HARBOUR").splitlines()
    assert lines[0] == f"{first['recordId']}  {first['title']}"
    assert lines[1] == f"{first['line']}:{first['text']}"
    assert lines[-1] == "8 lines in 2 records; 3 were searched."


@pytest.mark.usefixtures("store")
def test_it_is_narrowed_and_told_how_to_take_the_pattern():
    def count(*arguments: str) -> int:
        return len(as_json("grep", *arguments)["hits"])

    assert count("look at the 数.库") == 4
    assert count("look at the", "--workspace", "/home/dev/other") == 4
    assert count("look at the", "--session", session_id(1)) == 8
    assert count("look at the", "--kind", "note") == 0
    assert count("LOOK AT THE", "--case-sensitive") == 0
    assert count("step 0.0", "-F") == count("step 0.0", "--literal") == 2
    assert count("step.0", "-F") == 0
    assert '"hits": []' in run("grep", "--json", "--", "--case-sensitive")


@pytest.mark.usefixtures("store")
def test_what_is_bounded_or_empty_says_what_to_do():
    out = run("grep", "harbour", "--limit", "4")
    assert "… more in this record" in out
    out = run("grep", "row of", "--limit", "1")
    assert out.splitlines()[-1].startswith("There are more: --limit N")
    out = run("grep", "nowhere to be found")
    assert "0 lines in 0 records; 3 were searched.\nTry a part of it." in out
    out = run("grep", "x", "--kind", "note")
    assert "No record passes these filters" in out
    with pytest.raises(CommandError, match="Lookaheads"):
        run("grep", "(?=x)")
    with pytest.raises(CommandError, match="memory sessions"):
        run("grep", "x", "--session", "nobody")


@pytest.mark.usefixtures("store")
def test_context_is_shown_once():
    out = run("grep", "step 0.1", "--context", "2", "--workspace", "/home/dev/demo")
    block = out.splitlines()[1:6]
    assert [line.split(":")[0].split("-")[0] for line in block] == [
        str(int(block[0].split("-")[0]) + n) for n in range(5)
    ]
    assert [line.lstrip("0123456789")[0] for line in block] == ["-", "-", ":", "-", "-"]


def test_what_the_record_leaves_out_says_where_it_is(store):
    write_log(store, 3, compactions=1, word="quay", turns=1, size=20_000)
    archive_run([store], level="l2")
    (log,) = store.rglob(f"{session_id(3)}.jsonl")
    assert len(log.read_text()) > 200_000
    out = run("grep", "row of output; $")
    command = f"memory read {session_id(3)} --seq "
    assert f"  not in the record's text: `manage.py {command}" in out
    seq = out.partition(command)[2].partition("`")[0]
    assert f"#{seq} " in out
    (hit,) = (hit for hit in as_json("grep", "row of output; $")["hits"] if hit["offset"] is None)
    assert (hit["seq"], hit["sessionId"]) == (int(seq), session_id(3))
    read = as_json("read", session_id(3), "--seq", seq)["events"][0]["text"]
    assert hit["text"].strip() in read


def test_archived_text_cannot_steer_the_terminal(store):
    write_log(store, 4, compactions=1, word="evil \x1b[2J\u2028\x07 word")
    archive_run([store], level="l2")
    out = run("grep", "evil")
    assert "evil \ufffd[2J\ufffd\ufffd word" in out
    assert "\x1b" not in out
