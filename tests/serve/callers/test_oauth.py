"""Tokens of a real authorization server at a server of Octavo, both on sockets, from the challenge to the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx2
import pytest
from flask import Response
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from authority import CLIENT, JWKS, REDIRECT, SECRET, Authority, authority_running, claims
from authority import new_key as new_private_key
from listening import CALL, ERAS, Clock, Running, connected, listening
from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import sha256_hex
from octavo_serve.callers.access import Caller
from octavo_serve.callers.issuer_keys import AGAIN
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.callers.oauth import METADATA, OAuthSettings, metadata_at, resource_at
from octavo_serve.callers.rates import RateLimit
from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.settings import ServerSettings

pytestmark = pytest.mark.anyio

KEY = new_key()
KEYS = (Key("notes", sha256_hex(KEY.encode()), ("notes",)),)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def catalog(built: Path) -> Catalog:
    """`notes` and `tiny`."""
    return open_catalog(built)


@dataclass(frozen=True)
class Guarded:
    """A server, the authority whose tokens it takes, and the key that it takes too."""

    server: Running
    authority: Authority

    @property
    def url(self) -> str:
        return self.server.url

    def token(self, scope: str = "pack:tiny", path: str = "") -> str:
        """One for the resource at that path, by client credentials."""
        return self.authority.token(scope, self.url + path)

    def signed(self, **others: Any) -> str:
        """One that says just this."""
        return self.authority.signed(claims(self.authority, **{"audience": self.url, **others}))


def guarded_by(authority: Authority, **others: Any) -> Callable[[str], ServerSettings]:
    return lambda url: ServerSettings(keys=KEYS, oauth=OAuthSettings(authority.url, url), **others)


@pytest.fixture(scope="module")
def guarded(catalog: Catalog) -> Iterator[Guarded]:
    with authority_running() as authority, listening(catalog, guarded_by(authority)) as running:
        yield Guarded(running, authority)


@pytest.fixture
def own(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Guarded, Clock]]:
    """One that the test may change, with its clock."""
    clock = Clock.of_the_server(monkeypatch)
    limit = RateLimit(4, 60)
    with authority_running() as authority, listening(catalog, guarded_by(authority, rate_limit=limit)) as running:
        yield Guarded(running, authority), clock


# What a client is told that has no token


@pytest.mark.parametrize(
    ("path", "document", "scope"),
    [
        ("/mcp", "/mcp", "packs:*"),
        ("/packs/tiny/mcp", "/packs/tiny/mcp", "pack:tiny"),
        ("/packs/nones/mcp", "/packs/nones/mcp", "pack:nones"),
        ("/packs/tiny@0123456789ab/mcp", "/packs/tiny@0123456789ab/mcp", "pack:tiny"),
        ("/packs/Tiny/mcp", "", "packs:*"),
        ("/packs/a%22,%20x=%22/mcp", "", "packs:*"),
        ("/search?q=water&pack=tiny", "", "packs:*"),
        ("/packs", "", "packs:*"),
        ("/nowhere", "", "packs:*"),
    ],
)
def test_who_has_no_token_is_told_where_to_get_one(guarded: Guarded, path: str, document: str, scope: str):
    for header, error in (None, ""), (b"Bearer x.y.z", ' error="invalid_token",'):
        given = [] if header is None else [("Authorization", header)]
        method, body = ("POST", json.dumps(CALL).encode()) if path.endswith("/mcp") else ("GET", None)
        answer = guarded.server.ask(path, method=method, body=body, headers=given)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == (
            f'Bearer realm="octavo",{error} resource_metadata="{guarded.url}{METADATA}{document}", scope="{scope}"'
        )
        assert answer.headers["cache-control"] == "no-store"
        assert "a key or a token" in answer.json["detail"]


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("", "packs:*"),
        ("/mcp", "packs:*"),
        ("/packs/tiny/mcp", "pack:tiny"),
        ("/packs/nones/mcp", "pack:nones"),
        ("/packs/tiny@0123456789ab/mcp", "pack:tiny"),
    ],
)
def test_the_metadata_of_every_resource_that_could_be_are_there_for_anybody(guarded: Guarded, path: str, scope: str):
    answer = guarded.server.ask(METADATA + path)
    assert (answer.status, answer.headers["cache-control"]) == (200, "public, max-age=3600")
    assert answer.json == {
        "resource": guarded.url + path,
        "authorization_servers": [guarded.authority.url],
        "scopes_supported": [scope],
        "bearer_methods_supported": ["header"],
        "resource_name": "octavo",
    }
    assert guarded.server.ask(METADATA + path, headers=[("Authorization", b"Bearer x")]) == answer
    assert guarded.server.ask(METADATA + path, method="HEAD").headers == answer.headers


def test_the_metadata_of_a_pack_and_of_none_differ_in_the_clients_word_only(guarded: Guarded):
    served, absent = (guarded.server.ask(f"{METADATA}/packs/{slug}/mcp").body for slug in ("notes", "nones"))
    assert served.replace(b"notes", b"nones") == absent


@pytest.mark.parametrize(
    "path", ["x", "/x", "/mcp/", "/packs/tiny", "/packs/Tiny/mcp", "/packs/../mcp", "/packs/tiny@xyz/mcp", "/search"]
)
def test_there_are_no_metadata_of_what_is_no_resource(guarded: Guarded, path: str):
    answer = guarded.server.ask(METADATA + path)
    # What only begins like it is behind the door, as all else is.
    assert answer.status == (401 if path == "x" else 404)
    assert "resource" not in answer.json


def test_metadata_are_read_only(guarded: Guarded):
    assert guarded.server.ask(METADATA, method="POST", body=b"{}").status == 405


def test_without_an_authority_there_are_no_metadata(catalog: Catalog):
    with listening(catalog, ServerSettings(keys=KEYS)) as running:
        assert running.ask(METADATA).status == 401
        assert running.ask(METADATA, KEY).status == 404
        assert running.ask("/search?q=x").headers["www-authenticate"] == 'Bearer realm="octavo"'


# Clients that find their way by it


class Memory(TokenStorage):
    """What a client keeps; it was registered by hand."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return OAuthClientInformationFull(
            client_id=CLIENT,
            client_secret=SECRET,
            redirect_uris=[AnyUrl(REDIRECT)],
            grant_types=["authorization_code"],
            token_endpoint_auth_method="client_secret_basic",
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        raise AssertionError("registered by hand")


