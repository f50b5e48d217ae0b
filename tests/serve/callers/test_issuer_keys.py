"""The issuer's keys: found, kept, changed, and what happens when the issuer is away. The clock is the test's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from flask import Response

from authority import JWKS, METADATA, Authority, authority_running, new_key
from listening import Clock
from octavo_serve.callers.issuer_keys import AGAIN, FRESH, KEPT, IssuerKeys, metadata_urls, usable
from octavo_serve.callers.oauth import OAuthSettings
from octavo_serve.faces import UnavailableError

pytestmark = pytest.mark.anyio

SECOND = 1_000_000_000
DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def authority() -> Iterator[Authority]:
    with authority_running() as running:
        yield running


class Asking:
    """Keys of an authority, by a clock that the test moves."""

    def __init__(self, authority: Authority, **settings: Any) -> None:
        self.clock = Clock()
        self.keys = IssuerKeys(OAuthSettings(authority.url, "https://kb.example.org", **settings), self.clock)

    async def has(self, kid: str | None) -> bool:
        return await self.keys.find(kid, "ES256") is not None

    def wait(self, seconds: float) -> None:
        self.clock.now += int(seconds * SECOND)

    async def settle(self) -> None:
        """Until a fetch that nobody waits for has ended."""
        while self.keys._fetching is not None:  # pyright: ignore[reportPrivateUsage]  # nothing else shows it
            await anyio.sleep(0.005)


async def test_keys_are_fetched_once_and_kept(authority: Authority):
    asking = Asking(authority)
    assert authority.asked == {}
    assert [await asking.has("first") for _ in range(3)] == [True] * 3
    assert authority.asked == {METADATA: 1, JWKS: 1}


async def test_who_asks_at_the_same_time_waits_for_one_fetch(authority: Authority):
    asking = Asking(authority)
    found: list[bool] = []

    async def one(kid: str) -> None:
        found.append(await asking.has(kid))

    async with anyio.create_task_group() as tasks:
        for n in range(20):
            tasks.start_soon(one, "first" if n % 2 else "unknown")
    assert sorted(found) == [False] * 10 + [True] * 10
    assert authority.asked == {METADATA: 1, JWKS: 1}


async def test_one_who_hangs_up_takes_the_keys_from_nobody(authority: Authority):
    asking = Asking(authority)
    authority.gate.clear()
    with anyio.move_on_after(0.2) as gone:
        await asking.has("first")
    assert gone.cancelled_caught
    authority.gate.set()
    assert await asking.has("first")
    assert authority.asked[JWKS] == 1


async def test_a_new_key_is_found_when_a_token_names_it(authority: Authority):
    asking = Asking(authority)
    assert await asking.has("first")
    authority.rotate("second")
    asking.wait(AGAIN)
    assert await asking.has("second")
    assert not await asking.has("first")
    assert authority.asked[JWKS] == 2


async def test_names_that_nobody_has_do_not_make_the_issuer_busy(authority: Authority):
    asking = Asking(authority)
    for n in range(100):
        assert not await asking.has(f"unknown {n}")
    assert authority.asked[JWKS] == 1
    asking.wait(AGAIN - 1)
    assert not await asking.has("unknown")
    assert authority.asked[JWKS] == 1
    asking.wait(1)
    assert not await asking.has("unknown")
    assert authority.asked[JWKS] == 2


async def test_a_key_that_is_known_is_not_waited_for(authority: Authority):
    asking = Asking(authority)
    assert await asking.has("first")
    authority.gate.clear()
    asking.wait(FRESH)
    with anyio.fail_after(1):
        assert await asking.has("first")
    authority.rotate("second")
    authority.gate.set()
    await asking.settle()
    assert authority.asked[JWKS] == 2
    assert not await asking.has("first")


async def test_old_keys_are_good_while_the_issuer_is_away_but_not_for_ever(
    authority: Authority, caplog: pytest.LogCaptureFixture
):
    asking = Asking(authority)
    assert await asking.has("first")
    authority.replies[JWKS] = Response("sorry, first", 500)
    asking.wait(FRESH)
    with caplog.at_level(logging.WARNING):
        assert await asking.has("first")
        await asking.settle()
    assert caplog.messages == ["oauth: the issuer's keys cannot be fetched (status 500)"]
    asking.wait(KEPT - FRESH - 1)
    assert await asking.has("first")
    await asking.settle()
    asking.wait(1)
    with pytest.raises(UnavailableError):
        await asking.has("first")
    del authority.replies[JWKS]
    asking.wait(AGAIN)
    assert await asking.has("first")


@pytest.mark.parametrize(
    ("path", "reply"),
    [
        pytest.param(JWKS, Response("{}", 500), id="status"),
        pytest.param(JWKS, Response("", 302, {"Location": JWKS + "?again"}), id="redirect"),
        pytest.param(JWKS, Response("[]"), id="list"),
        pytest.param(JWKS, Response("[" * 100_000), id="deep"),
        pytest.param(JWKS, Response("no JSON"), id="text"),
        pytest.param(JWKS, Response('{"keys": {}}'), id="no list"),
        pytest.param(JWKS, Response('{"keys": []}'), id="no key"),
        pytest.param(JWKS, Response('{"keys": [7, {"kty": "EC"}, {"kty": "oct", "k": "AAAA"}]}'), id="no usable key"),
        pytest.param(JWKS, Response('{"keys": [], "x": "' + "x" * 300_000 + '"}'), id="large"),
        pytest.param(METADATA, Response("{}"), id="no issuer"),
        pytest.param(METADATA, Response("", 302, {"Location": "/other"}), id="metadata elsewhere"),
    ],
)
async def test_a_wrong_answer_makes_tokens_unreadable_and_no_error_of_their_holders(
    authority: Authority, path: str, reply: Response, caplog: pytest.LogCaptureFixture
):
    asking = Asking(authority)
    authority.replies[path] = reply
    with pytest.raises(UnavailableError, match="tokens cannot be checked"):
        await asking.has("first")
    assert len(caplog.messages) == 1
    assert "x" * 20 not in caplog.text
    del authority.replies[path]
    asking.wait(AGAIN)
    assert await asking.has("first")
    assert authority.asked.keys() <= {METADATA, JWKS}


async def test_an_issuer_that_does_not_answer_is_waited_for_so_long(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("octavo_serve.callers.issuer_keys.TIMEOUT", 0.2)
    asking = Asking(authority)
    authority.gate.clear()
    with pytest.raises(UnavailableError):
        await asking.has("first")
    await asking.keys.close()


async def test_nobody_listening_is_told_as_such(caplog: pytest.LogCaptureFixture):
    keys = IssuerKeys(OAuthSettings("http://127.0.0.1:9", "https://kb.example.org"), Clock())
    with pytest.raises(UnavailableError):
        await keys.find("first", "ES256")
    assert "cannot be fetched" in caplog.text


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1.example.org/jwks",
        "file:///etc/passwd",
        "https://user@host/jwks",
        "",
        None,
        7,
        "http://AUTHORITY/jwks?x",
        "http://user@AUTHORITY/jwks",
    ],
)
async def test_metadata_lead_to_safe_places_only(authority: Authority, uri: Any):
    authority.metadata["jwks_uri"] = uri.replace("AUTHORITY", authority.url[7:]) if isinstance(uri, str) else uri
    with pytest.raises(UnavailableError):
        await Asking(authority).has("first")
    assert authority.asked == {METADATA: 1}


async def test_the_metadata_of_another_issuer_lead_nowhere(authority: Authority):
    authority.metadata["issuer"] = "https://evil.example.org"
    with pytest.raises(UnavailableError):
        await Asking(authority).has("first")
    assert authority.asked == {METADATA: 1}


async def test_openid_metadata_will_do(authority: Authority):
    authority.replies[METADATA] = Response("", 404)
    authority.replies[DISCOVERY] = Response(
        f'{{"issuer": "{authority.url}", "jwks_uri": "{authority.url}{JWKS}"}}', mimetype="application/json"
    )
    assert await Asking(authority).has("first")


async def test_an_address_of_the_keys_that_is_configured_needs_no_metadata(authority: Authority):
    assert await Asking(authority, jwks_uri=authority.url + JWKS).has("first")
    assert authority.asked == {JWKS: 1}


def test_metadata_of_an_issuer_with_a_path_are_where_each_standard_puts_them():
    assert metadata_urls("https://login.example.org/tenant/a") == [
        "https://login.example.org/.well-known/oauth-authorization-server/tenant/a",
        "https://login.example.org/.well-known/openid-configuration/tenant/a",
        "https://login.example.org/tenant/a/.well-known/openid-configuration",
    ]
    assert metadata_urls("https://login.example.org/") == metadata_urls("https://login.example.org")
    assert len(metadata_urls("https://login.example.org")) == 2


EC, P384, RSA = new_key("ec"), new_key("p384", "P-384"), new_key("rsa", "RSA")

SHORT = {
    "kty": "RSA",
    "kid": "short",
    "e": "AQAB",
    "n": "0YLvjkH2zRUumNgDf-J-YXuvvwSx6Z5twNCto-6KoUtncCzOpZ89EPxhyRhTrV7nZ7UBy4rSEHE6x-pOOO_kw9"
    "l076Sv9QKrKDc5fyQwie_gViDSEYxUkoqKaJaYY2Z8Jv9sfWEyGbXEUhRSJjQJ4s-vARkKZkLhcpxY6oOlzL8",
}
"""Of 1024 bits."""


def public(key: Any, **others: Any) -> dict[str, Any]:
    found = {**key.as_dict(private=False), **others}
    return {name: value for name, value in found.items() if value is not None}


@pytest.mark.parametrize(
    ("key", "names"),
    [
        pytest.param(public(EC), {("ec", "ES256")}, id="its curve's algorithm"),
        pytest.param(public(RSA), {("rsa", "RS256"), ("rsa", "PS256")}, id="each of its type"),
        pytest.param(public(RSA, alg="PS256"), {("rsa", "PS256")}, id="the one that it names"),
        pytest.param(public(P384), set[Any](), id="another curve"),
        pytest.param(public(P384, alg="ES256"), set[Any](), id="another curve than it says"),
        pytest.param(public(EC, alg="HS256"), set[Any](), id="an algorithm that is not accepted"),
        pytest.param(public(EC, use="enc"), set[Any](), id="for encryption"),
        pytest.param(public(EC, use=None), {("ec", "ES256")}, id="for anything"),
        pytest.param(public(EC, key_ops=["verify"]), {("ec", "ES256")}, id="to verify"),
        pytest.param(public(EC, key_ops=["deriveKey"]), set[Any](), id="to derive"),
        pytest.param(public(EC, kid=None), {(None, "ES256")}, id="without a name"),
        pytest.param(public(EC, kid=7), set[Any](), id="with a number for a name"),
        pytest.param(EC.as_dict(private=True), set[Any](), id="private"),
        pytest.param({"kty": "oct", "kid": "secret", "k": "A" * 43, "alg": "HS256"}, set[Any](), id="shared secret"),
        pytest.param({"kty": "RSA", "kid": "x", "n": "AQ", "e": "AQ"}, set[Any](), id="nonsense"),
        pytest.param(SHORT, set[Any](), id="too short"),
    ],
)
def test_a_key_is_used_for_what_it_is_for(key: dict[str, Any], names: set[tuple[str | None, str]]):
    assert usable({"keys": [key]}, ("RS256", "PS256", "ES256", "EdDSA")).keys() == names


def test_of_two_keys_with_one_name_the_first_counts():
    keys = usable({"keys": [public(EC), public(new_key("ec"))]}, ("ES256",))
    assert (
        keys["ec", "ES256"].key.public_numbers()
        == usable({"keys": [public(EC)]}, ("ES256",))["ec", "ES256"].key.public_numbers()
    )
