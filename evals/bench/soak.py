"""Whether a server grows: mixed load at full speed, and its memory, threads, descriptors and tasks every five seconds.

The load is searches, reads, walks, unchanged answers, wrong requests, MCP of both eras (tools, resources, prompts,
skills), clients that hang up in the middle of a request or before its answer, and new connections all the time.

The verdict compares the last fifth of the samples with the fifth after the warm-up (the first fifth, at most a minute):
a figure grew when its median is larger by more than a tolerance, half of it since the middle of the run. Exit code 1
when something grew or a request was answered wrongly.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from _http import LEGACY, MODERN, Connection, get_request, mcp_request, search_request, tool_request
from _server import BENCH, ROOT, get, releases, server

from octavo_evals.queries import read_query_set

PACK = "octavo"
CLIENTS = 4
PERIOD = 5.0
WARM_UP = 60.0

TOLERANCE = {"rss_mb": 8.0, "threads": 1, "fds": 4, "sockets": 4, "tasks": 6}
"""What the median may differ by: clients come and go, so descriptors and tasks do; memory has an allocator's slack."""

Request = tuple[str, bytes, frozenset[int]]
"""Kind, bytes, and the statuses that are right."""

OK = frozenset({200})
BAD = frozenset({400, 404, 405, 413, 415, 421, 422})


def requests_of(questions: Sequence[str], etag: str | None) -> list[Callable[[random.Random], Request]]:
    """What clients ask, each equally often; the questions are new in one of four searches."""

    def question(chance: random.Random) -> str:
        text = chance.choice(questions)
        return f"{text} {chance.randrange(10**6)}" if chance.random() < 0.25 else text

    def mcp(kind: str, method: str, params: dict[str, Any], version: str) -> Callable[[random.Random], Request]:
        return lambda chance: (f"mcp {kind}", mcp_request(method, params, version), frozenset({200, 400, 404}))

    def searching(version: str) -> Callable[[random.Random], Request]:
        return lambda chance: ("mcp search", tool_request(PACK, question(chance), version), OK)

    read = {"name": "ep_read", "arguments": {"path": "overview.md", "pack": PACK}}
    topics = {"name": "ep_list_topics", "arguments": {"pack": PACK}}
    walk = {"name": "ep_graph_traverse", "arguments": {"path": "overview.md", "pack": PACK}}
    unknown = {"name": "ep_unknown", "arguments": {}}
    made: list[Callable[[random.Random], Request]] = [
        lambda chance: ("http search", search_request(PACK, question(chance)), OK),
        lambda chance: ("http search", search_request(PACK, question(chance)), OK),
        lambda chance: ("http graph", get_request(f"/graph?pack={PACK}&path=overview.md"), OK),
        lambda chance: ("http read", get_request(f"/read?pack={PACK}&path=overview.md"), OK | {404}),
        lambda chance: ("http health", get_request("/healthz"), OK),
        lambda chance: ("http wrong", get_request(f"/search?n={chance.randrange(100, 10**6)}"), BAD),
        lambda chance: ("http wrong", get_request(f"/{chance.randrange(10**6)}"), BAD),
        lambda chance: ("http wrong", get_request("/mcp"), BAD),
    ]
    if etag is not None:
        unchanged = get_request(f"/search?pack={PACK}&q=etag", f"If-None-Match: {etag}")
        made.append(lambda chance: ("http unchanged", unchanged, frozenset({304})))
    for version in (MODERN, LEGACY):
        made += [
            searching(version),
            mcp("tools", "tools/call", read, version),
            mcp("tools", "tools/call", topics, version),
            mcp("tools", "tools/call", walk, version),
            mcp("wrong", "tools/call", unknown, version),
            mcp("wrong", "no/such", {}, version),
            mcp("lists", "tools/list", {}, version),
            mcp("lists", "resources/list", {}, version),
            mcp("lists", "prompts/list", {}, version),
            mcp("lists", "skills/list", {}, version),
            mcp("resources", "resources/read", {"uri": f"ep://{PACK}/file/overview.md"}, version),
            mcp("prompts", "prompts/get", {"name": "roll_back"}, version),
        ]
    return made


def client(number: int, port: int, made: tuple[Sequence[str], str | None], end: Event, results: Any) -> None:
    """Ask until the end; what came goes to `results`: seconds by kind, wrong answers by kind."""
    chance = random.Random(number)
    asks = requests_of(*made)
    waits: defaultdict[str, list[float]] = defaultdict(list)
    wrong: Counter[str] = Counter()
    connection = Connection(port)
    while not end.is_set():
        kind, request, right = chance.choice(asks)(chance)
        match chance.random():
            case x if x < 0.02:  # leaves in the middle of the request
                connection.send(request[: chance.randrange(1, len(request))])
                connection.close()
                connection = Connection(port)
            case x if x < 0.05:  # leaves before the answer
                connection.send(request)
                connection.close()
                connection = Connection(port)
            case x:
                start = time.perf_counter()
                try:
                    status, head, _ = connection.ask(request)
                except OSError as error:
                    wrong[f"{kind}: {error}"] += 1
                    connection.close()
                    connection = Connection(port)
                    continue
                waits[kind].append(time.perf_counter() - start)
                if status not in right:
                    wrong[f"{kind}: status {status}"] += 1
                if x < 0.15 or b"connection: close" in head.lower():
                    connection.close()
                    connection = Connection(port)
    connection.close()
    results.put((dict(waits), wrong))