def browser(url: str, memory: Memory) -> OAuthClientProvider:
    """A client whose person signs in, and comes back from there with a code."""
    back: list[str] = []

    async def redirect(to: str) -> None:
        async with httpx2.AsyncClient() as client:
            back.append((await client.get(to)).headers["location"])

    async def callback() -> AuthorizationCodeResult:
        found = parse_qs(urlsplit(back.pop()).query)
        return AuthorizationCodeResult(code=found["code"][0], state=found["state"][0])

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(REDIRECT)], client_name="test", scope=None)
    return OAuthClientProvider(url, metadata, memory, redirect, callback)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(("path", "scope"), [("/mcp", "packs:*"), ("/packs/tiny/mcp", "pack:tiny")])
async def test_the_official_client_signs_in_and_asks(guarded: Guarded, path: str, scope: str, mode: Any):
    memory = Memory()
    async with (
        create_mcp_http_client(auth=browser(guarded.url + path, memory)) as http_client,
        Client(streamable_http_client(guarded.url + path, http_client=http_client), mode=mode) as client,
    ):
        arguments = {"query": "hard water", **({"pack": "tiny"} if path == "/mcp" else {})}
        found = await client.call_tool("ep_search", arguments)
    assert found.structured_content is not None
    assert found.structured_content["pack"] == "tiny"
    assert memory.tokens is not None
    assert memory.tokens.scope == scope
    # For this endpoint, and so for no other.
    token = memory.tokens.access_token
    assert guarded.server.ask("/search?q=water", token).status == 401
    assert guarded.server.post("/packs/notes/mcp", token).status == 401


