"""The HTTP face: the routes of `routes`, and MCP behind the same guard.

Importing this module and answering a search must not import the MCP SDK; `over_mcp.host` says how that is kept.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from time import monotonic_ns, time
from typing import TYPE_CHECKING

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from octavo_artifact.errors import OctavoError
from octavo_serve.callers.access import Access
from octavo_serve.callers.oauth import OAuthSettings
from octavo_serve.callers.resource_metadata import metadata_routes
from octavo_serve.faces import Library, Workers
from octavo_serve.over_http.asking import Enveloped, ask_routes
from octavo_serve.over_http.edge import Edge
from octavo_serve.over_http.health import Health
from octavo_serve.over_http.problems import on_exception, on_http_exception, on_octavo_error
from octavo_serve.over_http.routes import Routes
from octavo_serve.over_mcp.host import McpHost
from octavo_serve.releases import Releases, current, following
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.middleware import Named, Watched, stats_routes, watch_routes
from octavo_serve.watching.watch import Watch

if TYPE_CHECKING:
    from octavo_serve.answering.answerer import Answerer
    from octavo_serve.answering.outcomes import Observe
    from octavo_serve.answering.settings import AnswerSettings
    from octavo_serve.callers.tokens import TokenVerifier


def open_answers(settings: AnswerSettings, library: Library, workers: Workers, observe: Observe) -> Answerer:
    """What answers questions; imported only where a model is configured."""
    from octavo_serve.answering.opening import day_of, open_answerer

    return open_answerer(settings, workers, os.environ, today=lambda: day_of(library), observe=observe)


def open_tokens(settings: OAuthSettings, clock: Callable[[], int], wall_clock: Callable[[], float]) -> TokenVerifier:
    """What reads the issuer's tokens; imported only where there is one, for it costs a server 0.15 s of its start."""
    from octavo_serve.callers.issuer_keys import IssuerKeys
    from octavo_serve.callers.tokens import TokenVerifier

    return TokenVerifier(settings, IssuerKeys(settings, clock), wall_clock)


def create_app(
    library: Library,
    settings: ServerSettings,
    clock: Callable[[], int] = monotonic_ns,
    stopping: Callable[[], bool] = lambda: False,
    wall_clock: Callable[[], float] = time,
) -> ASGIApp:
    """The application that serves `library`: routes inside, before them who may see what, and the guard;
    outermost whoever watches.

    If the library is live, each request gets what is current when it begins. `clock` gives nanoseconds that never go
    back, for the rate limit and the age of an issuer's keys, `wall_clock` seconds since 1970, for when keys and tokens
    expire; `stopping` tells whether the server was asked to end.
    """
    watch = Watch(settings)
    workers = Workers(settings.answer_timeout, watch.observe)
    answerer = open_answers(settings.answers, library, workers, watch.answered) if settings.answers else None
    if answerer is not None:
        watch.follow(answerer)
    mcp = McpHost(workers, public=not (settings.keys or settings.oauth), answerer=answerer)
    tokens = open_tokens(settings.oauth, clock, wall_clock) if settings.oauth else None
    if isinstance(library, Releases):
        library.observe = watch.count_swap

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mcp.run)
            tasks.start_soon(watch.run, workers)
            if answerer is not None:
                tasks.start_soon(answerer.warm_up)
            async with following(library, settings.poll_seconds, hangup=True):
                try:
                    yield
                finally:
                    workers.close()
                    if answerer is not None:
                        await answerer.close()
                    if tokens is not None:
                        await tokens.close()
                    tasks.cancel_scope.cancel()
                    watch.close()

    app = Starlette(
        routes=[
            *Routes(workers, mcp, settings).listed,
            *ask_routes(answerer),
            *Health(stopping, asks_elsewhere=bool(settings.answers and settings.answers.retriever)).listed,
            Route("/mcp", mcp),
            Route("/packs/{slug}/mcp", mcp),
            *(metadata_routes(settings.oauth) if settings.oauth else ()),
            *watch_routes(watch, workers),
            *(stats_routes(watch) if answerer else ()),
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
    access = Access(Named(app), lambda: current(library), settings, clock, wall_clock=wall_clock, verifier=tokens)
    return Watched(Enveloped(Edge(access, settings)), watch)
