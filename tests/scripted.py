"""A scripted language model: an OpenAI-compatible server on a real socket that does to its clients what a test says.

    with scripted(answer("Steep it ", "for four minutes [1].", usage=(900, 7))) as model:
        ...  # ask `{model.url}/chat/completions`
        assert model.requests[0].body["messages"][-1]["content"] == "How long?"

A script is a `Reply`, one for each request in turn (the last stands for all that follow), or a function from `Request`
to `Reply`. A reply is a status, headers, and pieces sent one after the other:

* `str`: a chunk with this text; `dict`: a chunk as it is; `bytes`: these bytes, in the stream or out of order;
* `Gate`: nothing goes on until the test opens it, or the client leaves, which sets `model.left`;
* `float`: as many seconds pass (for measurements; a test waits on gates);
* `CUT`: the connection is closed in the middle; `RESET`: it is reset (RST).

`answer` makes the stream of a good model, `Reply(pieces=...)` that of any other, `whole` an answer that is not
streamed, `refusal` one with another status:

    gate = Gate()
    answer(gate, "at last")                        # reads the prompt until `gate.open()`, its head sent already
    answer("at last", before=(gate,))              # the same, but there is no head yet either
    answer("half", CUT)                            # dies in the middle
    answer("half", finish=None, done=False)        # ends without a word
    answer(b": still reading\\n\\n", gate, "text")   # comments while it reads
    Reply(pieces=[b"data: {no json\\n\\n"])
    [refusal(503, {"Retry-After": "1"}), answer("at the second try")]
    lambda request: answer(f"You said {request.body['messages'][-1]['content']}")

`slots=2` makes it answer 503 to a third request at the same time. What the server sees: `requests`, `connections` (made
so far), `open` (connections that are), `busy` (slots that are taken), `left` (an event: a client closed before the
end); and `until(lambda: model.open == 0)` waits for any of it. Async tests call `left.wait` and `until` by
`asyncio.to_thread`.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

MODEL = "scripted-1"
DONE = b"data: [DONE]\n\n"

_LAST = b"0\r\n\r\n"
"""The chunk of HTTP that ends a body."""

_TIMEOUT = 20.0
"""Seconds after which the server gives up on a test that opens no gate."""


class Gate:
    """Opened once, by the test. A pair of sockets, so that the server can wait for it and for the client at once."""

    def __init__(self) -> None:
        self._waiting, self._opening = socket.socketpair()

    def open(self) -> None:
        """Let everything that waits, and will wait, go on."""
        self._opening.send(b"!")

    def fileno(self) -> int:
        """Readable once it is open."""
        return self._waiting.fileno()

    def __del__(self) -> None:
        self._waiting.close()
        self._opening.close()


class _End:
    """How a connection ends before its time."""


CUT = _End()
RESET = _End()

Piece = str | bytes | dict[str, Any] | float | Gate | _End


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked."""

    path: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client gets."""

    pieces: Sequence[Piece] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Beside or instead of `Content-Type: text/event-stream`."""
    before: Sequence[Piece] = ()
    """Gates, pauses and ends before the head is sent."""
    split: int | None = None
    """The body goes out in HTTP chunks of so many bytes, whatever they cut in two."""


Script = Reply | Sequence[Reply] | Callable[[Request], Reply]


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **others: Any) -> dict[str, Any]:
    """A chunk of a stream; without `delta` and `finish` it has no choices, as the one with the usage."""
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return {"object": "chat.completion.chunk", "model": MODEL, "choices": choices, **others}


def answer(
    *pieces: Piece,
    finish: str | None = "stop",
    usage: tuple[int, int] | None = None,
    done: bool = True,
    before: Sequence[Piece] = (),
    split: int | None = None,
) -> Reply:
    """A stream as a good model sends it; None and False leave its finish reason, usage and `[DONE]` out."""
    end: list[Piece] = []
    if finish is not None:
        end.append(chunk(finish=finish))
    if usage is not None:
        end.append(chunk(usage=_usage(usage)))
    if done:
        end.append(DONE)
    first = chunk({"role": "assistant", "content": None})
    return Reply([first, *pieces, *end], before=before, split=split)


