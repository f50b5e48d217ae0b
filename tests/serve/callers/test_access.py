"""Two keys for two packs: what one opens is all that its holder ever learns of (B48)."""

from __future__ import annotations

import http.client
import json
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from octavo_artifact.ids import sha256_hex
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.callers.rates import RateLimit
from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.faces import Library
from octavo_serve.over_http.run import address, bind, make_server
from octavo_serve.settings import ServerSettings

pytestmark = pytest.mark.anyio

TINY, NOTES, ALL, LOST = (new_key() for _ in range(4))
OPENS = {TINY: ("tiny",), NOTES: ("notes",), ALL: ("*",), LOST: ("valve",)}
KEYS = tuple(Key(f"key-{n}", sha256_hex(key.encode()), packs) for n, (key, packs) in enumerate(OPENS.items()))
KEYED = ServerSettings(port=0, keys=KEYS)

ABSENT = "nones"
"""A slug that nobody serves, as long as the one that is foreign."""

ERAS = ("legacy", "2026-07-28")
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


OF_EACH = ("date", "x-request-id")
"""Headers that differ between answers that are the same."""


@dataclass
class Running:
    url: str
    log: list[logging.LogRecord]

    def ask(
        self,
        target: str,
        key: str | None = None,
        *,
        method: str = "GET",
        body: bytes | None = None,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection(self.url.partition("//")[2], timeout=20)
        sent = list(headers or ())
        if key is not None:
            sent.append(("Authorization", f"Bearer {key}".encode()))
        if body is not None:
            sent += [("Content-Type", b"application/json"), ("Accept", b"application/json, text/event-stream")]
        try:
            connection.putrequest(method, target)
            for name, value in sent:
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(
                response.status,
                {name.lower(): value for name, value in response.getheaders() if name.lower() not in OF_EACH},
                response.read(),
            )
        finally:
            connection.close()

    def post(self, target: str, key: str | None = None, body: Any = CALL) -> Answer:
        return self.ask(target, key, method="POST", body=json.dumps(body).encode())

    def said(self) -> str:
        """All that was logged, tracebacks included."""
        return "\n".join(map(logging.Formatter().format, self.log))


class Keeping(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def serving(library: Library, settings: ServerSettings) -> Generator[Running]:
    root, kept = logging.getLogger(), Keeping()
    level = root.level
    root.addHandler(kept)
    root.setLevel(logging.DEBUG)
    listener = bind(settings)
    server = make_server(library, settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Running(address(listener), kept.records)
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
        root.removeHandler(kept)
        root.setLevel(level)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def catalog(built: Path) -> Catalog:
    """`notes` and `tiny`, and a pack that is damaged."""
    return replace(open_catalog(built), refused={"broken": "broken/0123: manifest.json: missing"})


@pytest.fixture(scope="module")
def keyed(catalog: Catalog) -> Iterator[Running]:
    with serving(catalog, KEYED) as running:
        yield running


@pytest.fixture(scope="module")
def open_to_all(catalog: Catalog) -> Iterator[Running]:
    with serving(catalog, ServerSettings(port=0)) as running:
        yield running


@asynccontextmanager
async def connected(url: str, key: str, mode: Any = "auto") -> AsyncGenerator[Client]:
    async with (
        create_mcp_http_client({"Authorization": f"Bearer {key}"}) as http_client,
        Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,
    ):
        yield client


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


def swapped(answer: Answer, slug: str) -> tuple[int, dict[str, str], bytes]:
    """An answer in which the client's own word is replaced, if it was repeated."""
    return answer.status, answer.headers, answer.body.replace(slug.encode(), b"SLUG")


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/search?q=tea&pack={}", 404),
        ("GET", "/search?q=tea+{}&pack={}&n=50&graph=1&reconstruct=1", 404),
        ("GET", "/graph?id={}&pack={}", 404),
        ("GET", "/graph?id={}/tea+time", 404),
        ("GET", "/graph?id=ep://{}/file/tea%2520time.md", 404),
        ("GET", "/graph?path={}/tea+time.md", 404),
        ("GET", "/packs/{}", 404),
        ("GET", "/packs/{}/mcp", 405),
        ("POST", "/packs/{}/mcp", 404),
        ("POST", "/packs/{}/mcp/", 404),
        ("POST", "/packs/tiny%2F..%2F{}/mcp", 404),
        ("POST", "/packs/tiny/../{}/mcp", 404),
        ("HEAD", "/search?q=tea&pack={}", 404),
    ],
)
def test_another_keys_pack_answers_as_one_that_is_not_there(keyed: Running, method: str, target: str, status: int):
    body = json.dumps(CALL).encode() if method == "POST" else None
    foreign, absent = (
        keyed.ask(target.replace("{}", slug), TINY, method=method, body=body) for slug in ("notes", ABSENT)
    )
    assert foreign.status == status
    assert swapped(foreign, "notes") == swapped(absent, ABSENT)


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
    assert [name for name in keyed.ask("/", LOST).json["endpoints"] if name.startswith("/packs")] == []


Use = Callable[[Client, str], Any]


def calling(tool: str, **arguments: Any) -> Use:
    async def use(client: Client, slug: str) -> Any:
        given = {name: value.replace("{}", slug) for name, value in arguments.items()}
        result = await client.call_tool(tool, given)
        return result.is_error, result.model_dump(mode="json")

    return use


def reading(uri: str) -> Use:
    async def use(client: Client, slug: str) -> Any:
        with pytest.raises(MCPError) as error:
            await client.read_resource(uri.replace("{}", slug))
        return True, error.value.error.model_dump(mode="json")

    return use


def prompting(name: str) -> Use:
    async def use(client: Client, slug: str) -> Any:
        with pytest.raises(MCPError) as error:
            await client.get_prompt(name.replace("{}", slug))
        return True, error.value.error.model_dump(mode="json")

    return use


def paging(after: str) -> Use:
    from base64 import urlsafe_b64encode

    async def use(client: Client, slug: str) -> Any:
        cursor = urlsafe_b64encode(after.replace("{}", slug).encode()).decode()
        with pytest.raises(MCPError) as error:
            await client.list_resources(cursor=cursor)
        return True, error.value.error.model_dump(mode="json")

    return use


@pytest.mark.parametrize(("mode", "path"), list(zip(ERAS, ("/mcp", "/packs/tiny/mcp"), strict=True)))
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(calling("ep_search", query="tea", pack="{}"), id="search"),
        pytest.param(calling("ep_read", id="tea time", pack="{}"), id="read"),
        pytest.param(calling("ep_read", id="ep://{}/file/tea%20time.md"), id="read by uri"),
        pytest.param(calling("ep_read", path="{}/tea time.md"), id="read by path"),
        pytest.param(calling("ep_read", id="{}/tea time#opening:0123456789ab"), id="read by fragment"),
        pytest.param(calling("ep_read", path="../{}/tea time.md"), id="read around"),
        pytest.param(calling("ep_list_topics", pack="{}"), id="topics"),
        pytest.param(calling("ep_graph_traverse", id="tea time", pack="{}"), id="graph"),
        pytest.param(calling("ep_graph_traverse", id="ep://{}/file/tea%20time.md"), id="graph by uri"),
        pytest.param(calling("ep_search", query="tea", pack="{}", limit="1"), id="bad arguments"),
        pytest.param(reading("ep://{}/manifest"), id="manifest"),
        pytest.param(reading("ep://{}/file/tea%20time.md"), id="resource"),
        pytest.param(reading("ep://tiny/../{}/manifest"), id="resource around"),
        pytest.param(prompting("{}-descale"), id="prompt"),
        pytest.param(paging("ep://{}/manifest"), id="cursor"),
    ],
)
async def test_over_mcp_another_keys_pack_answers_as_one_that_is_not_there(
    keyed: Running, mode: str, path: str, use: Use
):
    async with connected(keyed.url + path, TINY, mode) as client:
        foreign, absent = [await use(client, slug) for slug in ("notes", ABSENT)]
    assert foreign[0]
    assert json.dumps(foreign).replace("notes", "SLUG") == json.dumps(absent).replace(ABSENT, "SLUG")


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


