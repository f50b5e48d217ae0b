"""The MCP face: the tools, the packs' resources, prompts and skills, stateless, for clients of 2025 and of 2026.

Importing this module costs the SDK's 0.6 s of CPU, so nothing imports it before it is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mcp.types as t
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from octavo_artifact import __version__
from octavo_artifact.errors import RequestError
from octavo_artifact.schema import Resource
from octavo_serve.faces import Pack, UnavailableError, Workers, message, pack_of
from octavo_serve.introduction import introduce, point_to_skills
from octavo_serve.over_mcp.asking import FailedError, ask, cited
from octavo_serve.over_mcp.completions import complete
from octavo_serve.over_mcp.endpoint import Context, Find, endpoint_of
from octavo_serve.over_mcp.noting import Noting
from octavo_serve.over_mcp.offers import Prompts, contents, listed, templates
from octavo_serve.over_mcp.paging import cursor_of, page_after
from octavo_serve.over_mcp.skill_methods import EXTENSION, offer_skills
from octavo_serve.over_mcp.tools import ASK, TOOLS, Tool, described
from octavo_serve.requests import AskRequest, SearchRequest, parse_request
from octavo_serve.watching.traces import are_traces_wanted

if TYPE_CHECKING:
    from octavo_serve.answering.answerer import Answerer

PAGE = 200
"""Resources, templates or prompts on a page of their list."""

MAX_INSTRUCTIONS = 1500

MAX_LINKS = 3
"""Documents of a search's passages that are linked as resources; each costs the SDK 13 µs to check."""

_RESOURCE_NOT_FOUND_2025 = -32002
"""What 2025-11-25 and earlier prescribe; later versions say INVALID_PARAMS."""

_HOW_TO_USE = (
    "Call ep_search with the question in plain words; read more of a result with ep_read, giving its id or uri. "
    "Call ep_list_topics to see what there is, ep_graph_traverse to see what a result is joined to. Cite what you use "
    "by source_file and line_range, and say when it is `expired` or `age_stale`. `digest` names the release that "
    "answered. `refused: true` means that nothing relevant is known here: say so, do not guess."
)

_COMPLETE = {"resultType": "complete"}
"""In every result of the protocol of 2026; the SDK takes it from older ones."""

_logger = logging.getLogger(__name__)

_HOW_TO_ASK = "ep_ask has a question answered here, with checked citations."


