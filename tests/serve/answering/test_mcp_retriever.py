"""Passages that another server finds over MCP, on real sockets and from real commands."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fakes import DIGEST, FakeLibrary, FakePack
from listening import connected, listening
from octavo_artifact.errors import NotFoundError, RequestError
from octavo_artifact.ids import sha256_hex
from octavo_serve.answering import mcp_connection, mcp_retriever
from octavo_serve.answering.mcp_retriever import McpEndpoint
from octavo_serve.answering.retriever import InProcess, RetrievalError, named_for
from octavo_serve.answering.settings import AnswerSettings, ModelSettings, RetrieverSettings
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.callers.views import View
from octavo_serve.catalog import open_catalog
from octavo_serve.faces import Workers
from octavo_serve.requests import SearchRequest, TopicsRequest
from octavo_serve.settings import ServerSettings
from running import OCTAVO
from scripted import answer, scripted

pytestmark = pytest.mark.anyio

QUESTION = SearchRequest(query="oil", pack="pumps", max_results=5, gate="refuse")
NOBODY = View(FakeLibrary({}))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def endpoint(timeout: float = 10, key: str | None = None, **settings: Any) -> AsyncGenerator[McpEndpoint]:
    opened = McpEndpoint(RetrieverSettings(**settings), key, timeout)
    try:
        yield opened
    finally:
        await opened.close()


Reply = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """One connection of a server of MCP that does what its test says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert isinstance(self.server, McpServer)
        self.server.asked.append(self.message)
        replies = self.server.replies
        if self.message["method"] == "server/discover":
            self.result({"supportedVersions": ["2026-07-28"], "capabilities": {}})
        else:
            (replies.pop(0) if len(replies) > 1 else replies[0])(self)

    def result(self, result: Any, status: int = 200) -> None:
        self.send({"jsonrpc": "2.0", "id": self.message["id"], "result": result}, status)

    def send(self, message: Any, status: int = 200, kind: str = "application/json") -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as in the base class
        """To nobody."""


def found(**changes: Any) -> Reply:
    """What a pack finds, and what it says of itself."""
    pack = FakePack("pumps")
    results: dict[str, Any] = {
        "ep_search": {**pack.search(QUESTION), **changes},
        "ep_list_topics": pack.topics(TopicsRequest()),
    }

    def reply(handler: Handler) -> None:
        handler.result({"structuredContent": results[handler.message["params"]["name"]], "content": []})

    return reply


def failed(text: str) -> Reply:
    return gives({"isError": True, "content": [{"type": "text", "text": text}]})


def gives(result: Any) -> Reply:
    return lambda handler: handler.result(result)


def refuses(status: int) -> Reply:
    return lambda handler: handler.send(b"secret", status)


def to_somebody_else(handler: Handler) -> None:
    handler.send({"jsonrpc": "2.0", "id": 99, "result": {}})


def broken(handler: Handler) -> None:
    error = {"code": -32603, "message": "secret"}
    handler.send({"jsonrpc": "2.0", "id": handler.message["id"], "error": error})


