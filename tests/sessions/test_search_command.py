"""`manage.py memory search|nav|assemble` as a person runs them."""

import json
import re
import shlex
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from records.search.indexing import bodies_sync
from sessions_app.archiving import archive_run

from .stories import Store, session_id, write_log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def store(agent_home):
    write_log(agent_home, 1, compactions=2, word="harbour")
    write_log(agent_home, 2, compactions=1, word="数据库连接", cwd="/home/dev/other")
    archive_run([agent_home], level="l2")
    return agent_home


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def run(*arguments: str, out: StringIO | None = None, **options: Any) -> str:
    out = out or StringIO()
    call_command("memory", *arguments, stdout=out, **options)
    return out.getvalue()


def as_json(command: str, *arguments: str) -> Any:
    return json.loads(run(command, "--json", *arguments))


def commands(out: str) -> list[list[str]]:
    """What the answer says to run, as a shell would take it apart."""
    return [shlex.split(found) for found in re.findall(r"manage\.py memory (.+)$", out, re.M)]


def test_it_runs_as_a_process(tmp_path):
    store = Store(tmp_path)
    write_log(store.agent, compactions=1)
    assert b"There are no records to search yet:" in store.run("memory", "search", "harbour")
    store.run("archive", str(store.agent), "--level", "l2")
    (hit,) = store.json("memory", "search", "harbour")["hits"]
    assert hit["title"]
    assert b"\x1b" not in store.run("memory", "search", "harbour")
    assert store.json("memory", "assemble", "harbour")["sources"][0]["id"] == hit["id"]
    assert store.json("memory", "nav")["entries"][0]["id"] == hit["id"]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("question", ["look at the harbour of step 1.2", "数据库连接 0.1 row of output"])
def test_a_hit_says_where_it_is_and_the_command_opens_it_there(question):
    out = run("search", question)
    first = out.split("\n\n")[0].splitlines()
    (hit, *_) = as_json("search", question)["hits"]
    assert first[0].startswith(f"1. {hit['id']}  episode  20")
    assert hit["title"] in first[0]
    assert re.search(r"^   events? #\d+", out, re.M)
    assert "terms: " in out
    (command, *_) = commands(out)
    assert command == shlex.split(hit["open"])[1:] == ["open", hit["id"], "--offset", str(hit["offset"])]
    opened = run(*command)
    passage = hit["passage"]["text"]
    assert passage in opened
    # Right where it opens, and not only somewhere below.
    assert opened.index(passage) <= 450
    body = as_json("open", hit["id"])["body"]
    assert opened == body[hit["offset"] :]
    assert body.encode()[hit["byteOffset"] :].decode() == body[hit["offset"] :]


@pytest.mark.usefixtures("store")
def test_terms_are_bold_in_a_terminal_only():
    plain = run("search", "harbour step")
    assert "\x1b" not in plain
    bold = run("search", "harbour step", out=Terminal())
    assert "\x1b[1mharbour\x1b[0m" in bold
    assert bold.replace("\x1b[1m", "").replace("\x1b[0m", "") == plain
    assert "\x1b" not in run("search", "harbour step", out=Terminal(), no_color=True)


@pytest.mark.usefixtures("store")
def test_filters_narrow_it():
    def count(*arguments: str) -> int:
        return len(as_json("search", "look step", *arguments)["hits"])

    assert count() == 3
    assert count("--limit", "1") == 1
    assert count("--workspace", "/home/dev/other") == count("--session", session_id(2)) == 1
    assert (
        count("--kind", "episode", "--kind", "note") == count("--hot") == count("--agent", "claude-code") == 3
    )
    assert count("--kind", "note") == count("--cold") == count("--agent", "codex") == 0
    assert count("--status", "superseded") == count("--tag", "topic:none") == 0
    assert count("--tag", "source:compaction-archive") == 3
    assert run("search", "--json", "--", "--limit") != ""
    with pytest.raises(CommandError, match="memory sessions"):
        run("search", "x", "--session", "nobody")


