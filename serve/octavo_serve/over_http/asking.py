"""`POST /ask`: an answer as it is written, in server-sent events, or at once in one JSON envelope.

Whoever asked may leave at any moment, and stops the work then: what waits for the model is a task of its own, beside
one that waits for the client to leave.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
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
from octavo_serve.faces import compact_json
from octavo_serve.over_http.bodies import JSON, request_of_body
from octavo_serve.over_http.caching import NEVER
from octavo_serve.over_http.edge import is_ask
from octavo_serve.over_http.problems import PROBLEM, problem
from octavo_serve.over_http.routes import DIGEST_HEADER
from octavo_serve.requests import AskRequest
from octavo_serve.watching import notes

if TYPE_CHECKING:
    # a server that answers no questions does not pay for what that needs
    from octavo_serve.answering.answerer import Answerer

EVENTS = "text/event-stream"
HEARTBEAT = b": the model reads or writes\n\n"

_STREAM = {"true": True, "1": True, "false": False, "0": False}
_STATUS = {"retrieval": 502, "generation": 502, "internal": 500}
"""By the stage that failed, where the answer is not a stream."""

_LAST_WORD = 1.0
"""Seconds to tell a client that the server ends."""


def ask_routes(answerer: Answerer | None) -> list[Route]:
    """The routes; they say so where nobody answers."""
    return [Route(path, Ask(answerer).answer, methods=["POST"]) for path in ("/ask", "/packs/{slug}/ask")]


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
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    for number, (name, value) in enumerate(pairs):
        if name != "stream" or number:
            raise RequestError(name[:100], "given more than once" if name == "stream" else "unknown; known is stream")
        if value not in _STREAM:
            raise RequestError("stream", "expected true or false")
        streamed = _STREAM[value]
    return streamed


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
        settings = self._answerer.settings
        stream = _Stream(send, settings.reader_timeout)
        with self._answerer.slot():
            events = self._answerer.events(self._asked, self._answerer.retriever(self._view), self._trace_id)
            async with aclosing(events):
                if not self._streamed:
                    work = self._whole(events, scope, receive, send)
                    await _first_of(work, _left(receive))
                    return
                try:
                    work = self._stream(events, stream)
                    await _first_of(work, _left(receive), stream.heartbeats(settings.heartbeat_seconds))
                except TimeoutError:
                    pass  # the client does not read
                except asyncio.CancelledError:
                    # the server's grace is over
                    with suppress(Exception):
                        await asyncio.wait_for(stream.fail("the server ends", self._trace_id), _LAST_WORD)
                    raise

    async def _stream(self, events: Any, stream: _Stream) -> None:
        async for event in events:
            await stream.send(event.name, event.data)
        await stream.end()

    async def _whole(self, events: Any, scope: Scope, receive: Receive, send: Send) -> None:
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


class _Stream:
    """A response of server-sent events (WHATWG HTML, 9.2), which begins with its first event."""

    def __init__(self, send: Send, timeout: float) -> None:
        self._send = send
        self._timeout = timeout
        self._turn = asyncio.Lock()
        self._begun = False
        self._ended = False
        self._sent = 0

    async def send(self, name: str, data: Mapping[str, Any]) -> None:
        """Send an event. Raises TimeoutError when the client does not read."""
        await self._begin(data.get("digest"))
        # JSON has no line ends of its own
        await self._write(b"event: %s\ndata: %s\n\n" % (name.encode(), compact_json(data)))
        self._ended = name in ("done", "error")

    async def fail(self, said: str, trace_id: str) -> None:
        """End a stream that did not come to its end; one that has not begun stays as it is."""
        if self._begun and not self._ended:
            failure = {"stage": "internal", "message": said, "partial": None, "trace_id": trace_id}
            await self.send("error", failure)
            await self.end()

    async def end(self) -> None:
        """End the response."""
        await self._write(b"", more=False)

    async def heartbeats(self, seconds: float) -> None:
        """Break each silence of so many seconds by a comment, until cancelled."""
        while True:
            sent = self._sent
            await asyncio.sleep(seconds)
            if self._begun and self._sent == sent:
                await self._write(HEARTBEAT)

    async def _begin(self, digest: str | None) -> None:
        if self._begun:
            return
        headers = MutableHeaders({"Content-Type": EVENTS, "Cache-Control": NEVER, "X-Accel-Buffering": "no"})
        if digest is not None:
            headers[DIGEST_HEADER] = digest
        self._begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": headers.raw})

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        async with asyncio.timeout(self._timeout), self._turn:
            self._sent += 1
            await self._send({"type": "http.response.body", "body": data, "more_body": more})


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
        if scope["type"] == "http" and is_ask(scope["path"]) and not _wants_stream(scope):
            send = _enveloping(send)
        await self._app(scope, receive, send)


def _wants_stream(scope: Scope) -> bool:
    try:
        return is_streamed(scope)
    except RequestError:
        return True


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
