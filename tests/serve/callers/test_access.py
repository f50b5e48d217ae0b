"""Two keys for two packs: what one opens is all that its holder ever learns of (B48)."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from listening import CALL, ERAS, Clock, Running, connected, listening
from octavo_artifact.ids import sha256_hex
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.callers.rates import RateLimit
from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.settings import ServerSettings

pytestmark = pytest.mark.anyio

TINY, NOTES, ALL, LOST = (new_key() for _ in range(4))
OPENS = {TINY: ("tiny",), NOTES: ("notes",), ALL: ("*",), LOST: ("valve",)}
KEYS = tuple(Key(f"key-{n}", sha256_hex(key.encode()), packs) for n, (key, packs) in enumerate(OPENS.items()))
KEYED = ServerSettings(port=0, keys=KEYS)

ABSENT = "nones"
"""A slug that nobody serves, as long as the one that is foreign."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def catalog(built: Path) -> Catalog:
    """`notes` and `tiny`, and a pack that is damaged."""
    return replace(open_catalog(built), refused={"broken": "broken/0123: manifest.json: missing"})


@pytest.fixture(scope="module")
def keyed(catalog: Catalog) -> Iterator[Running]:
    with listening(catalog, KEYED) as running:
        yield running


@pytest.fixture(scope="module")
def open_to_all(catalog: Catalog) -> Iterator[Running]:
    with listening(catalog, ServerSettings(port=0)) as running:
        yield running


# Without a key, or with something else for one


EVERYWHERE = [
    "/",
    "/search?q=water&pack=tiny",
    "/search?q=water&pack=nones",
    "/search?bad",
    "/graph?id=tiny/concepts/water&pack=tiny",
    "/nowhere",
    "/packs/tiny",
    "/healthz/",
    "//healthz",
    "/mcp",
    "/packs/tiny/mcp",
    "/packs/nones/mcp",
]


