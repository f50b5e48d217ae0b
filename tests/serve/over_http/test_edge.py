from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from octavo_artifact.errors import ConfigError
from octavo_serve.faces import Library
from octavo_serve.over_http.edge import MAX_HEAD, Edge
from octavo_serve.over_http.run import address, bind, make_server
from octavo_serve.settings import ServerSettings

MCP_PATHS = ("/mcp", "/packs/pumps/mcp")
POSTED = (*MCP_PATHS, "/search", "/packs/pumps/search", "/nowhere")


class Behind:
    """The application behind the guard: it remembers what it gets."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body: bytes | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers = dict(scope["headers"])
        if scope["method"] == "POST":
            self.body = (await receive())["body"]
        await PlainTextResponse("reached")(scope, receive, send)


def ask(
    settings: ServerSettings,
    path: str = "/search",
    method: str = "GET",
    headers: dict[str, str] | None = None,
    *,
    messages: list[Message] | None = None,
    behind: Behind | None = None,
    client: tuple[str, int] = ("127.0.0.1", 1),
) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body of the answer to one request; a body that never comes is never waited for."""
    sent: list[Message] = []
    incoming = list(messages if messages is not None else [{"type": "http.request", "body": b"{}"}])

    async def receive() -> Message:
        if incoming:
            return incoming.pop(0)
        return await asyncio.get_running_loop().create_future()

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
    scope = {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b"", "client": client}
    asyncio.run(Edge(behind or Behind(), settings)(scope, receive, send))
    if not sent:
        return 0, {}, None
    got = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    is_problem = got.get("content-type") == "application/problem+json"
    return sent[0]["status"], got, json.loads(body) if is_problem else body.decode()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8000",
        "localhost",
        "LocalHost:9",
        "[::1]",
        "[::1]:8000",
        "example.org",
        "example.org:443",
    ],
)
def test_a_known_host_is_answered(host: str):
    assert ask(ServerSettings(allowed_hosts=("Example.org",)), headers={"Host": host})[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.com",
        "localhost.evil.com",
        "localhost:80.evil.com",
        "localhost:8000@evil.com",
        "evil.com:localhost",
        "::1",
        "example.org:8443",
        "127.0.0.1 evil.com",
    ],
)
def test_another_host_is_refused_and_the_setting_named(host: str):
    status, _, problem = ask(ServerSettings(allowed_hosts=("example.org:443",)), headers={"Host": host})
    assert status == 421
    assert "allowed_hosts" in problem["detail"]


def test_a_request_without_a_host_is_refused():
    assert ask(ServerSettings())[0] == 421


def test_the_address_that_is_listened_to_is_a_known_host():
    assert ask(ServerSettings(host="192.0.2.7"), headers={"Host": "192.0.2.7:8000"})[0] == 200
    assert ask(ServerSettings(host="0.0.0.0"), headers={"Host": "0.0.0.0:8000"})[0] == 421


@pytest.mark.parametrize("name", ["X-Forwarded-Host", "X-Forwarded-Server", "X-Host", "Forwarded", "X-Original-URL"])
@pytest.mark.parametrize("client", [("127.0.0.1", 1), ("203.0.113.9", 1)])
def test_what_a_proxy_says_of_the_host_changes_nothing(name: str, client: tuple[str, int]):
    known, evil = {"Host": "localhost", name: "evil.com"}, {"Host": "evil.com", name: "localhost"}
    assert ask(ServerSettings(), headers=known, client=client)[0] == 200
    assert ask(ServerSettings(), headers=evil, client=client)[0] == 421


def test_a_name_without_a_port_allows_every_port_and_one_with_a_port_that_port():
    name, port = (
        ServerSettings(allowed_hosts=("kb.example.org",)),
        ServerSettings(allowed_hosts=("kb.example.org:443",)),
    )
    hosts = ("kb.example.org", "kb.example.org:443", "kb.example.org:8443")
    assert [ask(name, headers={"Host": host})[0] for host in hosts] == [200, 200, 200]
    assert [ask(port, headers={"Host": host})[0] for host in hosts] == [421, 200, 421]


def test_a_request_with_two_hosts_is_refused(impatient: tuple[str, int]):
    twice = b"GET /search HTTP/1.1\r\nHost: localhost\r\nHost: evil.com\r\nConnection: close\r\n\r\n"
    assert talk(impatient, twice).split(b" ")[1] in (b"400", b"421")


@pytest.mark.parametrize("target", ["/mcp/", "/search/", "/packs/pumps/mcp/", "//search", "/packs/"])
def test_nothing_is_redirected(impatient: tuple[str, int], target: str):
    head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: evil.com\r\nConnection: close\r\n\r\n"
    said = talk(impatient, head.encode())
    assert said.split(b" ")[1] in (b"404", b"405")
    assert b"location" not in said.lower()
    assert b"evil.com" not in said


def test_health_is_told_to_any_host():
    assert ask(ServerSettings(), "/healthz", headers={"Host": "10.0.0.1:8000"})[0] == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        pytest.param("http://localhost:8000", 200, id="its own"),
        pytest.param("https://app.example.org", 200, id="allowed"),
        pytest.param("http://localhost:3000", 403, id="another port"),
        pytest.param("https://evil.com", 403, id="another site"),
        pytest.param("null", 403, id="none to tell"),
        pytest.param("ftp://localhost:8000", 403, id="another scheme"),
        pytest.param("", 403, id="empty"),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/search"), ("POST", "/mcp")])
def test_pages_may_call_from_known_origins_only(origin: str, status: int, method: str, path: str):
    settings = ServerSettings(allowed_origins=("https://app.example.org",))
    assert ask(settings, path, method, {"Host": "localhost:8000", "Origin": origin})[0] == status