async def test_the_official_client_asks_as_a_machine(guarded: Guarded):
    url = f"{guarded.url}/packs/notes/mcp"
    provider = ClientCredentialsOAuthProvider(url, Memory(), CLIENT, SECRET, issuer=guarded.authority.url)
    async with (
        create_mcp_http_client(auth=provider) as http_client,
        Client(streamable_http_client(url, http_client=http_client)) as client,
    ):
        found = await client.call_tool("ep_search", {"query": "black tea"})
    assert found.structured_content is not None
    assert found.structured_content["pack"] == "notes"


async def test_a_client_whose_scopes_do_not_reach_is_told_which_does_and_comes_back_with_it(guarded: Guarded):
    memory = Memory()
    memory.tokens = OAuthToken(access_token=guarded.token("pack:notes"), scope="pack:notes")
    url = f"{guarded.url}/packs/tiny/mcp"
    async with (
        create_mcp_http_client(auth=browser(url, memory)) as http_client,
        Client(streamable_http_client(url, http_client=http_client)) as client,
    ):
        assert (await client.list_tools()).tools
    assert memory.tokens.scope is not None
    assert "pack:tiny" in memory.tokens.scope.split()


# What a token opens


def test_a_token_opens_the_packs_of_its_scopes(guarded: Guarded):
    for scope, slugs in (
        ("pack:tiny", ["tiny"]),
        ("pack:notes openid", ["notes"]),
        ("pack:notes pack:tiny pack:valve", ["notes", "tiny"]),
        ("packs:*", ["notes", "tiny"]),
    ):
        assert list(guarded.server.ask("/healthz", guarded.token(scope)).json["packs"]) == slugs


@pytest.mark.parametrize("path", ["/mcp", "/packs/tiny/mcp", "/packs/tiny@{}/mcp"])
def test_a_token_for_an_endpoint_is_good_there_only(guarded: Guarded, path: str):
    token = guarded.token("packs:*", path.replace("{}", "0123456789ab"))
    asked = {
        each: guarded.server.post(each, token).status
        for each in ("/mcp", "/packs/tiny/mcp", "/packs/notes/mcp", "/packs/nones/mcp", "/search")
    }
    good = "/mcp" if path == "/mcp" else "/packs/tiny/mcp" if "@" not in path else None
    assert asked == {each: 200 if each == good else 401 for each in asked}


def test_a_token_for_a_packs_endpoint_is_good_at_each_of_its_releases(guarded: Guarded):
    """Where that release is mounted, which is not asked here."""
    token = guarded.token("pack:tiny", "/packs/tiny/mcp")
    assert guarded.server.post("/packs/tiny@0123456789ab/mcp", token).status == 404
    assert guarded.server.post("/packs/notes@0123456789ab/mcp", token).status == 401


@pytest.mark.parametrize("scope", ["", "openid profile", "pack:", "pack:*", "packs", "pack:Tiny", "pack:../notes"])
@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ("/mcp", "packs:*"),
        ("/search?q=water", "packs:*"),
        ("/nowhere", "packs:*"),
        ("/packs/tiny/mcp", "pack:tiny"),
        ("/packs/nones/mcp", "pack:nones"),
    ],
)
def test_a_token_without_a_scope_for_packs_is_told_which_is_missing(
    guarded: Guarded, scope: str, path: str, needed: str
):
    answer = guarded.server.post(path, guarded.token(scope)) if "mcp" in path else None
    answer = answer or guarded.server.ask(path, guarded.token(scope))
    document = f"{guarded.url}{METADATA}{path if 'mcp' in path else ''}"
    assert answer.status == 403
    assert answer.headers["www-authenticate"] == (
        f'Bearer realm="octavo", error="insufficient_scope", resource_metadata="{document}", scope="{needed}"'
    )
    assert answer.json["detail"] == f"Authorization: the token has not the scope {needed}"


