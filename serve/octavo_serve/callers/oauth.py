"""OAuth 2.1, the resource server's part: what the operator decides, what a token must be for, what its scopes open.

An authorization server elsewhere makes the tokens; this server only reads them (`tokens`), by that server's public keys
(`issuer_keys`). Everything here is decided by the settings, a path and a token, never by which packs there are, so that
no answer tells a stranger whether a pack exists.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import SLUG

METADATA = "/.well-known/oauth-protected-resource"
"""Where RFC 9728 puts a resource's metadata; the resource's own path follows."""

Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]  # fmt: skip
"""Asymmetric ones only: with a shared secret this server could make the tokens that it reads."""

_SLUG = "{slug}"
_DIGEST = r"@[0-9a-f]{12,64}"
_MCP = re.compile(rf"/mcp|(?P<pack>/packs/(?P<slug>{SLUG.pattern}))(?:{_DIGEST})?/mcp")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749 3.3
_LOOPBACK = r"(?:localhost|127\.[0-9.]+|\[::1\])"
_AUTHORITY = r"(?:\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::[0-9]{1,5})?"
_ORIGIN = re.compile(rf"https://{_AUTHORITY}|http://{_LOOPBACK}(?::[0-9]{{1,5}})?")
_PLACE = re.compile(rf"(?:{_ORIGIN.pattern})(?:/[\x21\x24-\x3b\x3d\x40-\x5b\x5d-\x7e]*)?")


def is_safe_url(url: str) -> bool:
    """Whether keys may be fetched there: https, or http on this machine; no user, query and fragment."""
    return _PLACE.fullmatch(url) is not None


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """Whose tokens are good here, what they must be for, and which packs their scopes open."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    issuer: Annotated[
        str,
        Field(
            description="The authorization server, as `iss` spells it: an https URL, http on this machine only.",
            max_length=500,
        ),
    ]
    resource: Annotated[
        str,
        Field(
            description="This server's public URL without a path, such as `https://kb.example.org`. Tokens must be for "
            "it, or for the endpoint that they are sent to: `<resource>/mcp`, `<resource>/packs/<slug>/mcp`.",
            max_length=500,
        ),
    ]
    jwks_uri: Annotated[
        str | None,
        Field(description="Where the issuer's public keys are; by default its metadata say.", max_length=500),
    ] = None
    algorithms: Annotated[
        tuple[Algorithm, ...], Field(min_length=1, description="Signatures that are accepted (`alg`).")
    ] = ("RS256", "PS256", "ES256", "EdDSA")
    token_types: Annotated[
        tuple[Literal["at+jwt", "JWT"], ...],
        Field(
            min_length=1,
            description="What a token may call itself (`typ`). RFC 9068 says at+jwt; JWT, or nothing, is for issuers "
            "that do not follow it.",
        ),
    ] = ("at+jwt",)
    pack_scope: Annotated[
        str, Field(description="The scope that opens one pack, with `{slug}` in place of its slug.", max_length=200)
    ] = f"pack:{_SLUG}"
    all_scope: Annotated[str, Field(description="The scope that opens all packs.", max_length=200)] = "packs:*"
    required_claims: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=100)], ...],
        Field(description="Claims that a token must have besides `iss`, `aud` and `exp`."),
    ] = ()
    leeway: Annotated[
        int, Field(ge=0, le=300, description="Seconds by which the issuer's clock may differ from this machine's.")
    ] = 30

    def __post_init__(self) -> None:
        # URLs are not repeated: somebody may have put a password into one.
        for name in ("issuer", "jwks_uri"):
            url = getattr(self, name)
            if url is not None and not is_safe_url(url):
                raise ConfigError(
                    f"oauth: {name}, expected https://host/path, or http:// on this machine, "
                    "without user, query and fragment"
                )
        if not _ORIGIN.fullmatch(self.resource):
            raise ConfigError("oauth: resource, expected https://host in lower case with or without a port, no path")
        if self.pack_scope.count(_SLUG) != 1 or not _SCOPE.fullmatch(self.pack_scope.replace(_SLUG, "x")):
            raise ConfigError("oauth: pack_scope, expected a scope without spaces that holds {slug} once")
        if not _SCOPE.fullmatch(self.all_scope) or self._slug_in(self.all_scope) is not None:
            raise ConfigError("oauth: all_scope, expected a scope without spaces that is not one pack's")

    def slugs(self, scopes: Set[str]) -> frozenset[str] | None:
        """The packs that a token with these scopes opens; None for all."""
        if self.all_scope in scopes:
            return None
        return frozenset(slug for scope in scopes if (slug := self._slug_in(scope)) is not None)

    def _slug_in(self, scope: str) -> str | None:
        before, _, after = self.pack_scope.partition(_SLUG)
        if len(scope) <= len(before) + len(after) or not (scope.startswith(before) and scope.endswith(after)):
            return None
        slug = scope[len(before) : len(scope) - len(after)]
        return slug if SLUG.fullmatch(slug) else None


@dataclass(frozen=True, slots=True)
class Resource:
    """What a token must be for to be good at a path, in the words of RFC 8707 and 9728."""

    identifier: str
    """A URL: the endpoint's for MCP, that of the server for all else."""
    audiences: frozenset[str]
    """Of which a token must name one in `aud`."""
    slug: str | None
    """The pack, where the path names one."""
    scope: str
    """That opens it; of a pack its own, else that of all packs."""
    metadata: str
    """URL of the document that says so."""

    @property
    def challenge(self) -> str:
        """The parameters of `WWW-Authenticate` by which a client finds the issuer and knows what to ask it for."""
        return f'resource_metadata="{self.metadata}", scope="{self.scope}"'


def resource_at(settings: OAuthSettings, path: str) -> Resource:
    """The protected resource at a path, be there something or not.

    A pack's endpoint is the same resource at each of its releases (`/packs/<slug>@<digest>/mcp`).
    """
    base = settings.resource
    found = _MCP.fullmatch(path)
    if found is None:
        return Resource(base, frozenset({base}), None, settings.all_scope, base + METADATA)
    slug = found["slug"]
    audiences = {base, base + path, base + (f"{found['pack']}/mcp" if slug else path)}
    scope = settings.pack_scope.replace(_SLUG, slug) if slug else settings.all_scope
    return Resource(base + path, frozenset(audiences), slug, scope, base + METADATA + path)


def is_metadata(path: str) -> bool:
    """Whether RFC 9728 documents are at this path, or would be."""
    return path == METADATA or path.startswith(METADATA + "/")


def metadata_at(settings: OAuthSettings, path: str) -> dict[str, Any] | None:
    """The RFC 9728 document at a path below `METADATA`; None where no resource can be."""
    if path not in ("", "/") and not _MCP.fullmatch(path):
        return None
    resource = resource_at(settings, path)
    return {
        "resource": resource.identifier,
        "authorization_servers": [settings.issuer],
        "scopes_supported": [resource.scope],
        "bearer_methods_supported": ["header"],
        "resource_name": "octavo",
    }
