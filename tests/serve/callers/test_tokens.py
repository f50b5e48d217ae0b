"""Which tokens are good: a table of bad ones, made here, read by the keys that an authority publishes."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from time import monotonic_ns
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from authority import Authority, authority_running, claims, new_key
from octavo_serve.callers.issuer_keys import IssuerKeys
from octavo_serve.callers.oauth import OAuthSettings, Resource, resource_at
from octavo_serve.callers.tokens import MAX_TOKEN, Token, TokenVerifier

pytestmark = pytest.mark.anyio

BASE = "https://kb.example.org"
MCP = f"{BASE}/packs/tiny/mcp"
NOW = 1_800_000_000
STRANGER = new_key("first")
"""Called as the authority's key, and another."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def authority() -> Iterator[Authority]:
    with authority_running() as running:
        yield running


@pytest.fixture
def settings(authority: Authority) -> OAuthSettings:
    return OAuthSettings(authority.url, BASE)


@pytest.fixture
def tiny(settings: OAuthSettings) -> Resource:
    return resource_at(settings, "/packs/tiny/mcp")


@pytest.fixture
async def verifier(settings: OAuthSettings) -> AsyncIterator[TokenVerifier]:
    verifier = TokenVerifier(settings, IssuerKeys(settings, monotonic_ns), lambda: NOW)
    yield verifier
    await verifier.close()


def good(authority: Authority, **others: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"iat": NOW, "exp": NOW + 600, **others}
    return claims(authority, MCP, **said)


async def test_a_good_token_says_who_asks_and_what_it_opens(
    authority: Authority, verifier: TokenVerifier, tiny: Resource
):
    token = authority.signed(good(authority, scope="openid pack:tiny pack:notes pack:No"))
    assert await verifier.verify(token.encode(), tiny) == Token("agent-7", "ada", frozenset({"tiny", "notes"}))
    everything = authority.signed(good(authority, scope="pack:tiny packs:*"))
    assert await verifier.verify(everything.encode(), tiny) == Token("agent-7", "ada", None)


@pytest.mark.parametrize(
    "others",
    [
        pytest.param({"aud": BASE}, id="for the server"),
        pytest.param({"aud": BASE + "/"}, id="for the server with a slash"),
        pytest.param({"aud": ["https://elsewhere.example.org", MCP]}, id="for several"),
        pytest.param({"exp": NOW - 29}, id="expired within the leeway"),
        pytest.param({"nbf": NOW + 30, "iat": NOW + 30}, id="of a clock that is ahead"),
        pytest.param({"exp": NOW + 0.5}, id="a fraction"),
        pytest.param({"iat": None, "sub": None, "client_id": None}, id="without what is not asked for"),
        pytest.param({"scope": None, "scp": ["pack:tiny"]}, id="scopes as a list under scp"),
        pytest.param({"unheard": {"of": [1]}}, id="with other claims"),
    ],
)
async def test_what_the_standards_leave_open_is_good_too(
    authority: Authority, verifier: TokenVerifier, tiny: Resource, others: dict[str, Any]
):
    token = await verifier.verify(authority.signed(good(authority, **others)).encode(), tiny)
    assert token is not None
    assert token.slugs == frozenset({"tiny"})