def sample(pid: int, address: str) -> dict[str, float]:
    """How the server is."""
    status = Path(f"/proc/{pid}/status").read_text()
    links: list[str] = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            links.append(str(link.readlink()))
    told = get(f"{address}/metrics").decode()
    return {
        "rss_mb": int(status.partition("VmRSS:")[2].split()[0]) / 1024,
        "threads": int(status.partition("Threads:")[2].split()[0]),
        "fds": len(links),
        "sockets": sum(link.startswith("socket:") for link in links),
        "tasks": float(told.partition("\noctavo_tasks ")[2].split()[0]),
    }


def verdict(samples: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float | bool]]:
    """By figure: medians after the warm-up, in the middle and at the end, and whether it grew."""
    fifth = max(1, len(samples) // 5)
    skipped = min(fifth, round(WARM_UP / PERIOD))
    middle = len(samples) // 2
    parts = (samples[skipped : skipped + fifth], samples[middle - fifth // 2 : middle + fifth], samples[-fifth:])
    found: dict[str, dict[str, float | bool]] = {}
    for name, tolerance in TOLERANCE.items():
        begin, mid, last = (statistics.median(each[name] for each in part) for part in parts)
        grew = last - begin > tolerance and last - mid > tolerance / 2
        found[name] = {"begin": begin, "middle": mid, "end": last, "tolerance": tolerance, "grew": grew}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--out", type=Path, default=BENCH / "soak.json", help="summary as JSON")
    parser.add_argument("--dist", type=Path, help="folder of releases with the handbook (built)")
    arguments = parser.parse_args()
    dist = arguments.dist or releases()
    questions = [query.text for query in read_query_set(ROOT / "evals" / PACK / "questions.yaml").queries]
    spawn = multiprocessing.get_context("spawn")
    with server(dist) as (address, process):
        port = int(address.rpartition(":")[2])
        _, head, _ = Connection(port).ask(search_request(PACK, "etag"))
        etag = head.decode().lower().partition("\netag: ")[2].split("\r\n")[0] or None
        end, results = spawn.Event(), spawn.Queue()
        clients = [
            spawn.Process(target=client, args=(number, port, (questions, etag), end, results))
            for number in range(CLIENTS)
        ]
        for each in clients:
            each.start()
        samples: list[dict[str, float]] = []
        started = time.monotonic()
        while time.monotonic() - started < arguments.minutes * 60:
            time.sleep(PERIOD)
            samples.append(sample(process.pid, address))
        took = time.monotonic() - started
        end.set()
        came = [results.get(timeout=60) for _ in clients]
        for each in clients:
            each.join()
    waits: defaultdict[str, list[float]] = defaultdict(list)
    wrong: Counter[str] = Counter()
    for mine, errors in came:
        wrong += errors
        for kind, seconds in mine.items():
            waits[kind] += seconds
    grown = verdict(samples)
    kinds = {
        kind: {"requests": len(found), "p50_ms": _ms(found, 0.5), "p99_ms": _ms(found, 0.99)}
        for kind, found in sorted(waits.items())
    }
    summary = {"seconds": took, "kinds": kinds, "wrong": dict(wrong), "figures": grown, "samples": samples}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(summary, indent=1) + "\n")
    print(_markdown(took, kinds, grown, wrong))
    return int(any(each["grew"] for each in grown.values()) or bool(wrong))


def _ms(waits: list[float], share: float) -> float:
    return round(sorted(waits)[min(len(waits) - 1, int(len(waits) * share))] * 1000, 1)


def _markdown(took: float, kinds: Mapping[str, Any], grown: Mapping[str, Any], wrong: Mapping[str, int]) -> str:
    total = sum(each["requests"] for each in kinds.values())
    lines = [f"{total} requests in {took:.0f} s, {total / took:.0f} a second", ""]
    lines += ["| kind | requests | p50 ms | p99 ms |", "|---|---|---|---|"]
    lines += [f"| {kind} | {each['requests']} | {each['p50_ms']} | {each['p99_ms']} |" for kind, each in kinds.items()]
    lines += ["", "| figure | after the warm-up | middle | end | tolerance | verdict |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {name} | {each['begin']:.1f} | {each['middle']:.1f} | {each['end']:.1f} | {each['tolerance']} | "
        f"{'grew' if each['grew'] else 'flat'} |"
        for name, each in grown.items()
    ]
    return "\n".join([*lines, "", f"wrong answers: {dict(wrong) or 'none'}"])


if __name__ == "__main__":
    sys.exit(main())
