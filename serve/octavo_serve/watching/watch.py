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
    from octavo_serve.answering.answerer import Answerer
    from octavo_serve.answering.outcomes import Outcome
    from octavo_serve.answering.stats import Stats, StatsResult
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


def failure_of_answer(outcome: Outcome) -> str | None:
    """Why a question has no answer, in one word of few; None when it has one, or was refused."""
    if outcome.error is None:
        return "left" if outcome.end == "left" else None
    cause = failure_of(outcome.error)
    return cause if cause != "internal" else outcome.stage


def _logged(outcome: Outcome) -> Mapping[str, Any]:
    """What the query log tells of the answer to a question; empty where there is none."""
    if outcome.end not in ("answered", "refused"):
        return {}
    return {
        "pack": outcome.pack,
        "digest": outcome.digest,
        "results": outcome.sources,
        "refused": outcome.end == "refused",
        "reason": outcome.reason,
        "degraded": bool(outcome.missing),
    }


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
        self._workers = settings.workers
        self._answerer: Answerer | None = None
        self._queries = (
            QueryLog(open_sink(settings.query_log), text=settings.query_log_text) if settings.query_log else None
        )

    @cached_property
    def _stats(self) -> Stats:
        from octavo_serve.answering.stats import Stats

        return Stats()

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

    def follow(self, answerer: Answerer) -> None:
        """Tell of these answers too."""
        self._answerer = answerer

    def answered(self, outcome: Outcome) -> None:
        """Note what became of a question to the model; an observer of `Answerer`."""
        self._stats.add(outcome)
        failure = failure_of_answer(outcome)
        note = current.get()
        if note is not None:
            note.tool, note.failure = "ask", failure
            note.pack, note.digest = outcome.pack, outcome.digest
            note.refused, note.missing = outcome.reason, outcome.missing
        if self._queries is not None and outcome.asked is not None and outcome.timings is not None:
            seconds = outcome.timings["total_ms"] / 1000
            self._queries.put(note, "ask", outcome.asked, _logged(outcome), failure=failure, seconds=seconds)
        if self.counts:
            self.metrics.count_answer(outcome)

    def stats(self) -> StatsResult:
        """How the last answers of this process went."""
        assert self._answerer is not None, "asked where there are answers only"
        return self._stats.told(
            worker=os.getpid(), workers=self._workers, slots=self._answerer.slots, in_flight=self._answerer.in_flight
        )

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
                "ask_in_flight": self._answerer.in_flight if self._answerer else 0,
                "ask_slots": self._answerer.slots if self._answerer else 0,
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