@pytest.mark.parametrize(
    "others",
    [
        pytest.param({"iss": "https://evil.example.org"}, id="another issuer"),
        pytest.param({"iss": None}, id="no issuer"),
        pytest.param({"iss": ["x"]}, id="a list of issuers"),
        pytest.param({"aud": None}, id="for nobody"),
        pytest.param({"aud": []}, id="for an empty list"),
        pytest.param({"aud": f"{BASE}/mcp"}, id="for another endpoint"),
        pytest.param({"aud": f"{BASE}/packs/notes/mcp"}, id="for another pack"),
        pytest.param({"aud": f"{BASE}.evil.example.org"}, id="for a longer name"),
        pytest.param({"aud": MCP + "/x"}, id="for what is below"),
        pytest.param({"aud": MCP.upper()}, id="for capitals"),
        pytest.param({"aud": {"x": MCP}}, id="for an object"),
        pytest.param({"exp": NOW - 30}, id="expired"),
        pytest.param({"exp": None}, id="never expires"),
        pytest.param({"exp": str(NOW + 600)}, id="expires at a string"),
        pytest.param({"exp": True}, id="expires at true"),
        pytest.param({"exp": float("inf")}, id="expires at infinity"),
        pytest.param({"exp": float("nan")}, id="expires at no number"),
        pytest.param({"nbf": NOW + 31}, id="not yet"),
        pytest.param({"nbf": "now"}, id="not before a word"),
        pytest.param({"iat": NOW + 31}, id="of the future"),
        pytest.param({"sub": 7}, id="subject is a number"),
        pytest.param({"scope": ["pack:tiny"]}, id="scope is a list"),
        pytest.param({"cnf": {"jkt": "x"}}, id="bound to a key"),
    ],
)
async def test_a_token_with_wrong_claims_is_refused(
    authority: Authority, verifier: TokenVerifier, tiny: Resource, others: dict[str, Any]
):
    # As JSON: PyJWT would refuse to write some of them.
    token = signed_bytes(authority, json.dumps(good(authority, **others)).encode())
    assert await verifier.verify(token, tiny) is None


def signed_bytes(authority: Authority, payload: bytes) -> bytes:
    key = jwt.PyJWK(dict(authority.key.as_dict(private=True)))
    header = {"typ": "at+jwt", "kid": authority.key.kid}
    return jwt.PyJWS().encode(payload, key, "ES256", header).encode()


@pytest.mark.parametrize("payload", [b"", b"[]", b"null", b"{", b'"x"', b"\xff", b"[" * 5000, b"{}"])
async def test_a_token_that_says_nothing_is_refused(
    authority: Authority, verifier: TokenVerifier, tiny: Resource, payload: bytes
):
    assert await verifier.verify(signed_bytes(authority, payload), tiny) is None


@pytest.mark.parametrize(
    "header",
    [
        pytest.param({"kid": "unknown"}, id="key nobody has"),
        pytest.param({"kid": None}, id="key without a name"),
        pytest.param({"typ": "JWT"}, id="an ID token's type"),
        pytest.param({"typ": None}, id="no type"),
        pytest.param({"typ": "secevent+jwt"}, id="another type"),
        pytest.param({"crit": ["exp"]}, id="critical, known claim"),
        pytest.param({"crit": ["b64"], "b64": True}, id="critical, known extension"),
        pytest.param({"crit": ["x"], "x": 1}, id="critical, unknown"),
    ],
)
async def test_a_token_with_a_wrong_header_is_refused(
    authority: Authority, verifier: TokenVerifier, tiny: Resource, header: dict[str, Any]
):
    assert await verifier.verify(authority.signed(good(authority), header).encode(), tiny) is None


@pytest.mark.parametrize("typ", ["at+jwt", "AT+JWT", "application/at+jwt"])
async def test_the_type_is_spelled_in_any_case(authority: Authority, verifier: TokenVerifier, tiny: Resource, typ: str):
    assert await verifier.verify(authority.signed(good(authority), {"typ": typ}).encode(), tiny)


@pytest.mark.parametrize("typ", ["JWT", "jwt", None])
async def test_other_types_are_good_where_the_operator_says_so(
    authority: Authority, settings: OAuthSettings, tiny: Resource, typ: str | None
):
    lax = replace(settings, token_types=("at+jwt", "JWT"))
    verifier = TokenVerifier(lax, IssuerKeys(lax, monotonic_ns), lambda: NOW)
    assert await verifier.verify(authority.signed(good(authority), {"typ": typ}).encode(), tiny)
    await verifier.close()


async def test_claims_that_the_operator_requires_must_be_there(
    authority: Authority, settings: OAuthSettings, tiny: Resource
):
    strict = replace(settings, required_claims=("sub", "jti"))
    verifier = TokenVerifier(strict, IssuerKeys(strict, monotonic_ns), lambda: NOW)
    assert await verifier.verify(authority.signed(good(authority)).encode(), tiny) is None
    assert await verifier.verify(authority.signed(good(authority, jti="1")).encode(), tiny)
    await verifier.close()


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(authority: Authority) -> str:
    return f"{encoded({'alg': 'none', 'typ': 'at+jwt', 'kid': 'first'})}.{encoded(good(authority))}."


