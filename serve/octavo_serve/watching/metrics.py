"""Counts and times of the server's work, as Prometheus reads them.

Labels have few values, and none of a client's choosing. Imported when the first request is over: prometheus-client
costs 10 ms of CPU, which no answer waits for.

Several workers share counts through files in a private folder that `processes` makes and removes; whichever of them is
asked answers with the sum. A single process writes nothing.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from octavo_serve.watching.notes import Note
from octavo_serve.watching.shared_folder import SHARED

if TYPE_CHECKING:
    from octavo_serve.answering.outcomes import Outcome
    from octavo_serve.faces import Library

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: from the cheapest answer, a refused request's, to the default `answer_timeout`."""

ANSWER_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
"""Seconds of the stages of an answer: from a search to a long answer of a small machine."""

RATE_BUCKETS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""Tokens a second."""

SEVERAL = "several"
"""Label `pack` of an answer from several packs."""

_PROCESS = {
    "process_cpu_seconds": "CPU seconds, user and system, of all workers.",
    "process_resident_memory_bytes": "Resident memory of all workers; pages of mapped files count for each.",
    "process_open_fds": "Open file descriptors of all workers.",
}


class Metrics:
    """Everything that `/metrics` tells."""

    def __init__(self) -> None:
        disable_created_metrics()
        self._folder = os.environ.get(SHARED)
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "octavo_requests",
            "Requests by face, operation and status.",
            ["face", "operation", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "octavo_request_seconds",
            "Seconds from a request's head to the end of its answer.",
            ["face", "operation"],
            registry=registry,
            buckets=BUCKETS,
        )
        self._answers = Counter("octavo_answers", "Answers by tool and pack.", ["tool", "pack"], registry=registry)
        self._refusals = Counter(
            "octavo_refusals", "Searches that returned nothing, by reason.", ["reason"], registry=registry
        )
        self._degraded = Counter(
            "octavo_degraded_answers", "Answers that had to do without something.", ["missing"], registry=registry
        )
        self._failures = Counter(
            "octavo_failures", "Questions that packs did not answer, by cause.", ["tool", "cause"], registry=registry
        )
        self._mcp_errors = Counter(
            "octavo_mcp_errors", "Errors of MCP, of tools and of the protocol.", ["operation"], registry=registry
        )
        self._auth = Counter(
            "octavo_auth_failures", "Requests refused for who sent them, by kind.", ["kind"], registry=registry
        )
        self._swaps = Counter(
            "octavo_release_swaps", "Releases that became current, or were refused.", ["outcome"], registry=registry
        )
        self._ask = Counter(
            "octavo_ask",
            "Questions to the model by how they ended, why they were refused, where they failed or were left.",
            ["end", "reason", "stage"],
            registry=registry,
        )
        self._ask_seconds = Histogram(
            "octavo_ask_seconds",
            "Seconds of the stages of answers and refusals.",
            ["stage"],
            registry=registry,
            buckets=ANSWER_BUCKETS,
        )
        self._ask_rate = Histogram(
            "octavo_ask_tokens_per_second",
            "Tokens a second that the model writes after the first.",
            registry=registry,
            buckets=RATE_BUCKETS,
        )
        self._ask_tokens = Counter(
            "octavo_ask_tokens", "Tokens that the model read and wrote.", ["kind"], registry=registry
        )
        self._ask_cost = Counter("octavo_ask_cost_usd", "Cost by the prices in the settings.", registry=registry)
        self._gauges = {
            name: Gauge(f"octavo_{name}", text, registry=registry, multiprocess_mode="livesum")
            for name, text in (
                ("in_flight", "Requests that are being answered."),
                ("waiting", "Questions that packs are answering, or that wait for a thread."),
                ("tasks", "Tasks of the event loop."),
                ("threads", "Threads."),
                ("query_log_dropped", "Lines of the query log that were lost."),
                ("ask_in_flight", "Answers that are being written."),
                ("ask_slots", "Answers that are written at once at most."),
            )
        }

    def count(self, note: Note, status: int, seconds: float, auth_failure: str | None) -> None:
        """Count a request that is over."""
        self._requests.labels(note.face, note.operation, str(status)).inc()
        self._seconds.labels(note.face, note.operation).observe(seconds)
        if auth_failure is not None:
            self._auth.labels(auth_failure).inc()
        if note.mcp_error:
            self._mcp_errors.labels(note.operation).inc()
        if note.tool is None:
            return
        if note.failure is not None:
            self._failures.labels(note.tool, note.failure).inc()
            return
        self._answers.labels(note.tool, note.pack or SEVERAL).inc()
        if note.refused is not None:
            self._refusals.labels(note.refused).inc()
        for missing in note.missing:
            self._degraded.labels(missing).inc()

    def count_answer(self, outcome: Outcome) -> None:
        """Count a question to the model that is over."""
        self._ask.labels(outcome.end, outcome.reason or "", outcome.stage or "").inc()
        usage, times = outcome.usage, outcome.timings
        if usage is not None:
            self._ask_tokens.labels("prompt").inc(usage.prompt_tokens)
            self._ask_tokens.labels("completion").inc(usage.completion_tokens)
        if outcome.cost is not None:
            self._ask_cost.inc(outcome.cost)
        if outcome.end not in ("answered", "refused") or times is None:
            return
        first, generation = times["ttft_ms"], times["generation_ms"]
        stages = {"retrieval": times["retrieval_ms"], "first_token": first, "generation": generation}
        for stage, milliseconds in {**stages, "total": times["total_ms"]}.items():
            if milliseconds is not None:
                self._ask_seconds.labels(stage).observe(milliseconds / 1000)
        if usage is not None and first is not None and generation is not None and generation > first:
            self._ask_rate.observe(1000 * (usage.completion_tokens - 1) / (generation - first))

    def count_swap(self, outcome: str) -> None:
        """Count a change of a pack's current release: `swapped` or `refused`."""
        self._swaps.labels(outcome).inc()

    def measure(self, gauges: dict[str, int]) -> None:
        """Note this process's state: values by name of the gauge."""
        for name, value in gauges.items():
            self._gauges[name].set(value)

    def exposition(self, library: Library, accept: str) -> tuple[bytes, str]:
        """What Prometheus reads, in the format it accepts, and the format's media type."""
        registry = CollectorRegistry()
        if self._folder:
            MultiProcessCollector(registry, self._folder)
            folder = Path(self._folder)
            registry.register(Processes(lambda: _workers(folder)))
        else:
            registry.register(self._registry)
            registry.register(Processes(lambda: (os.getpid(),)))
        registry.register(Releases(library))
        encoder, media_type = choose_encoder(accept)
        return encoder(registry), media_type


