"""What each HTTP route answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from octavo_artifact import __version__
from octavo_artifact.errors import RequestError
from octavo_artifact.ids import DIGEST, document_uri, sha256_hex
from octavo_serve.callers.access import view_of
from octavo_serve.callers.views import View
from octavo_serve.faces import Pack, Workers, compact_json
from octavo_serve.over_http.bodies import request_of_body
from octavo_serve.over_http.caching import IMMUTABLE, NEVER, REVALIDATED, is_any, is_held, tag_of
from octavo_serve.over_http.edge import HEALTH, READY
from octavo_serve.over_http.page import page, wants_page
from octavo_serve.over_http.parameters import parameters_of, request_of_query
from octavo_serve.over_mcp.host import McpHost
from octavo_serve.requests import (
    AskRequest,
    PacksRequest,
    ReadRequest,
    RequestT,
    SearchRequest,
    TopicsRequest,
    TraverseRequest,
)
from octavo_serve.results import PacksResult
from octavo_serve.settings import ServerSettings

DIGEST_HEADER = "octavo-digest"

_MIME_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}")

Work = Callable[[RequestT], Any]
WorkOf = Callable[[View, str | None], Work[RequestT]]


class Routes:
    """The handlers of all routes but MCP's and the probes'."""

    def __init__(self, workers: Workers, mcp: McpHost, settings: ServerSettings) -> None:
        self._workers = workers
        self._mcp = mcp
        self._keyed = bool(settings.keys or settings.oauth)
        self._answers = settings.answers is not None
        self._server = [__version__, settings.retrieval, repr(settings.reranker)]
        """What an answer depends on besides the releases, the request and the day."""

    @property
    def listed(self) -> list[Route]:
        """The routes, each with its handler."""
        both = ["GET", "POST"]
        return [
            Route("/", self.index),
            Route("/search", self.search, methods=both),
            Route("/read", self.read),
            Route("/graph", self.graph),
            Route("/packs", self.packs),
            Route("/packs/{slug}", self.topics),
            Route("/packs/{slug}/search", self.search, methods=both),
            Route("/packs/{slug}/read", self.read),
            Route("/packs/{slug}/graph", self.graph),
            Route("/packs/{slug}/files/{path:path}", self.file),
            Route("/openapi.json", self.openapi),
        ]

    async def index(self, request: Request) -> Response:
        """The page for people, or what there is to ask."""
        if wants_page(request.scope):
            return page()
        search, read, graph = (", ".join(parameters_of(each)) for each in (SearchRequest, ReadRequest, TraverseRequest))
        fields = ", ".join(AskRequest.model_fields)
        ask = f"an answer with citations, in events as it is written, or at once with stream=false (POST): {fields}"
        endpoints = {
            "/search": f"passages for a query (GET, POST): {search}",
            "/read": f"a document by its id or path: {read}",
            "/graph": f"what a node is joined to, by its id or path: {graph}",
            **({"/ask": ask} if self._answers else {}),
            "/packs": "the packs; /packs/SLUG its documents, /packs/SLUG/files/PATH the bytes of one",
            "/openapi.json": "all of this, for machines",
            HEALTH: "the packs that are served, and those that were refused",
            READY: "whether requests may come",
            "/mcp": "MCP over all packs (POST)",
            **{f"/packs/{slug}/mcp": f"MCP over the pack {slug} (POST)" for slug in view_of(request.scope).packs},
        }
        answer = {"name": "octavo", "version": __version__, "endpoints": endpoints}
        return JSONResponse(answer, headers={"Cache-Control": REVALIDATED, "Vary": "Accept"})

    async def search(self, request: Request) -> Response:
        """Passages for a query."""
        return await self._answer(request, SearchRequest, lambda view, pack: view.search)

    async def read(self, request: Request) -> Response:
        """A document, or what of it fits an answer."""
        return await self._answer(request, ReadRequest, lambda view, pack: view.choose(pack).read)

    async def graph(self, request: Request) -> Response:
        """What a node is joined to."""
        return await self._answer(request, TraverseRequest, lambda view, pack: view.choose(pack).traverse)

    async def topics(self, request: Request) -> Response:
        """The documents of a pack."""
        return await self._answer(request, TopicsRequest, lambda view, pack: view.choose(pack).topics)

    async def packs(self, request: Request) -> Response:
        """The packs that the caller may ask."""
        return await self._answer(request, PacksRequest, lambda view, pack: lambda asked: _list_packs(view, asked))

    async def file(self, request: Request) -> Response:
        """The bytes of a document or of another file of a pack, as they were when it was built."""
        if request.query_params:
            raise RequestError(next(iter(request.query_params))[:100], "unknown; there are no parameters here")
        slug = request.path_params["slug"]
        pack = view_of(request.scope).choose(slug)
        found, content = await self._workers.run(pack.resource, document_uri(pack.slug, request.path_params["path"]))
        mime_type = found.mime_type if _MIME_TYPE.fullmatch(found.mime_type) else "application/octet-stream"
        headers = {
            "ETag": f'"{found.sha256}"',
            "Cache-Control": IMMUTABLE if _is_digest(slug) else REVALIDATED,
            DIGEST_HEADER: pack.digest,
            # HTML or SVG of a pack must never run as a page of this origin.
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        }
        conditions = request.headers.getlist("if-none-match")
        if is_any(conditions) or is_held(conditions, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=mime_type)

    async def openapi(self, request: Request) -> Response:
        """The description of all this."""
        # Not imported before it is asked for, which few servers ever are.
        from octavo_serve.over_http.openapi import described

        content = await self._workers.run(lambda keyed: described(keyed, self._answers), self._keyed)
        headers = {"ETag": f'"{sha256_hex(content)}"', "Cache-Control": REVALIDATED}
        conditions = request.headers.getlist("if-none-match")
        if is_any(conditions) or is_held(conditions, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type="application/json")

    async def _answer(self, request: Request, model: type[RequestT], work_of: WorkOf[RequestT]) -> Response:
        """Check what is asked, and answer it unless the client has the answer."""
        view = view_of(request.scope)
        slug = request.path_params.get("slug")
        if request.method == "POST":
            asked = await request_of_body(model, request, pack=slug)
        else:
            pairs = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
            asked = request_of_query(model, pairs, pack=slug)
        pack = getattr(asked, "pack", None)
        packs = _asked_of(view, model, pack)
        named_day = getattr(asked, "as_of", None)
        if "as_of" in model.model_fields and packs:
            # The day is settled here, so that the tag and the answer cannot be of two.
            asked = asked.model_copy(update={"as_of": named_day or packs[0].day()})
        work = work_of(view, pack)
        if request.method == "POST" or getattr(asked, "explain", False):
            # No two explanations are the same: they say how long each stage took.
            return self._respond(await self._workers.run(work, asked), {"Cache-Control": NEVER})
        settled = _is_digest(pack) and (named_day is not None or "as_of" not in model.model_fields)
        degraded = [each.slug for each in packs if each.degraded]
        releases = [[each.slug, each.digest] for each in packs]
        headers = {
            "ETag": tag_of(model.__name__, asked, releases, degraded, self._server),
            "Cache-Control": IMMUTABLE if settled else REVALIDATED,
        }
        conditions = request.headers.getlist("if-none-match")
        if conditions and is_held(conditions, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        result = await self._workers.run(work, asked)
        if result.get("degraded"):
            # Whatever failed may work again at the next request.
            headers = {"Cache-Control": NEVER}
        elif is_any(conditions):
            return Response(status_code=304, headers=headers)
        return self._respond(result, headers)

    def _respond(self, result: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
        # After the response is sent: the import must not delay the answer that triggers it.
        then = BackgroundTask(self._mcp.want) if self._mcp.idle else None
        named = {DIGEST_HEADER: result["digest"]} if "digest" in result else {}
        return Response(
            compact_json(result), headers={**headers, **named}, media_type="application/json", background=then
        )


def _asked_of(view: View, model: type[Any], pack: str | None) -> Sequence[Pack]:
    """The packs on which an answer depends. Raises NotFoundError, and RequestError where one must be named."""
    if model is PacksRequest or (model is SearchRequest and pack is None and len(view.packs) > 1):
        return list(view.packs.values())
    return [view.choose(pack)]


def _list_packs(view: View, asked: PacksRequest) -> PacksResult:
    return {
        "packs": [
            {
                **pack.summary(asked.as_of or pack.day()),
                "digest": pack.digest,
                "releases": _releases(view, pack),
            }
            for pack in view.packs.values()
        ]
    }


def _releases(view: View, pack: Pack) -> list[str]:
    """Digests of the releases of a pack that answer, the current one first."""
    others = [each.digest for each in view.releases.values() if each.slug == pack.slug and each is not pack]
    return [pack.digest, *others]


def _is_digest(pack: str | None) -> bool:
    """Whether a pack is named by slug and full digest, which never means another release."""
    return pack is not None and DIGEST.fullmatch(pack.partition("@")[2]) is not None