def padded(authority: Authority) -> str:
    return unsigned(authority) + "AAAA"


def by_secret(authority: Authority) -> str:
    """HMAC with what everybody knows: the public key as the secret."""
    secret = jwt.PyJWK(dict(authority.published[0])).key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    said = f"{encoded({'alg': 'HS256', 'typ': 'at+jwt', 'kid': 'first'})}.{encoded(good(authority))}"
    mac = hmac.digest(secret, said.encode(), "sha256")
    return f"{said}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def by_a_stranger(authority: Authority) -> str:
    return authority.signed(good(authority), key=STRANGER)


def with_its_own_key(authority: Authority) -> str:
    """Signed by a key that the header brings along, and says where to find."""
    public = STRANGER.as_dict(private=False)
    brought = {"jwk": public, "jku": f"{authority.url}/evil", "x5u": f"{authority.url}/evil", "x5c": ["AAAA"]}
    return authority.signed(good(authority), brought, STRANGER)


def changed(authority: Authority) -> str:
    head, _, signature = authority.signed(good(authority)).split(".")
    return f"{head}.{encoded(good(authority, scope='packs:*'))}.{signature}"


def without_signature(authority: Authority) -> str:
    return authority.signed(good(authority)).rpartition(".")[0] + "."


def encrypted(authority: Authority) -> str:
    return authority.signed(good(authority)) + ".AAAA.AAAA"


def huge(authority: Authority) -> str:
    return authority.signed(good(authority, more="x" * MAX_TOKEN))


def in_standard_base64(authority: Authority) -> str:
    return authority.signed(good(authority)).replace("-", "+").replace("_", "/") + "="


@pytest.mark.parametrize(
    "make",
    [
        unsigned, padded, by_secret, by_a_stranger, with_its_own_key, changed, without_signature, encrypted, huge,
        in_standard_base64,
    ],
)  # fmt: skip
async def test_a_token_that_the_issuer_did_not_sign_is_refused(
    authority: Authority, verifier: TokenVerifier, tiny: Resource, make: Callable[[Authority], str]
):
    assert await verifier.verify(authority.signed(good(authority)).encode(), tiny)
    assert await verifier.verify(make(authority).encode(), tiny) is None
    assert authority.asked["/evil"] == 0


@pytest.mark.parametrize("text", ["", ".", "..", "...", "a.b.c", "é.é.é", "e30.e30.e30", "\x00", "eyJ" * 4000])
async def test_what_is_no_token_is_refused(verifier: TokenVerifier, tiny: Resource, text: str):
    assert await verifier.verify(text.encode(), tiny) is None


@pytest.mark.parametrize(("kind", "alg"), [("RSA", "RS256"), ("RSA", "PS256"), ("EC", "ES256"), ("OKP", "EdDSA")])
async def test_every_algorithm_that_is_configured_is_read(settings: OAuthSettings, tiny: Resource, kind: str, alg: str):
    with authority_running() as other:
        other.key = new_key("other", kind)
        other.publish(other.key)
        own = replace(settings, issuer=other.url)
        for accepted in (own, replace(own, algorithms=(alg,))):
            verifier = TokenVerifier(accepted, IssuerKeys(accepted, monotonic_ns), lambda: NOW)
            assert await verifier.verify(other.signed(good(other), alg=alg).encode(), tiny)
            await verifier.close()
        other_alg: Any = "ES256" if alg != "ES256" else "RS256"
        narrow = replace(own, algorithms=(other_alg,), jwks_uri=None)
        keys = IssuerKeys(narrow, monotonic_ns)
        other.publish(other.key, new_key("spare", "EC"), new_key("spare", "RSA"))
        verifier = TokenVerifier(narrow, keys, lambda: NOW)
        assert await verifier.verify(other.signed(good(other), alg=alg).encode(), tiny) is None
        await verifier.close()
