"""MCP inside the HTTP application, without its price at the start.

Importing the MCP SDK costs 0.6 s of CPU, more than opening the packs and answering a search. So the import
waits for the first of: an MCP request, an answered search, two quiet seconds.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Receive, Scope, Send

from octavo_artifact.errors import NotFoundError
from octavo_serve.callers.access import view_of
from octavo_serve.callers.views import View
from octavo_serve.faces import UnavailableError, Workers

_QUIET = 2.0
_READY_TIMEOUT = 30.0

MAX_ENDPOINTS = 512
"""MCP servers that are kept: tokens may open any set of packs."""

_logger = logging.getLogger(__name__)


class McpHost:
    """Builds an MCP server for each view and each pack when it is first asked, and passes requests on."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._wanted = anyio.Event()
        self._ready = anyio.Event()
        self._starting = anyio.Lock()
        self._tasks: TaskGroup | None = None
        self._endpoints: OrderedDict[frozenset[str] | str | None, _Endpoint] = OrderedDict()
        """By the packs of a view, or by the slug of a pack; the one unused for longest first."""

    @property
    def idle(self) -> bool:
        """Whether nobody has wanted MCP yet."""
        return not self._wanted.is_set()

    async def want(self) -> None:
        """Begin to import the SDK, if that has not begun."""
        self._wanted.set()

    async def run(self) -> None:
        """Serve until cancelled."""
        with anyio.move_on_after(_QUIET):
            await self._wanted.wait()
        async with anyio.create_task_group() as tasks:
            try:
                await run_sync(self._load)
                self._tasks = tasks
            except Exception:
                # Search goes on without MCP; each MCP request is answered with status 500.
                _logger.exception("MCP cannot be served")
            self._ready.set()
            await anyio.sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer at `/mcp` for all packs of the caller's view, at `/packs/{slug}/mcp` for one."""
        view = view_of(scope)
        slug = scope["path_params"].get("slug")
        if slug is not None and slug not in view.packs:
            raise NotFoundError("pack", "no pack of this name is served")
        if not self._ready.is_set():
            await self.want()
            with anyio.move_on_after(_READY_TIMEOUT) as waiting:
                await self._ready.wait()
            if waiting.cancelled_caught:
                raise UnavailableError("MCP is still starting")
        if self._tasks is None:
            raise RuntimeError("MCP could not be started")
        endpoint = await self._endpoint(self._tasks, view, slug)
        endpoint.running += 1
        try:
            await endpoint.app(scope, receive, send)
        finally:
            endpoint.running -= 1

    def _load(self) -> None:
        import octavo_serve.over_mcp.app  # pyright: ignore[reportUnusedImport]  # noqa: F401  # so that it is there

    async def _endpoint(self, tasks: TaskGroup, view: View, slug: str | None) -> _Endpoint:
        name = view.slugs if slug is None else slug
        if name not in self._endpoints:
            async with self._starting:
                if name not in self._endpoints:
                    self._make_room()
                    self._endpoints[name] = await tasks.start(self._keep, view, slug)
        self._endpoints.move_to_end(name)
        return self._endpoints[name]

    def _make_room(self) -> None:
        if len(self._endpoints) >= MAX_ENDPOINTS:
            name = next((name for name, each in self._endpoints.items() if not each.running), None)
            if name is not None:
                self._endpoints.pop(name).scope.cancel()

    async def _keep(self, view: View, slug: str | None, *, task_status: TaskStatus[_Endpoint]) -> None:
        from octavo_serve.over_mcp.app import session_manager

        # Session managers must be entered and left by one task; this is its.
        manager = session_manager(view, self._workers, slug)
        with anyio.CancelScope() as scope:
            async with manager.run():
                task_status.started(_Endpoint(manager.handle_request, scope))
                await anyio.sleep_forever()


@dataclass(slots=True)
class _Endpoint:
    app: ASGIApp
    scope: anyio.CancelScope
    """Ends it."""
    running: int = 0
    """Requests that it is answering."""
