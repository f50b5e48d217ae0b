"""Which method and tool a request of MCP is for: noted for those who watch the server."""

from __future__ import annotations

from typing import Any

import mcp.types as t
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError

from octavo_serve.watching.notes import current

_METHODS = frozenset(
    "initialize ping server/discover tools/list tools/call resources/list resources/templates/list resources/read "
    "resources/directory/read prompts/list prompts/get completion/complete skills/list skills/get "
    "subscriptions/listen notifications/initialized notifications/cancelled".split()
)
_OTHER = "other"
"""Stands for what a client made up."""


class Noting:
    """Middleware of the MCP server. `tools` are the names of those that there are."""

    def __init__(self, tools: frozenset[str]) -> None:
        self._tools = tools

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass the message on, and note whether its answer is an error."""
        note = current.get()
        if note is None:
            return await call_next(ctx)
        note.operation = self._operation(ctx)
        try:
            result = await call_next(ctx)
        except MCPError:
            note.mcp_error = True
            raise
        match result:
            # as a model or as it will be sent
            case t.CallToolResult(is_error=True) | {"isError": True}:
                note.mcp_error = True
            case _:
                pass
        return result

    def _operation(self, ctx: ServerRequestContext[Any, Any]) -> str:
        method = ctx.method if ctx.method in _METHODS else _OTHER
        if method != "tools/call":
            return method
        name = ctx.params.get("name") if ctx.params else None
        return f"{method} {name if name in self._tools else _OTHER}"
