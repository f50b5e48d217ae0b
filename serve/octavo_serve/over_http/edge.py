"""The outermost guard: which hosts and origins are answered, and how much a client may send how slowly.

It stands before routing, so that nothing behind it, the MCP SDK included, sees a request that is refused here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo_serve.over_http.caching import NEVER
from octavo_serve.over_http.cors import preflight, shared
from octavo_serve.over_http.problems import problem
from octavo_serve.settings import AUTHORITY, ServerSettings

HEALTH = "/healthz"
READY = "/readyz"
PROBES = (HEALTH, READY)
"""What is answered whatever `Host` says, without a key, however often."""

STRANGER = "octavo.stranger"
"""In a scope: whether the `Host` is none of the server's, who gets as far as the probes."""

MAX_HEAD = 32 * 1024
"""Bytes of a request's line and headers: a query of 2,000 characters takes at most 24,000 when percent-encoded."""

MAX_QUESTION = 16 * 1024
"""Bytes of the body of a question: of 2,000 characters, and which documents may answer."""

_ROUTING_HEADERS = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
_CLOSE = {"Connection": "close"}


def is_mcp(path: str) -> bool:
    """Whether MCP is spoken at this path."""
    return path == "/mcp" or (path.startswith("/packs/") and path.endswith("/mcp"))


def is_ask(path: str) -> bool:
    """Whether questions are asked at this path."""
    return path == "/ask" or (path.startswith("/packs/") and path.endswith("/ask") and path.count("/") == 3)


@dataclass(slots=True)
class _Sender:
    """Who sends a request, by its own account."""

    hosts: list[str] = field(default_factory=list[str])
    origins: list[str] = field(default_factory=list[str])
    length: int = 0
    """Bytes of the body, as declared."""
    size: int = 0
    """Bytes of the line and the headers."""


class Edge:
    """ASGI middleware that refuses what the application must not see."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings
        self._hosts = settings.hosts
        self._origins = frozenset(origin.lower() for origin in settings.allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request or pass it on, one with a body after the body was read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sender = _sender_of(scope)
        refusal = self._refuse_sender(scope, sender)
        if is_mcp(scope["path"]):
            send = _never_kept(send)
        if self._origins:
            page = sender.origins[0] if refusal is None and len(sender.origins) == 1 else None
            page = page if page in self._origins else None
            send = shared(send, page)
            if page is not None:
                posted = is_mcp(scope["path"]) or is_ask(scope["path"])
                refusal = preflight(scope, "POST" if posted else "GET, HEAD, POST")
        refusal = refusal or self._refuse_request(scope, sender)
        if refusal is None and scope["method"] == "POST":
            scope = {**scope, "headers": [_without_ows(header) for header in scope["headers"]]}
            body = await self._read_body(scope, receive)
            if body is None:
                return
            if isinstance(body, Response):
                refusal = body
            else:
                receive = _replay(body, receive)
        await (refusal or self._app)(scope, receive, send)

    def _refuse_sender(self, scope: Scope, sender: _Sender) -> Response | None:
        if sender.size > MAX_HEAD:
            return problem(431, f"line and headers: at most {MAX_HEAD} bytes", headers=_CLOSE)
        hosts = sender.hosts
        scope[STRANGER] = not (len(hosts) == 1 and self._knows(hosts[0]))
        if scope[STRANGER] and scope["path"] not in PROBES:
            return problem(421, "Host: not a name this server answers to; the setting `allowed_hosts` lists them")
        if not all(self._trusts(origin, hosts) for origin in sender.origins):
            return problem(403, "Origin: pages of this origin may not call; the setting `allowed_origins` lists them")
        return None

    def _refuse_request(self, scope: Scope, sender: _Sender) -> Response | None:
        if is_mcp(scope["path"]) and scope["method"] != "POST":
            # The SDK would answer a 2025-era GET with an event stream that never ends (python-sdk #2474).
            return problem(405, "MCP is spoken by POST only", headers={"Allow": "POST"})
        return self._too_large(scope) if sender.length > self._limit(scope) else None

    def _knows(self, host: str) -> bool:
        match = AUTHORITY.fullmatch(host)
        return match is not None and (match["name"] in self._hosts or host in self._hosts)

    def _trusts(self, origin: str, hosts: list[str]) -> bool:
        scheme, _, authority = origin.partition("://")
        return origin in self._origins or (scheme in ("http", "https") and [authority] == hosts)

    def _limit(self, scope: Scope) -> int:
        """Bytes of a body."""
        return min(self._settings.max_body, MAX_QUESTION) if is_ask(scope["path"]) else self._settings.max_body

    def _too_large(self, scope: Scope) -> Response:
        return problem(413, f"body: at most {self._limit(scope)} bytes", headers=_CLOSE)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | Response | None:
        """The body, a refusal, or None when the client left.

        It is read here because nothing behind has a timeout, and a TimeoutError raised through Starlette
        would become its own status 500.
        """
        body = bytearray()
        with anyio.move_on_after(self._settings.body_timeout):
            while True:
                received = await receive()
                if received["type"] == "http.disconnect":
                    return None
                body += received.get("body", b"")
                if len(body) > self._limit(scope):
                    return self._too_large(scope)
                if not received.get("more_body", False):
                    return bytes(body)
        return problem(408, f"body: not complete after {self._settings.body_timeout:g} seconds", headers=_CLOSE)


def _sender_of(scope: Scope) -> _Sender:
    sender = _Sender(size=len(scope.get("raw_path", b"")) + len(scope["query_string"]))
    for name, value in scope["headers"]:
        sender.size += len(name) + len(value)
        if name == b"host":
            sender.hosts.append(value.decode("latin-1").strip().lower())
        elif name == b"origin":
            sender.origins.append(value.decode("latin-1").strip().lower())
        elif name == b"content-length" and value.strip().isdigit():
            sender.length = int(value)
    return sender


def _without_ows(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    # uvicorn with httptools keeps white space at the end of a value, which RFC 9110 5.5 wants off; the SDK
    # compares these headers with the body and would answer -32020.
    name, value = header
    return (name, value.strip(b" \t")) if name in _ROUTING_HEADERS or name.startswith(b"mcp-param-") else header


def _never_kept(send: Send) -> Send:
    """Answers to POST are for who asked; whatever stands between is told so."""

    async def never_kept(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["cache-control"] = NEVER
        await send(message)

    return never_kept


def _replay(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