class Releases(Collector):
    """Which releases are served: a gauge that is always 1."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def collect(self) -> Iterator[Metric]:
        """A sample a pack."""
        info = GaugeMetricFamily("octavo_release_info", "What is served.", labels=["pack", "digest", "version"])
        for slug, pack in self._library.packs.items():
            info.add_metric([slug, pack.digest[:12], str(pack.manifest.pack["version"])], 1)
        yield info
        refused = GaugeMetricFamily("octavo_packs_refused", "Packs that could not be served.")
        refused.add_metric([], len(self._library.refused))
        yield refused


class Processes(Collector):
    """prometheus-client's figures of a process, summed over processes; empty where there is no /proc."""

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        self._pids = pids

    def collect(self) -> Iterator[Metric]:
        """A sample a figure."""
        sums: defaultdict[str, float] = defaultdict(float)
        for pid in self._pids():
            for family in ProcessCollector(pid=lambda pid=pid: pid, registry=None).collect():
                sums[family.name] += sum(sample.value for sample in family.samples)
        for name, text in _PROCESS.items():
            if name in sums:
                kind = CounterMetricFamily if name == "process_cpu_seconds" else GaugeMetricFamily
                yield kind(name, text, value=sums[name])


def _workers(folder: Path) -> list[int]:
    """Processes that count into `folder` and live."""
    names = (re.fullmatch(r"gauge_livesum_([0-9]+)\.db", path.name) for path in folder.iterdir())
    return sorted(int(name[1]) for name in names if name)
