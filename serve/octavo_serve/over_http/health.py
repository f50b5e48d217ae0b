"""What probes and load balancers ask: `/healthz` whether all is well, `/readyz` whether requests may come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from octavo_serve.callers.access import caller_of, library_of
from octavo_serve.faces import Library, Pack
from octavo_serve.over_http.caching import NEVER
from octavo_serve.over_http.edge import HEALTH, READY

_UNCACHED = {"cache-control": NEVER}


class Health:
    """The handlers of the probes' routes."""

    def __init__(self, stopping: Callable[[], bool], *, asks_elsewhere: bool = False) -> None:
        """`stopping` tells whether the server was asked to end, `asks_elsewhere` that its answers need no pack here."""
        self._stopping = stopping
        self._asks_elsewhere = asks_elsewhere

    @property
    def listed(self) -> list[Route]:
        """The routes, each with its handler."""
        return [Route(HEALTH, self.health), Route(READY, self.ready)]

    async def health(self, request: Request) -> Response:
        """Which packs are served, and which are not; to one without a key only whether all is well."""
        view = caller_of(request.scope)
        seen = view or library_of(request.scope)
        failing = seen.refused or seen.failed or any(pack.degraded for pack in seen.packs.values())
        status = ("degraded" if failing else "ok") if self._serves(seen) else "down"
        body: dict[str, Any] = {"status": status}
        if view is not None:
            body["packs"] = {slug: _described(view, pack) for slug, pack in view.packs.items()}
            body["refused"] = dict(view.refused)
            if self._asks_elsewhere:
                body["passages"] = "another server finds the passages of answers"
        return JSONResponse(body, 503 if status == "down" else 200, _UNCACHED)

    async def ready(self, request: Request) -> Response:
        """Whether there is anything to ask, and the server is not about to end."""
        status = "stopping" if self._stopping() else "ready" if self._serves(library_of(request.scope)) else "empty"
        return JSONResponse({"status": status}, 200 if status == "ready" else 503, _UNCACHED)

    def _serves(self, library: Library) -> bool:
        return self._asks_elsewhere or bool(library.packs)


def _described(library: Library, pack: Pack) -> dict[str, Any]:
    mounted = [other.digest for other in library.releases.values() if other.slug == pack.slug and other is not pack]
    failed = library.failed.get(pack.slug)
    return {
        "digest": pack.digest,
        "version": pack.manifest.pack["version"],
        "documents": pack.manifest.counts["documents"],
        "passages": pack.manifest.counts["passages"],
        "degraded": pack.degraded is not None,
        **({"reason": pack.degraded} if pack.degraded else {}),
        **({"mounted": mounted} if mounted else {}),
        **({"refused_release": {"digest": failed.digest, "reason": failed.reason}} if failed else {}),
    }
