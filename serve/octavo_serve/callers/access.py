"""Who asks, which packs that caller may see, and how often it may ask.

It stands before routing: what is behind it gets a view of the library and no way around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo_serve.callers.keys import KEY, MAX_KEY, find_key
from octavo_serve.callers.oauth import Resource, is_metadata, resource_at
from octavo_serve.callers.rates import Limiter
from octavo_serve.callers.views import View
from octavo_serve.faces import Library, UnavailableError
from octavo_serve.over_http.caching import IMMUTABLE, NEVER
from octavo_serve.over_http.edge import PROBES, STRANGER
from octavo_serve.over_http.page import wants_page
from octavo_serve.over_http.problems import octavo_problem, problem
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.notes import note_caller

if TYPE_CHECKING:
    from octavo_serve.callers.tokens import TokenVerifier

_LIBRARY = "octavo.library"
_VIEW = "octavo.view"
_KEY_BYTES = re.compile(KEY.pattern.encode())
_CREDENTIAL_BYTES = re.compile(rb"(?:^|&)access_token=|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]+\.eyJ|" + _KEY_BYTES.pattern)
"""A key, a JWT, or what RFC 6750 2.3 calls a token. Nothing here is tried again from within a match: it is linear."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who showed a key or a token."""

    name: tuple[str, ...]
    """Whose requests are counted together: the key's name, or the client and the subject of a token."""
    slugs: frozenset[str] | None
    """The packs that are there for the caller; None for all."""
    lacks: Resource | None = None
    """What it asks for and has no scope for; None where nothing is missing."""

    @property
    def shown(self) -> str:
        """The name as a log may have it: one line of printable ASCII."""
        return "/".join(ascii(part)[1:-1][:100] for part in self.name)


