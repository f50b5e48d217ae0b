"""The MCP face: four tools, the packs' resources, prompts and skills, stateless, for clients of 2025 and of 2026.

Importing this module costs the SDK's 0.6 s of CPU, so nothing imports it before it is needed.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import mcp.types as t
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter, ValidationError

from octavo_artifact import __version__
from octavo_artifact.errors import NotFoundError, RequestError
from octavo_artifact.ids import KNOWLEDGE, knowledge_uri
from octavo_artifact.schema import Resource
from octavo_serve.callers.views import View
from octavo_serve.faces import Library, Pack, UnavailableError, Workers, compact_json, message, owner_of, pack_of
from octavo_serve.introduction import introduce, point_to_skills
from octavo_serve.over_mcp.noting import Noting
from octavo_serve.over_mcp.paging import cursor_of, page_after, refuse_cursor
from octavo_serve.over_mcp.skill_methods import offer_skills
from octavo_serve.prompts import Prompt
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest, TraverseRequest, parse_request
from octavo_serve.results import ReadResult, SearchResult, TopicsResult, TraverseResult
from octavo_serve.watching.traces import are_traces_wanted

PAGE = 200
"""Resources on a page of resources/list."""

MAX_INSTRUCTIONS = 1500

# An answer changes only when a release is swapped in, which happens by hand or by a deployment. Private, because
# whether everybody may see a pack is not for this module to say.
_HINT = CacheHint(ttl_ms=300_000, scope="private")

_RESOURCE_NOT_FOUND_2025 = -32002
"""What 2025-11-25 and earlier prescribe; later versions say INVALID_PARAMS."""

_TEXT_TYPES = ("text/", "application/json", "application/yaml", "application/xml", "application/toml")
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml")

_HOW_TO_USE = (
    "Call ep_search with the question in plain words; read more of a result with ep_read, giving its id or uri. "
    "Call ep_list_topics to see what there is, ep_graph_traverse to see what a result is joined to. Cite what you use "
    "by source_file and line_range, and say when it is `expired` or `age_stale`. `digest` names the release that "
    "answered. `refused: true` means that nothing relevant is known here: say so, do not guess."
)

_Context = ServerRequestContext[Any, Any]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Tool:
    name: str
    title: str
    description: str
    example: dict[str, Any]
    request: type[SearchRequest] | type[ReadRequest] | type[TopicsRequest] | type[TraverseRequest]
    result: Any
    """The TypedDict of the answer."""
    work: Callable[[Pack], Callable[[Any], Any]]


_TOOLS = {
    tool.name: tool
    for tool in (
        _Tool(
            "ep_search",
            "Search passages",
            "Find the passages that answer a question, best first, each with its file, lines and release. Use it for "
            "any question the pack may cover, and again in other words when the first answer does not fit.",
            {"query": "how do I replace the filter?", "max_results": 5},
            SearchRequest,
            SearchResult,
            lambda pack: pack.search,
        ),
        _Tool(
            "ep_read",
            "Read a document",
            "Read one document of the pack, whole or from a line on. Use it when a search result is not enough: give "
            "the result's id, uri, fragment_id or source_file. When `truncated` is true, ask again with a later "
            "start_line.",
            {"path": "guides/filters.md", "start_line": 1},
            ReadRequest,
            ReadResult,
            lambda pack: pack.read,
        ),
        _Tool(
            "ep_list_topics",
            "List topics",
            "List the pack's documents by type, with what the pack says of itself. Use it to see what is covered, or "
            "to find a document by its title.",
            {"type": "guide"},
            TopicsRequest,
            TopicsResult,
            lambda pack: pack.topics,
        ),
        _Tool(
            "ep_graph_traverse",
            "Follow the graph",
            "Show what a document is joined to: what it requires, what it relates and links to, what links to it, and "
            "the entities it mentions. Use it to find the context of a search result; read a node with ep_read, "
            "giving its id or uri.",
            {"id": "pump/guides/filters", "depth": 2, "direction": "out"},
            TraverseRequest,
            TraverseResult,
            lambda pack: pack.traverse,
        ),
    )
}


def session_managers(views: Sequence[View], workers: Workers) -> dict[View | str, StreamableHTTPSessionManager]:
    """A session manager for each view, and one for each pack by slug, which all share; none is running yet."""
    servers: dict[View | str, Server[Any]] = {view: make_server(view, workers) for view in views}
    for view in views:
        for slug in view.packs:
            if slug not in servers:
                servers[slug] = make_server(View(view, frozenset({slug})), workers, slug)
    return {
        name: StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=True,
            # `edge` has checked Host and Origin before anything else.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        for name, server in servers.items()
    }


def make_server(library: Library, workers: Workers, slug: str | None = None) -> Server[Any]:
    """The MCP server of one pack, or of all packs when `slug` is None."""
    face = _Face(library, workers, slug)
    server: Server[Any] = Server(
        "octavo",
        version=__version__,
        instructions=instructions(face.packs()),
        on_list_tools=face.list_tools,
        on_list_resources=face.list_resources,
        on_list_resource_templates=face.list_resource_templates,
        on_read_resource=face.read_resource,
        on_list_prompts=face.list_prompts,
        on_get_prompt=face.get_prompt,
        on_call_tool=face.call_tool,
        # No argument is mirrored in an `Mcp-Param-*` header, so there is nothing to compare. Without this the SDK
        # would list the tools, and with the schemas walk through one, at each call.
        get_tool_input_schema=lambda name: None,
        cache_hints={
            "server/discover": _HINT,
            "tools/list": _HINT,
            "prompts/list": _HINT,
            "resources/list": _HINT,
            "resources/templates/list": _HINT,
            "resources/read": _HINT,
        },
    )
    if any(_count_skills(face.packs()).values()):
        offer_skills(server, face.packs, workers, _HINT)
    if not are_traces_wanted():
        # Spans go nowhere, and cost a tenth of each request.
        server.middleware.clear()
    server.middleware.append(Noting(frozenset(_TOOLS)))
    server.middleware.append(_conceal)
    return server


def instructions(packs: Sequence[Pack]) -> str:
    """What a model is told of the server: what the packs are about, and how to use the tools."""
    skills = point_to_skills(_count_skills(packs))
    how = f"{_HOW_TO_USE} {skills}" if skills else _HOW_TO_USE
    about = introduce([pack.manifest.pack for pack in packs], MAX_INSTRUCTIONS - len(how) - 2)
    return f"{about}\n\n{how}" if about else how


def _count_skills(packs: Sequence[Pack]) -> dict[str, int]:
    return {pack.slug: pack.manifest.counts.get("skills", 0) for pack in packs}


class _Face:
    """The handlers of one server. Packs are looked up at each call, so a release that was swapped in is served."""

    def __init__(self, library: Library, workers: Workers, slug: str | None) -> None:
        self._library = library
        self._workers = workers
        self._slug = slug
        self.tools = [self._describe(tool) for tool in _TOOLS.values()]

    def packs(self) -> list[Pack]:
        """The packs that this server may answer from, by slug."""
        return [pack for slug, pack in self._library.packs.items() if self._slug in (None, slug)]

    async def list_tools(self, ctx: _Context, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        refuse_cursor(params)
        return t.ListToolsResult(tools=self.tools)

    async def call_tool(self, ctx: _Context, params: t.CallToolRequestParams) -> t.CallToolResult:
        tool = _TOOLS.get(params.name)
        if tool is None:
            raise MCPError(t.INVALID_PARAMS, f"unknown tool; known are {', '.join(_TOOLS)}")
        try:
            request = parse_request(tool.request, params.arguments or {}, strict=True)
            result = await self._workers.run(self._work(tool, request), request)
        except (RequestError, UnavailableError) as error:
            return t.CallToolResult(content=[t.TextContent(text=message(error))], is_error=True)
        return t.CallToolResult(content=[t.TextContent(text=compact_json(result).decode())], structured_content=result)

    async def list_resources(self, ctx: _Context, params: t.PaginatedRequestParams | None) -> t.ListResourcesResult:
        resources = await self._workers.run(_all_resources, self.packs())
        page, cursor = page_after(resources, cursor_of(params), PAGE)
        return t.ListResourcesResult(
            resources=[
                t.Resource(
                    uri=resource.uri,
                    name=resource.name,
                    title=resource.title,
                    description=resource.description,
                    mime_type=resource.mime_type,
                    size=resource.size,
                    _meta=_meta(resource),
                )
                for resource in page
            ],
            next_cursor=cursor,
        )

    async def list_resource_templates(
        self, ctx: _Context, params: t.PaginatedRequestParams | None
    ) -> t.ListResourceTemplatesResult:
        refuse_cursor(params)
        return t.ListResourceTemplatesResult(
            resource_templates=[
                _knowledge_template(pack, owner) if (owner := owner_of(pack)) is not None else _file_template(pack)
                for pack in self.packs()
            ]
        )

    async def read_resource(self, ctx: _Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        try:
            pack = pack_of(self.packs(), params.uri)
            resource, content = await self._workers.run(pack.resource, params.uri)
        except RequestError as error:
            modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = t.INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND_2025
            raise MCPError(code, message(error), {"uri": params.uri}) from error
        except UnavailableError as error:
            raise MCPError(t.INTERNAL_ERROR, message(error)) from error
        return t.ReadResourceResult(contents=[_contents(params.uri, resource, content)])

    async def list_prompts(self, ctx: _Context, params: t.PaginatedRequestParams | None) -> t.ListPromptsResult:
        refuse_cursor(params)
        prompts = await self._workers.run(self._prompts, self.packs())
        return t.ListPromptsResult(
            prompts=[
                t.Prompt(name=name, title=prompt.title, description=prompt.description)
                for name, (_, prompt) in prompts.items()
            ]
        )

    async def get_prompt(self, ctx: _Context, params: t.GetPromptRequestParams) -> t.GetPromptResult:
        if params.arguments:
            raise MCPError(t.INVALID_PARAMS, "arguments: prompts of packs take none")
        prompts = await self._workers.run(self._prompts, self.packs())
        if params.name not in prompts:
            raise MCPError(t.INVALID_PARAMS, "name: no such prompt; list the prompts first")
        pack, prompt = prompts[params.name]
        try:
            _, text = await self._workers.run(pack.prompt, prompt.name)
        except (RequestError, UnavailableError) as error:
            raise MCPError(t.INTERNAL_ERROR, message(error)) from error
        content = t.PromptMessage(role="user", content=t.TextContent(text=text))
        return t.GetPromptResult(description=prompt.description, messages=[content])

    def _prompts(self, packs: Sequence[Pack]) -> dict[str, tuple[Pack, Prompt]]:
        """All prompts by the name they go by here: with the pack's slug before it where several packs are served."""
        prefixed = len(packs) > 1
        return {
            f"{pack.slug}-{prompt.name}" if prefixed else prompt.name: (pack, prompt)
            for pack in packs
            for prompt in pack.prompts()
        }

    def _work(self, tool: _Tool, request: Any) -> Callable[[Any], Any]:
        if tool.request is SearchRequest and self._slug is None:
            return self._library.search
        return tool.work(self._choose(request.pack))

    def _choose(self, slug: str | None) -> Pack:
        if self._slug is None:
            return self._library.choose(slug)
        if slug not in (None, self._slug):
            raise NotFoundError("pack", f"only {self._slug} is served here")
        return self._library.choose(self._slug)

    def _describe(self, tool: _Tool) -> t.Tool:
        slugs = [pack.slug for pack in self.packs()]
        several = self._slug is None and len(slugs) > 1
        schema = _schema(tool.request)
        example = tool.example
        if several:
            may_choose = tool.request is SearchRequest
            known = f"one of {', '.join(slugs)}" + ("; without it all of them are searched." if may_choose else ".")
            pack = {"type": "string", "description": f"Slug of the pack to ask: {known}"}
            schema = {**schema, "properties": {**schema["properties"], "pack": pack}}
            if not may_choose:
                schema["required"] = [*schema.get("required", ()), "pack"]
                example = {**example, "pack": slugs[0]}
        return t.Tool(
            name=tool.name,
            title=tool.title,
            description=f"{tool.description} Example: {json.dumps(example)}",
            input_schema=schema,
            output_schema=_schema(tool.result),
            annotations=t.ToolAnnotations(
                title=tool.title,
                read_only_hint=True,
                destructive_hint=False,
                idempotent_hint=True,
                open_world_hint=False,
            ),
        )