@pytest.mark.parametrize("target", EVERYWHERE)
def test_without_a_key_every_address_asks_for_one_before_it_looks_at_anything(keyed: Running, target: str):
    answer = keyed.post(target) if target.endswith("mcp") else keyed.ask(target)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="octavo"'
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": "Authorization: missing; expected `Bearer` and a key, in this header only",
    }


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"Bearer", id="no key"),
        pytest.param(b"Bearer ", id="empty key"),
        pytest.param(TINY.encode(), id="no scheme"),
        pytest.param(b"Basic " + TINY.encode(), id="another scheme"),
        pytest.param(b"Bearer " + TINY[:-1].encode(), id="a part of it"),
        pytest.param(b"Bearer " + TINY.encode() + b"A", id="more than it"),
        pytest.param(b"Bearer " + TINY.upper().encode(), id="capitals"),
        pytest.param(b"Bearer " + new_key().encode(), id="nobody's"),
        pytest.param(b"Bearer " + KEYS[0].sha256.encode(), id="the hash"),
        pytest.param(f"Bearer {TINY}, Bearer {TINY}".encode(), id="a list"),
        pytest.param(b"Bearer \xff\xfe\xc3", id="no UTF-8"),
        pytest.param("Bearer schlüssel".encode(), id="no ASCII"),
        pytest.param(b"Bearer " + b"x" * 30_000, id="huge"),
        pytest.param(b"Bearer" + b" " * 30_000 + b"x", id="spaces"),
    ],
)
def test_what_is_no_key_is_refused_alike_over_http_and_mcp(keyed: Running, header: bytes):
    given = [("Authorization", header)]
    answers = [
        keyed.ask("/search?q=water&pack=tiny", headers=given),
        keyed.ask("/mcp", method="POST", body=b"{}", headers=given),
        keyed.ask("/packs/tiny/mcp", method="POST", body=b"{}", headers=given),
    ]
    assert {answer.status for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {
        'Bearer realm="octavo", error="invalid_token"'
    }
    assert len({answer.body for answer in answers}) == 1
    assert len(answers[0].body) < 300


def test_a_key_that_has_expired_is_refused_as_one_that_nobody_knows(catalog: Catalog):
    keys = tuple(replace(key, expires=date(*day)) for key, day in zip(KEYS, ((2020, 1, 1), (9000, 1, 1)), strict=False))
    with listening(catalog, replace(KEYED, keys=keys)) as running:
        assert running.ask("/search?q=tea", NOTES).status == 200
        assert running.ask("/search?q=tea", TINY) == running.ask("/search?q=tea", new_key())


def test_two_authorization_headers_are_refused(keyed: Running):
    twice = [("Authorization", f"Bearer {TINY}".encode())] * 2
    assert keyed.ask("/search?q=water", headers=twice).status == 401


@pytest.mark.parametrize("header", ["Bearer {}", "bearer {}", "BEARER   {}", " Bearer {} "])
def test_the_scheme_is_spelled_in_any_case(keyed: Running, header: str):
    given = [("Authorization", header.format(TINY).encode())]
    assert keyed.ask("/search?q=water", headers=given).status == 200


@pytest.mark.parametrize("name", ["access_token", "key", "api_key", "q"])
@pytest.mark.parametrize("target", ["/search", "/mcp", "/packs/tiny/mcp"])
def test_a_key_in_the_query_is_refused_with_the_header_and_without(keyed: Running, target: str, name: str):
    method, body = ("POST", json.dumps(CALL).encode()) if target.endswith("mcp") else ("GET", None)
    ask = partial(keyed.ask, f"{target}?{name}={TINY}", method=method, body=body)
    assert ask().status == 401
    refused = ask(TINY)
    assert refused.status == 400
    assert refused.json["detail"].startswith("query: holds a key")
    assert TINY.encode() not in refused.body


def test_the_body_is_bounded_before_the_key_is_asked_for(keyed: Running):
    assert keyed.ask("/mcp", method="POST", body=b" " * (KEYED.max_body + 1)).status == 413


def test_an_unknown_host_is_refused_before_the_key_is_asked_for(keyed: Running):
    connection = http.client.HTTPConnection(keyed.url.partition("//")[2], timeout=20)
    connection.request("GET", "/", headers={"Host": "evil.example.org"})
    assert connection.getresponse().status == 421
    connection.close()


@pytest.mark.parametrize(
    "key", [None, new_key(), "\N{LATIN SMALL LETTER E WITH ACUTE}"], ids=["none", "unknown", "not ASCII"]
)
def test_health_tells_who_has_no_key_the_status_only(keyed: Running, key: str | None):
    answer = keyed.ask("/healthz", key)
    assert (answer.status, answer.json) == (200, {"status": "degraded"})


def test_health_tells_of_the_packs_of_a_key(keyed: Running):
    health = keyed.ask("/healthz", TINY).json
    assert (health["status"], list(health["packs"]), health["refused"]) == ("ok", ["tiny"], {})
    health = keyed.ask("/healthz", ALL).json
    assert (health["status"], list(health["packs"]), list(health["refused"])) == (
        "degraded",
        ["notes", "tiny"],
        ["broken"],
    )
    assert keyed.ask("/healthz", LOST).status == 503


@pytest.mark.parametrize("header", [None, b"", b"Bearer x", b"Basic \xff"])
def test_without_keys_in_the_configuration_the_header_is_ignored(open_to_all: Running, header: bytes | None):
    given = [] if header is None else [("Authorization", header)]
    assert open_to_all.ask("/search?q=water&pack=tiny", headers=given).status == 200
    assert set(open_to_all.ask("/healthz", headers=given).json) == {"status", "packs", "refused"}
    body = json.dumps({**CALL, "params": {}}).encode()
    assert open_to_all.ask("/mcp", method="POST", body=body, headers=given).status == 200


# With a key for one pack, asking for another


@pytest.mark.parametrize("slug", ["broken", "valve"])
def test_a_damaged_pack_of_others_answers_as_one_that_is_not_there(keyed: Running, slug: str):
    absent = keyed.ask(f"/search?q=tea&pack={ABSENT}", TINY)
    assert keyed.ask(f"/search?q=tea&pack={slug}", TINY).body == absent.body
    assert slug.encode() not in absent.body


def test_nothing_that_is_listed_names_the_pack_of_another_key(keyed: Running):
    for key, own, foreign in ((TINY, "tiny", "notes"), (NOTES, "notes", "tiny")):
        for target in ("/", "/healthz", "/search?q=water+tea", "/search", "/search?q=x&pack=zz", "/graph"):
            answer = keyed.ask(target, key)
            text = f"{answer.headers} {answer.body.decode()}"
            assert foreign not in text
            assert "broken" not in text
        assert f"/packs/{own}/mcp" in keyed.ask("/", key).json["endpoints"]


def test_a_search_without_a_pack_goes_to_all_packs_of_the_key(keyed: Running):
    assert keyed.ask("/search?q=tea", NOTES).json["pack"] == "notes"
    both = keyed.ask("/search?q=steep+black+tea+pump+pressure&gate=off", ALL).json
    assert both["pack"] is None
    assert {hit["pack"] for hit in both["results"]} == {"notes", "tiny"}
    asked = keyed.ask("/graph?id=a", ALL)
    assert (asked.status, asked.json["detail"]) == (422, "pack: missing; name one of notes, tiny")


def test_a_key_whose_pack_is_not_served_sees_none(keyed: Running):
    for target in ("/search?q=tea", "/search?q=tea&pack=tiny", "/search?q=tea&pack=valve"):
        answer = keyed.ask(target, LOST)
        assert (answer.status, answer.json["detail"]) == (404, "pack: not served here; known are none")
    assert [name for name in keyed.ask("/", LOST).json["endpoints"] if name.startswith("/packs/")] == []


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_sees_the_packs_of_its_key_in_all_that_mcp_tells(keyed: Running, mode: str):
    for key, path, seen in (
        (TINY, "/mcp", {"tiny"}),
        (TINY, "/packs/tiny/mcp", {"tiny"}),
        (NOTES, "/mcp", {"notes"}),
        (ALL, "/mcp", {"notes", "tiny"}),
        (ALL, "/packs/notes/mcp", {"notes"}),
        (LOST, "/mcp", set[str]()),
    ):
        async with connected(keyed.url + path, key, mode) as client:
            tools = (await client.list_tools()).model_dump_json()
            listed = (await client.list_resources()).resources
            told = " ".join(
                [
                    client.instructions or "",
                    tools,
                    *(resource.model_dump_json() for resource in listed),
                    (await client.list_resource_templates()).model_dump_json(),
                    (await client.list_prompts()).model_dump_json(),
                ]
            )
            assert {str(resource.uri).split("/")[2] for resource in listed} == seen
            assert {slug for slug in ("notes", "tiny", "broken") if f"({slug})" in told or f"//{slug}/" in told} == seen
            if len(seen) == 2:
                assert "one of notes, tiny" in tools
                continue
            for foreign in {"notes", "tiny", "broken"} - seen:
                assert foreign not in told
            if seen:
                result = await client.call_tool("ep_list_topics", {})
                assert result.structured_content is not None
                assert {result.structured_content["pack"]["slug"]} == seen


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_without_the_right_key_does_not_get_in(keyed: Running, mode: str):
    with pytest.raises(ExceptionGroup):
        async with connected(f"{keyed.url}/mcp", new_key(), mode) as client:
            await client.list_tools()


def test_neither_keys_nor_hashes_nor_packs_are_in_the_log(catalog: Catalog):
    with listening(catalog, KEYED) as running:
        for key in (TINY, new_key(), None):
            for target in EVERYWHERE:
                running.post(target, key) if target.endswith("mcp") else running.ask(target, key)
            running.ask(f"/search?q={TINY}", key)
            running.ask("/search?q=tea&pack=notes", key)
            running.post("/packs/notes/mcp", key)
        said = running.said()
    assert not any(secret in said for key in KEYS for secret in (key.sha256, key.sha256[:12]))
    assert "octavo_" not in said.replace("octavo_serve", "")
    assert "notes" not in said


# Asking too often


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock.of_the_server(monkeypatch)


def test_a_key_may_ask_so_often_and_is_told_when_again(catalog: Catalog, clock: Clock):
    with listening(catalog, replace(KEYED, rate_limit=RateLimit(2, 60))) as running:
        assert [running.ask("/search?q=tea", NOTES).status for _ in range(2)] == [200, 200]
        for answer in (running.ask("/search?q=tea", NOTES), running.post("/mcp", NOTES), running.ask("/no", NOTES)):
            assert (answer.status, answer.headers["retry-after"]) == (429, "30")
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json["detail"] == "rate: at most 2 requests in 60 seconds; ask again in 30 seconds"
        assert running.ask("/search?q=water", TINY).status == 200
        assert running.ask("/search?q=water").status == 401
        clock.now += 30_000_000_000
        assert running.ask("/search?q=tea", NOTES).status == 200
        assert running.ask("/search?q=tea", NOTES).headers["retry-after"] == "30"


def test_requests_that_are_wrong_are_counted_too_and_health_is_not(catalog: Catalog, clock: Clock):
    with listening(catalog, replace(KEYED, rate_limit=RateLimit(2, 60))) as running:
        asked = [running.ask(target, TINY).status for target in ("/no", "/healthz", "/search", "/healthz", "/")]
    assert asked == [404, 200, 422, 200, 429]


def test_without_keys_an_address_is_counted(catalog: Catalog, clock: Clock):
    with listening(catalog, ServerSettings(port=0, rate_limit=RateLimit(1, 5))) as running:
        assert [running.ask("/").status for _ in range(2)] == [200, 429]
        assert running.ask("/healthz").status == 200
        assert running.post("/mcp").headers["retry-after"] == "5"
        clock.now += 5_000_000_000
        assert running.ask("/").status == 200


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
    ],
)
def test_addresses_of_one_ipv6_network_are_one_caller(one: str, other: str, same: bool):
    from octavo_serve.callers.access import caller_address

    addresses = [caller_address({"client": (text, 1)}) for text in (one, other)]
    assert (addresses[0] == addresses[1]) is same
