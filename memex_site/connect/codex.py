"""Codex: hooks and the MCP server as tables of its config.toml. Pure."""

import shlex
from pathlib import Path
from typing import Any

from .errors import EditRefused
from .plan import (
    HOOK_FILE,
    HOOK_SECONDS,
    SERVER_NAME,
    TOKEN_VARIABLE,
    Installation,
    Target,
    Wired,
    foreign_server,
    is_our_server,
)
from .tomledit import Table, appended, parsed, quoted, same, tables, without

AGENT = "codex"
EVENTS: dict[str, str | None] = {
    "SessionStart": "startup|resume|clear|compact",
    "UserPromptSubmit": None,
    "PreCompact": None,
    "PostCompact": None,
    "Stop": None,
    "SubagentStop": None,
}
SERVERS = "mcp_servers"
REVIEW = "Codex asks once whether new hooks may run: look at them there with /hooks and trust them."


def targets(home: Path, installation: Installation, *, http: bool = False) -> list[Target]:
    """With `http` the MCP server goes over HTTP; Codex has no hooks that do."""
    blocks = [*_hook_blocks(installation), _server_block(installation, http=http)]
    ours = parsed(appended("", blocks))
    return [
        Target(
            home / "config.toml",
            lambda text: _connect(text, blocks, ours),
            _disconnect,
            lambda text: _wired(parsed(text), ours),
            _notes,
        )
    ]


def _hook_blocks(installation: Installation) -> list[list[str]]:
    blocks = []
    for event, matcher in EVENTS.items():
        command = shlex.join(installation.hook_command(AGENT, event))
        blocks.append([f"[[hooks.{event}]]", *([f"matcher = {quoted(matcher)}"] if matcher else [])])
        blocks.append(
            [
                f"[[hooks.{event}.hooks]]",
                'type = "command"',
                f"command = {quoted(command)}",
                f"timeout = {HOOK_SECONDS}",
            ]
        )
    return blocks


def _server_block(installation: Installation, *, http: bool) -> list[str]:
    head = f"[{SERVERS}.{SERVER_NAME}]"
    if http:
        return [
            head,
            f"url = {quoted(installation.url('/mcp'))}",
            f"bearer_token_env_var = {quoted(TOKEN_VARIABLE)}",
        ]
    arguments = ", ".join(quoted(part) for part in installation.mcp_arguments(AGENT))
    return [
        head,
        f"command = {quoted(installation.python)}",
        f"args = [{arguments}]",
        f"env = {{ MEMEX_HOME = {quoted(installation.home)} }}",
    ]


def is_ours(handler: Any) -> bool:
    command = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and HOOK_FILE in command.replace("\\", "/")


