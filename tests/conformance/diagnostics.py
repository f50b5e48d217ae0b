"""The server with the tools, resources and prompts that the conformance suite asks for by name.

The suite cannot be told the names that a server has. So these are laid over the real server's handlers, which answer
everything else; the application, its guard and its socket are the real ones too. Run it as a program:
`python diagnostics.py DIST` prints its address and serves until it is ended.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import mcp.types as t
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from octavo_serve.catalog import open_catalog
from octavo_serve.over_http.run import address, bind, serve
from octavo_serve.over_mcp import app
from octavo_serve.settings import ServerSettings

_Context = ServerRequestContext[Any, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
"""One red pixel."""
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
"""No sample."""

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""Compared by the suite with what it has itself, keyword by keyword."""
MIRRORED: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}

_IMAGE = t.ImageContent(data=PNG, mime_type="image/png")
_EMBEDDED = t.EmbeddedResource(
    resource=t.TextResourceContents(uri="test://embedded", mime_type="text/plain", text="Embedded.")
)
_ANSWERS: dict[str, list[t.ContentBlock]] = {
    "test_simple_text": [t.TextContent(text="This is a simple text response for testing.")],
    "test_image_content": [_IMAGE],
    "test_audio_content": [t.AudioContent(data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [_EMBEDDED],
    "test_multiple_content_types": [t.TextContent(text="Several."), _IMAGE, _EMBEDDED],
    "test_tool_with_progress": [t.TextContent(text="Done.")],
    "test_error_handling": [t.TextContent(text="This tool intentionally returns an error for testing")],
    "test_missing_capability": [],
    "json_schema_2020_12_tool": [t.TextContent(text="Valid.")],
    "test_mirrored_header": [t.TextContent(text="Mirrored.")],
}
_SCHEMAS = {"json_schema_2020_12_tool": SCHEMA, "test_mirrored_header": MIRRORED}
_TOOLS = [t.Tool(name=name, description="For tests.", input_schema=_SCHEMAS.get(name, NOTHING)) for name in _ANSWERS]

_RESOURCES: dict[str, t.TextResourceContents | t.BlobResourceContents] = {
    "test://static-text": t.TextResourceContents(
        uri="test://static-text", mime_type="text/plain", text="This is the content of the static text resource."
    ),
    "test://static-binary": t.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PNG),
}
_TEMPLATE = re.compile(r"test://template/([^/]+)/data")

_PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}
"""Names of their arguments."""


def with_diagnostics(server: Server[Any]) -> Server[Any]:
    """The same server, which answers to the names above itself and leaves all others to its own handlers."""

    def lay_over(method: str, model: type[Any], answer: Callable[..., Awaitable[Any]]) -> None:
        entry = server.get_request_handler(method)

        async def handler(ctx: _Context, params: Any) -> Any:
            return await answer(ctx, params, entry.handler if entry else None)

        server.add_request_handler(method, model, handler)

    lay_over("tools/list", t.PaginatedRequestParams, _list_tools)
    lay_over("tools/call", t.CallToolRequestParams, _call_tool)
    lay_over("resources/read", t.ReadResourceRequestParams, _read_resource)
    lay_over("prompts/list", t.PaginatedRequestParams, _list_prompts)
    lay_over("prompts/get", t.GetPromptRequestParams, _get_prompt)
    lay_over("completion/complete", t.CompleteRequestParams, _complete)
    server.get_tool_input_schema = {"test_mirrored_header": MIRRORED}.get
    return server


def _with_more(listed: Any, key: str, items: Sequence[BaseModel]) -> Any:
    """A list of the server's, which may be a model or JSON, with `items` behind its own."""
    if isinstance(listed, BaseModel):
        return listed.model_copy(update={key: [*getattr(listed, key), *items]})
    dumped = [item.model_dump(by_alias=True, mode="json", exclude_none=True) for item in items]
    return {**listed, key: [*listed[key], *dumped]}


async def _list_tools(ctx: _Context, params: Any, own: Any) -> Any:
    return _with_more(await own(ctx, params), "tools", _TOOLS)


async def _call_tool(ctx: _Context, params: t.CallToolRequestParams, own: Any) -> t.CallToolResult:
    if params.name not in _ANSWERS:
        return await own(ctx, params)
    if params.name == "test_missing_capability":
        # what a tool says that cannot work without a model of the client; the suite's client offers none
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(t.MISSING_REQUIRED_CLIENT_CAPABILITY, "needs sampling", needed)
    if params.name == "test_tool_with_progress":
        for progress in (0, 50, 100):
            await ctx.session.report_progress(progress, 100)
            await anyio.sleep(0.01)
    return t.CallToolResult(content=_ANSWERS[params.name], is_error=params.name == "test_error_handling")


async def _read_resource(ctx: _Context, params: t.ReadResourceRequestParams, own: Any) -> t.ReadResourceResult:
    uri = str(params.uri)
    if found := _TEMPLATE.fullmatch(uri):
        text = json.dumps({"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"})
        contents = t.TextResourceContents(uri=uri, mime_type="application/json", text=text)
        return t.ReadResourceResult(contents=[contents])
    return t.ReadResourceResult(contents=[_RESOURCES[uri]]) if uri in _RESOURCES else await own(ctx, params)


async def _list_prompts(ctx: _Context, params: Any, own: Any) -> Any:
    prompts = [
        t.Prompt(
            name=name,
            description="For tests.",
            arguments=[t.PromptArgument(name=argument, description="Any.", required=True) for argument in arguments],
        )
        for name, arguments in _PROMPTS.items()
    ]
    return _with_more(await own(ctx, params), "prompts", prompts)


async def _get_prompt(ctx: _Context, params: t.GetPromptRequestParams, own: Any) -> t.GetPromptResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            contents: list[t.ContentBlock] = [t.TextContent(text="This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            text = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
            contents = [t.TextContent(text=text)]
        case "test_prompt_with_embedded_resource":
            resource = t.TextResourceContents(uri=given["resourceUri"], mime_type="text/plain", text="Embedded.")
            contents = [t.EmbeddedResource(resource=resource), t.TextContent(text="Process the resource above.")]
        case "test_prompt_with_image":
            contents = [_IMAGE, t.TextContent(text="Analyze the image above.")]
        case _:
            return await own(ctx, params)
    return t.GetPromptResult(messages=[t.PromptMessage(role="user", content=content) for content in contents])


async def _complete(ctx: _Context, params: t.CompleteRequestParams, own: Any) -> t.CompleteResult:
    if own is None or getattr(params.ref, "name", None) in _PROMPTS:
        return t.CompleteResult(completion=t.Completion(values=[], total=0, has_more=False))
    return await own(ctx, params)


def main() -> None:
    """Serve the folder of releases that is the only argument."""
    make_server = app.make_server

    def make_with_diagnostics(*given: Any, **named: Any) -> Server[Any]:
        return with_diagnostics(make_server(*given, **named))

    app.make_server = make_with_diagnostics
    settings = ServerSettings(port=0)
    listener = bind(settings)
    catalog = open_catalog(Path(sys.argv[1]))
    print(address(listener), flush=True)
    serve(catalog, settings, listener)


if __name__ == "__main__":
    main()