def _all_resources(packs: Sequence[Pack]) -> list[Resource]:
    return [resource for pack in packs for resource in pack.resources()]


async def _conceal(ctx: _Context, call_next: CallNext) -> HandlerResult:
    # The SDK's 2025 leg sends str(exception) to the client.
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        _logger.exception("%s failed", ctx.method)
        raise MCPError(t.INTERNAL_ERROR, "Internal error") from error


@cache
def _schema(shape: Any) -> dict[str, Any]:
    schema = shape.model_json_schema() if issubclass(shape, BaseModel) else TypeAdapter(shape).json_schema()
    return _without_titles(schema)


def _without_titles(value: Any) -> Any:
    # pydantic titles every property with its own name. A property that is called title holds a schema, not a string.
    if isinstance(value, dict):
        return {k: _without_titles(v) for k, v in value.items() if not (k == "title" and isinstance(v, str))}
    if isinstance(value, list):
        return [_without_titles(item) for item in value]
    return value


def _file_template(pack: Pack) -> t.ResourceTemplate:
    return t.ResourceTemplate(
        uri_template=f"ep://{pack.slug}/file/{{+path}}",
        name=f"{pack.slug}-file",
        title=f"{pack.manifest.pack['name']}: file",
        description="A file of the pack by its path.",
    )


def _knowledge_template(pack: Pack, owner: str) -> t.ResourceTemplate:
    return t.ResourceTemplate(
        uri_template=f"{knowledge_uri(owner, '', '')[:-1]}{{type}}/{{+id}}",
        name=f"{pack.slug}-document",
        title=f"{pack.manifest.pack['name']}: document",
        description="A document of the repository by its type and id.",
    )


def _meta(resource: Resource) -> dict[str, Any] | None:
    """What okf-mcp-server tells with a document; clients notice by it that the text has changed."""
    return {"content_hash": f"sha256:{resource.sha256}"} if resource.uri.startswith(KNOWLEDGE) else None


def _contents(uri: str, resource: Resource, content: bytes) -> t.TextResourceContents | t.BlobResourceContents:
    mime_type, meta = resource.mime_type, _meta(resource)
    if mime_type.startswith(_TEXT_TYPES) or mime_type.endswith(_TEXT_SUFFIXES):
        try:
            return t.TextResourceContents(uri=uri, mime_type=mime_type, text=content.decode(), _meta=meta)
        except UnicodeDecodeError:
            pass
    return t.BlobResourceContents(uri=uri, mime_type=mime_type, blob=base64.b64encode(content).decode(), _meta=meta)
