from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

import pytest

from asking import Ask, serving
from fakes import DIGEST, SECRET, FakeLibrary, FakePack
from octavo_serve.faces import UnavailableError, Workers
from octavo_serve.over_http.parameters import request_of_query
from octavo_serve.over_http.run import bind
from octavo_serve.requests import DEFAULT_TOKENS, SearchRequest
from octavo_serve.settings import ServerSettings


@pytest.fixture(scope="module")
def one() -> Iterator[Ask]:
    with serving(FakeLibrary({"pumps": FakePack("pumps")}), ServerSettings(port=0)) as ask:
        yield ask


@pytest.fixture(scope="module")
def two() -> Iterator[Ask]:
    packs = {slug: FakePack(slug) for slug in ("fans", "pumps")}
    with serving(FakeLibrary(packs, {"valves": "valves/0123: missing"}), ServerSettings(port=0)) as ask:
        yield ask


def test_search_answers_compact_json_with_the_digest(one: Ask):
    answer = one("/search", q="nothing 油")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["octavo-digest"] == DIGEST
    expected = (
        '{"query":"nothing 油","pack":"pumps","digest":"%s","degraded":false,"missing":[],"refused":true,'
        '"reason":"no_relevant_passage","answer_probability":null,"doubtful":false,"overrides":{},"total":0,'
        '"truncated":false,"next_cursor":null,"results":[],"nearest":[]}'
    )
    assert answer.body.decode() == expected % DIGEST


def test_the_pack_is_chosen_by_slug(two: Ask):
    assert two("/search", q="oil", pack="fans").json["pack"] == "fans"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("q=oil", SearchRequest(query="oil"), id="defaults"),
        pytest.param("q=&type=&tags=&pack=", SearchRequest(query=""), id="empty parameters"),
        pytest.param("q=%20oil%20", SearchRequest(query=" oil "), id="white space is kept"),
        pytest.param(
            "q=oil&n=50&type=guide&pack=pumps&gate=flag",
            SearchRequest(query="oil", max_results=50, type="guide", pack="pumps", gate="flag"),
            id="all",
        ),
        pytest.param(
            "q=oil&tags=a,%20b&tags=c",
            SearchRequest(query="oil", tags=("a", "b", "c")),
            id="tags in lists and repeated",
        ),
    ],
)
def test_a_query_string_becomes_a_request(query: str, expected: SearchRequest):
    asked = request_of_query(SearchRequest, parse_qsl(query, keep_blank_values=True))
    assert asked == expected.model_copy(update={"max_tokens": DEFAULT_TOKENS})


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({}, "q", id="no query"),
        pytest.param({"q": "x" * 2001}, "q", id="query too long"),
        pytest.param({"q": "oil", "n": "0"}, "n", id="too few"),
        pytest.param({"q": "oil", "n": "51"}, "n", id="too many"),
        pytest.param({"q": "oil", "n": "xyzzy"}, "n", id="no number"),
        pytest.param({"q": "oil", "n": ""}, "n", id="nothing for a number"),
        pytest.param({"q": "oil", "n": "1_0"}, "n", id="a number as Python spells it"),
        pytest.param({"q": "oil", "n": "10.5"}, "n", id="no whole number"),
        pytest.param({"q": "oil", "n": "1" * 5000}, "n", id="number without end"),
        pytest.param({"q": "oil", "explain": "yes"}, "explain", id="neither true nor false"),
        pytest.param({"q": "oil", "as_of": "2026-02-30"}, "as_of", id="no such day"),
        pytest.param({"q": "oil", "as_of": ""}, "as_of", id="nothing for a day"),
        pytest.param({"q": "oil", "gate": ""}, "gate", id="nothing for a word of a list"),
        pytest.param({"q": "oil", "tags": "," * 20}, "tags", id="too many commas"),
        pytest.param({"q": "oil", "retrieval": "[1]"}, "retrieval", id="no object"),
        pytest.param({"q": "oil", "retrieval": '{"diversity": NaN}'}, "retrieval", id="no JSON"),
        pytest.param({"q": "oil", "type": "x" * 201}, "type", id="type too long"),
        pytest.param({"q": "oil", "tags": ",".join("a" * 21)}, "tags", id="too many tags"),
        pytest.param({"q": "oil", "limit": "5"}, "limit", id="unknown parameter"),
        pytest.param({"q": "oil", "x" * 300: ""}, "x" * 100, id="unknown and long"),
    ],
)
def test_a_bad_parameter_is_a_problem_that_names_it(one: Ask, query: dict[str, str], field: str):
    answer = one(f"/search?{urlencode(query)}")
    problem = answer.json
    detail = problem.pop("detail")
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem == {"type": "about:blank", "title": HTTPStatus(422).phrase, "status": 422, "field": field}
    assert detail.startswith(f"{field}: ")
    assert "xyzzy" not in detail
    assert len(detail) < 300