def test_to_one_who_may_see_all_packs_one_that_is_not_there_is_not_there(guarded: Guarded):
    assert guarded.server.post("/packs/nones/mcp", guarded.token("packs:*")).status == 404
    assert guarded.server.post("/packs/nones/mcp", guarded.token("pack:nones")).status == 404


def test_keys_are_good_beside_tokens(guarded: Guarded):
    assert guarded.server.ask("/search?q=tea", KEY).json["pack"] == "notes"
    assert guarded.server.post("/packs/tiny/mcp", KEY).status == 404
    unknown = guarded.server.ask("/search?q=tea", new_key())
    assert (unknown.status, 'error="invalid_token"' in unknown.headers["www-authenticate"]) == (401, True)


def test_tokens_are_good_without_keys(catalog: Catalog):
    with (
        authority_running() as authority,
        listening(catalog, lambda url: ServerSettings(oauth=OAuthSettings(authority.url, url))) as running,
    ):
        assert running.ask("/search?q=water").status == 401
        assert running.ask("/search?q=water", KEY).status == 401
        assert running.ask("/search?q=water", authority.token("pack:tiny", running.url)).json["pack"] == "tiny"


def test_scopes_are_called_what_the_operator_calls_them(catalog: Catalog):
    with authority_running() as authority:
        oauth = OAuthSettings(authority.url, "https://kb.example.org", pack_scope="kb/{slug}.read", all_scope="kb")
        with listening(catalog, ServerSettings(oauth=oauth)) as running:
            tokens = {scope: authority.token(scope, oauth.resource) for scope in ("kb/tiny.read", "kb", "pack:tiny")}
            assert running.ask("/search?q=water", tokens["kb/tiny.read"]).json["pack"] == "tiny"
            assert running.ask("/search?q=water", tokens["kb"]).json["pack"] is None
            assert running.ask("/search?q=water", tokens["pack:tiny"]).status == 403
            challenge = running.post("/packs/notes/mcp").headers["www-authenticate"]
            assert challenge.endswith('/packs/notes/mcp", scope="kb/notes.read"')


# What is refused


def test_every_bad_token_is_refused_alike_over_http_and_mcp(guarded: Guarded):
    bad = [
        guarded.signed(exp=1),
        guarded.signed(exp=None),
        guarded.signed(iss="https://evil.example.org"),
        guarded.signed(audience="https://kb.example.org"),
        guarded.authority.signed(claims(guarded.authority, guarded.url), {"kid": "unknown"}),
        guarded.authority.signed(claims(guarded.authority, guarded.url), key=new_private_key("first")),
        guarded.signed(more="x" * 9000),
        "eyJhbGciOiJub25lIn0.e30.",
        guarded.token() + "x",
        "x",
    ]
    for target in ("/search?q=water", "/search?q=water&pack=nones", "/mcp", "/packs/tiny/mcp"):
        ask = guarded.server.post if target.endswith("mcp") else guarded.server.ask
        answers = [ask(target, token) for token in bad]
        assert {answer.status for answer in answers} == {401}
        assert len({answer.body for answer in answers}) == 1
        assert len({answer.headers["www-authenticate"] for answer in answers}) == 1
        assert 'error="invalid_token"' in answers[0].headers["www-authenticate"]


@pytest.mark.parametrize("target", ["/search", "/mcp", "/packs/tiny/mcp"])
@pytest.mark.parametrize("query", ["access_token={}", "q={}", "q=what+is+{}", "q=x&access_token=opaque"])
def test_a_token_in_the_query_is_refused_with_the_header_and_without(guarded: Guarded, target: str, query: str):
    token = guarded.token("pack:tiny")
    asked = f"{target}?{query.replace('{}', token)}"
    method, body = ("POST", json.dumps(CALL).encode()) if target.endswith("mcp") else ("GET", None)
    assert guarded.server.ask(asked, method=method, body=body).status == 401
    refused = guarded.server.ask(asked, token, method=method, body=body)
    assert refused.status == 400
    assert refused.json["detail"].startswith("query: holds a key or a token")
    assert token.encode() not in refused.body