def reset(handler: Handler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.rfile.close()
    handler.connection.close()


class McpServer(ThreadingHTTPServer):
    """Replies to calls in turn; the last stands for all that follow."""

    daemon_threads = True

    def __init__(self, replies: tuple[Reply, ...]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[Any] = []
        self.replies = list(replies)
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"

    @property
    def calls(self) -> list[Any]:
        """The arguments of the calls so far."""
        return [each["params"]["arguments"] for each in self.asked if each["method"] == "tools/call"]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """To nobody: resets are meant."""


@contextmanager
def server(*replies: Reply) -> Generator[McpServer]:
    running = McpServer(replies)
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield running
    finally:
        running.shutdown()
        thread.join(10)
        running.server_close()


async def searched(*replies: Reply, request: SearchRequest = QUESTION, timeout: float = 10) -> Any:
    with server(*replies) as running:
        async with endpoint(timeout, url=running.url) as opened:
            return await opened.retriever(NOBODY).search(request)


# what is found


@pytest.fixture(scope="module")
def packs(built: Path) -> Iterator[tuple[View, str]]:
    """Packs of this process, and the address of a server that has them too."""
    catalog = open_catalog(built)
    with listening(catalog, ServerSettings(port=0)) as running:
        yield View(catalog), running.url


@pytest.mark.parametrize("way", ["url", "an older server", pytest.param("command", marks=pytest.mark.slow)])
async def test_what_is_found_is_what_is_found_in_process(
    packs: tuple[View, str], built: Path, way: str, monkeypatch: pytest.MonkeyPatch
):
    view, url = packs
    if way == "an older server":
        newest = frozenset({"2025-11-25", "2026-07-28"})
        monkeypatch.setattr("mcp.server.streamable_http_manager.HANDSHAKE_PROTOCOL_VERSIONS", newest)
    settings: dict[str, Any] = (
        {"command": (str(OCTAVO), "stdio", str(built))} if way == "command" else {"url": url + "/mcp"}
    )
    workers = Workers(10)
    here = InProcess(view, workers)
    requests = [
        SearchRequest(query="how hard may the water be?", pack="tiny", max_results=3, gate="refuse"),
        SearchRequest(query="how hard may the water be?", max_results=20, gate="refuse"),
        SearchRequest(query="water", pack="tiny", tags=("nothing",), gate="refuse"),
        SearchRequest(query="the price of bananas in Peru", pack="tiny", gate="refuse"),
    ]
    async with endpoint(30, **settings) as opened:
        there = opened.retriever(NOBODY)
        answers = await asyncio.gather(*(there.search(request) for request in requests))
        for request, answer in zip(requests, answers, strict=True):
            expected = await here.search(request)
            for name in ("pack", "digest", "results", "refused", "reason", "missing", "nearest"):
                assert answer[name] == expected[name]
        for pack in view.packs.values():
            expected = await here.authority(pack.slug, pack.digest)
            assert await there.authority(pack.slug, pack.digest) == expected
        assert there.encoder("tiny", view.packs["tiny"].digest) is None
    workers.close()


async def test_what_a_release_says_of_itself_is_asked_once():
    result = FakePack("pumps").topics(TopicsRequest())
    with server(gives({"structuredContent": result, "content": []})) as running:
        async with endpoint(url=running.url) as opened:
            for _ in range(3):
                said = await opened.retriever(NOBODY).authority("pumps", DIGEST)
                assert said == result["pack"]["authority_boundary"]
    assert [call["pack"] for call in running.calls] == [f"pumps@{DIGEST}"]


async def test_an_answer_among_events_is_an_answer():
    def stream(handler: Handler) -> None:
        result = {"structuredContent": FakePack("pumps").search(QUESTION), "content": []}
        told = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
        answer = {"jsonrpc": "2.0", "id": handler.message["id"], "result": result}
        events = "".join(f"event: message\r\ndata: {json.dumps(each)}\r\n\r\n" for each in (told, answer))
        handler.send(f": ping\r\n\r\n{events}".encode(), kind="text/event-stream")

    assert (await searched(stream))["pack"] == "pumps"


async def test_what_a_newer_server_adds_is_left_out():
    result: Any = FakePack("pumps").search(QUESTION)
    result["results"] = [{**hit, "colour": "red"} for hit in result["results"]]
    answer = await searched(found(results=result["results"], mood="good", missing=["encoder", "<b>"]))
    assert "colour" not in answer["results"][0]
    assert answer["missing"] == ["encoder"]
    assert answer["degraded"]


# what goes wrong


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (found(digest=None), "the ep_search of the server that finds passages gives another kind of `digest`"),
        (found(results=[{"text": "a passage", "source_file": "a.md"}]), "gives no `results.verified_age_days`"),
        (found(reason="secret"), "gives another kind of `reason`"),
        (gives({"content": []}), "gives no structured content"),
        (to_somebody_else, "answers with status 200"),
        (refuses(401), "answers with status 401"),
        (refuses(503), "answers with status 503"),
        (broken, "answers with an error of MCP (-32603)"),
        (failed("secret: it broke"), "the search for passages failed"),
        (failed("gate: secret"), "the search for passages failed"),
    ],
)
async def test_what_is_no_answer_is_an_error_without_a_word_of_it(reply: Reply, said: str):
    with pytest.raises(RetrievalError) as raised:
        await searched(reply)
    assert said in str(raised.value)
    assert "secret" not in str(raised.value)
    assert "127.0.0.1" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "kind", "field"),
    [
        ("pack: not served here; known are fans", NotFoundError, "pack"),
        ("tier: expected\x1b[31m one of three", RequestError, "tier"),
        ("tags.1: too long", RequestError, "tags"),
    ],
)
async def test_what_is_wrong_with_the_question_is_told_as_in_process(text: str, kind: type[RequestError], field: str):
    with pytest.raises(RequestError) as raised:
        await searched(failed(text))
    assert type(raised.value) is kind
    assert raised.value.field == field
    assert str(raised.value).isprintable()


