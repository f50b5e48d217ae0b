"""Several processes that answer on one socket, each with its own packs; the system shares the pages of mapped files.

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
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from pathlib import Path
from threading import Thread

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.supervisors import Multiprocess

from octavo_artifact.errors import OctavoError
from octavo_serve.faces import Library
from octavo_serve.over_http.app import create_app
from octavo_serve.over_http.run import uvicorn_config
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
    with listener, shared_counts() if settings.metrics else nullcontext() as folder:
        workers = Workers(config, listener, folder)
        workers.run()
    if workers.ended_by == signal.SIGINT:
        raise KeyboardInterrupt
    if workers.ended_by is not None:
        signal.signal(workers.ended_by, signal.SIG_DFL)
        signal.raise_signal(workers.ended_by)


class Workers(Multiprocess):
    """uvicorn's supervisor that also forgets the dead."""

    def __init__(self, config: Config, listener: socket.socket, folder: Path | None) -> None:
        super().__init__(config, [listener])
        self.ended_by: int | None = None
        """The signal at which it ended."""
        self._folder = folder
        self._pids = frozenset[int]()

    def keep_subprocess_alive(self) -> None:
        """Replace workers that died, and leave them out of what the living are."""
        super().keep_subprocess_alive()
        pids = frozenset(process.pid for process in self.processes if process.pid is not None)
        if self._folder is not None:
            for pid in self._pids - pids:
                forget(self._folder, pid)
        self._pids = pids

    def handle_int(self) -> None:
        """End all, by Ctrl-C."""
        self.ended_by = signal.SIGINT
        super().handle_int()

    def handle_term(self) -> None:
        """End all."""
        self.ended_by = signal.SIGTERM
        super().handle_term()


def _end_with_parent() -> None:
    """End this process as SIGTERM does when its parent is gone: nobody else would, and it holds the port."""
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=wait, name="octavo-parent", daemon=True).start()
