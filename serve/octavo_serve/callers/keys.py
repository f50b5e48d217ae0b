"""API keys: how one is made, what the configuration keeps of it, and whose a presented one is.

A key is 256 random bits, so nobody can guess it from its hash: plain SHA-256 is enough, and is fast at each request.
A slow hash is for passwords, which people choose.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from octavo_artifact.ids import DIGEST, SLUG, sha256_hex

ALL = "*"
KEY = re.compile(r"octavo_[A-Za-z0-9_-]{43}")
"""A key as `new_key` makes it."""

MAX_KEY = 200
"""Bytes; what is longer is no key, and is not hashed."""

_SLUG = {"type": "string", "pattern": f"^{SLUG.pattern}$"}
_PACKS = {
    "anyOf": [{"const": ALL}, {"type": "array", "items": _SLUG, "minItems": 1}],
    "description": 'Slugs of the packs it opens, or "*" for all that are served.',
}


def _packs(value: object) -> object:
    if value == ALL:
        return (ALL,)
    slugs = value if isinstance(value, list | tuple) else ()
    if not slugs or not all(isinstance(slug, str) and SLUG.fullmatch(slug) for slug in slugs):
        raise ValueError(f'expected a list of slugs, or "{ALL}" for all packs')
    return tuple(slugs)


@dataclass(frozen=True, slots=True)
class Key:
    """What the configuration knows of a key; the key itself is nowhere."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    name: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="What the operator calls it; unique.")
    ]
    sha256: Annotated[
        str, Field(pattern=f"^{DIGEST.pattern}$", description="Hex sha256 of the key, as `octavo key new` prints it.")
    ] = field(repr=False)
    packs: Annotated[tuple[str, ...], BeforeValidator(_packs), WithJsonSchema(_PACKS)]
    expires: Annotated[
        date | None, Field(description="Day (UTC) from which it opens nothing any more; never if absent.")
    ] = None

    def is_good_at(self, seconds: float) -> bool:
        """Whether it still opens something, by the seconds since 1970."""
        return self.expires is None or datetime.fromtimestamp(seconds, UTC).date() < self.expires

    @property
    def slugs(self) -> frozenset[str] | None:
        """The packs it opens; None for all."""
        return None if ALL in self.packs else frozenset(self.packs)


def new_key() -> str:
    """A key nobody has: the one thing in Octavo that must not be the same twice."""
    return f"octavo_{secrets.token_urlsafe(32)}"


def entry(key: str, name: str, packs: Sequence[str], expires: date | None = None) -> Mapping[str, Any]:
    """What stands under `keys` in the configuration for `key`."""
    made = {"name": name, "sha256": sha256_hex(key.encode()), "packs": ALL if ALL in packs else list(packs)}
    return made if expires is None else {**made, "expires": expires.isoformat()}


def find_key(keys: Sequence[Key], presented: bytes) -> Key | None:
    """The one whose hash is that of `presented`.

    Each is compared in constant time, and all are, so the time tells neither how near a guess is nor which key it met.
    """
    digest = sha256_hex(presented)
    matches = [hmac.compare_digest(digest, key.sha256) for key in keys]
    return next((key for key, match in zip(keys, matches, strict=True) if match), None)
