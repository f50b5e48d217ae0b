"""MCP inside the HTTP application, without its price at the start.

Importing the MCP SDK costs 0.6 s of CPU, more than opening the packs and answering a search. So the import
waits for the first of: an MCP request, an answered search, two quiet seconds.
"""

from __future__ import annotations

import gc
import logging
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskStatus
from anyio.to_thread import run_sync
from starlette.types import Receive, Scope, Send

from octavo_artifact.errors import NotFoundError
from octavo_serve.callers.access import view_of
from octavo_serve.callers.views import Mounted, View
from octavo_serve.faces import Pack, UnavailableError, Workers
from octavo_serve.over_http.generations import Endpoint, Generation, generation_of

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

_QUIET = 2.0
_READY_TIMEOUT = 30.0

MAX_ENDPOINTS = 512
"""MCP servers that are kept of a generation: tokens may open any set of packs."""

_logger = logging.getLogger(__name__)


class McpHost:
    """Loads the SDK in the background, makes a server for each set of packs when it is asked for, and passes on."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._wanted = anyio.Event()
        self._ready = anyio.Event()
        self._loaded = False

    @property
    def idle(self) -> bool:
        """Whether nobody has wanted MCP yet."""
        return not self._wanted.is_set()

    async def want(self) -> None:
        """Begin to import the SDK, if that has not begun."""
        self._wanted.set()

    async def run(self) -> None:
        """Import the SDK when somebody wants it, or nobody anything else."""
        with anyio.move_on_after(_QUIET):
            await self._wanted.wait()
        try:
            await run_sync(self._load)
            # The SDK's 100,000 objects stay: a collection that walks them stops everything for 50 ms each time.
            gc.freeze()
            self._loaded = True
        except Exception:
            # Search goes on without MCP; each MCP request is answered with status 500.
            _logger.exception("MCP cannot be served")
        self._ready.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer at `/mcp` for all packs of the caller's view, at `/packs/{slug}/mcp` for one, current or mounted."""
        view, name = view_of(scope), scope["path_params"].get("slug")
        pack = None if name is None else _pack_of(view, name)
        if not self._ready.is_set():
            await self.want()
            with anyio.move_on_after(_READY_TIMEOUT) as waiting:
                await self._ready.wait()
            if waiting.cancelled_caught:
                raise UnavailableError("MCP is still starting")
        if not self._loaded:
            raise RuntimeError("MCP could not be started")
        endpoint = await self._endpoint(generation_of(scope), view, pack)
        endpoint.answering += 1
        try:
            await endpoint.app(scope, receive, send)
        finally:
            endpoint.answering -= 1

    async def _endpoint(self, generation: Generation, view: View, pack: Pack | None) -> Endpoint:
        # Callers who may see the same packs share a server, and all share that of one release. What they may see counts
        # and not what is current of it: of a pack that is refused now a release may be mounted.
        name = view.slugs if pack is None else (pack.slug, pack.digest)
        endpoints = generation.endpoints
        if name not in endpoints:
            async with generation.making:
                if name not in endpoints:
                    manager = await run_sync(self._make, view, pack)
                    _make_room(endpoints)
                    endpoints[name] = await generation.tasks.start(_keep, manager)
        endpoints.move_to_end(name)
        return endpoints[name]

    def _load(self) -> None:
        from octavo_serve.over_mcp.app import prepare

        prepare()

    def _make(self, view: View, pack: Pack | None) -> StreamableHTTPSessionManager:
        from octavo_serve.over_mcp.app import make_server, session_manager

        if pack is None:
            return session_manager(make_server(view, self._workers))
        library = View(view, frozenset({pack.slug})) if pack is view.packs.get(pack.slug) else Mounted(pack)
        return session_manager(make_server(library, self._workers, pack.slug))


def _pack_of(view: View, name: str) -> Pack:
    try:
        return view.choose(name)
    except NotFoundError:
        raise NotFoundError("pack", "no pack of this name is served") from None


def _make_room(endpoints: OrderedDict[Hashable, Endpoint]) -> None:
    """End the endpoint unused for longest of those that answer nothing, where there are too many."""
    if len(endpoints) >= MAX_ENDPOINTS:
        idle = next((name for name, each in endpoints.items() if not each.answering), None)
        if idle is not None:
            endpoints.pop(idle).scope.cancel()


async def _keep(manager: StreamableHTTPSessionManager, *, task_status: TaskStatus[Endpoint]) -> None:
    # It must be entered and left by one task.
    with anyio.CancelScope() as scope:
        async with manager.run():
            task_status.started(Endpoint(manager.handle_request, scope))
            await anyio.sleep_forever()
