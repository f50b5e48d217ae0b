"""Clients that cost little: prebuilt requests over raw sockets, answers read by their Content-Length."""

from __future__ import annotations

import json
import multiprocessing
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


def get_request(target: str, *headers: str) -> bytes:
    """A GET on a connection that is kept."""
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def search_request(pack: str, query: str) -> bytes:
    """`GET /search` for ten passages."""
    return get_request(f"/search?pack={pack}&q={quote(query)}")


def mcp_request(method: str, params: dict[str, Any], version: str = MODERN) -> bytes:
    """A request of MCP at `/mcp`."""
    modern = version == MODERN
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {**params, **({"_meta": _META} if modern else {})},
    }
    body = json.dumps(message).encode()
    named = params.get("name") or params.get("uri")
    head = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {version}",
        f"Content-Length: {len(body)}",
    ]
    if modern:
        head += [f"Mcp-Method: {method}"] + ([f"Mcp-Name: {named}"] if named else [])
    return "\r\n".join([*head, "", ""]).encode() + body


def tool_request(pack: str, query: str, version: str = MODERN) -> bytes:
    """`ep_search` for ten passages."""
    return mcp_request("tools/call", {"name": "ep_search", "arguments": {"query": query, "pack": pack}}, version)


class Connection:
    """A connection to a server of this machine that is kept open."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> tuple[int, bytes, bytes]:
        """Status, head and body of the answer."""
        self._socket.sendall(request)
        data = bytearray()
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._receive()
        head = bytes(data[:end])
        status = int(head[9:12])
        length = 0 if status in (204, 304) else _content_length(head)
        while len(data) < end + 4 + length:
            data += self._receive()
        return status, head, bytes(data[end + 4 :])

    def send(self, data: bytes) -> None:
        """Send and expect nothing."""
        self._socket.sendall(data)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _receive(self) -> bytes:
        received = self._socket.recv(1 << 18)
        if not received:
            raise ConnectionError("the server hung up")
        return received


def _content_length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])


@dataclass(frozen=True, slots=True)
class Load:
    """What came back in a time."""

    seconds: float
    waits: Sequence[float]
    """Seconds of each answer, sorted."""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.waits) / self.seconds

    def percentile(self, share: float) -> float:
        """Milliseconds within which that share of the answers came."""
        return self.waits[min(len(self.waits) - 1, int(len(self.waits) * share))] * 1000


def load(port: int, requests: Sequence[Sequence[bytes]], seconds: float) -> Load:
    """Ask on as many connections as there are lists, each in a process of its own, each list over and over."""
    with multiprocessing.get_context("spawn").Pool(len(requests)) as pool:
        started = time.monotonic()
        pool.map(_nothing, requests)  # all have begun
        started = time.monotonic()
        waits = pool.starmap(_ask_on, [(port, mine, seconds) for mine in requests], chunksize=1)
        took = time.monotonic() - started
    return Load(took, sorted(wait for each in waits for wait in each))


def _nothing(requests: Sequence[bytes]) -> None:
    return None


def _ask_on(port: int, requests: Sequence[bytes], seconds: float) -> list[float]:
    connection = Connection(port)
    waits: list[float] = []
    end = time.perf_counter() + seconds
    for request in _endless(requests):
        start = time.perf_counter()
        if start > end:
            break
        status, _, body = connection.ask(request)
        assert status == 200, body[:300]
        waits.append(time.perf_counter() - start)
    connection.close()
    return waits


def _endless(requests: Iterable[bytes]) -> Iterator[bytes]:
    while True:
        yield from requests
