"""What a search costs the server beyond its encoder, and how long clients wait over HTTP and MCP, 1 and 8 at a time."""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import anyio
from _server import COMMUNITY, ROOT, cpu_seconds, get, releases, server

from octavo_evals.queries import read_query_set
from octavo_serve.encoder import open_encoder

REPEATS = 3


def main() -> None:
    dist = releases()
    files = {name: ROOT / "evals" / name / "questions.yaml" for name in ("octavo", *COMMUNITY)}
    asked = [
        (name, query.text)
        for name, file in files.items()
        if file.exists() and (dist / name).is_dir()
        for query in read_query_set(file).queries
    ]
    # a different ending each time, so that the server's cache of query vectors never answers
    fresh = iter(range(1000, 10**9))
    encoder = _encoder_milliseconds(dist, [f"{text} {next(fresh)}" for _, text in asked for _ in range(REPEATS)])
    print(f"{len(asked)} questions; the encoder alone: {encoder:.2f} CPU ms a query")
    with server(dist) as (address, process):
        get(f"{address}/search?pack={asked[0][0]}&q=warm")
        _http(address, asked, fresh, 1)
        for clients in (1, 8):
            before = cpu_seconds(process.pid)
            waits = [wait for _ in range(REPEATS) for wait in _http(address, asked, fresh, clients)]
            _report("HTTP", clients, waits, cpu_seconds(process.pid) - before, encoder)
        for clients in (1, 8):
            anyio.run(_mcp, address, asked[:8], fresh, 1)
            before = cpu_seconds(process.pid)
            waits = [wait for _ in range(REPEATS) for wait in anyio.run(_mcp, address, asked, fresh, clients)]
            _report("MCP", clients, waits, cpu_seconds(process.pid) - before, encoder)


def _encoder_milliseconds(dist: Path, texts: list[str]) -> float:
    directory = next((dist / "encoders").iterdir())
    encoder = open_encoder(directory, directory.name)
    for text in texts[:5]:
        encoder.encode(text + " warm")
    start = time.process_time()
    for text in texts:
        encoder.encode(text)
    return (time.process_time() - start) * 1000 / len(texts)


def _http(address: str, asked: list[tuple[str, str]], fresh: Iterator[int], clients: int) -> list[float]:
    import http.client

    host = address.removeprefix("http://")
    waits: list[float] = []

    def work(mine: list[tuple[str, str]]) -> None:
        connection = http.client.HTTPConnection(host)
        for pack, text in mine:
            start = time.perf_counter()
            connection.request("GET", f"/search?pack={pack}&q={quote(f'{text} {next(fresh)}')}")
            answer = connection.getresponse()
            answer.read()
            waits.append(time.perf_counter() - start)
            assert answer.status == 200
        connection.close()

    threads = [threading.Thread(target=work, args=(asked[i::clients],)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return waits


async def _mcp(address: str, asked: list[tuple[str, str]], fresh: Iterator[int], clients: int) -> list[float]:
    from mcp import Client

    waits: list[float] = []

    async def work(mine: list[tuple[str, str]]) -> None:
        async with Client(f"{address}/mcp") as client:
            for pack, text in mine:
                start = time.perf_counter()
                arguments = {"query": f"{text} {next(fresh)}", "pack": pack}
                answer = await client.call_tool("ep_search", arguments)
                waits.append(time.perf_counter() - start)
                assert not answer.is_error

    async with anyio.create_task_group() as tasks:
        for i in range(clients):
            tasks.start_soon(work, asked[i::clients])
    return waits


def _report(face: str, clients: int, waits: list[float], cpu: float, encoder: float) -> None:
    each = cpu * 1000 / len(waits)
    ordered = sorted(waits)
    print(
        f"{face:<5} {clients} client{'s' * (clients > 1):<1}  p50 {statistics.median(waits) * 1000:6.1f} ms  "
        f"p95 {ordered[int(len(ordered) * 0.95)] * 1000:6.1f} ms  server CPU {each:5.2f} ms a search, "
        f"{each - encoder:+.2f} beside the encoder"
    )


if __name__ == "__main__":
    sys.exit(main())
