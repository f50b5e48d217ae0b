"""`POST /ask`: an answer as it is written, in server-sent events, or at once in one JSON envelope.

Whoever asked may leave at any moment, and stops the work then: what waits for the model is a task of its own, beside
one that waits for the client to leave.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo_artifact.errors import RequestError
from octavo_serve.callers.access import view_of
from octavo_serve.callers.views import View
from octavo_serve.faces import UnavailableError, compact_json
from octavo_serve.over_http.bodies import JSON, request_of_body
from octavo_serve.over_http.caching import NEVER
from octavo_serve.over_http.edge import is_ask
from octavo_serve.over_http.problems import PROBLEM, octavo_problem, problem
from octavo_serve.over_http.routes import DIGEST_HEADER
from octavo_serve.requests import AskRequest
from octavo_serve.watching import notes

if TYPE_CHECKING:
    # a server that answers no questions does not pay for what that needs
    from octavo_serve.answering.answerer import Answerer, Event

ABORT = "octavo.abort"
"""In a scope: what ends its connection at once, unsent bytes and all."""

PATHS = ("/ask", "/packs/{slug}/ask")
EVENTS = "text/event-stream"
HEARTBEAT = b": the model reads or writes\n\n"

_STREAM = {"true": True, "false": False}
_STATUS = {"retrieval": 502, "generation": 502, "internal": 500}
"""By the stage that failed, where the answer is not a stream."""

_LAST_WORD = 1.0
"""Seconds to tell a client that the server ends."""
_ENDING = "the server is about to end; ask again in a moment"
_FAILED = "the server failed; its log says why"

_LINE_ENDS = {char.encode(): f"\\u{ord(char):04x}".encode() for char in "\u0085\u2028\u2029"}
"""What some readers take for the end of a line, as JSON may have it too."""

_logger = logging.getLogger(__name__)


class _GoneError(Exception):
    """The client does not read, or cannot be reached any more."""


def ask_routes(answerer: Answerer | None) -> list[Route]:
    """The routes; they say so where nobody answers."""
    return [Route(path, Ask(answerer).answer, methods=["POST"]) for path in PATHS]


class Ask:
    """The handler of both."""

    def __init__(self, answerer: Answerer | None) -> None:
        self._answerer = answerer

    async def answer(self, request: Request) -> ASGIApp:
        """What answers the request."""
        if self._answerer is None:
            raise HTTPException(404, "answers are not switched on here; the setting `answers` names a model")
        streamed = is_streamed(request.scope)
        asked = await request_of_body(AskRequest, request, pack=request.path_params.get("slug"))
        return _Answer(self._answerer, asked, view_of(request.scope), streamed=streamed)


def is_streamed(scope: Scope) -> bool:
    """What the parameter `stream` says. Raises RequestError for any other parameter or value."""
    streamed = True
    for number, (name, value) in enumerate(_queried(scope)):
        if name != "stream" or number:
            raise RequestError(name[:100], "given more than once" if name == "stream" else "unknown; known is stream")
        if value not in _STREAM:
            raise RequestError("stream", "expected true or false")
        streamed = _STREAM[value]
    return streamed


def _queried(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


class _Answer:
    """ASGI application that answers one question."""

    def __init__(self, answerer: Answerer, asked: AskRequest, view: View, *, streamed: bool) -> None:
        self._answerer = answerer
        self._asked = asked
        self._view = view
        self._streamed = streamed
        note = notes.current.get()
        self._trace_id = notes.request_id(None) if note is None else note.request_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or stop when the client leaves or does not read.

        Raises what `Answerer.slot` and `events` raise before their first event.
        """
        client = _Client(send, scope.get(ABORT), self._answerer.settings.reader_timeout)
        with self._answerer.slot() as slot, suppress(_GoneError):
            retriever = self._answerer.retriever(self._view)
            events = self._answerer.events(self._asked, retriever, self._trace_id, slot)
            async with aclosing(events):
                if self._streamed:
                    await self._stream(events, receive, client)
                else:
                    await self._whole(events, scope, receive, client)

    async def _stream(self, events: AsyncGenerator[Event], receive: Receive, client: _Client) -> None:
        stream = _Stream(client, self._trace_id)
        try:
            beats = stream.heartbeats(self._answerer.settings.heartbeat_seconds)
            await _first_of(_relay(events, stream), _left(receive), beats)
        except asyncio.CancelledError:
            # the server's grace is over
            with suppress(TimeoutError, _GoneError):
                await asyncio.wait_for(stream.fail(_ENDING), _LAST_WORD)
            raise
        except Exception as error:
            if isinstance(error, _GoneError) or not stream.begun:
                raise
            _logger.exception("a stream failed")
            await stream.fail(_FAILED)

    async def _whole(self, events: AsyncGenerator[Event], scope: Scope, receive: Receive, client: _Client) -> None:
        try:
            await _first_of(_collect(events, scope, receive, client.send), _left(receive))
        except asyncio.CancelledError:
            if not client.begun:
                with suppress(TimeoutError, _GoneError):
                    ending = octavo_problem(UnavailableError(_ENDING))
                    await asyncio.wait_for(ending(scope, receive, client.send), _LAST_WORD)
            raise


