"""Memex as an MCP server: nine tools, over stdio and streamable HTTP.

The way of a call: the transport says who calls (doors) -> the arguments are checked (parameters) -> the session
or folder that it is for gives an Access (callers) -> a tool reads or changes (tools_*) in a thread of its own ->
text for a model (rendering).
"""
