"""Nothing is remembered of a client: whatever it sends, in whichever order, is answered alone and leaves nothing."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from fakes import FakeLibrary, FakePack
from octavo_serve.over_http.run import address, bind, make_server
from octavo_serve.settings import ServerSettings

MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
CALL = {"name": "ep_search", "arguments": {"query": "oil"}}


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    listener = bind(ServerSettings(port=0))
    server = make_server(FakeLibrary({"pumps": FakePack("pumps")}), ServerSettings())
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield address(listener).removeprefix("http://")
    server.should_exit = True
    thread.join(10)
    listener.close()


class Connection:
    """One connection that stays open."""

    def __init__(self, connection: HTTPConnection, version: str | None, headers: dict[str, str]) -> None:
        self._connection = connection
        self._version = version
        self._headers = headers

    def send(self, method: str, params: dict[str, Any], **changed: str) -> tuple[int, Any]:
        modern = self._version == MODERN
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META} if modern else params}
        headers = {"Mcp-Method": method, "Mcp-Name": params.get("name", "")} if modern else {}
        return self.post(json.dumps(asked), **{**headers, **changed})

    def post(self, body: str, **headers: str) -> tuple[int, Any]:
        known = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        known |= {"MCP-Protocol-Version": self._version} if self._version else {}
        self._connection.request("POST", "/mcp", body, {**known, **self._headers, **headers})
        answer = self._connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content else None


@contextmanager
def connected(host: str, version: str | None = None, **headers: str) -> Generator[Connection]:
    http = HTTPConnection(host, timeout=30)
    with closing(http):
        yield Connection(http, version, headers)


def called(host: str, version: str | None) -> int:
    with connected(host, version) as connection:
        return found(connection.send("tools/call", CALL))


def found(answer: tuple[int, Any]) -> int:
    status, body = answer
    assert status == 200, body
    return len(body["result"]["structuredContent"]["results"])


@pytest.mark.parametrize("version", [None, "2025-06-18", "2025-11-25", MODERN])
def test_a_tool_is_called_without_an_introduction(host: str, version: str | None) -> None:
    assert called(host, version) == 2


def test_more_is_asked_on_the_connection_of_an_introduction(host: str) -> None:
    with connected(host, "2025-11-25") as connection:
        assert connection.send("initialize", INITIALIZE)[1]["result"]["protocolVersion"] == "2025-11-25"
        assert connection.post(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))[0] == 202
        assert [found(connection.send("tools/call", CALL)) for _ in range(3)] == [2, 2, 2]
        assert connection.send("initialize", INITIALIZE)[0] == 200


def test_the_session_of_an_earlier_server_is_served(host: str) -> None:
    with connected(host, "2025-11-25", **{"Mcp-Session-Id": "of-a-server-that-is-gone"}) as connection:
        assert found(connection.send("tools/call", CALL)) == 2


def test_twenty_clients_are_served_at_once(host: str) -> None:
    versions = ["2025-11-25", MODERN] * 10
    with ThreadPoolExecutor(20) as clients:
        answers = clients.map(called, [host] * 20, versions)
    assert list(answers) == [2] * 20


def unfinished() -> int:
    gc.collect()
    return sum(isinstance(each, asyncio.Task) and not each.done() for each in gc.get_objects())


def resident() -> int:
    """Bytes of this process, server included."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_thousand_bad_requests_leave_nothing_behind(host: str) -> None:
    with connected(host, MODERN) as modern, connected(host, "2025-11-25") as old:
        bad: list[Any] = [
            lambda: modern.post("{"),
            lambda: modern.post("[]"),
            lambda: modern.send("tools/call", {"name": "ep_write"}),
            lambda: modern.send("tools/call", CALL, **{"Mcp-Method": "tools/list"}),
            lambda: modern.send("tools/call", {"name": "ep_search", "arguments": {"query": 7, "cursor": "\0"}}),
            lambda: modern.send("resources/list", {"cursor": "zzzz"}),
            lambda: modern.send("no/method", {}),
            lambda: old.post('{"jsonrpc": "2.0"}'),
            lambda: old.send("tools/call", {"name": "ep_search", "arguments": {"limit": 5}}),
            lambda: old.send("completion/complete", {"ref": {}}),
        ]

        def send(times: int) -> None:
            for _ in range(times):
                for each in bad:
                    status, body = each()
                    assert status in (200, 400, 404), body
                    assert "error" in body or body["result"]["isError"]

        send(20)
        tasks, bytes_ = unfinished(), resident()
        send(100)
        assert unfinished() <= tasks
        assert resident() - bytes_ < 8 * 2**20
        assert found(modern.send("tools/call", CALL)) == 2
