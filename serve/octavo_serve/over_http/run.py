"""Listening: the socket, uvicorn around the application, and bounds on what comes before a request's body."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from threading import Event
from time import monotonic
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from octavo_artifact.errors import ConfigError
from octavo_serve.faces import Library
from octavo_serve.over_http.app import create_app
from octavo_serve.over_http.asking import ABORT
from octavo_serve.over_http.edge import MAX_HEAD
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.logs import OTHERS

_QUEUE = 1024
"""Connections that may wait to be accepted."""


def bind(settings: ServerSettings) -> socket.socket:
    """A socket that listens at the settings' host and port; raises ConfigError naming both.

    It is made before the server starts, so that a port in use is told at once and port 0 has its number. Several
    workers need siblings of it, see `sibling`.
    """
    if settings.workers > 1 and not hasattr(socket, "SO_REUSEPORT"):
        raise ConfigError(f"workers: {settings.workers}, expected 1: this system deals out no connections")
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = _listen(family, address)
        if settings.workers > 1:
            # Only a socket that does not share its port is told that somebody else has it.
            address = listener.getsockname()
            listener.close()
            listener = _listen(family, address, shared=True)
    except OSError as error:
        raise ConfigError(f"cannot listen on host {settings.host}, port {settings.port}: {error.strerror}") from error
    return listener


def sibling(listener: socket.socket) -> socket.socket:
    """Another socket at the same port: the system deals connections out to all that share it."""
    return _listen(listener.family, listener.getsockname(), shared=True)


def _listen(family: int, address: Any, *, shared: bool = False) -> socket.socket:
    # Named, for asyncio switches Nagle's algorithm off for what it knows as TCP only: else answers wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
        listener.listen(_QUEUE)
    except OSError:
        listener.close()
        raise
    return listener


def address(listener: socket.socket) -> str:
    """The URL at which the socket listens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(library: Library, settings: ServerSettings) -> uvicorn.Server:
    """The uvicorn server of `library`; it logs through `logging`."""
    stopping = Event()
    config = uvicorn.Config(
        create_app(library, settings, stopping=stopping.is_set),
        http=partial(HeadGuard, head_timeout=settings.body_timeout),  # type: ignore[arg-type]  # called like the class
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=OTHERS[settings.log_level].lower(),
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=settings.grace_seconds,  # type: ignore[arg-type]  # it is waited for so long
    )
    return DrainingServer(config, stopping, settings.drain_seconds)


def serve(library: Library, settings: ServerSettings, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM, then finish the requests that are running, within the settings' grace.

    uvicorn raises the signal again when it has shut down: SIGINT leaves here as KeyboardInterrupt.
    """
    with listener:
        make_server(library, settings).run(sockets=[listener])


class DrainingServer(uvicorn.Server):
    """uvicorn's server that first says that it will end, and then takes requests for a while before it does."""

    def __init__(self, config: uvicorn.Config, stopping: Event, drain: float) -> None:
        """Set `stopping` when it is to end, and end `drain` seconds later."""
        super().__init__(config)
        self._stopping = stopping
        self._drain = drain
        self._asked: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the signal."""
        self._stopping.set()
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Whether to end now."""
        if not await super().on_tick(counter):
            return False
        self._stopping.set()
        if self._asked is None:
            self._asked = monotonic()
        return self.force_exit or monotonic() - self._asked >= self._drain


class HeadGuard(HttpToolsProtocol):
    """uvicorn's protocol with bounds on the size of a request's head and the time it takes to arrive.

    uvicorn has neither with httptools: it collects header bytes without end and waits for ever. A head that is too
    large and arrives whole is the edge's to refuse.
    """

    def __init__(self, *args: Any, head_timeout: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timeout = head_timeout
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        """Start the clock of the first request."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._head_complete()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, unless the head grows too large."""
        if self._head_timer is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_timer is not None and self._head_bytes > MAX_HEAD:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Start the clock of a request on a connection that was kept open."""
        super().on_message_begin()
        self.scope[ABORT] = self.transport.abort  # type: ignore[typeddict-unknown-key]  # a server may add its own
        self._expect_head()

    def on_headers_complete(self) -> None:
        """Stop the clock; from here the guard of the body counts."""
        self._head_complete()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if self._head_timer is None:
            self._head_bytes = 0
            self._head_timer = self.loop.call_later(self._head_timeout, self.transport.close)

    def _head_complete(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
