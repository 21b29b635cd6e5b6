"""The tools as an MCP server, for either transport. Importing this takes a second: the SDK does.

The SDK's low-level server, since its other one accepts unknown arguments, answers wrong ones in its library's
words, and puts a handler on the root logger.
"""

import logging
from typing import Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from memex_site import VERSION

from .callers import Door
from .calls import TOOLS, ToolRefused, arguments_of, call, tool_named
from .instructions import INSTRUCTIONS
from .parameters import schema_of
from .threads import in_thread
from .tool import Tool

Context = ServerRequestContext[Any, Any]
# What a client may be asked for in the middle of a call: the folders it works in.
ROOTS = "roots"
_ROOTS_SECONDS = 5.0

logger = logging.getLogger(__name__)


def build_server(door: Door) -> Server[Any]:
    async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS.values()])

    async def call_tool(
        ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            tool = tool_named(params.name)
            arguments = arguments_of(tool, params.arguments or {})
            folder = door.folder
            if not arguments["session"] and not folder:
                root = await _root(ctx, params)
                if isinstance(root, types.InputRequiredResult):
                    return root
                folder = root or door.fallback
            return _text(await in_thread(call, tool, arguments, door, ctx.request, folder))
        except ToolRefused as error:
            return _text(str(error), is_error=True)

    return Server(
        "memex",
        version=VERSION,
        title="Memex",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _text(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema_of(tool.parameters),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.is_read_only,
            destructive_hint=False,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=False,
        ),
        # Claude Code puts what is longer than it expects into a file, and shows its beginning.
        _meta={"anthropic/maxResultSizeChars": tool.max_chars} if tool.max_chars else None,
    )


async def _root(ctx: Context, params: types.CallToolRequestParams) -> str | types.InputRequiredResult:
    """The first folder that the client works in, "" when it doesn't say. Newer clients are asked by an answer
    that they complete, older ones by a request of ours, where the transport carries one."""
    given = (params.input_responses or {}).get(ROOTS)
    if isinstance(given, types.ListRootsResult):
        return first_folder(given)
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return ""
    request = types.ListRootsRequest()
    if not ctx.session.can_send_request:
        return types.InputRequiredResult(input_requests={ROOTS: request}) if _is_modern(ctx) else ""
    try:
        return first_folder(await ctx.session.send_request(request, types.ListRootsResult, _ROOTS_SECONDS))
    except (MCPError, ValueError):
        logger.info("The client declares roots, and names none.", exc_info=True)
        return ""


def _is_modern(ctx: Context) -> bool:
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def first_folder(result: types.ListRootsResult) -> str:
    """ "" when there is none on this machine."""
    for root in result.roots:
        parts = urlsplit(str(root.uri))
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            return unquote(parts.path)
    return ""
