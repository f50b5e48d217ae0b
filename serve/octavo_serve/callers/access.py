"""Who asks, which packs that caller may see, and how often it may ask.

It stands before routing: what is behind it gets a view of the library and no way around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo_serve.callers.keys import KEY, MAX_KEY, Key, find_key
from octavo_serve.callers.rates import Limiter
from octavo_serve.callers.views import View, Views
from octavo_serve.over_http.edge import HEALTH
from octavo_serve.over_http.problems import problem
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.notes import note_caller

_VIEW = "octavo.view"
_KEY_BYTES = re.compile(KEY.pattern.encode())


def caller_of(scope: Scope) -> View | None:
    """What the caller may see; None for one without a key where keys are needed, who gets as far as `/healthz`."""
    return scope[_VIEW]


def view_of(scope: Scope) -> View:
    """What the caller may see."""
    view = caller_of(scope)
    if view is None:
        raise RuntimeError("a caller without a key was let in")
    return view


class Access:
    """ASGI middleware that asks for a key where keys are configured, and counts requests where a limit is."""

    def __init__(self, app: ASGIApp, views: Views, settings: ServerSettings, clock: Callable[[], int]) -> None:
        """`clock` is that of `rates.Limiter`."""
        self._app = app
        self._views = views
        self._keys = settings.keys
        self._limit = settings.rate_limit
        self._limiter = Limiter(settings.rate_limit, clock) if settings.rate_limit else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on with its caller's view."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        key: Key | None = None
        refusal: Response | None = None
        if self._keys:
            send = _uncached(send)
            key, refusal = self._authenticate(scope)
            note_caller(key.name if key else None)
        if scope["path"] == HEALTH:
            # Probes have no key, and are not to be turned away for asking often.
            refusal = None
        elif refusal is None:
            refusal = self._count(key.name if key else caller_address(scope))
        scope = {**scope, _VIEW: None if self._keys and key is None else self._views.of(key)}
        await (refusal or self._app)(scope, receive, send)

    def _authenticate(self, scope: Scope) -> tuple[Key | None, Response | None]:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            return None, _unauthorized("missing; expected `Bearer` and a key, in this header only")
        scheme, _, token = given[0].strip(b" \t").partition(b" ")
        token = token.strip(b" ")
        key = None
        if len(given) == 1 and scheme.lower() == b"bearer" and len(token) <= MAX_KEY:
            key = find_key(self._keys, token)
        if key is None:
            return None, _unauthorized("not a key of this server; expected `Bearer` and a key", "invalid_token")
        if _KEY_BYTES.search(scope["query_string"]):
            return key, problem(400, "query: holds a key; URLs are logged on their way: revoke it, and use the header")
        return key, None

    def _count(self, caller: str) -> Response | None:
        if self._limiter is None or self._limit is None:
            return None
        wait = self._limiter.take(caller)
        if not wait:
            return None
        allowed = f"at most {self._limit.requests} requests in {self._limit.per_seconds} seconds"
        return problem(429, f"rate: {allowed}; ask again in {wait} seconds", headers={"Retry-After": str(wait)})


def _unauthorized(wrong: str, code: str | None = None) -> Response:
    challenge = 'Bearer realm="octavo"' + (f', error="{code}"' if code else "")
    return problem(401, f"Authorization: {wrong}", headers={"WWW-Authenticate": challenge})


def caller_address(scope: Scope) -> str:
    """The client's address; of IPv6 the first half, since whoever has one has 2**64 of the other."""
    text = scope["client"][0] if scope.get("client") else ""
    try:
        address = ip_address(text)
    except ValueError:
        return text
    return address.packed[:8].hex() if isinstance(address, IPv6Address) and not address.ipv4_mapped else text


def _uncached(send: Send) -> Send:
    """What was answered to one key is not to be kept for another."""

    async def uncached(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["cache-control"] = "no-store"
        await send(message)

    return uncached
