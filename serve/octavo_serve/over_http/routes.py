"""What each HTTP route answers, and how a query string becomes a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from starlette.background import BackgroundTask
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from octavo_artifact import __version__
from octavo_artifact.errors import RequestError
from octavo_serve.callers.access import view_of
from octavo_serve.faces import Workers, compact_json
from octavo_serve.over_http.edge import HEALTH, READY
from octavo_serve.over_mcp.host import McpHost
from octavo_serve.requests import RequestT, SearchRequest, TraverseRequest, parse_request

DIGEST_HEADER = "octavo-digest"

_SEARCH = {
    "q": "query",
    "pack": "pack",
    "n": "max_results",
    **{name: name for name in (
        "type", "tags", "path", "tier", "verified_within", "graph", "gate", "reconstruct", "retrieval", "explain",
        "compact", "max_tokens", "cursor",
    )},
}  # fmt: skip
_GRAPH = {name: name for name in (
        "id", "path", "pack", "depth", "kinds", "direction", "query", "decay", "min_score", "max_nodes",
        "max_tokens", "cursor",
    )}  # fmt: skip
_LISTS = frozenset({"tags", "kinds"})


class Routes:
    """The handlers of all routes but MCP's and the probes'."""

    def __init__(self, workers: Workers, mcp: McpHost) -> None:
        self._workers = workers
        self._mcp = mcp

    @property
    def listed(self) -> list[Route]:
        """The routes, each with its handler."""
        return [
            Route("/", self.index),
            Route("/search", self.search),
            Route("/graph", self.graph),
        ]

    async def index(self, request: Request) -> Response:
        """What there is to ask."""
        endpoints = {
            "/search": f"passages for a query: q (required), {', '.join(list(_SEARCH)[1:])}",
            "/graph": f"what a node is joined to: id or path, {', '.join(list(_GRAPH)[2:])}",
            HEALTH: "the packs that are served, and those that were refused",
            READY: "whether requests may come",
            "/mcp": "MCP over all packs (POST)",
            **{f"/packs/{slug}/mcp": f"MCP over the pack {slug} (POST)" for slug in view_of(request.scope).packs},
        }
        return JSONResponse({"name": "octavo", "version": __version__, "endpoints": endpoints})

    async def search(self, request: Request) -> Response:
        """Passages for a query."""
        asked = search_request(request.query_params)
        result = await self._workers.run(view_of(request.scope).search, asked)
        # After the response is sent: the import must not delay the answer that triggers it.
        then = BackgroundTask(self._mcp.want) if self._mcp.idle else None
        return Response(
            compact_json(result),
            headers={DIGEST_HEADER: result["digest"]},
            media_type="application/json",
            background=then,
        )

    async def graph(self, request: Request) -> Response:
        """What a node is joined to."""
        asked = traverse_request(request.query_params)
        result = await self._workers.run(view_of(request.scope).choose(asked.pack).traverse, asked)
        return Response(compact_json(result), headers={DIGEST_HEADER: result["digest"]}, media_type="application/json")


def search_request(parameters: QueryParams) -> SearchRequest:
    """The search that a query string asks for; raises RequestError, which names the parameter as it is spelled there.

    `tags` may be repeated and may hold several, separated by commas. An empty parameter is an absent one, but for `q`.
    """
    return _asked(SearchRequest, _SEARCH, parameters)


def traverse_request(parameters: QueryParams) -> TraverseRequest:
    """The walk that a query string asks for; as `search_request`, with `kinds` the list."""
    return _asked(TraverseRequest, _GRAPH, parameters)


def _asked(model: type[RequestT], fields: Mapping[str, str], parameters: QueryParams) -> RequestT:
    values: dict[str, Any] = {}
    for name, value in parameters.multi_items():
        field = fields.get(name)
        if field is None:
            raise RequestError(name[:100], f"unknown; known are {', '.join(fields)}")
        if field in _LISTS:
            items = (item.strip() for item in value.split(","))
            values.setdefault(field, []).extend(item for item in items if item)
        elif field in values:
            raise RequestError(name, "given more than once")
        elif field == "retrieval" and value:
            values[field] = _mapping(value)
        elif value or field == "query":
            values[field] = value
    try:
        return parse_request(model, values, strict=False)
    except RequestError as error:
        field, _, wrong = str(error).partition(": ")
        spelling = next((name for name, known in fields.items() if known == field), field)
        raise RequestError(spelling, wrong) from error


def _mapping(text: str) -> dict[str, Any]:
    """A parameter of the query string that is a JSON object. Raises RequestError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RequestError("retrieval", 'expected a JSON object such as {"diversity": 0.3}')
    return cast(dict[str, Any], value)
