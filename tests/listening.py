"""A server in a thread of the test, asked over a real socket, and all that it logged."""

from __future__ import annotations

import http.client
import json
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from asking import Answer
from octavo_serve.faces import Library
from octavo_serve.over_http.run import address, bind, make_server
from octavo_serve.settings import ServerSettings

ERAS = ("legacy", "2026-07-28")
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


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

    def said(self, since: int = 0) -> str:
        """All that was logged, tracebacks included; `since` is the number of records to leave out."""
        return "\n".join(map(logging.Formatter().format, self.log[since:]))


class Keeping(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def all_logged() -> Generator[list[logging.LogRecord]]:
    """What is logged in this process meanwhile, whatever its level."""
    root, kept = logging.getLogger(), Keeping()
    level = root.level
    root.addHandler(kept)
    root.setLevel(logging.DEBUG)
    try:
        yield kept.records
    finally:
        root.removeHandler(kept)
        root.setLevel(level)


@contextmanager
def listening(library: Library, settings: ServerSettings | Callable[[str], ServerSettings]) -> Generator[Running]:
    """A server of `library` in a thread; its settings may depend on the address that it gets."""
    listener = bind(ServerSettings(port=0))
    if not isinstance(settings, ServerSettings):
        settings = settings(address(listener))
    with all_logged() as records:
        server = make_server(library, settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Running(address(listener), records)
        finally:
            server.should_exit = True
            thread.join(20)
            listener.close()
            assert not thread.is_alive()


@asynccontextmanager
async def connected(url: str, key: str, mode: Any = "auto") -> AsyncGenerator[Client]:
    async with (
        create_mcp_http_client({"Authorization": f"Bearer {key}"}) as http_client,
        Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,
    ):
        yield client


class Clock:
    """Nanoseconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    @classmethod
    def of_the_server(cls, monkeypatch: pytest.MonkeyPatch) -> Clock:
        """The clock of each server that is started from now on."""
        from octavo_serve.over_http.app import create_app

        clock = cls()
        monkeypatch.setattr("octavo_serve.over_http.run.create_app", partial(create_app, clock=clock))
        return clock


def swapped(answer: Answer, slug: str) -> tuple[int, dict[str, str], bytes]:
    """An answer in which the client's own word is replaced, if it was repeated."""
    return answer.status, answer.headers, answer.body.replace(slug.encode(), b"SLUG")
