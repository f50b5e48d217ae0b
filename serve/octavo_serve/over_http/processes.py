"""Several processes that answer at one port, each with its own packs; the system shares the pages of mapped files.

uvicorn's supervisor keeps them: a worker that dies is replaced, SIGTERM and SIGINT end all after what they are
answering, SIGHUP replaces one after the other. Workers are spawned, never forked: a fork would have the locks of
threads that it has not.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from pathlib import Path
from threading import Thread

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from octavo_artifact.errors import OctavoError
from octavo_serve.faces import Library
from octavo_serve.over_http.app import create_app
from octavo_serve.over_http.run import sibling, uvicorn_config
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.logs import configure_logs
from octavo_serve.watching.shared_folder import forget, shared_counts
from octavo_serve.watching.traces import start_traces

HEALTH_CHECK = 30
"""Seconds that a worker may be silent before it is replaced; importing the MCP SDK on a busy machine takes some."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Worker:
    """What a worker process does first; pickled into it."""

    open_library: Callable[[], Library]
    """Opens the packs; picklable."""
    settings: ServerSettings

    def __call__(self) -> ASGIApp:
        """The application. When its packs cannot be opened the process ends, and its successor tries again."""
        configure_logs(self.settings)
        _end_with_parent()
        start_traces()
        try:
            return create_app(self.open_library(), self.settings)
        except OctavoError as error:
            _logger.error("a worker cannot serve: %s", error)
            # not uvicorn's code for this, by which its supervisor would end the workers that can
            sys.exit(1)


def serve_by_processes(open_library: Callable[[], Library], settings: ServerSettings, listener: socket.socket) -> None:
    """Serve with as many processes as the settings want until SIGINT or SIGTERM, which is then as if it came now.

    `open_library` is called in each of them. Raises ConfigError when there is no place for what they share.
    """
    config = uvicorn_config(
        Worker(open_library, settings),
        settings,
        factory=True,
        workers=settings.workers,
        timeout_worker_healthcheck=HEALTH_CHECK,
    )
    with ExitStack() as stack:
        folder = stack.enter_context(shared_counts()) if settings.metrics else None
        listeners = [listener, *(sibling(listener) for _ in range(settings.workers - 1))]
        for each in listeners:
            stack.enter_context(each)
        workers = Workers(config, listeners, folder)
        workers.run()
    if workers.ended_by == signal.SIGINT:
        raise KeyboardInterrupt
    if workers.ended_by is not None:
        signal.signal(workers.ended_by, signal.SIG_DFL)
        signal.raise_signal(workers.ended_by)


class Workers(Multiprocess):
    """uvicorn's supervisor, with a socket for each worker.

    On one socket the worker that is awake takes every connection that waits: 8 of 8 that came at once went to one of
    two. The parent keeps the sockets open, so what waits for a worker that died is answered by its successor.
    """

    def __init__(self, config: Config, listeners: Sequence[socket.socket], folder: Path | None) -> None:
        super().__init__(config, [])
        self.ended_by: int | None = None
        """The signal at which it ended."""
        self._listeners = listeners
        self._folder = folder

    def init_processes(self) -> None:
        """Start a worker for each socket."""
        self.processes = [self._start(number) for number in range(len(self._listeners))]

    def keep_subprocess_alive(self) -> None:
        """Replace workers that died or hang."""
        for number, process in enumerate(self.processes):
            if self.should_exit.is_set() or process.is_alive(timeout=HEALTH_CHECK):
                continue
            process.kill()
            self._forget(process)
            _logger.warning("worker %s ended (exit code %s) and is replaced", process.pid, process.exitcode)
            self.processes[number] = self._start(number)

    def restart_all(self) -> None:
        """Replace each worker once its successor answers; the first that does not is the last that is tried."""
        for number, old in enumerate(self.processes):
            new = self._start(number)
            if not new.wait_until_ready(HEALTH_CHECK, self.should_exit):
                new.kill()
                self._forget(new)
                if not self.should_exit.is_set():
                    _logger.error("worker %s was not ready in time; worker %s stays", new.pid, old.pid)
                return
            old.terminate()
            self._forget(old)
            self.processes[number] = new

    def handle_int(self) -> None:
        """End all, by Ctrl-C."""
        self.ended_by = signal.SIGINT
        super().handle_int()

    def handle_term(self) -> None:
        """End all."""
        self.ended_by = signal.SIGTERM
        super().handle_term()

    def handle_ttin(self) -> None:
        """Do nothing: there are as many workers as sockets."""

    def handle_ttou(self) -> None:
        """Do nothing."""

    def _start(self, number: int) -> Process:
        process = Process(self.config, [self._listeners[number]])
        process.start()
        return process

    def _forget(self, process: Process) -> None:
        process.join()
        if self._folder is not None and process.pid is not None:
            forget(self._folder, process.pid)


def _end_with_parent() -> None:
    """End this process as SIGTERM does when its parent is gone: nobody else would, and it holds the port."""
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=wait, name="octavo-parent", daemon=True).start()
