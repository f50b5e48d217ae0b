"""The stdio face: MCP over the process's standard streams, for clients that start the server themselves."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import anyio

from octavo_serve.faces import Library, Workers
from octavo_serve.releases import current, following
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.watch import Watch

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

    from octavo_serve.answering.answerer import Answerer


def run_stdio(library: Library, settings: ServerSettings | None = None) -> None:
    """Serve until the client closes our standard input; nothing but JSON-RPC is written to standard output."""
    try:
        anyio.run(_serve, library, settings or ServerSettings())
    except* (BrokenPipeError, anyio.BrokenResourceError):
        # The client went away without reading; nobody is left to tell.
        pass


async def _serve(library: Library, settings: ServerSettings) -> None:
    from mcp.server.stdio import stdio_server

    from octavo_serve.over_mcp.app import make_server
    from octavo_serve.over_mcp.endpoint import Endpoint

    watch = Watch(settings)
    workers = Workers(settings.answer_timeout, watch.observe)
    answerer = _open_answers(library, settings, workers, watch)
    server = make_server(lambda ctx: Endpoint(current(library)), workers, answerer=answerer)
    asked, incoming = anyio.create_memory_object_stream["SessionMessage | Exception"]()
    outgoing, answered = anyio.create_memory_object_stream["SessionMessage"]()
    relay = _Relay()
    try:
        async with (
            stdio_server() as (stdin, stdout),
            following(library, settings.poll_seconds),
            anyio.create_task_group() as tasks,
        ):
            # The SDK turns descriptor 1 to standard error while it serves, but what was printed and not flushed
            # would reach the client when it turns it back.
            sys.stdout = sys.stderr
            tasks.start_soon(relay.requests, stdin, asked, settings.answer_timeout)
            tasks.start_soon(relay.answers, answered, stdout)
            if answerer is not None:
                tasks.start_soon(answerer.warm_up)
            await server.run(incoming, outgoing, server.create_initialization_options())
            if answerer is not None:
                await answerer.close()
            tasks.cancel_scope.cancel()
    finally:
        workers.close()
        watch.close()


def _open_answers(library: Library, settings: ServerSettings, workers: Workers, watch: Watch) -> Answerer | None:
    if settings.answers is None:
        return None
    from octavo_serve.answering.opening import day_of, open_answerer

    return open_answerer(settings.answers, workers, os.environ, today=lambda: day_of(library), observe=watch.answered)


class _Relay:
    """Holds back the end of the input until all is answered.

    At the end of its input the SDK drops the requests it is working on, so `octavo stdio < requests` would
    lose answers.
    """

    def __init__(self) -> None:
        self._open: set[str | int] = set()
        self._settled = anyio.Event()

    async def requests(
        self,
        stdin: ReadStream[SessionMessage | Exception],
        asked: MemoryObjectSendStream[SessionMessage | Exception],
        timeout: float,
    ) -> None:
        async with asked:
            async for item in stdin:
                self._note(item)
                await asked.send(item)
            with anyio.move_on_after(timeout):
                while self._open:
                    self._settled = anyio.Event()
                    await self._settled.wait()

    async def answers(
        self, answered: MemoryObjectReceiveStream[SessionMessage], stdout: WriteStream[SessionMessage]
    ) -> None:
        async with stdout:
            async for item in answered:
                await stdout.send(item)
                self._note(item)

    def _note(self, item: SessionMessage | Exception) -> None:
        import mcp.types as t

        match item if isinstance(item, Exception) else item.message:
            case t.JSONRPCRequest(id=id):
                self._open.add(id)
            case t.JSONRPCResponse(id=id) | t.JSONRPCError(id=id) if id is not None:
                self._close(id)
            case t.JSONRPCNotification(method="notifications/cancelled", params={"requestId": str() | int() as id}):
                self._close(id)
            case _:
                pass

    def _close(self, request: str | int) -> None:
        self._open.discard(request)
        self._settled.set()
