"""Which library answers a request: the one that was current when the request began, until it has ended."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Receive, Scope, Send

from octavo_serve.callers.views import Views
from octavo_serve.faces import Library

_GENERATION = "octavo.generation"


@dataclass(slots=True, eq=False)
class Endpoint:
    """An MCP server that is running."""

    app: ASGIApp
    scope: anyio.CancelScope
    """Ends it."""
    answering: int = 0
    """Requests that it has not answered yet."""


class Generation:
    """A library that does not change, and all that is made for it; what it made ends after its last request."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.views = Views(library)
        self.endpoints: OrderedDict[Hashable, Endpoint] = OrderedDict()
        """Those of MCP, made when first asked for, the one last asked at the end; `over_mcp.host` knows their names."""
        self.making = anyio.Lock()
        """Held while one is made."""
        self.tasks: TaskGroup
        """In which they run."""
        self._requests = 0
        self._retired = False
        self._over = anyio.Event()

    def enter(self) -> None:
        """A request begins."""
        self._requests += 1

    def leave(self) -> None:
        """A request has ended."""
        self._requests -= 1
        self._end_if_left()

    def retire(self) -> None:
        """No more requests will begin."""
        self._retired = True
        self._end_if_left()

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Keep the endpoints running until it is over."""
        async with anyio.create_task_group() as self.tasks:
            task_status.started()
            await self._over.wait()
            self.tasks.cancel_scope.cancel()

    def _end_if_left(self) -> None:
        if self._retired and not self._requests:
            self._over.set()


class Generations:
    """The generation of requests that begin now, and those before it that still have requests."""

    def __init__(self, current: Callable[[], Library]) -> None:
        """`current` is the library that is to answer, the same object until there is another."""
        self._current = current
        self._now = Generation(current())
        self._tasks: TaskGroup

    @property
    def now(self) -> Generation:
        """That of requests that begin now."""
        return self._now

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Keep all of them running until cancelled."""
        async with anyio.create_task_group() as self._tasks:
            await self._tasks.start(self._run, self._now)
            task_status.started()
            await anyio.sleep_forever()

    async def turn(self) -> None:
        """Let requests that begin from here on have the current library."""
        library = self._current()
        if library is self._now.library:
            return
        following = Generation(library)
        await self._tasks.start(self._run, following)
        before, self._now = self._now, following
        before.retire()

    async def _run(self, generation: Generation, *, task_status: TaskStatus[None]) -> None:
        await generation.run(task_status=task_status)
        del generation
        # The SDK's objects refer to each other in circles, and through them to the library: without this a release that
        # was replaced would stay mapped until Python happens to look at its oldest objects.
        await run_sync(gc.collect)


class InGeneration:
    """ASGI middleware that binds a request to the generation in which it begins."""

    def __init__(self, app: ASGIApp, generations: Generations) -> None:
        self._app = app
        self._generations = generations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        generation = self._generations.now
        generation.enter()
        try:
            await self._app({**scope, _GENERATION: generation}, receive, send)
        finally:
            generation.leave()


def generation_of(scope: Scope) -> Generation:
    """That in which a request began."""
    return scope[_GENERATION]
