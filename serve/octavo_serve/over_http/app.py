"""The HTTP face: `GET /search`, `GET /graph`, `GET /healthz`, an index at `/`, and MCP behind the same guard.

Importing this module and answering a search must not import the MCP SDK; `over_mcp.host` says how that is kept.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from time import monotonic_ns

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from octavo_artifact.errors import OctavoError
from octavo_serve.callers.access import Access
from octavo_serve.callers.views import Views
from octavo_serve.faces import Library, Workers
from octavo_serve.over_http.edge import Edge
from octavo_serve.over_http.problems import on_exception, on_http_exception, on_octavo_error
from octavo_serve.over_http.routes import Routes
from octavo_serve.over_mcp.host import McpHost
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.middleware import Named, Watched, watch_routes
from octavo_serve.watching.watch import Watch


def create_app(library: Library, settings: ServerSettings, clock: Callable[[], int] = monotonic_ns) -> ASGIApp:
    """The application that serves `library`: routes inside, before them who may see what and the guard;
    outermost whoever watches.

    `clock` gives nanoseconds that never go back, for the rate limit.
    """
    watch = Watch(settings)
    workers = Workers(settings.answer_timeout, watch.observe)
    views = Views(library, settings.keys)
    mcp = McpHost(views.all, workers)
    routes = Routes(library, workers, mcp)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mcp.run)
            tasks.start_soon(watch.run, workers)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                workers.close()
                watch.close()

    app = Starlette(
        routes=[
            *routes.listed,
            Route("/mcp", mcp),
            Route("/packs/{slug}/mcp", mcp),
            *watch_routes(watch, workers),
        ],
        exception_handlers={
            OctavoError: on_octavo_error,
            HTTPException: on_http_exception,
            Exception: on_exception,
        },
        lifespan=lifespan,
    )
    # A redirect would repeat the client's Host; no path here ends in a slash.
    app.router.redirect_slashes = False
    return Watched(Edge(Access(Named(app), views, settings, clock), settings), watch)
