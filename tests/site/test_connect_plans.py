"""What connecting makes of settings files, as bytes; no database, no files."""

import json
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memex_site.connect import claude_code, codex
from memex_site.connect.errors import EditRefused
from memex_site.connect.plan import Installation, Wired, connecting, disconnecting, notes, wired

HERE = Installation(
    "/opt/memex/.venv/bin/python",
    "/opt/memex/memex_site/hook_client.py",
    "/opt/memex/manage.py",
    "/home/数 据/.memex",
    8420,
)
MOVED = replace(
    HERE, python="/usr/bin/python3", hook_client="/new/memex_site/hook_client.py", manage="/new/manage.py"
)
HOOKS, SERVER = range(2)
FOREIGN = {"type": "command", "command": "notify.sh"}


def claude(which=HOOKS, at=HERE, **options):
    return claude_code.targets(Path("/c"), Path("/c/.claude.json"), at, **options)[which]


def config(at=HERE, **options):
    return codex.targets(Path("/x"), at, **options)[0]


def connected(target, before):
    return connecting(target, before, None)


def undone(target, edit):
    """With the record as it is kept."""
    return disconnecting(target, edit.after, json.loads(json.dumps(edit.record)))


TARGETS = {
    "hooks": claude(HOOKS),
    "server": claude(SERVER),
    "hooks over http": claude(HOOKS, http=True),
    "server over http": claude(SERVER, http=True),
}
SETTINGS = {
    "no file": None,
    "empty": b"",
    "blank": b" \r\n\t\n",
    "nothing in it": b"{}",
    "nothing in it, twice": b'{\n  "hooks": { },\n  "mcpServers": {\n\n  }\n}\n',
    "no line end": b'{"model": "opus"}',
    "tabs": b'{\n\t"model": "opus",\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n',
    "windows": b'\xef\xbb\xbf{\r\n    "model": "opus"\r\n}\r\n',
    "comments": b'// mine\n{\n  /* a */ "model": "opus", // why\n  "hooks": {"Stop": [/* none */],},\n}\n// end\n',
    "others": json.dumps(
        {
            "env": {"A": "1"},
            "hooks": {"SessionStart": [{"matcher": "startup", "hooks": [FOREIGN]}], "PreToolUse": []},
            "mcpServers": {"other": {"command": "x"}},
        },
        indent=2,
    ).encode(),
    "odd": b'{   "a":1 ,\n"hooks"\n:{ "Stop":[ {"hooks":[{"type":"command","command":"x"}]} ] }}',
    "repeated elsewhere": b'{"a": 1, "a": 2}',
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("before", SETTINGS.values(), ids=SETTINGS.keys())
def test_claude_code_is_connected_and_given_back_to_the_byte(target, before):
    edit = connected(target, before)
    assert edit.is_change
    assert set(wired(target, edit.after).values()) == {Wired.YES}
    again = connecting(target, edit.after, edit.record)
    assert not again.is_change
    assert again.record == edit.record
    assert undone(target, edit).after == before


def test_the_hooks_are_started_without_a_shell():
    data = json.loads(connected(claude(), SETTINGS["others"]).after)
    assert data["env"] == {"A": "1"}
    assert list(data["hooks"])[:2] == ["SessionStart", "PreToolUse"]
    first, ours = data["hooks"]["SessionStart"]
    assert first == {"matcher": "startup", "hooks": [FOREIGN]}
    assert ours["matcher"] == "startup|resume|clear|compact|fork"
    [handler] = ours["hooks"]
    assert handler["command"] == HERE.python
    assert handler["args"] == ["-I", "-S", HERE.hook_client, "claude-code", "SessionStart", HERE.home]
    assert 2 <= handler["timeout"] <= 5
    for event in ("UserPromptSubmit", "PreCompact", "PostCompact", "Stop", "SubagentStop", "SessionEnd"):
        [group] = data["hooks"][event]
        assert group["hooks"][0]["args"][-2] == event
        assert "matcher" not in group


def test_the_server_is_started_over_stdio():
    server = json.loads(connected(claude(SERVER), None).after)["mcpServers"]["memex"]
    assert server == {
        "type": "stdio",
        "command": HERE.python,
        "args": [HERE.manage, "mcp", "--agent", "claude-code"],
        "env": {"MEMEX_HOME": HERE.home},
    }


def test_over_http_the_token_is_named_and_not_written():
    hooks = json.loads(connected(claude(HOOKS, http=True), None).after)["hooks"]
    [start] = hooks.pop("SessionStart")
    assert start["hooks"][0]["type"] == "command"  # Claude Code takes no others there
    for event, [group] in hooks.items():
        [handler] = group["hooks"]
        assert handler["type"] == "http"
        assert handler["url"] == f"http://127.0.0.1:8420/hooks/claude-code/{event}"
        assert handler["headers"] == {"Authorization": "Bearer ${MX_TOKEN}"}
        assert handler["allowedEnvVars"] == ["MX_TOKEN"]
    server = json.loads(connected(claude(SERVER, http=True), None).after)["mcpServers"]["memex"]
    assert server["url"] == "http://127.0.0.1:8420/mcp"
    assert server["headers"] == {"Authorization": "Bearer ${MX_TOKEN}"}


@pytest.mark.parametrize("before", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("which", [HOOKS, SERVER])
@pytest.mark.parametrize("options", [{"at": MOVED}, {"http": True}], ids=["moved", "over http"])
def test_an_upgrade_changes_what_is_ours_alone(before, which, options):
    old = connected(claude(which), before)
    target = claude(which, **options)
    assert set(wired(target, old.after).values()) == {Wired.OTHERWISE}
    new = connecting(target, old.after, old.record)
    assert set(wired(target, new.after).values()) == {Wired.YES}
    assert new.after == connected(target, before).after
    assert undone(target, new).after == before


def test_without_a_record_nothing_of_ours_stays_either():
    edit = connected(claude(), SETTINGS["others"])
    without = disconnecting(claude(), edit.after, None)
    assert without.after == SETTINGS["others"]
    assert disconnecting(claude(), connected(claude(), b"{}").after, None).after == b"{\n}"


def test_a_group_that_others_joined_keeps_theirs():
    edit = connected(claude(), None)
    data = json.loads(edit.after)
    data["hooks"]["Stop"][0]["hooks"].insert(0, FOREIGN)
    data["model"] = "opus"
    changed = json.dumps(data, indent=4).encode()
    assert wired(claude(), changed) == {"hooks": Wired.OTHERWISE}
    left = json.loads(disconnecting(claude(), changed, edit.record).after)
    assert left == {"hooks": {"Stop": [{"hooks": [FOREIGN]}]}, "model": "opus"}


def test_what_was_never_connected_is_not_touched():
    for before in SETTINGS.values():
        for target in TARGETS.values():
            assert not disconnecting(target, before, None).is_change


REFUSED = {
    b'{\n  "model": opus\n}': "line 2, column 12",
    b'{"hooks": []}': "hooks is a list, not an object",
    b'{"hooks": {"Stop": {}}}': "hooks.Stop is an object, not a list",
    b'{"hooks": {}, "hooks": {}}': "more than once",
    b"[1]": "the whole is a list",
    '{"a": "é"}'.encode("utf-16"): "line 1, column 1: not UTF-8",
    b'{"a": "\xff"}': "line 1, column 8: not UTF-8",
}


@pytest.mark.parametrize(("before", "why"), REFUSED.items())
def test_what_cannot_be_edited_safely_is_refused(before, why):
    with pytest.raises(EditRefused, match=why) as refused:
        connected(claude(), before)
    assert str(refused.value).startswith("/c/settings.json: ")


def test_hooks_that_are_switched_off_are_spoken_of():
    assert "disableAllHooks" in notes(claude(), b'{"disableAllHooks": true}')[0]
    assert notes(claude(), b'{"disableAllHooks": false}') == []
    assert "[features]" in notes(config(), b"[features]\nhooks = false\n")[0]


# Codex

CONFIGS = {
    "no file": None,
    "empty": b"",
    "blank": b"\n\n",
    "no line end": b'model = "gpt"',
    "windows": b'\xef\xbb\xbfmodel = "gpt"\r\n\r\n[mcp_servers.other]\r\ncommand = "x"\r\n',
    "odd": b"# mine\n\n  [ mcp_servers . 'other' ]   # why\ncommand='x'\nargs = [ # all\n  'a]', \"\"\"\n[[hooks.Stop]]\n\"\"\"\n]\n\n\n",
    "others": (
        b'[[hooks.SessionStart]]\nmatcher = "startup"\n[[hooks.SessionStart.hooks]]\ntype = "command"\n'
        b'command = "mine"\n\n[profiles.x]\nmodel = "y"\n[[hooks.Stop]]\nhooks = [{type="command", command="z"}]\n'
    ),
    "tables of nothing": b"[hooks]\n\n[mcp_servers]\n# none\n",
    "strange values": b"at = 1979-05-27T07:32:00Z\nn = nan\ni = inf\nx = 0x_f\n".replace(b"0x_f", b"0xf"),
}


@pytest.mark.parametrize("options", [{}, {"http": True}])
@pytest.mark.parametrize("before", CONFIGS.values(), ids=CONFIGS.keys())
def test_codex_is_connected_and_given_back_to_the_byte(before, options):
    target = config(**options)
    edit = connected(target, before)
    assert edit.after.startswith(before or b"")
    assert wired(target, edit.after) == {"hooks": Wired.YES, "mcp": Wired.YES}
    assert not connecting(target, edit.after, edit.record).is_change
    assert undone(target, edit).after == before
    moved = config(MOVED)
    new = connecting(moved, edit.after, edit.record)
    assert new.after == connected(moved, before).after
    assert undone(moved, new).after == before


def test_what_codex_is_told():
    data = tomllib.loads(connected(config(), CONFIGS["others"]).after.decode())
    start = data["hooks"]["SessionStart"]
    assert start[0] == {"matcher": "startup", "hooks": [{"type": "command", "command": "mine"}]}
    assert start[1]["matcher"] == "startup|resume|clear|compact"
    [handler] = start[1]["hooks"]
    assert shlex.split(handler["command"]) == HERE.hook_command("codex", "SessionStart")
    assert {"SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "Stop", "SubagentStop"} == set(
        data["hooks"]
    )
    assert data["mcp_servers"]["memex"] == {
        "command": HERE.python,
        "args": [HERE.manage, "mcp", "--agent", "codex"],
        "env": {"MEMEX_HOME": HERE.home},
    }
    over_http = tomllib.loads(connected(config(http=True), None).after.decode())
    assert over_http["mcp_servers"]["memex"] == {
        "url": "http://127.0.0.1:8420/mcp",
        "bearer_token_env_var": "MX_TOKEN",
    }


def test_what_was_added_to_codex_later_stays():
    edit = connected(config(), b'model = "gpt"')
    # As Codex does it: another server behind ours, a table of its own for env, and one more hook in our group.
    text = edit.after.decode().replace(
        'env = { MEMEX_HOME = "/home/数 据/.memex" }\n',
        'tool_timeout_sec = 9\n# of others\n\n[mcp_servers.memex.env]\nMEMEX_HOME = "/x"\n\n[mcp_servers.other]\ncommand = "y"\n',
    )
    text = text.replace(
        "[[hooks.Stop.hooks]]\n",
        '[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "z"\n\n[[hooks.Stop.hooks]]\n',
    )
    left = disconnecting(config(), text.encode(), edit.record).after.decode()
    assert left == (
        'model = "gpt"\n\n[[hooks.Stop]]\n\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "z"\n# of others\n\n'
        '[mcp_servers.other]\ncommand = "y"\n'
    )


def test_a_form_in_which_ours_cannot_be_told_apart_is_refused():
    edit = connected(config(), None)
    handler = tomllib.loads(edit.after.decode())["hooks"]["Stop"][0]["hooks"][0]["command"]
    inline = f"hooks.Stop = [{{hooks = [{{type = 'command', command = {json.dumps(handler)}}}]}}]\n".encode()
    with pytest.raises(EditRefused, match="Remove by hand"):
        disconnecting(config(), inline, None)
    with pytest.raises(EditRefused, match="Remove by hand"):
        connected(config(), inline)


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (b'model = "gpt"\nmodel = "x"\n', "line 2"),
        (b"[a\n", "line 1, column 3"),
        (b"hooks = {}\n", "within braces"),
        (b"hooks = 1\n", "hooks is no table"),
        (b"hooks.Stop = []\n", "within braces"),
        (b"mcp_servers = {a = {command = 'x'}}\n", "within braces"),
        (b"[hooks.Stop]\na = 1\n", "hooks.Stop is no array of tables"),
        (b"a = '\xff'", "not UTF-8"),
    ],
)
def test_a_config_that_cannot_be_edited_safely_is_refused(before, why):
    with pytest.raises(EditRefused, match=why):
        connected(config(), before)


