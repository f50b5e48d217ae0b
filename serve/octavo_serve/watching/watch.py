"""Watching a server: what packs were asked is noted, and told when the request is over."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from octavo_artifact.errors import NotFoundError, RequestError
from octavo_serve.faces import BusyError, UnavailableError, Workers
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest, TraverseRequest
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.logs import log_access
from octavo_serve.watching.notes import Note, current
from octavo_serve.watching.query_log import QueryLog, open_sink, pack_of
from octavo_serve.watching.shared_folder import SHARED
from octavo_serve.watching.traces import flush_traces

if TYPE_CHECKING:
    from octavo_serve.watching.metrics import Metrics

TOOLS = {SearchRequest: "search", ReadRequest: "read", TraverseRequest: "graph", TopicsRequest: "topics"}

_PERIOD = 5.0
"""Seconds after which a worker tells its siblings how it is."""


def failure_of(error: BaseException) -> str:
    """Why packs did not answer, in one word of few."""
    match error:
        case NotFoundError():
            return "not_found"
        case RequestError():
            return "bad_request"
        case BusyError():
            return "busy"
        case UnavailableError():
            return "timeout"
        case _:
            return "internal"


def answer_of(outcome: Any) -> Mapping[str, Any]:
    """What packs answered, as `results` describes it, bare or in an answer of MCP; empty where they did not."""
    if not isinstance(outcome, dict):
        return {}
    answer: Any = outcome.get("structuredContent", outcome)
    return answer if isinstance(answer, dict) else {}


class Watch:
    """What one process tells of its work. Used from the event loop only."""

    def __init__(self, settings: ServerSettings) -> None:
        """Raises ConfigError when the query log's address is none."""
        self.counts = settings.metrics
        """Whether anything is counted."""
        self.in_flight = 0
        """Requests that are being answered."""
        self._queries = (
            QueryLog(open_sink(settings.query_log), text=settings.query_log_text) if settings.query_log else None
        )

    @cached_property
    def metrics(self) -> Metrics:
        """The counts."""
        from octavo_serve.watching.metrics import Metrics

        return Metrics()

    def observe(self, asked: Any, outcome: Any, seconds: float) -> None:
        """Note what was asked of packs and the answer or error that came of it; an observer of `faces.Workers`."""
        tool = TOOLS.get(type(asked))
        if tool is None:
            return
        failure = failure_of(outcome) if isinstance(outcome, BaseException) else None
        answer = answer_of(outcome)
        note = current.get()
        if note is not None:
            note.tool, note.failure = tool, failure
            note.pack, note.digest = pack_of(answer), answer.get("digest")
            note.refused, note.missing = answer.get("reason"), tuple(answer.get("missing", ()))
        if self._queries is not None:
            self._queries.put(note, tool, asked, answer, failure=failure, seconds=seconds)

    def finish(self, note: Note, status: int, seconds: float, auth_failure: str | None = None) -> None:
        """Tell of a request that is over."""
        log_access(note, status, seconds)
        if self.counts:
            self.metrics.count(note, status, seconds, auth_failure)

    def count_swap(self, outcome: str) -> None:
        """Tell of a change of a pack's current release: `swapped` or `refused`."""
        if self.counts:
            self.metrics.count_swap(outcome)

    def measure(self, workers: Workers) -> None:
        """Note how this process is."""
        self.metrics.measure(
            {
                "in_flight": self.in_flight,
                "waiting": workers.waiting,
                "tasks": len(asyncio.all_tasks()),
                "threads": threading.active_count(),
                "query_log_dropped": self._queries.dropped if self._queries else 0,
            }
        )

    async def run(self, workers: Workers) -> None:
        """Measure now and then until cancelled, where workers share their counts."""
        while self.counts and SHARED in os.environ:
            self.measure(workers)
            await asyncio.sleep(_PERIOD)

    def close(self) -> None:
        """Send what the query log and traces still hold."""
        if self._queries is not None:
            self._queries.close()
        flush_traces()