async def _relay(events: AsyncGenerator[Event], stream: _Stream) -> None:
    async for event in events:
        await stream.send(event.name, event.data)


async def _collect(events: AsyncGenerator[Event], scope: Scope, receive: Receive, send: Send) -> None:
    found: dict[str, Any] = {}
    async for event in events:
        match event.name:
            case "sources":
                found = {"pack": event.data["pack"], "sources": event.data["sources"]}
            case "done":
                envelope = {"success": True, "data": {**event.data, **found}, "error": None}
                headers = {"Cache-Control": NEVER, DIGEST_HEADER: event.data["digest"]}
                response = Response(compact_json(envelope), headers=headers, media_type=JSON)
                await response(scope, receive, send)
            case "error":
                failed = {"stage": event.data["stage"], "partial": event.data["partial"]}
                response = problem(_STATUS[event.data["stage"]], event.data["message"], more=failed)
                await response(scope, receive, send)
            case _:
                pass


class _Client:
    """Who is sent the answer."""

    def __init__(self, send: Send, abort: Callable[[], None] | None, timeout: float) -> None:
        self._send = send
        self._abort = abort
        self._timeout = timeout
        self.begun = False

    async def send(self, message: Message) -> None:
        """Send it. Raises _GoneError when nobody takes it."""
        self.begun = True
        try:
            async with asyncio.timeout(self._timeout):
                await self._send(message)
        except TimeoutError:
            _logger.info("a client was left that read nothing for %g seconds", self._timeout)
            if self._abort is not None:
                # to close would mean to wait until it has read what was sent
                self._abort()
                await asyncio.sleep(0)  # in which uvicorn learns of it
            raise _GoneError from None
        except Exception as error:
            raise _GoneError from error


class _Stream:
    """A response of server-sent events (WHATWG HTML, 9.2), which begins with its first event."""

    def __init__(self, client: _Client, trace_id: str) -> None:
        self._client = client
        self._trace_id = trace_id
        self._turn = asyncio.Lock()
        self._ended = False
        self._last = 0.0
        """When something was sent, by the loop's clock."""

    @property
    def begun(self) -> bool:
        """Whether anything was sent."""
        return self._client.begun

    async def send(self, name: str, data: Mapping[str, Any]) -> None:
        """Send an event; `done` and `error` end the response. Raises _GoneError."""
        event = event_of(name, data)
        async with self._turn:
            if not self.begun:
                await self._begin(data.get("digest"))
            self._ended = name in ("done", "error")
            await self._write(event)

    async def fail(self, said: str) -> None:
        """End a stream that did not come to its end; one that has not begun stays as it is."""
        if self.begun and not self._ended:
            failure = {"stage": "internal", "message": said, "partial": None, "trace_id": self._trace_id}
            await self.send("error", failure)

    async def heartbeats(self, seconds: float) -> None:
        """Break each silence of so many seconds by a comment, until cancelled."""
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._last + seconds - now() if self._last else seconds)
            async with self._turn:
                if self.begun and not self._ended and self._last + seconds <= now():
                    await self._write(HEARTBEAT)

    async def _begin(self, digest: str | None) -> None:
        headers = MutableHeaders({"Content-Type": EVENTS, "Cache-Control": NEVER, "X-Accel-Buffering": "no"})
        if digest is not None:
            headers[DIGEST_HEADER] = digest
        await self._client.send({"type": "http.response.start", "status": 200, "headers": headers.raw})

    async def _write(self, part: bytes) -> None:
        await self._client.send({"type": "http.response.body", "body": part, "more_body": not self._ended})
        self._last = asyncio.get_running_loop().time()


def event_of(name: str, data: Mapping[str, Any]) -> bytes:
    """A server-sent event; its data are JSON in one line, whatever a reader takes for the end of a line."""
    content = compact_json(data)
    for char, escaped in _LINE_ENDS.items():
        content = content.replace(char, escaped)
    return b"event: %s\ndata: %s\n\n" % (name.encode(), content)


async def _left(receive: Receive) -> None:
    """Wait for the client to leave."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first_of(*works: Coroutine[Any, Any, None]) -> None:
    """Do these side by side until one of them ends; the others are cancelled, and over when this returns.

    Raises what the first raised.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if task in ended:
            task.result()


class Enveloped:
    """ASGI middleware that puts what is wrong with a question into the envelope, where its answer would be in one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http" and is_ask(scope["path"]) and _wants_envelope(scope):
            send = _enveloping(send)
        await self._app(scope, receive, send)


def _wants_envelope(scope: Scope) -> bool:
    return ("stream", "false") in _queried(scope)


def _enveloping(send: Send) -> Send:
    start: Message | None = None
    body = bytearray()

    async def enveloped(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            if MutableHeaders(scope=message).get("content-type") == PROBLEM:
                start = message
                return
        elif start is not None and message["type"] == "http.response.body":
            body.extend(message.get("body", b""))
            if message.get("more_body", False):
                return
            content = b'{"success":false,"data":null,"error":%s}' % bytes(body)
            headers = MutableHeaders(scope=start)
            headers["content-type"], headers["content-length"] = JSON, str(len(content))
            await send(start)
            message = {**message, "body": content}
        await send(message)

    return enveloped
