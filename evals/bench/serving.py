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
from pathlib import Path

from _http import Connection, load, search_request, tool_request
from _server import OCTAVO, ROOT, cpu_seconds, family, precise_cpu_milliseconds, releases, server

from octavo_evals.queries import read_query_set

PACK = "octavo"
ASKED = 100
"""Requests of a round."""
ROUNDS = 20
"""All that is compared takes turns; the least of each counts, for the machine's other work only adds."""
CLIENTS = 8
Make = Callable[[str, str], bytes]
FACES: dict[str, Make] = {"HTTP": search_request, "MCP": tool_request}

IN_PROCESS = """
import json, sys, time
from pathlib import Path
from octavo_serve.catalog import open_catalog
from octavo_serve.requests import DEFAULT_TOKENS, SearchRequest
catalog = open_catalog(Path(sys.argv[1]))
asked = {"pack": sys.argv[2], "max_tokens": DEFAULT_TOKENS}
requests = [SearchRequest(query=text, **asked) for text in json.loads(sys.stdin.readline())]
spent, number = 0.0, 0
for line in sys.stdin:
    start = time.process_time()
    if line == "search\\n":
        catalog.search(requests[number % len(requests)])
        number += 1
    spent += time.process_time() - start
    print(spent * 1000, flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement of the rate (10)")
    seconds = parser.parse_args().seconds
    dist = releases()
    questions = [query.text for query in read_query_set(ROOT / "evals" / PACK / "questions.yaml").queries]

    print(f"{len(questions)} questions to {PACK}, ten passages each\n")
    _costs(dist, questions)
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


def _costs(dist: Path, questions: Sequence[str]) -> None:
    """CPU milliseconds a search: in process, and of servers with and without metrics."""
    program = [OCTAVO.parent / "python", "-c", IN_PROCESS, dist, PACK]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True) as alone,
        server(dist, OCTAVO_METRICS="true") as (with_metrics, first),
        server(dist, OCTAVO_METRICS="false") as (without, second),
    ):
        assert alone.stdin is not None
        assert alone.stdout is not None
        alone.stdin.write(json.dumps(questions) + "\n")
        least = {"in process": float("inf")}
        for number in range(ROUNDS + 2):
            costs = {"in process": _alone(alone)}
            for metrics, address, process in (("metrics", with_metrics, first), ("no metrics", without, second)):
                for face, make in FACES.items():
                    requests = [make(PACK, text) for text in questions]
                    costs[f"{face}, {metrics}"] = _cpu(_port(address), process.pid, requests)
            if number >= 2:  # before, the encoder's caches fill and the MCP SDK is imported
                least = {name: min(cost, least.get(name, cost)) for name, cost in costs.items()}
        alone.stdin.close()
    for name, cost in least.items():
        print(f"{name:<16} CPU {cost:5.2f} ms a search  ({cost - least['in process']:+.2f})")


def _alone(process: subprocess.Popen[str]) -> float:
    """CPU milliseconds a search in process, asked one by one as a server is."""
    assert process.stdin is not None
    assert process.stdout is not None
    told: list[float] = []
    for what in ("total", *["search"] * ASKED):
        process.stdin.write(f"{what}\n")
        process.stdin.flush()
        told.append(float(process.stdout.readline()))
    return (told[-1] - told[0]) / ASKED


def _cpu(port: int, pid: int, requests: Sequence[bytes]) -> float:
    """CPU milliseconds a request of the server, one client."""
    connection = Connection(port)
    before = precise_cpu_milliseconds(pid)
    for number in range(ASKED):
        status, _, body = connection.ask(requests[number % len(requests)])
        assert (status, b"results" in body) == (200, True), body[:300]
    spent = precise_cpu_milliseconds(pid) - before
    connection.close()
    return spent / ASKED


def _of_all(pid: int) -> float:
    return sum(map(cpu_seconds, family(pid)))


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


if __name__ == "__main__":
    sys.exit(main())
