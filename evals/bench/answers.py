"""Questions to a model under load: how much later than from the model itself the first word comes, and who is refused.

One, four and sixteen people ask a real server, over real sockets, all the time; its model is a script with four slots
that takes a fixed time for the first word and for each further one, so that what is beyond it is octavo's. Questions
are new each time. Who is refused asks again a tenth of a second later, ten times sooner than `Retry-After` says.

An answer that fails, or a refusal without `Retry-After`, gives exit code 1. All share the machine's cores.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from math import ceil
from multiprocessing.connection import Connection as Pipe
from multiprocessing.synchronize import Event
from typing import Any
from urllib.parse import urlsplit

from _server import ROOT, cpu_seconds, releases, server

from octavo_evals.queries import read_query_set

PACK = "octavo"
USERS = (1, 4, 16)
SLOTS = 4
FIRST, EACH = 0.1, 0.01
"""Seconds until the model's first word, and until each further one."""
WORDS = 30
IMPATIENCE = 0.1
TARGET = 10.0
"""Milliseconds that the first word may come later than the model's own, for 95 of 100 answers."""

_spawn = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and what came of it."""

    status: int
    seconds: float
    """Until the answer was whole."""
    first: float | None
    """Seconds until its first word."""
    retry_after: str | None
    refused: bool
    """Whether the answer is that there is none: the model was not asked."""
    timings: dict[str, float | None]
    """As the server tells them, in milliseconds."""
    failure: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where who answers."""

    octavo: str
    model: str
    pid: int
    """Of octavo."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What those who ask do."""

    one: Callable[[Client, str], Asked]
    """Asks a question."""
    address: str
    questions: Sequence[str]
    users: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What a number of people met."""

    users: int
    seconds: float
    answers: int
    not_for_the_model: int
    """Answers that nothing relevant is known."""
    busy: int
    busy_without_retry_after: int
    busy_p95_ms: float | None
    failures: list[str]
    own_p50_ms: float
    own_p95_ms: float
    """First word of the model itself, as many at once."""
    later_p50_ms: float
    later_p95_ms: float
    """First word of octavo, later than the model's."""
    retrieval_p50_ms: float
    retrieval_p95_ms: float
    total_p50_ms: float
    cpu_ms: float
    """Of the server for an answer, refusals of the busy included."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15, help="of each measurement (15)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    questions = [query.text for query in read_query_set(ROOT / "evals" / PACK / "questions.yaml").queries]
    dist = releases()
    with model() as url:
        settings = {"max_concurrent": SLOTS, "model": {"url": url, "retries": 0}}
        with server(dist, OCTAVO_ANSWERS=json.dumps(settings)) as (address, process):
            place = Place(address, url, process.pid)
            asking(place, questions, SLOTS, 3)  # the encoder and the model's client are warm
            found = [asking(place, questions, users, arguments.seconds) for users in USERS]
    if arguments.json:
        print(json.dumps([asdict(each) for each in found]))
    else:
        report(found)
    for each in found:
        print(*each.failures[:5], sep="\n", end="\n" if each.failures else "", file=sys.stderr)
    return int(any(each.failures or each.busy_without_retry_after for each in found))


def report(found: Sequence[Measured]) -> None:
    print(
        f"the model: first word after {FIRST * 1000:.0f} ms, {WORDS} words, {EACH * 1000:.0f} ms each, {SLOTS} slots\n"
        "later than the model's own: the first word that a client gets, retrieval included\n"
    )
    print("users  answers  refused (p95)    failures  first word: own p50 / p95   later p50 / p95  retrieval p50 / p95")
    for each in found:
        busy = f"{each.busy:5d} ({each.busy_p95_ms:.1f} ms)" if each.busy_p95_ms is not None else f"{each.busy:5d}"
        missed = "" if each.later_p95_ms <= TARGET else f"  more than {TARGET:.0f} ms"
        print(
            f"{each.users:5d}  {each.answers:7d}  {busy:15s}  {len(each.failures):8d}"
            f"  {each.own_p50_ms:12.1f} / {each.own_p95_ms:5.1f} ms"
            f"   {each.later_p50_ms:5.1f} / {each.later_p95_ms:5.1f} ms"
            f"  {each.retrieval_p50_ms:5.1f} / {each.retrieval_p95_ms:5.1f} ms{missed}"
        )
    print(f"\ntotal p50 {', '.join(f'{each.total_p50_ms:.0f} ms' for each in found)}", end="; ")
    print(f"server CPU {', '.join(f'{each.cpu_ms:.1f} ms' for each in found)} an answer, refusals included")


def asking(place: Place, questions: Sequence[str], users: int, seconds: float) -> Measured:
    """Let so many ask for so long, after as many as there are slots for asked the model itself."""
    own = together(Plan(_of_model, place.model, questions, min(users, SLOTS), max(2.0, seconds / 5)))
    before = cpu_seconds(place.pid)
    all_asked = together(Plan(_of_octavo, place.octavo, questions, users, seconds))
    cpu = cpu_seconds(place.pid) - before
    answers = [each for each in all_asked if each.first is not None and each.failure is None]
    busy = [each for each in all_asked if each.status == 503]
    own_firsts = _sorted([each.first for each in own])
    firsts = _sorted([each.first for each in answers])
    retrievals = _sorted([each.timings["retrieval_ms"] for each in answers])
    return Measured(
        users=users,
        seconds=seconds,
        answers=len(answers),
        not_for_the_model=sum(each.refused for each in all_asked),
        busy=len(busy),
        busy_without_retry_after=sum(not (each.retry_after or "").isdecimal() for each in busy),
        busy_p95_ms=1000 * _percentile(_sorted([each.seconds for each in busy]), 0.95) if busy else None,
        failures=[each.failure for each in [*own, *all_asked] if each.failure is not None],
        own_p50_ms=1000 * _percentile(own_firsts, 0.5),
        own_p95_ms=1000 * _percentile(own_firsts, 0.95),
        later_p50_ms=1000 * (_percentile(firsts, 0.5) - _percentile(own_firsts, 0.5)),
        later_p95_ms=1000 * (_percentile(firsts, 0.95) - _percentile(own_firsts, 0.95)),
        retrieval_p50_ms=_percentile(retrievals, 0.5),
        retrieval_p95_ms=_percentile(retrievals, 0.95),
        total_p50_ms=1000 * _percentile(_sorted([each.seconds for each in answers]), 0.5),
        cpu_ms=1000 * cpu / max(1, len(answers)),
    )


def _sorted(times: Sequence[float | None]) -> list[float]:
    return sorted(each for each in times if each is not None)


def _percentile(ordered: Sequence[float], share: float) -> float:
    """By nearest rank; not a number where there is none."""
    return ordered[ceil(share * len(ordered)) - 1] if ordered else float("nan")


# --- the model


@contextmanager
def model() -> Generator[str]:
    """The address of a scripted model in a process of its own."""
    told, end = _spawn.Pipe(duplex=False)[0:2], _spawn.Event()
    process = _spawn.Process(target=_serve_model, args=(told[1], end), daemon=True)
    process.start()
    try:
        yield told[0].recv()
    finally:
        end.set()
        process.join(10)


def _serve_model(told: Pipe, end: Event) -> None:
    sys.path.append(str(ROOT / "tests"))
    from scripted import Piece, Reply, Request, answer, scripted

    def quote(request: Request) -> Reply:
        """The beginning of the first source, as a model would tell it."""
        prompt = request.body["messages"][-1]["content"].partition("[1]")[2]
        prose = next((line for line in prompt.splitlines() if line.count(" ") > WORDS), "It is so, " * WORDS)
        words = prose.replace("[", "").replace("]", "").split()[:WORDS]
        pieces: list[Piece] = [FIRST, words[0]]
        for word in words[1:]:
            pieces += [EACH, f" {word}"]
        return answer(*pieces, " [1].", usage=(1000, len(words)))

    # one more than octavo may take, so that a refusal is octavo's and never the model's
    with scripted(quote, slots=SLOTS + 1) as server:
        told.send(server.url)
        end.wait()


# --- those who ask, each in a process


def together(plan: Plan) -> list[Asked]:
    """What came of all that was asked, by each one after the other."""
    with _spawn.Pool(plan.users) as pool:
        pool.map(_nothing, range(plan.users), chunksize=1)  # all have begun
        begin = time.time() + 0.5
        asks = [(plan, number, begin) for number in range(plan.users)]
        return [asked for each in pool.starmap(_ask, asks, chunksize=1) for asked in each]


def _nothing(number: int) -> None:
    time.sleep(0.05)


def _ask(plan: Plan, number: int, begin: float) -> list[Asked]:
    client = Client(plan.address)
    found: list[Asked] = []
    # not all at once, as nobody does
    time.sleep(max(0.0, begin - time.time()) + number * (FIRST + WORDS * EACH) / plan.users)
    turns = count()
    while time.time() < begin + plan.seconds:
        turn = next(turns)
        question = plan.questions[(number + turn * plan.users) % len(plan.questions)]
        # new to the encoder's cache, as people's are
        found.append(plan.one(client, f"{question} ({number}.{turn}.{begin:.3f})"))
        if found[-1].status == 503:
            time.sleep(IMPATIENCE)
    return found


class Client:
    """One connection that is kept open, which reads a stream until its end."""

    def __init__(self, address: str) -> None:
        where = urlsplit(address)
        assert where.hostname
        self._where = (where.hostname, where.port)
        self._path = where.path
        self._socket = self._connected()

    def _connected(self) -> socket.socket:
        connection = socket.create_connection(self._where, 60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def post(self, path: str, body: Any, sign: bytes) -> tuple[bytes, bytes, float, float | None]:
        """Head, body, seconds until it was whole and until `sign` was in it."""
        content = json.dumps(body).encode()
        head = f"POST {self._path}{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        started = time.perf_counter()
        self._socket.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        data, first, end = bytearray(), None, -1
        while not _is_whole(data, end):
            received = self._socket.recv(1 << 18)
            if not received:
                self._socket = self._connected()
                raise ConnectionError("the server hung up")
            data += received
            if end < 0:
                end = data.find(b"\r\n\r\n")
            if first is None and sign in data:
                first = time.perf_counter() - started
        return bytes(data[:end]), bytes(data[end + 4 :]), time.perf_counter() - started, first


def _is_whole(data: bytearray, end: int) -> bool:
    if end < 0:
        return False
    head = data[:end].lower()
    if b"content-length:" in head:
        return len(data) >= end + 4 + int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    return data.endswith(b"0\r\n\r\n")


def _of_octavo(client: Client, question: str) -> Asked:
    try:
        head, body, seconds, first = client.post("/ask", {"question": question, "pack": PACK}, b"event: token")
    except OSError as error:
        return Asked(0, 0.0, None, None, False, {}, f"{type(error).__name__}: {error}")
    status = int(head[9:12])
    if status == 503:
        return Asked(status, seconds, None, _header(head, b"retry-after"), False, {}, None)
    if status != 200 or b"event: done" not in body:
        return Asked(status, seconds, first, None, False, {}, f"status {status}: {body[-300:]!r}")
    done = json.loads(body.rpartition(b"event: done\ndata: ")[2].split(b"\n", 1)[0])
    return Asked(status, seconds, first, None, done["refused"], done["timings"], None)


def _of_model(client: Client, question: str) -> Asked:
    body = {"messages": [{"role": "user", "content": question}], "stream": True}
    try:
        head, content, seconds, first = client.post("/chat/completions", body, b'"content": "')
    except OSError as error:
        return Asked(0, 0.0, None, None, False, {}, f"the model: {type(error).__name__}: {error}")
    failure = None if b"[DONE]" in content else f"the model: {content[-300:]!r}"
    return Asked(int(head[9:12]), seconds, first, None, False, {}, failure)


def _header(head: bytes, name: bytes) -> str | None:
    found = [line.partition(b":")[2].strip() for line in head.split(b"\r\n") if line.lower().startswith(name + b":")]
    return found[0].decode() if found else None


if __name__ == "__main__":
    sys.exit(main())