def test_a_parameter_given_twice_is_refused(one: Ask):
    answer = one("/search?q=a&q=b")
    assert (answer.status, answer.json["field"]) == (422, "q")


def test_several_packs_ask_for_the_pack(two: Ask):
    answer = two("/search", q="oil")
    assert (answer.status, answer.json["field"]) == (422, "pack")
    assert "fans, pumps" in answer.json["detail"]


def test_an_unknown_pack_is_not_found(two: Ask):
    answer = two("/search", q="oil", pack="valves")
    assert (answer.status, answer.json["field"]) == (404, "pack")


@pytest.mark.parametrize("path", ["/nowhere", "/search/", "/packs/valves/mcp", "/packs/a/b/mcp"])
def test_an_unknown_path_is_not_found_and_never_redirected(one: Ask, path: str):
    answer = one(path, "POST" if path.endswith("mcp") else "GET")
    assert (answer.status, answer.json["title"]) == (404, "Not Found")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/"),
        ("PUT", "/healthz"),
        ("POST", "/read"),
        ("POST", "/packs/pumps"),
        ("OPTIONS", "/packs"),
        ("PATCH", "/search"),
        ("TRACE", "/packs/pumps/search"),
        ("PUT", "/packs/pumps/files/a.md"),
    ],
)
def test_another_method_is_refused_with_those_allowed(one: Ask, method: str, path: str):
    answer = one(path, method)
    assert answer.status == 405
    allowed = {"GET", "HEAD", "POST"} if path.endswith("/search") else {"GET", "HEAD"}
    assert set(answer.headers["allow"].split(", ")) == allowed
    assert answer.json["status"] == 405


@pytest.mark.parametrize("query", ["crash", "bug"])
def test_a_failure_of_the_server_is_not_explained_to_the_client(one: Ask, query: str):
    answer = one("/search", q=query)
    assert answer.status == 500
    assert answer.json == {
        "type": "about:blank",
        "title": "Internal Server Error",
        "status": 500,
        "request_id": answer.headers["x-request-id"],
    }


def test_a_pack_that_hangs_is_given_up_and_the_client_told_to_retry():
    library = FakeLibrary({"pumps": FakePack("pumps")})
    with serving(library, ServerSettings(port=0, answer_timeout=0.05)) as ask:
        answer = ask("/search", q="hang")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


def test_requests_beyond_the_queue_are_turned_away_at_once():
    async def fill() -> list[BaseException | None]:
        workers = Workers(timeout=30)
        release = threading.Event()
        tasks = [asyncio.create_task(workers.run(release.wait, 30.0)) for _ in range(129)]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        release.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        workers.close()
        return [task.exception() for task in done]

    (error,) = asyncio.run(fill())
    assert isinstance(error, UnavailableError)


def test_work_that_was_given_up_and_had_not_begun_is_never_done():
    begun: list[float] = []

    async def overload() -> None:
        workers = Workers(timeout=0.05)
        release = threading.Event()

        def work(seconds: float) -> None:
            begun.append(seconds)
            release.wait(seconds)

        results = await asyncio.gather(*(workers.run(work, 30.0) for _ in range(64)), return_exceptions=True)
        assert all(isinstance(result, UnavailableError) for result in results)
        release.set()
        workers.close()

    asyncio.run(overload())
    assert 0 < len(begun) < 64


@pytest.mark.parametrize("workers", [1, 2])
def test_answers_do_not_wait_for_a_client_to_acknowledge_their_head(workers: int):
    listener = bind(ServerSettings(port=0, workers=workers))
    # asyncio sets TCP_NODELAY on connections of what it knows as TCP
    assert listener.proto == socket.IPPROTO_TCP
    listener.close()