def whole(text: str, finish: str | None = "stop", usage: tuple[int, int] | None = None) -> Reply:
    """An answer in one JSON object, of a server that cannot stream."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    told = {} if usage is None else {"usage": _usage(usage)}
    body = {"object": "chat.completion", "model": MODEL, "choices": [choice], **told}
    return Reply([json.dumps(body).encode()], headers={"Content-Type": "application/json"})


def refusal(status: int, headers: Mapping[str, str] = MappingProxyType({}), message: str = "no") -> Reply:
    """An answer with another status, in the form that OpenAI's errors have."""
    body = {"error": {"message": message, "type": "scripted_error", "code": status}}
    return Reply([json.dumps(body).encode()], status, {"Content-Type": "application/json", **headers})


def _usage(usage: tuple[int, int]) -> dict[str, int]:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


@dataclass
class Scripted:
    """The running server, as its test sees it."""

    url: str
    """The base that clients are configured with, `http://127.0.0.1:<port>/v1`."""
    script: Script
    """May be replaced while the server runs."""
    slots: int | None = None
    requests: list[Request] = field(default_factory=list[Request])
    connections: int = 0
    open: int = 0
    busy: int = 0
    left: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def until(self, true: Callable[[], bool], seconds: float = 10.0) -> bool:
        """Wait for something to be true of this server; whether it became so."""
        with self.changed:
            return self.changed.wait_for(true, seconds)

    def _count(self, *, connections: int = 0, open: int = 0, busy: int = 0) -> None:  # noqa: A002  # as the field
        with self.changed:
            self.connections += connections
            self.open += open
            self.busy += busy
            self.changed.notify_all()

    def _take(self, request: Request) -> Reply | None:
        """The reply to a request, which then has a slot; None when there is no slot for it."""
        with self.changed:
            number = len(self.requests)
            self.requests.append(request)
            if self.slots is not None and self.busy >= self.slots:
                self.changed.notify_all()
                return None
            self.busy += 1
            self.changed.notify_all()
        if isinstance(self.script, Reply):
            return self.script
        if isinstance(self.script, Sequence):
            return self.script[min(number, len(self.script) - 1)]
        return self.script(request)