@pytest.mark.parametrize("path", MCP_PATHS)
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"])
def test_mcp_is_spoken_by_post_only(path: str, method: str):
    status, headers, _ = ask(ServerSettings(), path, method, {"Host": "localhost"})
    assert (status, headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("path", POSTED)
def test_a_declared_length_beyond_the_limit_is_refused_unread(path: str):
    headers = {"Host": "localhost", "Content-Length": str(256 * 1024 + 1)}
    status, got, _ = ask(ServerSettings(), path, "POST", headers, messages=[])
    assert (status, got["connection"]) == (413, "close")


@pytest.mark.parametrize("path", POSTED)
def test_a_body_that_grows_beyond_the_limit_is_refused(path: str):
    piece: Message = {"type": "http.request", "body": b"x" * 1000, "more_body": True}
    status, got, _ = ask(ServerSettings(max_body=1999), path, "POST", {"Host": "localhost"}, messages=[piece, piece])
    assert (status, got["connection"]) == (413, "close")


@pytest.mark.parametrize("path", POSTED)
def test_a_body_that_stops_is_given_up(path: str):
    piece: Message = {"type": "http.request", "body": b"{", "more_body": True}
    status, got, _ = ask(ServerSettings(body_timeout=0.01), path, "POST", {"Host": "localhost"}, messages=[piece])
    assert (status, got["connection"]) == (408, "close")


@pytest.mark.parametrize("path", POSTED)
def test_a_client_that_leaves_is_not_answered(path: str):
    gone: Message = {"type": "http.disconnect"}
    assert ask(ServerSettings(), path, "POST", {"Host": "localhost"}, messages=[gone]) == (0, {}, None)


@pytest.mark.parametrize("path", POSTED)
def test_a_body_in_pieces_arrives_whole(path: str):
    behind = Behind()
    pieces: list[Message] = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"", "more_body": True},
        {"type": "http.request", "body": b"c", "more_body": False},
    ]
    ask(ServerSettings(max_body=3), path, "POST", {"Host": "localhost"}, messages=pieces, behind=behind)
    assert behind.body == b"abc"


def test_white_space_around_routing_headers_is_taken_off_and_no_other():
    behind = Behind()
    headers = {"Host": "localhost", "Mcp-Name": "ep_search \t", "Mcp-Param-X": " 1", "X-Other": " kept "}
    ask(ServerSettings(), "/mcp", "POST", headers, behind=behind)
    assert behind.headers[b"mcp-name"] == b"ep_search"
    assert behind.headers[b"mcp-param-x"] == b"1"
    assert behind.headers[b"x-other"] == b" kept "


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"port": 65536}, id="port"),
        pytest.param({"allowed_hosts": ("http://example.org",)}, id="host with a scheme"),
        pytest.param({"allowed_hosts": ("*.example.org",)}, id="host pattern"),
        pytest.param({"allowed_origins": ("example.org",)}, id="origin without a scheme"),
        pytest.param({"allowed_origins": ("https://example.org/",)}, id="origin with a path"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, Any]):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        ServerSettings(**wrong)


class Empty:
    """A library without packs."""

    def __init__(self) -> None:
        self.packs: dict[str, Any] = {}
        self.refused: dict[str, str] = {}
        self.releases: dict[str, Any] = {}
        self.failed: dict[str, Any] = {}

    def search(self, request: Any, slugs: Any = None) -> Any:
        raise AssertionError("no pack is asked for")

    def choose(self, name: str | None) -> Any:
        raise AssertionError("no pack is asked for")


@contextmanager
def listening(settings: ServerSettings) -> Generator[tuple[str, int]]:
    library: Library = Empty()
    listener = bind(settings)
    server = make_server(library, settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def impatient() -> Iterator[tuple[str, int]]:
    with listening(ServerSettings(port=0, body_timeout=0.2)) as place:
        yield place


def talk(place: tuple[str, int], *parts: bytes) -> bytes:
    """All that the server says until it hangs up."""
    with socket.create_connection(place, 20) as connection:
        said = bytearray()
        try:
            for part in parts:
                connection.sendall(part)
            while piece := connection.recv(65536):
                said += piece
        except (ConnectionResetError, BrokenPipeError):
            pass
        return bytes(said)


def test_a_connection_that_says_nothing_is_closed(impatient: tuple[str, int]):
    assert talk(impatient) == b""


def test_a_head_that_stops_is_given_up(impatient: tuple[str, int]):
    assert talk(impatient, b"GET /search HTTP/1.1\r\nHost: localhost\r\n") == b""


def test_a_second_head_that_stops_is_given_up_too(impatient: tuple[str, int]):
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert talk(impatient, whole, b"GET /healthz HTTP").count(b"HTTP/1.1 503") == 1


def test_a_slow_body_is_given_up_on_the_wire(impatient: tuple[str, int]):
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
    assert talk(impatient, head).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /search?q=" + b"x" * 2 * MAX_HEAD, id="request line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: " + b"x" * 2 * MAX_HEAD, id="one header"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * MAX_HEAD, id="many headers"),
    ],
)
def test_a_head_without_end_is_cut_off(head: bytes):
    # the time limit is out of reach, so it is the size that counts
    with listening(ServerSettings(port=0, body_timeout=600)) as place:
        assert talk(place, head) == b""


def test_a_port_in_use_is_named():
    with bind(ServerSettings(port=0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"host 127\.0\.0\.1, port {port}: "):
            bind(ServerSettings(port=port))


def test_an_unknown_host_to_listen_on_is_named():
    with pytest.raises(ConfigError, match=r"host 256\.256\.256\.256, port 8000: "):
        bind(ServerSettings(host="256.256.256.256"))


def test_port_0_becomes_a_real_port():
    with bind(ServerSettings(port=0)) as listener:
        assert address(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
