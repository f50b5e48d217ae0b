"""What it costs to find passages by another server: the same questions in process, and over MCP, in turns.

Of each way the wall time of a question and its CPU time, here and there, in milliseconds: the medians of the quietest
eighth of the turns. `sdk` is the same endpoint asked by the SDK's client, as older servers and commands are.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from _server import precise_cpu_milliseconds, releases, server

from octavo_serve.answering import mcp_connection
from octavo_serve.answering.mcp_retriever import McpEndpoint
from octavo_serve.answering.retriever import InProcess, Retriever
from octavo_serve.answering.settings import RetrieverSettings
from octavo_serve.callers.views import View
from octavo_serve.catalog import open_catalog
from octavo_serve.faces import Workers
from octavo_serve.requests import SearchRequest

QUESTIONS = 40
TARGET = 2.0
"""Milliseconds of wall time that MCP may add."""


class ByTheSdk(McpEndpoint):
    """The endpoint, asked by the SDK's client whatever it speaks."""

    async def warm_up(self) -> None:
        """Open the connection."""
        connection = self._connection
        settings = connection._settings  # pyright: ignore[reportPrivateUsage]  # the choice is no setting
        assert settings.url is not None
        connection._link = await mcp_connection._SdkLink.by_url(settings.url, None)  # pyright: ignore[reportPrivateUsage]


async def measure(turns: int, k: int) -> dict[str, dict[str, float]]:
    """Of each way its milliseconds."""
    dist = releases()
    view, workers = View(open_catalog(dist)), Workers(10)
    with server(dist) as (address, process):
        remote = RetrieverSettings(url=f"{address}/mcp")
        url, sdk = McpEndpoint(remote, None, 10), ByTheSdk(remote, None, 10)
        ways: dict[str, Retriever] = {
            "in process": InProcess(view, workers),
            "url": url.retriever(view),
            "sdk": sdk.retriever(view),
        }
        for each in (url, sdk):
            await each.warm_up()
        gc.collect()
        gc.freeze()
        taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
        for turn in range(turns + 2):
            for name, way in ways.items():
                figures = await _ask(way.search, k, process.pid)
                if turn >= 2:  # the first warm up
                    taken[name].append(figures)
        for each in (url, sdk):
            await each.close()
    workers.close()
    quiet = sorted(range(turns), key=lambda turn: sum(taken[name][turn][0] for name in ways))[: max(1, turns // 8)]
    return {
        name: {
            what: round(statistics.median(figures[turn][n] for turn in quiet), 3)
            for n, what in enumerate(("wall", "cpu here", "cpu there"))
        }
        for name, figures in taken.items()
    }


async def _ask(search: Callable[[SearchRequest], Awaitable[object]], k: int, pid: int) -> tuple[float, float, float]:
    waits: list[float] = []
    there, here = precise_cpu_milliseconds(pid), time.process_time()
    for number in range(QUESTIONS):
        request = SearchRequest(
            query=f"how do I roll back to release {number % 7}", pack="octavo", max_results=k, gate="refuse"
        )
        began = time.perf_counter()
        await search(request)
        waits.append(time.perf_counter() - began)
    return (
        statistics.median(waits) * 1000,
        (time.process_time() - here) * 1000 / QUESTIONS,
        (precise_cpu_milliseconds(pid) - there) / QUESTIONS,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("-k", type=int, default=5, help="passages of a question")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = asyncio.run(measure(arguments.turns, arguments.k))
    if arguments.json:
        print(json.dumps(figures))
    base = figures["in process"]
    for name, each in figures.items():
        cpu = each["cpu here"] + each["cpu there"]
        added, own = each["wall"] - base["wall"], base["cpu here"] + base["cpu there"]
        print(
            f"{name:10}  wall {each['wall']:.2f} ms (+{added:.2f}, {each['wall'] / base['wall']:.2f} times)  "
            f"CPU {each['cpu here']:.2f} here, {each['cpu there']:.2f} there (+{cpu - own:.2f}, {cpu / own:.2f} times)",
            file=sys.stderr if arguments.json else sys.stdout,
        )
    if figures["url"]["wall"] - base["wall"] > TARGET:
        sys.exit(f"over MCP takes more than {TARGET:g} ms longer")


if __name__ == "__main__":
    main()