async def test_a_connection_that_dies_is_opened_once_more():
    assert (await searched(reset, found()))["pack"] == "pumps"
    with pytest.raises(RetrievalError, match="cannot be reached"):
        await searched(reset, reset, found())


async def test_a_server_that_is_not_there_yet_is_asked_again_by_the_next_question():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
    async with endpoint(url=url) as opened:
        await opened.warm_up()
        with pytest.raises(RetrievalError, match="cannot be reached") as raised:
            await opened.search(QUESTION)
        assert url not in str(raised.value)


async def test_an_answer_has_its_time_and_its_size(monkeypatch: pytest.MonkeyPatch):
    over = threading.Event()

    def wait(handler: Handler) -> None:
        over.wait(10)

    with pytest.raises(RetrievalError, match=r"no passages came within 0\.2 seconds"):
        await searched(wait, timeout=0.2)
    over.set()
    monkeypatch.setattr(mcp_connection, "MAX_ANSWER", 1000)
    with pytest.raises(RetrievalError, match="more than an answer may have"):
        await searched(found(query="x" * 1000))


async def test_a_question_that_is_given_up_closes_its_connection():
    asked, left = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def wait(handler: Handler) -> None:
        loop.call_soon_threadsafe(asked.set)
        if handler.connection.recv(1) == b"":
            left.set()

    with server(wait, found()) as running:
        async with endpoint(url=running.url) as opened:
            question = asyncio.create_task(opened.search(QUESTION))
            await asked.wait()
            question.cancel()
            assert await asyncio.to_thread(left.wait, 5)
            assert (await opened.search(QUESTION))["pack"] == "pumps"


def children() -> set[int]:
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


@pytest.mark.slow
async def test_a_command_that_is_killed_is_started_once_more(built: Path):
    request = SearchRequest(query="water", pack="tiny", gate="off")
    before = children()
    async with endpoint(30, command=(str(OCTAVO), "stdio", str(built))) as opened:
        await opened.warm_up()
        (first,) = children() - before
        assert (await opened.search(request))["results"]
        os.kill(first, signal.SIGKILL)
        assert (await opened.search(request))["results"]
        (second,) = children() - before - {first}
    assert not Path(f"/proc/{second}").exists()


@pytest.mark.parametrize("command", [("/nowhere/to/be/found",), (sys.executable, "-c", "print('no protocol')")])
async def test_a_command_that_is_none_is_an_error(command: tuple[str, ...]):
    async with endpoint(5, command=command) as opened:
        with pytest.raises(RetrievalError, match=r"cannot be reached|within 5 seconds") as raised:
            await opened.search(QUESTION)
    assert command[0] not in str(raised.value)


# who may ask for what


