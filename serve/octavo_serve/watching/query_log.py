"""The query log: a JSON line for each thing that was asked of packs, for whoever improves them.

`octavo eval draft --log` reads it. An answer never waits for it: lines go through a buffer to a thread of their own,
and what finds the buffer full, or nobody at the address, is dropped and counted.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from queue import Full, Queue
from threading import Thread
from typing import Any, Protocol

from pydantic import BaseModel

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import sha256_hex
from octavo_serve.settings import QUERY_LOG
from octavo_serve.watching.notes import Note
from octavo_serve.watching.redaction import redact

STDOUT = "stdout"
BUFFER = 1000
"""Lines that may wait; at 1,000 answers a second it lasts for a second."""

_CLOSE_SECONDS = 2.0


class Sink(Protocol):
    """Where lines go."""

    def write(self, line: bytes) -> None:
        """Write a line, which ends with a newline; raises OSError."""
        ...

    def close(self) -> None: ...  # noqa: D102


def open_sink(address: str) -> Sink:
    """What writes to the address, as the setting `query_log` spells it; nobody needs to listen there yet.

    Raises ConfigError.
    """
    if address == STDOUT:
        return _Stdout()
    found = QUERY_LOG.fullmatch(address)
    if found is None or int(found["port"] or 0) > 65535:
        raise ConfigError(f"query_log: {address!r}, expected stdout, unix:/path or udp:host:port")
    if found["path"]:
        return _Datagrams(socket.AF_UNIX, found["path"])
    host, port = found["host"].strip("[]"), int(found["port"])
    try:
        family, _, _, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    except OSError as error:
        raise ConfigError(f"query_log: {address!r}, no such host ({error.strerror})") from error
    return _Datagrams(family, target)


class _Stdout:
    def write(self, line: bytes) -> None:
        # Several workers write to one pipe, which keeps only lines of up to 4,096 bytes apart. The lock is the
        # process's, and goes with it; where there are no locks there are no workers.
        with suppress(ImportError, OSError):
            from fcntl import LOCK_EX, lockf

            lockf(1, LOCK_EX)
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(1, rest) :]
        finally:
            with suppress(ImportError, OSError):
                from fcntl import LOCK_UN, lockf

                lockf(1, LOCK_UN)

    def close(self) -> None:
        pass


class _Datagrams:
    def __init__(self, family: int, target: Any) -> None:
        self._target = target
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def write(self, line: bytes) -> None:
        self._socket.sendto(line, self._target)

    def close(self) -> None:
        self._socket.close()


class QueryLog:
    """Writes lines to a sink, in the background."""

    def __init__(self, sink: Sink, *, text: bool, clock: Callable[[], float] = time.time) -> None:
        """`text`: whether queries are written as they are, or as their sha256. `clock` gives seconds since 1970."""
        self._sink = sink
        self._text = text
        self._clock = clock
        self._lines: Queue[bytes | None] = Queue(BUFFER)
        self._dropped_full = 0
        self._dropped_unsent = 0
        self._thread = Thread(target=self._write, name="octavo-query-log", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Lines that were lost so far."""
        # two counts, each written by one thread
        return self._dropped_full + self._dropped_unsent

    def put(
        self,
        note: Note | None,
        tool: str,
        asked: BaseModel,
        answer: Mapping[str, Any],
        *,
        failure: str | None,
        seconds: float,
    ) -> None:
        """Write what was asked and what came of it: the answer, or why it is empty."""
        fields = _redacted(asked.model_dump(mode="json", exclude_defaults=True))
        query = fields.pop("question" if tool == "ask" else "query", "")
        pack = fields.pop("pack", None)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds"),
            "request_id": note.request_id if note else None,
            "caller": note.caller if note else None,
            "face": note.face if note else "stdio",
            "tool": tool,
            # what answered, or where nothing did, what was asked for
            "pack": pack_of(answer) if answer else pack,
            "digest": answer.get("digest"),
        }
        if query:
            line |= {"query": query} if self._text else {"query_sha256": sha256_hex(query.encode("utf-8", "replace"))}
        line |= {"asked": fields, "error": failure, "ms": round(seconds * 1000, 2)}
        if tool in ("search", "ask") and answer:
            line |= {
                "results": [
                    {"fragment_id": hit.get("fragment_id"), "score": hit.get("score")} for hit in answer["results"]
                ],
                "refused": answer["refused"],
                "reason": answer["reason"],
                "degraded": answer["degraded"],
            }
        if tool == "search" and answer:
            line["answer_probability"] = answer["answer_probability"]
        try:
            self._lines.put_nowait(json.dumps(line).encode() + b"\n")
        except Full:
            self._dropped_full += 1

    def close(self) -> None:
        """Write what waits, for at most two seconds."""
        with suppress(Full):
            self._lines.put(None, timeout=_CLOSE_SECONDS)
            self._thread.join(_CLOSE_SECONDS)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._sink.write(line)
            except OSError:
                self._dropped_unsent += 1
        self._sink.close()


def _redacted(value: Any) -> Any:
    """A JSON value without secrets; after it is JSON, what is taken out could be half an escape."""
    match value:
        case str():
            return redact(value)
        case list():
            return [_redacted(item) for item in value]
        case dict():
            return {name: _redacted(item) for name, item in value.items()}
        case _:
            return value


def pack_of(answer: Mapping[str, Any]) -> str | None:
    """The slug of the pack that answered; `topics` describes its pack where the others name it."""
    pack = answer.get("pack")
    return pack["slug"] if isinstance(pack, dict) else pack
