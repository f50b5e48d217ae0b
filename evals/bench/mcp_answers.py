"""What MCP adds to a search: bytes of its answers beside HTTP's, and CPU time over the same search in process."""

from __future__ import annotations

import http.client
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from _server import COMMUNITY, ROOT, cpu_seconds, releases, server

from octavo_artifact.manifest import pack_directories
from octavo_evals.queries import read_query_set
from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.requests import DEFAULT_TOKENS, SearchRequest

REPEATS = 20
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Caller:
    """A connection that stays open, and the bodies of what is answered on it."""

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(address.removeprefix("http://"))

    def get(self, path: str) -> bytes:
        """The body of an answer of HTTP."""
        self._connection.request("GET", path)
        return self._connection.getresponse().read()

    def call(self, method: str, **params: object) -> bytes:
        """The body of MCP's answer, in the protocol of 2026."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "MCP-Protocol-Version": VERSION,
            "Mcp-Method": method,
        }
        if "name" in params:
            headers["Mcp-Name"] = str(params["name"])
        self._connection.request("POST", "/mcp", body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return content

    def search(self, pack: str, query: str, **arguments: object) -> bytes:
        """The body of an answer of ep_search."""
        return self.call("tools/call", name="ep_search", arguments={"pack": pack, "query": query, **arguments})


def main() -> None:
    dist = Path(sys.argv[1]) if len(sys.argv) > 1 else releases()
    slugs = [directory.name for directory in pack_directories(dist) if directory.name in COMMUNITY] or ["octavo"]
    asked = [
        (slug, query.text)
        for slug in slugs
        for query in read_query_set(ROOT / "evals" / slug / "questions.yaml").queries
    ]
    with server(dist) as (address, process):
        caller = Caller(address)
        _bytes(caller, asked)
        _cpu(open_catalog(dist), address, process.pid, asked)


def _bytes(caller: Caller, asked: list[tuple[str, str]]) -> None:
    tools = json.loads(caller.call("tools/list"))["result"]["tools"]
    sizes = {tool["name"]: {key: len(_dumped(tool[key])) for key in ("inputSchema", "outputSchema")} for tool in tools}
    print(f"tools/list: {len(caller.call('tools/list'))} bytes; {json.dumps(sizes)}")
    ways: dict[str, Callable[[str, str], bytes]] = {
        "HTTP": lambda slug, text: caller.get(f"/search?pack={slug}&n=10&gate=flag&q={quote(text)}"),
        "MCP": lambda slug, text: caller.search(slug, text, max_results=10, gate="flag"),
        "MCP compact": lambda slug, text: caller.search(slug, text, max_results=10, gate="flag", compact=True),
    }
    for name, ask in ways.items():
        sizes = [len(ask(slug, text)) for slug, text in asked]
        median, mean = statistics.median(sizes), statistics.mean(sizes)
        print(f"{name:<12} median {median:7.0f} bytes an answer of 10, mean {mean:7.0f}")


def _dumped(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _cpu(catalog: Catalog, address: str, pid: int, asked: list[tuple[str, str]]) -> None:
    """Each question was asked before, so that nobody encodes it; the search is the server's own, in process."""
    asked = asked[:24]
    alone: list[float] = []
    for _ in range(REPEATS + 1):
        start = time.process_time()
        for slug, text in asked:
            catalog.search(SearchRequest(query=text, pack=slug, max_tokens=DEFAULT_TOKENS))
        alone.append((time.process_time() - start) * 1000 / len(asked))
    search = statistics.median(alone[1:])
    print(f"search in process: {search:.2f} CPU ms")
    caller = Caller(address)
    ways: dict[str, Callable[[str, str], bytes]] = {
        "HTTP": lambda slug, text: caller.get(f"/search?pack={slug}&q={quote(text)}"),
        "MCP": caller.search,
        "MCP compact": lambda slug, text: caller.search(slug, text, compact=True),
        "tools/list": lambda slug, text: caller.call("tools/list"),
    }
    for name, ask in ways.items():
        for slug, text in asked:
            ask(slug, text)
        before = cpu_seconds(pid)
        for _ in range(REPEATS):
            for slug, text in asked:
                ask(slug, text)
        each = (cpu_seconds(pid) - before) * 1000 / (len(asked) * REPEATS)
        beside = "" if name == "tools/list" else f", {each - search:+.2f} over the search in process"
        print(f"{name:<12} {each:.2f} CPU ms of the server{beside}")


if __name__ == "__main__":
    sys.exit(main())
