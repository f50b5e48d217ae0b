"""What is known of a request while it is answered: noted by whoever knows it, told when it is over."""

from __future__ import annotations

import os
import re
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from octavo_serve.watching.redaction import redact

Face = Literal["http", "mcp", "stdio"]

UNROUTED = "none"
"""Operation of a request that was refused before it reached a route, or that reached none."""

_GIVEN_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_START = f"{time.time_ns() // 1_000_000:x}-{os.getpid():x}"
_numbers = count(1)


@dataclass(slots=True)
class Note:
    """A request over HTTP, MCP's included."""

    request_id: str
    face: Face
    method: str
    operation: str = UNROUTED
    """Template of the route, or method of MCP and tool; never a client's own words."""
    caller: str | None = None
    """Name of the key or subject of the token; None without."""
    tool: str | None = None
    """What was asked of packs: `search`, `read`, `graph`, `topics`, `ask`."""
    pack: str | None = None
    """Slug of the pack that answered; None for several or none."""
    digest: str | None = None
    refused: str | None = None
    """Reason for which a search returned nothing, or a question was not answered."""
    missing: tuple[str, ...] = ()
    """What a degraded search, or an answer, had to do without."""
    failure: str | None = None
    """Why the packs did not answer; see `watch.failure_of`."""
    mcp_error: bool = field(default=False)
    """Whether MCP's answer is an error, of a tool or of the protocol."""


current: ContextVar[Note | None] = ContextVar("octavo_note", default=None)
"""The request that the running task answers; None on stdio and outside of requests."""


def request_id(given: bytes | None) -> str:
    """The client's own id when it is well-formed and no secret, else one that no other request of this server has."""
    if given is not None and _GIVEN_ID.fullmatch(given):
        text = given.decode()
        if redact(text) == text:
            return text
    return f"{_START}-{next(_numbers):x}"


def note_caller(name: str | None) -> None:
    """Note who asks."""
    note = current.get()
    if note is not None:
        note.caller = name
