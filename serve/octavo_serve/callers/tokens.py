"""Access tokens (JWT, RFC 9068): whether one is good here, and for what.

PyJWT checks the signature: the MCP SDK brings it anyway, and it binds a key to one algorithm. The claims are compared
here, since PyJWT reads the clock itself, and this module is given one.

Every token that is wrong is refused alike: what is wrong with it is for nobody who holds it to learn.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from jwt import PyJWS, get_unverified_header
from jwt.exceptions import PyJWTError
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from octavo_serve.callers.issuer_keys import IssuerKeys
from octavo_serve.callers.oauth import OAuthSettings, Resource

MAX_TOKEN = 8 * 1024
"""Bytes; what is longer is not parsed."""

_COMPACT = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_Time = Annotated[float, Field(allow_inf_nan=False)]
"""Seconds since 1970 (RFC 7519 2, NumericDate)."""


@dataclass(frozen=True, slots=True)
class Token:
    """What a good token says."""

    client_id: str
    """Whoever was given it; empty if it does not say."""
    subject: str
    """On whose behalf; empty if it does not say."""
    slugs: frozenset[str] | None
    """The packs that its scopes open; None for all."""


@dataclass(frozen=True, slots=True)
class _Claims:
    """Those that are looked at, in the types that they must have."""

    __pydantic_config__ = ConfigDict(strict=True)

    iss: str
    aud: str | list[str]
    exp: _Time
    nbf: _Time | None = None
    iat: _Time | None = None
    sub: str = ""
    client_id: str = ""
    scope: str = ""
    scp: str | list[str] = ""
    """What some issuers call `scope`."""
    cnf: Any = None


_CLAIMS = TypeAdapter(_Claims)


class TokenVerifier:
    """Reads the tokens of one issuer."""

    def __init__(self, settings: OAuthSettings, keys: IssuerKeys, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since 1970."""
        self._settings = settings
        self._keys = keys
        self._clock = clock
        self._signatures = PyJWS()

    async def verify(self, presented: bytes, resource: Resource) -> Token | None:
        """What the token says, or None if it is not good at `resource`.

        Raises UnavailableError when that cannot be told, since the issuer's keys are not to be had.
        """
        if len(presented) > MAX_TOKEN or not _COMPACT.fullmatch(presented):
            return None
        try:
            header = get_unverified_header(presented)
            kid, algorithm = header.get("kid"), header.get("alg")
            if not self._may_read(header) or not isinstance(algorithm, str):
                return None
            key = await self._keys.find(kid, algorithm)
            if key is None:
                return None
            payload = self._signatures.decode(presented, key, algorithms=[algorithm])
            return self._token(payload, resource)
        except (PyJWTError, ValidationError, ValueError):
            # PyJWT's messages, and pydantic's, hold parts of the token.
            return None

    async def close(self) -> None:
        """Ask the issuer for nothing more."""
        await self._keys.close()

    def _may_read(self, header: dict[str, Any]) -> bool:
        """Whether it calls itself what is accepted; keys and URLs in the header are not looked at, PyJWT at `crit`."""
        kind = header.get("typ", "JWT")
        if not isinstance(kind, str) or header.get("alg") not in self._settings.algorithms:
            return False
        kinds = {each.lower() for each in self._settings.token_types}
        return kind.lower().removeprefix("application/") in kinds

    def _token(self, payload: bytes, resource: Resource) -> Token | None:
        settings = self._settings
        found = _CLAIMS.validate_json(payload)
        if not from_json(payload).keys() >= set(settings.required_claims):
            return None
        now, leeway = self._clock(), settings.leeway
        audiences = {each.removesuffix("/") for each in _several(found.aud)}
        good = (
            found.iss == settings.issuer
            and not resource.audiences.isdisjoint(audiences)
            and now < found.exp + leeway
            and all(then is None or then <= now + leeway for then in (found.nbf, found.iat))
            # Bound to a key that its holder would have to prove (RFC 8705, RFC 9449): no bearer token.
            and found.cnf is None
        )
        if not good:
            return None
        scopes = frozenset(found.scope.split()) or frozenset(" ".join(_several(found.scp)).split())
        return Token(found.client_id, found.sub, settings.slugs(scopes))


def _several(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