def test_a_query_that_looks_like_many_tokens_is_read_in_no_time(guarded: Guarded):
    assert guarded.server.ask(f"/search?q={'eyJ' * 10_000}", guarded.token()).status == 422


def test_a_token_is_in_no_log_no_answer_and_no_request_to_the_issuer(guarded: Guarded):
    good, bad = guarded.token("pack:tiny"), guarded.signed(exp=1)
    away = guarded.authority.signed(claims(guarded.authority, guarded.url), {"kid": "away"})
    before, told = len(guarded.server.log), b""
    for token in (good, bad, away):
        for target in ("/search?q=water", "/search?bad", "/healthz", "/mcp", "/packs/tiny/mcp", "/nowhere"):
            answer = guarded.server.post(target, token) if "mcp" in target else guarded.server.ask(target, token)
            told += f"{answer.headers}".encode() + answer.body
    said = guarded.server.said(before) + told.decode() + "".join(guarded.authority.seen)
    assert not [part for token in (good, bad, away) for part in token.split(".")[1:] if part in said]
    assert "Authorization': 'Bearer" not in said


def test_what_a_token_says_cannot_forge_a_line_of_the_log():
    caller = Caller(("token", "agent\r\n7", "ada\x1b[31m\u202e" + "x" * 500), None)
    name = caller.shown
    assert name.startswith(r"token/agent\r\n7/ada\x1b[31m\u202exxx")
    assert (name.isascii(), name.isprintable(), len(name) < 250) == (True, True, True)


# Keys that change, an issuer that is away, callers that ask too often


def test_a_token_by_a_new_key_is_good_as_soon_as_the_key_is_looked_for_again(own: tuple[Guarded, Clock]):
    guarded, clock = own
    old = guarded.token()
    assert guarded.server.ask("/search?q=water", old).status == 200
    guarded.authority.rotate("second")
    new = guarded.token()
    assert guarded.server.ask("/search?q=water", new).status == 401
    clock.now += AGAIN * 1_000_000_000
    assert guarded.server.ask("/search?q=water", new).status == 200
    assert guarded.server.ask("/search?q=water", old).status == 401
    assert guarded.authority.asked[JWKS] == 2


def test_while_the_issuer_is_away_keys_are_good_and_tokens_are_asked_to_come_again(own: tuple[Guarded, Clock]):
    guarded, clock = own
    token = guarded.token()
    guarded.authority.replies[JWKS] = Response("", 500)
    refused = guarded.server.ask("/search?q=water", token)
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert refused.json["detail"] == "tokens cannot be checked at the moment; ask again later"
    assert guarded.server.ask("/search?q=tea", KEY).status == 200
    del guarded.authority.replies[JWKS]
    clock.now += AGAIN * 1_000_000_000
    assert guarded.server.ask("/search?q=water", token).status == 200


async def test_nobody_else_waits_for_the_issuer(own: tuple[Guarded, Clock]):
    guarded, _ = own
    token = guarded.token()
    guarded.authority.gate.clear()
    waiting: list[int] = []

    async def one() -> None:
        answer = await anyio.to_thread.run_sync(lambda: guarded.server.ask("/search?q=water", token))
        waiting.append(answer.status)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        while not guarded.authority.asked[JWKS]:
            await anyio.sleep(0.005)
        answer = await anyio.to_thread.run_sync(lambda: guarded.server.ask("/search?q=tea", KEY))
        assert answer.status == 200
        assert guarded.server.ask("/healthz").status == 200
        assert waiting == []
        guarded.authority.gate.set()
    assert waiting == [200]


