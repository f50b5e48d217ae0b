"""MCP inside the HTTP application, without its price at the start.

Importing the MCP SDK costs 0.6 s of CPU, more than opening the packs and answering a search. So the import
waits for the first of: an MCP request, an answered search, two quiet seconds.
"""

from __future__ import annotations

import gc
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Receive, Scope, Send

from octavo_serve.callers.access import view_of
from octavo_serve.faces import UnavailableError, Workers
from octavo_serve.over_mcp.envelope import WellFormed

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from octavo_serve.answering.answerer import Answerer

_LONG = frozenset({"ep_ask"})
"""Tools whose work is stopped when nobody waits for it any more."""

_QUIET = 2.0
_READY_TIMEOUT = 30.0

_logger = logging.getLogger(__name__)


class McpHost:
    """Builds the MCP server in the background, keeps it running and passes requests on."""

    def __init__(self, workers: Workers, *, public: bool, answerer: Answerer | None = None) -> None:
        """`public` says that all callers may see the same; the `answerer`, if any, answers questions."""
        self._answerer = answerer
        self._workers = workers
        self._public = public
        self._wanted = anyio.Event()
        self._ready = anyio.Event()
        self._app: ASGIApp | None = None

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
                whole, streaming = await run_sync(self._build)
                await stack.enter_async_context(whole.run())
                await stack.enter_async_context(streaming.run())
                # The SDK's 100,000 objects stay: a collection that walks them stops everything for 50 ms each time.
                gc.freeze()
                self._app = WellFormed(whole.handle_request, streaming.handle_request, _LONG)
            except Exception:
                # Search goes on without MCP; each MCP request is answered with status 500.
                _logger.exception("MCP cannot be served")
            self._ready.set()
            await anyio.sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer at `/mcp` for all packs of the caller's view, at `/packs/{slug}/mcp` for one, current or mounted."""
        view = view_of(scope)
        if (name := scope["path_params"].get("slug")) is not None:
            view.choose(name)
        if not self._ready.is_set():
            await self.want()
            with anyio.move_on_after(_READY_TIMEOUT) as waiting:
                await self._ready.wait()
            if waiting.cancelled_caught:
                raise UnavailableError("MCP is still starting")
        if self._app is None:
            raise RuntimeError("MCP could not be started")
        await self._app(scope, receive, send)

    def _build(self) -> tuple[StreamableHTTPSessionManager, StreamableHTTPSessionManager]:
        from octavo_serve.over_mcp.app import session_managers

        return session_managers(self._workers, public=self._public, answerer=self._answerer)