@pytest.mark.usefixtures("store")
def test_without_a_hit_it_says_what_to_run_next():
    out = run("search", "harbuor")
    assert out.startswith(
        "Nothing was found.\n- “harbour” occurs in 2 records: manage.py memory search harbour\n"
    )
    *searches, grep = commands(out)
    assert len(searches) > 1
    assert all(as_json(*search)["hits"] for search in searches)
    assert grep == ["grep", "-F", "--", "harbuor"]
    run(*grep)
    out = run("search", "look harbour", "--kind", "note")
    assert "- without the kind filter: 3 records\n" in out
    assert (
        run("search", "...")
        == "There is nothing to search for in this: give a word, a name, a path or a number.\n"
    )
    answer = as_json("search", "harbuor")
    assert (answer["hits"], answer["hint"][:18]) == ([], "Nothing was found.")
    assert answer["suggestions"][0]["query"] == "harbour"


def test_what_the_record_leaves_out_is_opened_in_its_session(store):
    log = write_log(store, 3, compactions=1, word="quay", turns=1, size=20_000)
    log.write_bytes(log.read_bytes().replace(b'row of output; "', b'row of output; a xylophone at the end"'))
    archive_run([store], level="l2")
    bodies_sync()
    (hit,) = as_json("search", "xylophone")["hits"]
    assert (hit["offset"], hit["byteOffset"]) == (None, None)
    assert hit["open"] == f"memory read {session_id(3)} --seq {hit['seqStart']}"
    assert hit["passage"]["text"] in run(*shlex.split(hit["open"])[1:])


def test_archived_text_cannot_steer_the_terminal(store):
    write_log(store, 4, compactions=1, word="evil \x1b[2J\u2028\x07\u202e word")
    archive_run([store], level="l2")
    for out in (
        run("search", "evil word"),
        run("assemble", "evil word"),
        run("nav"),
        run("search", "xyz\x1b[2J"),
    ):
        assert not set("\x1b\x07\u2028\u202e") & set(out)
    assert "evil \ufffd[2J\ufffd\ufffd\ufffd word" in run("search", "evil word")
    out = run("search", "evil word", out=Terminal())
    assert set(re.findall(r"\x1b\[\d*.", out)) == {"\x1b[1m", "\x1b[0m"}


@pytest.mark.usefixtures("store")
def test_nav_leads_from_groups_to_records():
    out = run("nav")
    assert out.splitlines()[-2:] == [
        "3 of 3.",
        "Steps from here: workspace, kind, topic, where, tools, source.",
    ]
    page = as_json("nav", "--limit", "2", "--sort", "oldest")
    assert (len(page["entries"]), page["total"], page["hasMore"]) == (2, 3, True)
    assert "2 of 3. The next: --offset 2" in run("nav", "--limit", "2")
    workspaces = as_json("nav", "workspace")["entries"]
    assert [entry["title"] for entry in workspaces] == ["/home/dev/demo", "/home/dev/other"]
    (record,) = as_json("nav", workspaces[1]["path"])["entries"]
    assert record["title"] in run("nav", record["id"])
    where = as_json("nav", "where")["entries"]
    assert as_json("nav", where[0]["path"])["total"] >= 1
    assert where[0]["path"] in run("nav", "where")
    with pytest.raises(CommandError, match="steps: workspace, kind"):
        run("nav", "somewhere")


@pytest.mark.usefixtures("store")
def test_assemble_prints_what_to_read_and_what_it_left_out():
    pack = as_json("assemble", "look at the harbour", "--budget", "300")
    assert pack["usedTokens"] <= pack["budget"] == 300
    assert pack["omitted"]
    out = run("assemble", "look at the harbour", "--budget", "300")
    assert out.startswith(pack["context"])
    assert f"\n{pack['usedTokens']} of 300 tokens; {len(pack['sources'])} passages.\n- left out: " in out
    assert as_json("assemble", "look", "--workspace", "/home/dev/other")["sources"][0]["title"]
    assert "Nothing was found." in run("assemble", "look", "--kind", "note")
    with pytest.raises(CommandError, match="100 tokens or more"):
        run("assemble", "look", "--budget", "99")