class AccessRefused(Exception):  # noqa: N818  # of a stranger; nothing here is in error
    """The request goes no further; `response` says why."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def library_of(scope: Scope) -> Library:
    """The library that answers the request, as it was when the request began; for what is told of the whole server."""
    return scope[_LIBRARY]


def caller_of(scope: Scope) -> View | None:
    """What the caller may see; None for one without a key where keys are needed, and for one that asks a strange host.

    Those get as far as the probes.
    """
    return None if scope.get(STRANGER) else scope[_VIEW]


def view_of(scope: Scope) -> View:
    """What the caller may see."""
    view = caller_of(scope)
    if view is None:
        raise RuntimeError("a caller without a key was let in")
    return view


class Access:
    """ASGI middleware that asks for a key or a token where they are configured, and counts where a limit is."""

    def __init__(
        self,
        app: ASGIApp,
        current: Callable[[], Library],
        settings: ServerSettings,
        clock: Callable[[], int],
        *,
        wall_clock: Callable[[], float],
        verifier: TokenVerifier | None = None,
    ) -> None:
        """`current` gives the library that a request is bound to until it ends; `clock` is that of `rates.Limiter`.

        `wall_clock` gives seconds since 1970, `verifier` reads tokens.
        """
        self._app = app
        self._current = current
        self._keys = settings.keys
        self._oauth = settings.oauth
        self._wall_clock = wall_clock
        self._verifier = verifier
        self._closed = bool(settings.keys) or verifier is not None
        self._limit = settings.rate_limit
        self._limiter = Limiter(settings.rate_limit, clock) if settings.rate_limit else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on with its caller's view."""
        if scope["type"] != "http" or (self._oauth and is_metadata(scope["path"])):
            # Who has no token yet reads there where to get one.
            await self._app(scope, receive, send)
            return
        caller: Caller | None = None
        refusal: Response | None = None
        if self._closed:
            send = _to_one_caller(send)
            try:
                caller = await self._authenticate(scope)
            except AccessRefused as refused:
                refusal = refused.response
            note_caller(caller.shown if caller else None)
        open_to_all = scope["path"] in PROBES or wants_page(scope)
        if open_to_all:
            # Probes have no key, and are not to be turned away for asking often. The page asks people for theirs.
            refusal = None
        elif refusal is None:
            refusal = self._count(caller.name if caller else (caller_address(scope),))
        if refusal is None and caller and caller.lacks and not open_to_all:
            refusal = _forbidden(caller.lacks)
        library = self._current()
        view = None if self._closed and caller is None else View(library, caller.slugs if caller else None)
        await (refusal or self._app)({**scope, _LIBRARY: library, _VIEW: view}, receive, send)

    async def _authenticate(self, scope: Scope) -> Caller:
        resource = resource_at(self._oauth, scope["path"]) if self._oauth else None
        what = "key or a token" if resource else "key"
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            raise _unauthorized(f"missing; expected `Bearer` and a {what}, in this header only", resource)
        scheme, _, presented = given[0].strip(b" \t").partition(b" ")
        presented = presented.strip(b" ")
        caller = None
        if len(given) == 1 and scheme.lower() == b"bearer":
            caller = self._key_holder(presented) or await self._token_holder(presented, resource)
        if caller is None:
            wrong = f"not a {what} of this server; expected `Bearer` and a {what}"
            raise _unauthorized(wrong, resource, "invalid_token")
        if (_CREDENTIAL_BYTES if resource else _KEY_BYTES).search(scope["query_string"]):
            detail = f"query: holds a {what}; URLs are logged on their way: revoke it, and use the header"
            raise AccessRefused(problem(400, detail))
        return caller

    def _key_holder(self, presented: bytes) -> Caller | None:
        key = find_key(self._keys, presented) if len(presented) <= MAX_KEY else None
        return Caller(("key", key.name), key.slugs) if key and key.is_good_at(self._wall_clock()) else None

    async def _token_holder(self, presented: bytes, resource: Resource | None) -> Caller | None:
        if self._verifier is None or resource is None or _KEY_BYTES.fullmatch(presented):
            return None
        try:
            token = await self._verifier.verify(presented, resource)
        except UnavailableError as error:
            raise AccessRefused(octavo_problem(error)) from None
        if token is None:
            return None
        # Decided by token and path alone, so the answer is the same whether or not there is such a pack.
        enough = token.slugs is None or (resource.slug in token.slugs if resource.slug else bool(token.slugs))
        return Caller(("token", token.client_id, token.subject), token.slugs, None if enough else resource)

    def _count(self, caller: Hashable) -> Response | None:
        if self._limiter is None or self._limit is None:
            return None
        wait = self._limiter.take(caller)
        if not wait:
            return None
        allowed = f"at most {self._limit.requests} requests in {self._limit.per_seconds} seconds"
        return problem(429, f"rate: {allowed}; ask again in {wait} seconds", headers={"Retry-After": str(wait)})


def _unauthorized(wrong: str, resource: Resource | None, code: str | None = None) -> AccessRefused:
    headers = {"WWW-Authenticate": _challenge(resource, code)}
    return AccessRefused(problem(401, f"Authorization: {wrong}", headers=headers))


def _forbidden(lacking: Resource) -> Response:
    headers = {"WWW-Authenticate": _challenge(lacking, "insufficient_scope")}
    return problem(403, f"Authorization: the token has not the scope {lacking.scope}", headers=headers)


def _challenge(resource: Resource | None, code: str | None) -> str:
    """`WWW-Authenticate` of RFC 6750 3, with what RFC 9728 5.1 adds where there is an issuer."""
    parts = ['Bearer realm="octavo"', f'error="{code}"' if code else "", resource.challenge if resource else ""]
    return ", ".join(part for part in parts if part)


def caller_address(scope: Scope) -> str:
    """The client's address; of IPv6 the first half, since whoever has one has 2**64 of the other."""
    text = scope["client"][0] if scope.get("client") else ""
    try:
        address = ip_address(text)
    except ValueError:
        return text
    return address.packed[:8].hex() if isinstance(address, IPv6Address) and not address.ipv4_mapped else text


def _to_one_caller(send: Send) -> Send:
    """What was answered to one key is not to be kept for another.

    What can never change may be kept by the client itself: it has the bytes already, and would only ask for the same.
    """

    async def kept_apart(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            unchanging = headers.get("cache-control") == IMMUTABLE
            headers["cache-control"] = IMMUTABLE.replace("public", "private") if unchanging else NEVER
            headers.add_vary_header("Authorization")
        await send(message)

    return kept_apart