def _connect(text: str, blocks: list[list[str]], ours: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    wanted = parsed(text)
    for name in ("hooks", SERVERS):
        if not isinstance(wanted.setdefault(name, {}), dict):
            raise EditRefused(f"{name} is no table")
    for event, groups in ours["hooks"].items():
        there = wanted["hooks"].setdefault(event, [])
        if not isinstance(there, list):
            raise EditRefused(f"hooks.{event} is no array of tables")
        there += groups
    if SERVER_NAME in wanted[SERVERS]:
        raise foreign_server(SERVERS)
    wanted[SERVERS] |= ours[SERVERS]
    after = appended(text, blocks)
    try:
        is_right = same(parsed(after), wanted)
    except EditRefused:
        is_right = False
    if not is_right:
        raise EditRefused(
            f"hooks or {SERVERS} is written within braces or brackets, to which no tables can be added. "
            "Write them as [[hooks.EVENT]] and [mcp_servers.NAME] first"
        )
    return after, {"unterminated": bool(text) and not text.endswith("\n")}


def _disconnect(text: str, trace: dict[str, Any] | None) -> str:
    data = parsed(text)
    cut = _our_tables(text, data)
    after = without(text, cut)
    if not same(_without_ours(data), _pruned(parsed(after))):
        raise EditRefused(
            "what connects Memex was written in another form since. Remove by hand the hooks that name "
            f"{HOOK_FILE}, and {SERVERS}.{SERVER_NAME}"
        )
    was_last = bool(cut) and max(table.end for table in cut) == len(text)
    if trace and trace.get("unterminated") and was_last:
        after = after.removesuffix("\n").removesuffix("\r")
    return after


def _our_tables(text: str, data: dict[str, Any]) -> list[Table]:
    """The tables of groups whose handlers are all ours, of single handlers of ours, and of the server."""
    cut: list[Table] = []
    group: dict[str, int] = {}
    handler: dict[str, int] = {}
    for table in tables(text):
        if table.path[:2] == (SERVERS, SERVER_NAME) and is_our_server(_server(data)):
            cut.append(table)
            continue
        if len(table.path) < 2 or table.path[0] != "hooks":
            continue
        event = table.path[1]
        if len(table.path) == 2 and table.is_array:
            group[event], handler[event] = group.get(event, -1) + 1, -1
        if event not in group:
            continue
        handlers = _handlers(data["hooks"][event][group[event]])
        if table.path[2:] == ("hooks",):
            handler[event] += 1
        at = handler[event]
        whole = bool(handlers) and all(map(is_ours, handlers))
        if whole or (len(table.path) > 2 and 0 <= at < len(handlers) and is_ours(handlers[at])):
            cut.append(table)
    return cut


def _handlers(group: Any) -> list[Any]:
    handlers = group.get("hooks") if isinstance(group, dict) else None
    return handlers if isinstance(handlers, list) else []


def _without_ours(data: dict[str, Any]) -> dict[str, Any]:
    """What must be left of `data`, without containers that hold nothing."""
    hooks = data.get("hooks")
    if isinstance(hooks, dict):
        hooks = {event: _groups_of_others(groups) for event, groups in hooks.items()}
        data = data | {"hooks": hooks}
    servers = data.get(SERVERS)
    if isinstance(servers, dict) and is_our_server(_server(data)):
        data = data | {SERVERS: {name: value for name, value in servers.items() if name != SERVER_NAME}}
    return _pruned(data)


def _groups_of_others(groups: Any) -> Any:
    if not isinstance(groups, list):
        return groups
    left = []
    for group in groups:
        handlers = _handlers(group)
        others = [handler for handler in handlers if not is_ours(handler)]
        if len(others) == len(handlers):
            left.append(group)
        elif others:
            left.append(group | {"hooks": others})
    return left


def _pruned(data: dict[str, Any]) -> dict[str, Any]:
    hooks = data.get("hooks")
    if isinstance(hooks, dict):
        data = data | {"hooks": {event: groups for event, groups in hooks.items() if groups != []}}
    return {name: value for name, value in data.items() if name not in ("hooks", SERVERS) or value != {}}


def _wired(data: dict[str, Any], ours: dict[str, Any]) -> dict[str, Wired]:
    server = _server(data)
    hooks = data.get("hooks")
    found: dict[str, list[Any]] = {}
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            if any(map(is_ours, _handlers(group))):
                found.setdefault(event, []).append(group)
    return {
        "hooks": _compared(found, ours["hooks"]) if found else Wired.NO,
        "mcp": _compared(server, ours[SERVERS][SERVER_NAME]) if is_our_server(server) else Wired.NO,
    }


def _server(data: dict[str, Any]) -> Any:
    servers = data.get(SERVERS)
    return servers.get(SERVER_NAME) if isinstance(servers, dict) else None


def _compared(found: Any, wanted: Any) -> Wired:
    return Wired.YES if same(found, wanted) else Wired.OTHERWISE


def _notes(text: str) -> list[str]:
    features = parsed(text).get("features")
    if isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks")):
        return ["Hooks are off in its [features]: Codex runs none until they are on.", REVIEW]
    return [REVIEW]