def test_health_lists_what_is_served_and_what_is_refused(two: Ask):
    answer = two("/healthz")
    pack = {"digest": DIGEST, "version": "1.2", "documents": 3, "passages": 7, "degraded": False}
    assert answer.status == 200
    assert answer.json == {
        "status": "degraded",
        "packs": {"fans": pack, "pumps": pack},
        "refused": {"valves": "valves/0123: missing"},
    }


def test_health_is_ok_when_every_pack_serves(one: Ask):
    assert one("/healthz").json["status"] == "ok"


def test_a_server_without_a_pack_is_down():
    with serving(FakeLibrary({}, {"pumps": "damaged"}), ServerSettings(port=0)) as ask:
        answer = ask("/healthz")
    assert (answer.status, answer.json["status"]) == (503, "down")


def test_the_index_names_every_endpoint(two: Ask):
    endpoints = two("/").json["endpoints"]
    mcp = ["/mcp", "/packs/fans/mcp", "/packs/pumps/mcp"]
    probes = ["/healthz", "/readyz"]
    assert list(endpoints) == ["/search", "/read", "/graph", "/packs", "/openapi.json", *probes, *mcp]


@pytest.mark.parametrize(("method", "target"), [("GET", "/search?q=oil"), ("POST", "/mcp")])
def test_the_first_search_or_mcp_request_starts_mcp(monkeypatch: pytest.MonkeyPatch, method: str, target: str):
    started = threading.Event()

    def load(host: object) -> None:
        started.set()

    monkeypatch.setattr("octavo_serve.over_mcp.host._QUIET", 3600)
    monkeypatch.setattr("octavo_serve.over_mcp.host.McpHost._build", load)
    with serving(FakeLibrary({"pumps": FakePack("pumps")}), ServerSettings(port=0)) as ask:
        assert ask("/healthz").status == 200
        assert not started.is_set()
        ask(target, method)
        assert started.wait(20)


def test_a_quiet_server_starts_mcp_by_itself(monkeypatch: pytest.MonkeyPatch):
    started = threading.Event()

    def load(host: object) -> None:
        started.set()

    monkeypatch.setattr("octavo_serve.over_mcp.host._QUIET", 0)
    monkeypatch.setattr("octavo_serve.over_mcp.host.McpHost._build", load)
    with serving(FakeLibrary({"pumps": FakePack("pumps")}), ServerSettings(port=0)):
        assert started.wait(20)


def test_search_goes_on_when_mcp_cannot_start(monkeypatch: pytest.MonkeyPatch):
    def fail(host: object) -> None:
        raise ImportError(SECRET)

    monkeypatch.setattr("octavo_serve.over_mcp.host.McpHost._build", fail)
    with serving(FakeLibrary({"pumps": FakePack("pumps")}), ServerSettings(port=0)) as ask:
        answer = ask("/mcp", "POST")
        assert answer.status == 500
        assert SECRET.encode() not in answer.body
        assert ask("/search", q="oil").status == 200


START = """
import asyncio, sys
from datetime import date
from types import SimpleNamespace
from octavo_serve.over_http.app import create_app
from octavo_serve.settings import ServerSettings
import octavo_serve.over_http.run

pack = SimpleNamespace(
    slug="pumps", digest="d", degraded=None, day=lambda: date(2026, 11, 30), search=lambda request: {"digest": "d"}
)
library = SimpleNamespace(
    packs={"pumps": pack}, refused={}, choose=lambda slug: pack, search=lambda request, slugs: pack.search(request)
)
app = create_app(library, ServerSettings())
sent = []

async def receive():
    return {"type": "http.request", "body": b""}

async def send(message):
    sent.append(message)

headers = [(b"host", b"localhost")]
scope = {"type": "http", "method": "GET", "path": "/search", "query_string": b"q=oil", "headers": headers}
asyncio.run(app(scope, receive, send))
assert sent[0]["status"] == 200, sent
loaded = {"octavo_serve.over_http.openapi", "mcp", "mcp_types", "pyarrow", "lance", "jsonschema"} & sys.modules.keys()
assert not loaded, loaded
"""


def test_a_search_is_answered_without_the_slow_imports():
    subprocess.run([sys.executable, "-c", START], check=True, timeout=60)
