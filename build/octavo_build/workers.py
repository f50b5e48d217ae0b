"""Processes that share a build's CPU work, started only when there is enough of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Self, TypeVar

from octavo_artifact.errors import OctavoError

Shard = TypeVar("Shard")
Result = TypeVar("Result")


class Workers:
    """A pool that starts at its first `map` and that several threads may share; leaving the context ends it."""

    def __init__(self, processes: int | None = None) -> None:
        """Use `processes` processes, by default one for each CPU that this process may run on."""
        self.processes = processes or len(os.sched_getaffinity(0))
        self._lock = threading.Lock()
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            if self._executor is not None:
                self._executor.shutdown(cancel_futures=True)
                self._executor = None

    def map(self, function: Callable[[Shard], Result], shards: Iterable[Shard]) -> Iterator[Result]:
        """The results of `function`, which must be importable, in the order of `shards`, as they arrive.

        Raises OctavoError when a worker process dies; what `function` raises is raised here.
        """
        try:
            yield from self._started().map(function, shards)
        except BrokenProcessPool:
            raise OctavoError(
                "a worker process ended unexpectedly (killed, or out of memory); build with fewer workers"
            ) from None

    def _started(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._executor is None:
                # Forking a process that has threads (Lance, onnxruntime) deadlocks the child sooner or later.
                spawn = multiprocessing.get_context("spawn")
                self._executor = ProcessPoolExecutor(self.processes, spawn, _begin)
            return self._executor


def _begin() -> None:
    """Leave Ctrl-C to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
