"""The documents of RFC 9728 by which a client finds the authorization server; anybody may read them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from octavo_serve.callers.oauth import METADATA, OAuthSettings, metadata_at

_HOUR = {"Cache-Control": "public, max-age=3600"}


def metadata_routes(settings: OAuthSettings) -> list[Route]:
    """The routes of all documents: the server's, and one for each endpoint that there could be."""

    async def document(request: Request) -> Response:
        found = metadata_at(settings, request.url.path.removeprefix(METADATA))
        if found is None:
            raise HTTPException(404)
        return JSONResponse(found, headers=_HOUR)

    return [Route(METADATA, document), Route(METADATA + "/{path:path}", document)]