names = st.sampled_from(["a", "b-1", '"c.]"', "'d]'", "hooks", "mcp_servers", '"hooks"'])
toml_values = st.sampled_from(
    [
        "1",
        '"[x]"',
        "'#'",
        '"""\n[[hooks.Stop]]\n""\\""""',
        "[\n 1, # ]\n [2]\n]",
        "{a = '}'}",
        "'''\n[a]\n'''",
        "nan",
    ]
)
toml_lines = st.one_of(
    st.sampled_from(["", "# [a]", "\t", "[[hooks.Stop]]", "[[hooks.Stop.hooks]]", "[[x]]", "[hooks]"]),
    st.tuples(names, toml_values).map(" = ".join),
    st.lists(names, min_size=1, max_size=3).map(lambda path: f" [ {' . '.join(path)} ] # ]"),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.lists(toml_lines, max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_config_is_given_back_or_refused(lines, newline, is_terminated):
    before = ("\n".join(lines) + ("\n" if is_terminated else "")).replace("\n", newline).encode()
    try:
        edit = connected(config(), before)
    except EditRefused:
        return
    assert edit.after.startswith(before)
    assert wired(config(), edit.after) == {"hooks": Wired.YES, "mcp": Wired.YES}
    assert undone(config(), edit).after == before


def test_a_diff_shows_what_is_added_and_stays_readable():
    added = connected(claude(), SETTINGS["others"]).diff().splitlines()
    assert added[:2] == ["--- /c/settings.json", "+++ /c/settings.json"]
    assert any(line.startswith("+") and "hook_client.py" in line for line in added)
    assert connected(claude(), None).diff().startswith("--- /dev/null\n+++ /c/settings.json")
    one_line = json.dumps({"history": ["x" * 100] * 10_000}).encode()
    assert "memex" in (said := connected(claude(SERVER), one_line).diff())
    assert len(said) < 10_000


@pytest.mark.parametrize(
    ("target", "before"),
    [
        (claude(SERVER), b'{"mcpServers": {"memex": {"command": "someone-else"}, "b": {"command": "b"}}}'),
        (claude(SERVER), b'{"mcpServers": {"memex": {"type": "http", "url": "https://memex.example/mcp"}}}'),
        (claude(SERVER), b'{"mcpServers": {"memex": "what?"}}'),
        (config(), b'[mcp_servers.memex]\ncommand = "someone-else"\nargs = ["mcp"]\n'),
        (config(), b'["mcp_servers"."memex"]\ncommand = "x"\nargs = ["manage.py"]\n'),
    ],
)
def test_another_programs_server_of_our_name_is_left_alone(target, before):
    with pytest.raises(EditRefused, match="another program's"):
        connected(target, before)
    assert disconnecting(target, before, None).after == before
    assert wired(target, before)["mcp"] is Wired.NO
