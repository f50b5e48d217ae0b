"""A server of any library on a real socket, and a client that says exactly what it is told to."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from octavo_serve.faces import Library
from octavo_serve.over_http.run import bind, make_server
from octavo_serve.settings import ServerSettings


@dataclass(frozen=True)
class Answer:
    """What came back; names of headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Ask:
    """Sends each request on a connection of its own."""

    host: str
    port: int

    @property
    def address(self) -> str:
        """Of the server."""
        return f"http://{self.host}:{self.port}"

    def __call__(
        self,
        target: str,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        **query: str,
    ) -> Answer:
        """The answer; `query` becomes the query string."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.request(method, f"{target}?{urlencode(query)}" if query else target, body, headers or {})
            response = connection.getresponse()
            got = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, got, response.read())
        finally:
            connection.close()


@contextmanager
def serving(library: Library, settings: ServerSettings) -> Generator[Ask]:
    """A client of a server that ends with the context."""
    listener = bind(settings)
    server = make_server(library, settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()

    try:
        yield Ask(*listener.getsockname())
    finally:
        for pack in library.packs.values():
            if (release := getattr(pack, "release", None)) is not None:
                release.set()  # a search that a test made hang
        server.should_exit = True
        thread.join(20)
        listener.close()
        assert not thread.is_alive()