async def test_callers_at_the_same_time_get_their_own_answers(keyed: Running):
    asked = {TINY: "tiny", NOTES: "notes"}
    body = {**CALL, "method": "tools/call", "params": {"name": "ep_search", "arguments": {"query": "water"}}}
    answers: list[tuple[str, str]] = []

    async def one(key: str) -> None:
        answer = await anyio.to_thread.run_sync(lambda: keyed.post("/mcp", key, body))
        answers.append((asked[key], answer.json["result"]["structuredContent"]["pack"]))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            for key in asked:
                tasks.start_soon(one, key)
    assert len(answers) == 40
    assert [pair for pair in answers if pair[0] != pair[1]] == []


def test_neither_keys_nor_hashes_nor_packs_are_in_the_log(catalog: Catalog):
    with serving(catalog, KEYED) as running:
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


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("octavo_serve.over_http.run.create_app", partial(_create_app, clock))
    return clock


def _create_app(clock: Clock, library: Library, settings: ServerSettings) -> Any:
    from octavo_serve.over_http.app import create_app

    return create_app(library, settings, clock)


def test_a_key_may_ask_so_often_and_is_told_when_again(catalog: Catalog, clock: Clock):
    with serving(catalog, replace(KEYED, rate_limit=RateLimit(2, 60))) as running:
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
    with serving(catalog, replace(KEYED, rate_limit=RateLimit(2, 60))) as running:
        asked = [running.ask(target, TINY).status for target in ("/no", "/healthz", "/search", "/healthz", "/")]
    assert asked == [404, 200, 422, 200, 429]


def test_without_keys_an_address_is_counted(catalog: Catalog, clock: Clock):
    with serving(catalog, ServerSettings(port=0, rate_limit=RateLimit(1, 5))) as running:
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
