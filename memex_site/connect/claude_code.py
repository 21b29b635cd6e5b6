"""Claude Code: hooks in its settings.json, the MCP server in its .claude.json. Pure."""

import re
from pathlib import Path
from typing import Any

from . import jsonedit
from .jsonedit import Trace
from .jsonscan import Child, Node, scan, value_of
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

AGENT = "claude-code"
SESSION_START = "SessionStart"
EVENTS: dict[str, str | None] = {
    SESSION_START: "startup|resume|clear|compact|fork",
    "UserPromptSubmit": None,
    "PreCompact": None,
    "PostCompact": None,
    "Stop": None,
    "SubagentStop": None,
    "SessionEnd": None,
}
_OUR_URL = re.compile(rf"http://127\.0\.0\.1:\d+/hooks/{AGENT}/\w+")
# Expanded by Claude Code from its own environment: the token stands in no file that may be shared.
_AUTHORIZATION = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}


def targets(home: Path, state_file: Path, installation: Installation, *, http: bool = False) -> list[Target]:
    """`home`: where settings.json lies; `state_file`: .claude.json."""
    groups = hook_groups(installation, http=http)
    server = mcp_server(installation, http=http)
    return [
        Target(
            home / "settings.json",
            lambda text: _connect_hooks(text, groups),
            lambda text, trace: jsonedit.remove(text, _our_hook, _trace(trace), "hooks"),
            lambda text: {"hooks": _wired_hooks(text, groups)},
            _notes,
        ),
        Target(
            state_file,
            lambda text: _connect_server(text, server),
            lambda text, trace: jsonedit.remove(text, _our_server, _trace(trace), "mcpServers"),
            lambda text: {"mcp": _wired_server(text, server)},
        ),
    ]


def hook_groups(installation: Installation, *, http: bool) -> dict[str, dict[str, Any]]:
    """For each event what is added to its list. SessionStart takes no `http` hooks."""
    groups: dict[str, dict[str, Any]] = {}
    for event, matcher in EVENTS.items():
        if http and event != SESSION_START:
            handler: dict[str, Any] = {
                "type": "http",
                "url": installation.url(f"/hooks/{AGENT}/{event}"),
                "headers": _AUTHORIZATION,
                "allowedEnvVars": [TOKEN_VARIABLE],
            }
        else:
            command, *arguments = installation.hook_command(AGENT, event)
            handler = {"type": "command", "command": command, "args": arguments}
        handler["timeout"] = HOOK_SECONDS
        groups[event] = {"matcher": matcher, "hooks": [handler]} if matcher else {"hooks": [handler]}
    return groups


def mcp_server(installation: Installation, *, http: bool) -> dict[str, Any]:
    if http:
        return {"type": "http", "url": installation.url("/mcp"), "headers": _AUTHORIZATION}
    return {
        "type": "stdio",
        "command": installation.python,
        "args": installation.mcp_arguments(AGENT),
        "env": {"MEMEX_HOME": installation.home},
    }


def is_ours(handler: Any) -> bool:
    if not isinstance(handler, dict):
        return False
    arguments = handler.get("args")
    said = [handler.get("command"), *(arguments if isinstance(arguments, list) else [])]
    url = handler.get("url")
    return any(isinstance(part, str) and HOOK_FILE in part.replace("\\", "/") for part in said) or bool(
        isinstance(url, str) and _OUR_URL.fullmatch(url)
    )


def _trace(data: dict[str, Any] | None) -> Trace | None:
    """What can't be read counts as not known."""
    try:
        return None if data is None else Trace.from_json(data)
    except (LookupError, TypeError, ValueError):
        return None


def _connect_hooks(text: str, groups: dict[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    trace = Trace()
    for event, group in groups.items():
        text = jsonedit.append(text, ("hooks", event), None, group, trace)
    return text, trace.to_json()


def _connect_server(text: str, server: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if jsonedit.find(text, scan(text, "mcpServers"), ("mcpServers", SERVER_NAME)) is not None:
        raise foreign_server("mcpServers")
    trace = Trace()
    return jsonedit.append(text, ("mcpServers",), SERVER_NAME, server, trace), trace.to_json()


def _our_hook(text: str, root: Node) -> tuple[jsonedit.Path, Node, Child] | None:
    """A group with our handlers alone, or our handler in a group that others share."""
    for event in _children(jsonedit.find(text, root, ("hooks",)), "{"):
        for group in _children(event.node, "["):
            handlers = group.node.child("hooks") if group.node.opening == "{" else None
            ours = [child for child in _children(handlers, "[") if is_ours(value_of(text, child.node))]
            if handlers and ours:
                path = ("hooks", str(event.key))
                whole = len(ours) == len(handlers.children)
                return (path, event.node, group) if whole else (path, handlers, ours[0])
    return None


def _our_server(text: str, root: Node) -> tuple[jsonedit.Path, Node, Child] | None:
    servers = jsonedit.find(text, root, ("mcpServers",))
    for child in _children(servers, "{"):
        if servers and child.key == SERVER_NAME and is_our_server(value_of(text, child.node)):
            return ("mcpServers",), servers, child
    return None


def _children(node: Node | None, opening: str) -> list[Child]:
    """Of a container of this kind; of anything else none."""
    return node.children if node and node.opening == opening else []


def _wired_hooks(text: str, groups: dict[str, dict[str, Any]]) -> Wired:
    found: list[tuple[str, Any]] = []
    for event in _children(jsonedit.find(text, scan(text, "hooks"), ("hooks",)), "{"):
        for child in _children(event.node, "["):
            group = value_of(text, child.node)
            handlers = group.get("hooks") if isinstance(group, dict) else None
            if isinstance(handlers, list) and any(is_ours(handler) for handler in handlers):
                found.append((str(event.key), group))
    if not found:
        return Wired.NO
    return Wired.YES if sorted(found, key=_event) == sorted(groups.items(), key=_event) else Wired.OTHERWISE


def _event(pair: tuple[str, Any]) -> str:
    return pair[0]


def _wired_server(text: str, server: dict[str, Any]) -> Wired:
    found = jsonedit.find(text, scan(text, "mcpServers"), ("mcpServers", SERVER_NAME))
    if found is None or not is_our_server(value_of(text, found)):
        return Wired.NO
    return Wired.YES if value_of(text, found) == server else Wired.OTHERWISE


def _notes(text: str) -> list[str]:
    switch = jsonedit.find(text, scan(text, "disableAllHooks"), ("disableAllHooks",))
    if switch is not None and value_of(text, switch) is True:
        return ["disableAllHooks is on in its settings: Claude Code runs no hooks until it is off."]
    return []