def test_the_tokens_of_one_client_and_subject_count_together(own: tuple[Guarded, Clock]):
    guarded, clock = own
    first, second = guarded.signed(jti="1"), guarded.signed(jti="2")
    asked = [guarded.server.ask("/search?q=water", token).status for token in (first, second, first, second, first)]
    assert asked == [200, 200, 200, 200, 429]
    refused = guarded.server.post("/mcp", second)
    assert (refused.status, refused.headers["retry-after"]) == (429, "15")
    # What needs another scope is counted too, so it may not be asked for ever; it is 429 here, not 403.
    assert guarded.server.post("/packs/notes/mcp", first).status == 429
    for others in ({"sub": "bob"}, {"client_id": "agent-8"}):
        assert guarded.server.ask("/search?q=water", guarded.signed(**others)).status == 200
    assert guarded.server.ask("/search?q=tea", KEY).status == 200
    assert [guarded.server.ask(METADATA).status for _ in range(9)] == [200] * 9
    clock.now += 15_000_000_000
    assert guarded.server.ask("/search?q=water", first).status == 200


async def test_sets_of_packs_that_nobody_foresaw_are_answered(guarded: Guarded):
    for scope, slugs in (("pack:tiny pack:valve", {"tiny"}), ("pack:notes pack:tiny pack:x", {"notes", "tiny"})):
        async with connected(f"{guarded.url}/mcp", guarded.token(scope)) as client:
            listed = (await client.list_resources()).resources
        assert {str(each.uri).split("/")[2] for each in listed} == slugs


# What the operator may say


GOOD = OAuthSettings("https://login.example.org/tenant", "https://kb.example.org")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        pytest.param({"issuer": "http://login.example.org"}, "issuer, expected https", id="clear text"),
        pytest.param({"issuer": "https://a:b@login.example.org"}, "issuer, expected https", id="with a password"),
        pytest.param({"issuer": "https://login.example.org/?a=b"}, "issuer, expected https", id="with a query"),
        pytest.param({"issuer": "login.example.org"}, "issuer, expected https", id="no URL"),
        pytest.param({"jwks_uri": "ftp://login.example.org/jwks"}, "jwks_uri, expected https", id="another scheme"),
        pytest.param({"jwks_uri": "http://127.0.0.1.example.org/"}, "jwks_uri, expected https", id="like loopback"),
        pytest.param({"resource": "https://kb.example.org/mcp"}, "resource, expected https", id="a path"),
        pytest.param({"resource": "https://KB.example.org"}, "resource, expected https", id="capitals"),
        pytest.param({"resource": "http://kb.example.org"}, "resource, expected https", id="resource in clear text"),
        pytest.param({"pack_scope": "pack"}, "pack_scope, expected", id="no slug"),
        pytest.param({"pack_scope": "{slug} {slug}"}, "pack_scope, expected", id="two slugs"),
        pytest.param({"pack_scope": "a {slug}"}, "pack_scope, expected", id="two scopes"),
        pytest.param({"all_scope": ""}, "all_scope, expected", id="no scope"),
        pytest.param({"all_scope": 'a"b'}, "all_scope, expected", id="a quote"),
        pytest.param({"all_scope": "pack:all"}, "all_scope, expected", id="that of a pack"),
    ],
)
def test_a_wrong_setting_is_named_and_no_url_is_repeated(wrong: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=f"^oauth: {message}") as error:
        replace(GOOD, **wrong)
    assert "a:b" not in str(error.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:80", "http://localhost:8000", "http://[::1]:1"])
def test_http_is_for_this_machine(url: str):
    assert replace(GOOD, issuer=url, resource=url, jwks_uri=f"{url}/jwks").issuer == url


def test_a_path_means_its_endpoint_or_the_server():
    assert resource_at(GOOD, "/packs/tiny@0123456789ab/mcp").audiences == {
        "https://kb.example.org",
        "https://kb.example.org/packs/tiny/mcp",
        "https://kb.example.org/packs/tiny@0123456789ab/mcp",
    }
    assert resource_at(GOOD, "/search") == resource_at(GOOD, "/packs/Tiny/mcp") == resource_at(GOOD, "/mcp/")
    assert metadata_at(GOOD, "/search") is None
