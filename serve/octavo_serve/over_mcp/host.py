"""MCP inside the HTTP application, without its price at the start.

Importing the MCP SDK costs 0.6 s of CPU, more than opening the packs and answering a search. So the import
waits for the first of: an MCP request, an answered search, two quiet seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

import anyio
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Receive, Scope, Send

from octavo_artifact.errors import NotFoundError
from octavo_serve.callers.access import view_of
from octavo_serve.callers.views import View
from octavo_serve.faces import UnavailableError, Workers
from octavo_serve.over_mcp.envelope import WellFormed

_QUIET = 2.0
_READY_TIMEOUT = 30.0

_logger = logging.getLogger(__name__)


class McpHost:
    """Builds the MCP servers in the background, keeps their sessions running and passes requests on."""

    def __init__(self, views: Sequence[View], workers: Workers) -> None:
        self._views = views
        self._workers = workers
        self._wanted = anyio.Event()
        self._ready = anyio.Event()
        self._endpoints: Mapping[View | str, ASGIApp] | None = None

    @property
    def idle(self) -> bool:
        """Whether nobody has wanted MCP yet."""
        return not self._wanted.is_set()

    async def want(self) -> None:
        """Begin to import the SDK, if that has not begun."""
        self._wanted.set()

    async def run(self) -> None:
        """Serve until cancelled; session managers must be entered and left by one task, and this is it."""
        with anyio.move_on_after(_QUIET):
            await self._wanted.wait()
        async with AsyncExitStack() as stack:
            try:
                managers = await run_sync(self._build)
                for manager in managers.values():
                    await stack.enter_async_context(manager.run())
                self._endpoints = {name: WellFormed(manager.handle_request) for name, manager in managers.items()}
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
        if self._endpoints is None:
            raise RuntimeError("MCP could not be started")
        await self._endpoints[view if slug is None else slug](scope, receive, send)

    def _build(self):
        from octavo_serve.over_mcp.app import session_managers

        return session_managers(self._views, self._workers)