def session_managers(
    workers: Workers, *, public: bool, answerer: Answerer | None = None
) -> tuple[StreamableHTTPSessionManager, StreamableHTTPSessionManager]:
    """What serves all endpoints over HTTP: each request says whose packs it is about. They are not running yet.

    The first answers with one JSON document, which takes half the CPU; the second may stream, and so tells progress
    and notices clients that leave.
    """
    server = make_server(endpoint_of, workers, public=public, answerer=answerer)
    whole, streaming = (
        StreamableHTTPSessionManager(
            server,
            json_response=json_response,
            stateless=True,
            # `edge` has checked Host and Origin before anything else.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        for json_response in (True, False)
    )
    return whole, streaming


def make_server(find: Find, workers: Workers, *, public: bool = False, answerer: Answerer | None = None) -> Server[Any]:
    """A server that answers each request from the endpoint that `find` finds, and questions with the `answerer`.

    `public` says that all callers see the same, so that they may share what they keep.
    """
    face = _Face(find, workers, public=public, answerer=answerer)
    server: Server[Any] = Server(
        "octavo",
        version=__version__,
        on_list_tools=face.list_tools,
        on_list_resources=face.list_resources,
        on_list_resource_templates=face.list_resource_templates,
        on_read_resource=face.read_resource,
        on_list_prompts=face.list_prompts,
        on_get_prompt=face.get_prompt,
        on_call_tool=face.call_tool,
        on_completion=face.complete,
        # No argument is mirrored in an `Mcp-Param-*` header, so there is nothing to compare. Without this the SDK
        # would list the tools, and with the schemas walk through one, at each call.
        get_tool_input_schema=lambda name: None,
    )
    offer_skills(server, find, workers, public=public)

    async def discover(ctx: Context, params: t.RequestParams) -> dict[str, Any]:
        capabilities = server.get_capabilities(
            protocol_version=ctx.protocol_version,
            extensions={EXTENSION: {"directoryRead": True}} if any(_count_skills(find(ctx).packs).values()) else {},
        )
        known = t.DiscoverResult(supported_versions=list(MODERN_PROTOCOL_VERSIONS), capabilities=capabilities)
        return face.kept(ctx, known.model_dump(by_alias=True, mode="json", exclude_none=True)) | {
            "instructions": instructions(find(ctx).packs, asks=answerer is not None)
        }

    server.add_request_handler("server/discover", t.RequestParams, discover)

    async def introduce_to_2025(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "initialize" and isinstance(result, dict):
            return {**result, "instructions": instructions(find(ctx).packs, asks=answerer is not None)}
        return result

    if not are_traces_wanted():
        # Spans go nowhere, and cost a tenth of each request.
        server.middleware.clear()
    server.middleware += [Noting(frozenset((*TOOLS, ASK.name))), _conceal, introduce_to_2025]
    return server


def instructions(packs: Sequence[Pack], *, asks: bool = False) -> str:
    """What a model is told of the server: what the packs are about, and how to use the tools.

    `asks` says that ep_ask is one of them.
    """
    if asks and not packs:
        return _HOW_TO_ASK
    skills = point_to_skills(_count_skills(packs))
    how = " ".join(each for each in (_HOW_TO_USE, _HOW_TO_ASK if asks else "", skills) if each)
    about = introduce([pack.manifest.pack for pack in packs], MAX_INSTRUCTIONS - len(how) - 2)
    return f"{about}\n\n{how}" if about else how


def _count_skills(packs: Sequence[Pack]) -> dict[str, int]:
    return {pack.slug: pack.manifest.counts.get("skills", 0) for pack in packs}


class _Face:
    """The handlers. They give dictionaries as they go over the wire: a model would be dumped and checked once more."""

    def __init__(self, find: Find, workers: Workers, *, public: bool, answerer: Answerer | None) -> None:
        self._answerer = answerer
        self._find = find
        self._workers = workers
        self._public = public

    def kept(self, ctx: Context, result: dict[str, Any]) -> dict[str, Any]:
        """The result with how long, and for whom, a client may keep it; clients of 2025 are not told."""
        hint = self._find(ctx).hint(public=self._public)
        return {**_COMPLETE, **result, "ttlMs": hint.ttl_ms, "cacheScope": hint.scope}

    async def list_tools(self, ctx: Context, params: t.PaginatedRequestParams | None) -> Any:
        endpoint = self._find(ctx)
        slugs = tuple(pack.slug for pack in endpoint.packs)
        listed = described(self._tools(slugs), slugs if endpoint.several else ())
        return self.kept(ctx, _page("tools", listed, _name, params))

    def _tools(self, slugs: Sequence[str]) -> tuple[Tool, ...]:
        """Those that are of use: without packs of its own a server can only ask another's."""
        asks = (ASK,) if self._answerer else ()
        return (*TOOLS.values(), *asks) if slugs or not asks else asks

    async def call_tool(self, ctx: Context, params: t.CallToolRequestParams) -> Any:
        if params.name == ASK.name and self._answerer is not None:
            return await self._ask(ctx, params, self._answerer)
        tool = TOOLS.get(params.name)
        if tool is None:
            known = ", ".join(tool.name for tool in self._tools(tuple(TOOLS)))
            raise MCPError(t.INVALID_PARAMS, f"unknown tool; known are {known}")
        try:
            request = parse_request(tool.request, params.arguments or {}, strict=True)
            result = await self._workers.run(tool.asked_of(self._find(ctx), request), request)
        except (RequestError, UnavailableError) as error:
            return _failed(message(error))
        return answered(tool, request, result)

    async def _ask(self, ctx: Context, params: t.CallToolRequestParams, answerer: Answerer) -> Any:
        try:
            request = parse_request(AskRequest, params.arguments or {}, strict=True)
            answer = await ask(answerer, self._find(ctx), request, ctx.session.report_progress)
        except (RequestError, UnavailableError, FailedError) as error:
            return _failed(message(error))
        content = [_text(ASK.text(answer)), *_links(cited(answer))]
        return {**_COMPLETE, "content": content, "structuredContent": answer}

    async def list_resources(self, ctx: Context, params: t.PaginatedRequestParams | None) -> Any:
        packs = self._find(ctx).packs
        resources = await self._workers.run(_all_resources, packs)
        page, cursor = page_after(resources, cursor_of(params), PAGE, _uri)
        return self.kept(ctx, _with_cursor({"resources": [listed(resource) for resource in page]}, cursor))

    async def list_resource_templates(self, ctx: Context, params: t.PaginatedRequestParams | None) -> Any:
        found = [template.listed for template in templates(self._find(ctx))]
        return self.kept(ctx, _page("resourceTemplates", found, _template, params))

    async def read_resource(self, ctx: Context, params: t.ReadResourceRequestParams) -> Any:
        try:
            pack = pack_of(self._find(ctx).packs, params.uri)
            resource, content = await self._workers.run(pack.resource, params.uri)
        except RequestError as error:
            modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = t.INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND_2025
            raise MCPError(code, message(error), {"uri": params.uri}) from error
        except UnavailableError as error:
            raise MCPError(t.INTERNAL_ERROR, message(error)) from error
        return self.kept(ctx, {"contents": [contents(params.uri, resource, content)]})

    async def list_prompts(self, ctx: Context, params: t.PaginatedRequestParams | None) -> Any:
        prompts = await self._workers.run(Prompts, self._find(ctx))
        return self.kept(ctx, _page("prompts", prompts.listed, _name, params))

    async def get_prompt(self, ctx: Context, params: t.GetPromptRequestParams) -> Any:
        prompts = await self._workers.run(Prompts, self._find(ctx))
        try:
            given = params.arguments or {}
            return _COMPLETE | await self._workers.run(lambda given: prompts.get(params.name, given), given)
        except RequestError as error:
            raise MCPError(t.INVALID_PARAMS, message(error)) from error
        except UnavailableError as error:
            raise MCPError(t.INTERNAL_ERROR, message(error)) from error

    async def complete(self, ctx: Context, params: t.CompleteRequestParams) -> Any:
        endpoint = self._find(ctx)
        try:
            found = await self._workers.run(lambda asked: complete(endpoint, asked), params)
            return {**_COMPLETE, "completion": found}
        except RequestError as error:
            raise MCPError(t.INVALID_PARAMS, message(error)) from error
        except UnavailableError as error:
            raise MCPError(t.INTERNAL_ERROR, message(error)) from error


def _all_resources(packs: Sequence[Pack]) -> list[Resource]:
    return [resource for pack in packs for resource in pack.resources()]


def answered(tool: Tool, request: Any, result: Any) -> dict[str, Any]:
    """A result as text for a model, links to its documents, and the full record.

    A compact answer has the passages' text once, in the text block: every host shows a model that, or else citations
    from which it can read on. Otherwise both have it, for neither is shown by all hosts.
    """
    content: list[dict[str, Any]] = [_text(tool.text(result))]
    if isinstance(request, SearchRequest):
        if request.compact:
            result = {**result, "results": [_without_text(hit) for hit in result["results"]]}
        else:
            content += _links(result["results"])
    return {**_COMPLETE, "content": content, "structuredContent": result}


def _failed(said: str) -> dict[str, Any]:
    return {**_COMPLETE, "content": [_text(said)], "isError": True}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _without_text(hit: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in hit.items() if name != "text"}


def _links(hits: Sequence[Any]) -> list[dict[str, Any]]:
    """The documents of the hits, each once, the best first."""
    documents = {hit["uri"]: hit["source_file"] for hit in hits}
    return [{"type": "resource_link", "uri": uri, "name": name} for uri, name in list(documents.items())[:MAX_LINKS]]


def _name(item: dict[str, Any]) -> str:
    return item["name"]


def _uri(resource: Resource) -> str:
    return resource.uri


def _template(template: dict[str, Any]) -> str:
    return template["uriTemplate"]


def _page(
    key: str, items: Sequence[dict[str, Any]], name: Any, params: t.PaginatedRequestParams | None
) -> dict[str, Any]:
    page, cursor = page_after(items, cursor_of(params), PAGE, name)
    return _with_cursor({key: list(page)}, cursor)


def _with_cursor(result: dict[str, Any], cursor: str | None) -> dict[str, Any]:
    return result if cursor is None else {**result, "nextCursor": cursor}


async def _conceal(ctx: Context, call_next: CallNext) -> HandlerResult:
    # The SDK's 2025 leg sends str(exception) to the client.
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        _logger.exception("%s failed", ctx.method)
        raise MCPError(t.INTERNAL_ERROR, "Internal error") from error