@pytest.mark.parametrize(
    ("slugs", "pack", "named"),
    [
        (None, None, None),
        (None, "pumps", "pumps"),
        ({"pumps"}, None, "pumps"),
        ({"pumps"}, "pumps", "pumps"),
        ({"pumps"}, "pumps@0123456789ab", "pumps@0123456789ab"),
        ({"fans", "pumps"}, "fans", "fans"),
        ({"fans", "pumps"}, None, RequestError),
        ({"pumps"}, "fans", NotFoundError),
        ({"pumps"}, "fans@0123456789ab", NotFoundError),
        (set(), None, NotFoundError),
    ],
)
def test_a_caller_that_may_not_see_all_names_one(slugs: set[str] | None, pack: str | None, named: Any):
    may_see = None if slugs is None else frozenset(slugs)
    if isinstance(named, type):
        with pytest.raises(named):
            named_for(may_see, pack)
    else:
        assert named_for(may_see, pack) == named


async def test_nothing_else_is_ever_asked_for_such_a_caller():
    some = View(FakeLibrary({}), frozenset({"fans", "valves"}))
    with server(found()) as running:
        async with endpoint(url=running.url) as opened:
            retriever = opened.retriever(some)
            for request in (QUESTION, QUESTION.model_copy(update={"pack": None})):
                with pytest.raises(RequestError) as raised:
                    await retriever.search(request)
                assert "fans, valves" in str(raised.value)
            assert running.asked == []
            with pytest.raises(RetrievalError, match="another pack"):
                await retriever.search(QUESTION.model_copy(update={"pack": "fans"}))


async def test_such_a_caller_is_not_told_of_other_packs():
    some = View(FakeLibrary({}), frozenset({"fans"}))
    with server(failed("pack: not served here; known are pumps, secrets")) as running:
        async with endpoint(url=running.url) as opened:
            with pytest.raises(NotFoundError) as raised:
                await opened.retriever(some).search(QUESTION.model_copy(update={"pack": "fans"}))
    assert str(raised.value) == "pack: not served here; known are fans"


async def test_the_authority_of_many_releases_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mcp_retriever, "_RELEASES", 2)
    result = FakePack("pumps").topics(TopicsRequest())
    with server(gives({"structuredContent": result, "content": []})) as running:
        async with endpoint(url=running.url) as opened:
            for digit in "abca":
                await opened.authority("pumps", digit * 64)
    assert len(running.calls) == 4


async def test_a_key_opens_its_own_packs_of_the_other_server_and_no_more():
    keys = {new_key(): packs for packs in (("pumps",), ("fans", "pumps"), ("*",))}
    entries = tuple(Key(f"{n}", sha256_hex(key.encode()), packs) for n, (key, packs) in enumerate(keys.items()))
    one, two, all_ = keys
    with server(found(reason=None)) as running, scripted(answer("Five years [1].")) as model:
        answers = AnswerSettings(ModelSettings(model.url), RetrieverSettings(running.url))
        with listening(FakeLibrary({}), ServerSettings(port=0, keys=entries, answers=answers)) as service:
            assert service.ask("/readyz").json == {"status": "ready"}
            assert "passages" not in service.ask("/healthz").json
            assert "passages" in service.ask("/healthz", one).json

            def asked(key: str, **more: str) -> tuple[int, list[str | None]]:
                running.asked.clear()
                body = {"question": "How long does the oil last?", **more}
                status = service.post("/ask?stream=false", key, body).status
                return status, [call.get("pack") for call in running.calls if "query" in call]

            assert asked(one) == (200, ["pumps"])
            assert asked(one, pack="pumps") == (200, ["pumps"])
            assert asked(one, pack="fans") == (404, [])
            assert asked(two) == (422, [])
            assert asked(two, pack="pumps") == (200, ["pumps"])
            assert asked(two, pack="fans") == (502, ["fans"])  # for the other server answers from pumps
            assert asked(all_) == (200, [None])
            async with connected(f"{service.url}/mcp", one) as client:
                running.asked.clear()
                refused = await client.call_tool("ep_ask", {"question": "How long?", "pack": "fans"})
                assert refused.is_error
                assert running.asked == []
