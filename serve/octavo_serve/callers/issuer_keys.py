"""The public keys of the authorization server: fetched when needed, kept for a while, fetched again when they change.

Only what the operator configured is asked, and the `jwks_uri` that the issuer's own metadata name; nothing that a token
says (`jku`, `x5u`, `iss`) is ever followed.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, cast

import httpx2
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from octavo_serve.callers.oauth import OAuthSettings, is_safe_url
from octavo_serve.faces import UnavailableError

FRESH = 300
"""Seconds after which keys are fetched again: for so long a key is good that the issuer has taken away."""

KEPT = 24 * 3600
"""Seconds for which keys are good when they cannot be fetched again."""

AGAIN = 10
"""Seconds between two fetches, however many tokens name keys that nobody has."""

TIMEOUT = 5.0
"""Seconds for a fetch, metadata and keys."""

MAX_DOCUMENT = 256 * 1024
MAX_KEYS = 100

_SECOND = 1_000_000_000

_logger = logging.getLogger(__name__)

Keys = Mapping[tuple[str | None, str], PyJWK]
"""By `kid` and `alg`: a key is used by the algorithms that it is for and no other (RFC 8725 3.1)."""


class IssuerKeys:
    """The keys of one issuer. Used from the event loop only; of several callers one fetches."""

    def __init__(self, settings: OAuthSettings, clock: Callable[[], int]) -> None:
        """`clock` gives nanoseconds that never go back."""
        self._settings = settings
        self._clock = clock
        self._keys: Keys = {}
        self._fetched: int | None = None
        self._tried: int | None = None
        self._fetching: asyncio.Task[None] | None = None
        # Redirects are not followed: they would lead where the operator did not.
        self._client = httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=False)

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The key of that name for that algorithm, or None; raises UnavailableError while there are no keys at all.

        Only one that is not known is waited for.
        """
        if self._since(self._fetched, KEPT):
            self._keys = {}
        if (kid, algorithm) not in self._keys or self._since(self._fetched, FRESH):
            self._fetch_soon()
        if (kid, algorithm) not in self._keys and self._fetching is not None:
            # Shielded: who hangs up does not take the keys from others that wait.
            await asyncio.shield(self._fetching)
        if not self._keys:
            raise UnavailableError("tokens cannot be checked at the moment; ask again later")
        return self._keys.get((kid, algorithm))

    async def close(self) -> None:
        """Give up a fetch that is running."""
        if self._fetching is not None:
            self._fetching.cancel()
        await self._client.aclose()

    def _since(self, then: int | None, seconds: int) -> bool:
        return then is None or self._clock() - then >= seconds * _SECOND

    def _fetch_soon(self) -> None:
        if self._fetching is None and self._since(self._tried, AGAIN):
            self._tried = self._clock()
            self._fetching = asyncio.create_task(self._fetch())

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                uri = self._settings.jwks_uri or await self._discover()
                keys = usable(await self._get(uri), self._settings.algorithms)
            if not keys:
                raise ValueError(f"no key for {', '.join(self._settings.algorithms)}")
            self._keys, self._fetched = keys, self._clock()
        except Exception as error:  # whatever a stranger's server makes of it, those with a known key go on
            _logger.warning("oauth: the issuer's keys cannot be fetched (%s)", str(error) or type(error).__name__)
        finally:
            self._fetching = None

    async def _discover(self) -> str:
        """Where the issuer's metadata say that its keys are (RFC 8414 3, OpenID Connect Discovery 4)."""
        for url in metadata_urls(self._settings.issuer):
            try:
                found = await self._get(url)
            except _MissingError:
                continue
            if found.get("issuer") != self._settings.issuer:
                raise ValueError("metadata of another issuer")
            uri = found.get("jwks_uri")
            if not isinstance(uri, str) or not is_safe_url(uri):
                raise ValueError("metadata without a jwks_uri that is https, or on this machine")
            return uri
        raise ValueError("no metadata")

    async def _get(self, url: str) -> dict[str, Any]:
        """A JSON object. Raises ValueError, and httpx2's exceptions."""
        content = bytearray()
        # As it is: what is compressed can be larger than any bound before it is counted.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        async with self._client.stream("GET", url, headers=headers) as answer:
            if answer.status_code == 404:
                raise _MissingError("status 404")
            if answer.status_code != 200:
                raise ValueError(f"status {answer.status_code}")
            async for part in answer.aiter_raw():
                content += part
                if len(content) > MAX_DOCUMENT:
                    raise ValueError(f"more than {MAX_DOCUMENT} bytes")
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ValueError("not a JSON object")
        return cast(dict[str, Any], found)


class _MissingError(ValueError):
    pass


def metadata_urls(issuer: str) -> list[str]:
    """Where an issuer's metadata may be, in the order in which MCP clients look."""
    scheme, _, rest = issuer.partition("://")
    host, slash, path = rest.partition("/")
    path = (slash + path).removesuffix("/")
    origin = f"{scheme}://{host}"
    oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    return list(dict.fromkeys((origin + oauth + path, origin + openid + path, origin + path + openid)))


def usable(key_set: Mapping[str, Any], algorithms: tuple[str, ...]) -> Keys:
    """The public signature keys of a JWK set (RFC 7517 5) that fit these algorithms; the others are passed over.

    A key that names no `alg` is for each of them that fits its type. Of two with the same name the first counts.
    Raises ValueError when it is no key set.
    """
    found = key_set.get("keys")
    if not isinstance(found, list):
        raise ValueError("no JWK set")
    keys: dict[tuple[str | None, str], PyJWK] = {}
    for each in cast(list[Any], found)[:MAX_KEYS]:
        if not isinstance(each, dict) or not _verifies(key := cast(dict[str, Any], each)):
            continue
        kid = key.get("kid")
        for algorithm in algorithms:
            if not (kid is None or isinstance(kid, str)) or key.get("alg", algorithm) != algorithm:
                continue
            try:
                made = PyJWK(key, algorithm)
                # Which looks at the curve.
                short = made.Algorithm.check_key_length(made.Algorithm.prepare_key(made.key))
            except PyJWTError:
                continue
            if not short:
                keys.setdefault((kid, algorithm), made)
    return keys


def _verifies(key: Mapping[str, Any]) -> bool:
    operations = key.get("key_ops", ["verify"])
    return key.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations and "d" not in key
