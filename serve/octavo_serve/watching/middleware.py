"""Where HTTP requests are seen: outermost to see all of them, innermost to learn their routes."""

from __future__ import annotations

import re
from time import perf_counter

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo_artifact.errors import RequestError
from octavo_serve.callers.access import view_of
from octavo_serve.faces import Workers, compact_json
from octavo_serve.over_http.caching import NEVER
from octavo_serve.over_http.edge import is_mcp
from octavo_serve.watching.notes import UNROUTED, Note, current, request_id
from octavo_serve.watching.traces import request_spans
from octavo_serve.watching.watch import Watch

METRICS = "/metrics"
STATS = "/stats"
CLIENT_LEFT = 499
"""Status, by a custom of nginx, of a request whose client left before its answer began."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_AUTH_ERROR = re.compile(rb'error="(invalid_token|insufficient_scope|invalid_request)"')


class Watched:
    """ASGI middleware that gives each request its id and tells what became of it."""

    def __init__(self, app: ASGIApp, watch: Watch) -> None:
        self._app = app
        self._watch = watch
        self._spans = request_spans()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, between two looks at the clock."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), None)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        note = Note(request_id(given), "mcp" if is_mcp(scope["path"]) else "http", method)
        current.set(note)  # not reset: the task is the request's own, and logs a traceback after us
        status, auth_failure, seconds = CLIENT_LEFT, None, None
        started = perf_counter()

        async def noting(message: Message) -> None:
            nonlocal status, auth_failure, seconds
            if message["type"] == "http.response.start":
                status = message["status"]
                if status in (401, 403):
                    auth_failure = _auth_failure(message)
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", note.request_id.encode())]
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                seconds = perf_counter() - started

        self._watch.in_flight += 1
        try:
            if self._spans is None:
                await self._app(scope, receive, noting)
            else:
                with self._spans(scope["headers"], method) as end:
                    try:
                        await self._app(scope, receive, noting)
                    finally:
                        end(note.operation, status)
        finally:
            self._watch.in_flight -= 1
            self._watch.finish(note, status, perf_counter() - started if seconds is None else seconds, auth_failure)


class Named:
    """ASGI middleware around the routes that notes which one a request took."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; Starlette leaves the route in the scope."""
        try:
            await self._app(scope, receive, send)
        finally:
            note, route = current.get(), scope.get("route")
            if note is not None and note.operation == UNROUTED and isinstance(route, Route):
                note.operation = route.path


class MetricsRoute:
    """`GET /metrics`, for those who may know of every pack; to the others it is not there."""

    def __init__(self, watch: Watch, workers: Workers) -> None:
        self._watch = watch
        self._workers = workers

    async def answer(self, request: Request) -> Response:
        """The counts in the format that is asked for."""
        view = view_of(request.scope)
        if view.slugs is not None:
            raise HTTPException(404)
        self._watch.measure(self._workers)
        content, media_type = self._watch.metrics.exposition(view, request.headers.get("accept", ""))
        return Response(content, headers={"content-type": media_type, "cache-control": NEVER})


class StatsRoute:
    """`GET /stats`: how the last answers went, for those who may know of every pack; else it is not there."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    async def answer(self, request: Request) -> Response:
        """The figures as JSON."""
        if view_of(request.scope).slugs is not None:
            raise HTTPException(404)
        if request.query_params:
            raise RequestError(next(iter(request.query_params))[:100], "unknown; there are no parameters here")
        return Response(
            compact_json(self._watch.stats()), headers={"cache-control": NEVER}, media_type="application/json"
        )


def stats_routes(watch: Watch) -> list[Route]:
    """`/stats`, where there are answers."""
    return [Route(STATS, StatsRoute(watch).answer)]


def watch_routes(watch: Watch, workers: Workers) -> list[Route]:
    """`/metrics`, unless it is switched off."""
    return [Route(METRICS, MetricsRoute(watch, workers).answer)] if watch.counts else []


def _auth_failure(message: Message) -> str | None:
    """What a challenge says was wrong; None when there is none, as where an origin was refused."""
    challenge = next((value for name, value in message["headers"] if name == b"www-authenticate"), None)
    if challenge is None:
        return None
    found = _AUTH_ERROR.search(challenge)
    return found[1].decode() if found else "missing"
