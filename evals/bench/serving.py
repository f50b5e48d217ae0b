"""What HTTP and MCP cost over a search in process, and how many searches a second a server answers.

CPU: the same questions over and over, one client, ten passages, so that the encoder's cache answers and what is left is
the server's own; all milliseconds are of the server's processes. The rate: questions that are new each time, as they
come from people, with as many clients as keep the machine's cores busy (they run on them too).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence

from _http import Connection, load, search_request, tool_request
from _server import OCTAVO, ROOT, cpu_seconds, family, releases, server

from octavo_evals.queries import read_query_set

PACK = "octavo"
ASKED = 1000
"""Requests of a measurement of CPU: a tick of 10 ms is 0.01 ms of each."""
ROUNDS = 5
"""The least of them counts: the machine's other work only adds."""
CLIENTS = 8
Make = Callable[[str, str], bytes]
FACES: dict[str, Make] = {"HTTP": search_request, "MCP": tool_request}

IN_PROCESS = """
import json, sys, time
from pathlib import Path
from octavo_serve.catalog import open_catalog
from octavo_serve.requests import SearchRequest
dist, pack, count, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
requests = [SearchRequest(query=text, pack=pack) for text in json.load(sys.stdin)]
catalog = open_catalog(dist)
for request in requests:
    catalog.search(request)
least = None
for _ in range(rounds):
    start = time.process_time()
    for number in range(count):
        catalog.search(requests[number % len(requests)])
    each = (time.process_time() - start) * 1000 / count
    least = each if least is None else min(least, each)
print(least)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement of the rate (10)")
    seconds = parser.parse_args().seconds
    dist = releases()
    questions = [query.text for query in read_query_set(ROOT / "evals" / PACK / "questions.yaml").queries]

    program = [OCTAVO.parent / "python", "-c", IN_PROCESS, dist, PACK, str(ASKED), str(ROUNDS)]
    done = subprocess.run(program, input=json.dumps(questions), capture_output=True, text=True, check=True)
    alone = float(done.stdout)
    print(f"{len(questions)} questions to {PACK}, ten passages each\n")
    print(f"CPU ms a search     in process {alone:5.2f}")
    for metrics in ("true", "false"):
        with server(dist, OCTAVO_METRICS=metrics) as (address, process):
            for face, make in FACES.items():
                each = _cpu(_port(address), process.pid, [make(PACK, text) for text in questions])
                told = "metrics" if metrics == "true" else "without"
                print(f"CPU ms a search     {face:<4} {told} {each:5.2f}  ({each - alone:+.2f} over in process)")
    print("\nep-mcp answered 24 and 326 requests a second on two cores")
    fresh = iter(range(10**9))
    for workers in (1, 2):
        with server(dist, "--workers", str(workers)) as (address, process):
            for face, make in FACES.items():
                lists = [
                    [make(PACK, f"{text} {next(fresh)}") for _ in range(40) for text in questions]
                    for _ in range(CLIENTS)
                ]
                load(_port(address), [requests[:50] for requests in lists], 2)
                before = _of_all(process.pid)
                found = load(_port(address), [requests[50:] for requests in lists], seconds)
                cpu = (_of_all(process.pid) - before) * 1000 / len(found.waits)
                print(
                    f"{face:<4} {workers} worker{'s' * (workers > 1):<1} {CLIENTS} clients  {found.rate:6.0f} a second"
                    f"  p50 {found.percentile(0.5):6.1f} ms  p99 {found.percentile(0.99):6.1f} ms"
                    f"  server CPU {cpu:5.2f} ms"
                )


def _cpu(port: int, pid: int, requests: Sequence[bytes]) -> float:
    """CPU milliseconds a request of the server, one client."""
    connection = Connection(port)
    for request in requests:
        status, _, body = connection.ask(request)
        assert status == 200, body[:300]
        assert b"results" in body, body[:300]
    least = float("inf")
    for _ in range(ROUNDS):
        before = cpu_seconds(pid)
        for number in range(ASKED):
            connection.ask(requests[number % len(requests)])
        least = min(least, (cpu_seconds(pid) - before) * 1000 / ASKED)
    connection.close()
    return least


def _of_all(pid: int) -> float:
    return sum(map(cpu_seconds, family(pid)))


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


if __name__ == "__main__":
    sys.exit(main())