@contextmanager
def scripted(script: Script, *, slots: int | None = None) -> Generator[Scripted]:
    """The server on a free port of 127.0.0.1, in threads of its own; ended with the context, whoever is connected."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    server = Scripted(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", script, slots)
    over = Gate()
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            if over.fileno() in _readable(listener, over):
                return
            connection = _Connection(server, listener.accept()[0], over)
            threads.append(threading.Thread(target=connection.run))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield server
    finally:
        over.open()
        accepting.join(10)
        for thread in threads:
            thread.join(10)
        listener.close()
        assert not any(thread.is_alive() for thread in (accepting, *threads))


class _GoneError(Exception):
    """The client closed its connection, or the test is over."""


class _EndedError(Exception):
    """The script says that the connection ends here."""


class _Connection:
    """One client, in one thread."""

    def __init__(self, server: Scripted, client: socket.socket, over: Gate) -> None:
        self._server = server
        self._client = client
        self._over = over
        self._received = b""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server._count(connections=1, open=1)  # pyright: ignore[reportPrivateUsage] # one thing in two classes

    def run(self) -> None:
        """Answer requests until one of both sides has enough."""
        try:
            while (request := self._request()) is not None:
                self._answer(request)
        except (_GoneError, _EndedError, OSError):
            pass
        finally:
            self._client.close()
            self._server._count(open=-1)  # pyright: ignore[reportPrivateUsage] # as above

    def _request(self) -> Request | None:
        """The next request; None when the client has no more."""
        while b"\r\n\r\n" not in self._received:
            if not self._receive():
                return None
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._received) < length:
            if not self._receive():
                return None
        body, self._received = self._received[:length], self._received[length:]
        return Request(first.split(" ")[1], headers, json.loads(body) if body else {})

    def _receive(self) -> bool:
        over = self._over.fileno() in _readable(self._client, self._over)
        received = b"" if over else self._client.recv(65536)
        self._received += received
        return received != b""

    def _answer(self, request: Request) -> None:
        if not request.path.endswith("/chat/completions"):
            known = request.path.endswith("/models")
            listed = {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
            body = json.dumps(listed if known else {"error": {"message": "not found"}}).encode()
            self._send(Reply([body], 200 if known else 404, {"Content-Type": "application/json"}))
            self._client.sendall(_LAST)
            return
        reply = self._server._take(request)  # pyright: ignore[reportPrivateUsage] # as above
        if reply is None:
            self._send(refusal(503, {"Retry-After": "1"}, "all slots are busy"))
            self._client.sendall(_LAST)
            return
        try:
            self._send(reply)
        except (_GoneError, BrokenPipeError, ConnectionResetError):
            self._server.left.set()
            raise
        finally:
            self._server._count(busy=-1)  # pyright: ignore[reportPrivateUsage] # as above
        # only now: whoever has the whole answer finds the slot free
        self._client.sendall(_LAST)

    def _send(self, reply: Reply) -> None:
        for piece in reply.before:
            self._act(piece)
        headers = {"Content-Type": "text/event-stream", **reply.headers, "Transfer-Encoding": "chunked"}
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
        self._client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        rest = b""
        for piece in reply.pieces:
            if isinstance(piece, str | bytes | dict):
                rest += _encoded(piece)
                # what is split is sent as it fills up; a gate, and the end, send the rest
                while rest and (reply.split is None or len(rest) >= reply.split):
                    sent, rest = rest[: reply.split], rest[reply.split :] if reply.split else b""
                    self._write(sent)
            else:
                self._write(rest)
                rest = b""
                self._act(piece)
        self._write(rest)

    def _write(self, content: bytes) -> None:
        """One HTTP chunk; none for nothing, which would be the last."""
        self._wait((), 0)
        if content:
            self._client.sendall(b"%x\r\n%s\r\n" % (len(content), content))

    def _act(self, piece: Piece) -> None:
        if isinstance(piece, Gate):
            self._wait((piece,), _TIMEOUT)
        elif isinstance(piece, float | int):
            self._wait((), piece)
        elif isinstance(piece, _End):
            if piece is RESET:
                self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                with suppress(OSError):
                    self._client.shutdown(socket.SHUT_RDWR)
            raise _EndedError
        else:
            raise TypeError(f"{piece!r} before the head, expected a gate, a pause or an end")

    def _wait(self, gates: Sequence[Gate], seconds: float) -> None:
        """Wait for a gate, or for so long. Raises _GoneError when the client leaves, _EndedError when the test ends."""
        ready = _readable(self._client, self._over, *gates, seconds=seconds)
        if self._over.fileno() in ready:
            raise _EndedError
        if self._client.fileno() in ready:
            if self._client.recv(1, socket.MSG_PEEK) == b"":
                raise _GoneError
            # it asks more already, and is not looked at until it has its answer
            ready = _readable(self._over, *gates, seconds=seconds)
        if gates and not any(gate.fileno() in ready for gate in gates):
            raise _EndedError


def _readable(*files: socket.socket | Gate, seconds: float | None = None) -> set[int]:
    """Which of the files can be read, by number, when one can or the time is over; `select` knows 1,024 files only."""
    poll = select.poll()
    for file in files:
        poll.register(file.fileno(), select.POLLIN)
    return {number for number, _ in poll.poll(None if seconds is None else 1000 * seconds)}


def _encoded(piece: str | bytes | dict[str, Any]) -> bytes:
    if isinstance(piece, bytes):
        return piece
    said = chunk({"content": piece}) if isinstance(piece, str) else piece
    return b"data: " + json.dumps(said, ensure_ascii=False).encode() + b"\n\n"
