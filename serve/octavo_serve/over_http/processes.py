"""Several processes that answer at one port, each with its own packs; the system shares the pages of mapped files.

uvicorn's supervisor keeps them: a worker that dies is replaced, SIGTERM and SIGINT end all after what they are
answering, SIGHUP goes on to each. Workers are spawned, never forked: a fork would have the locks of
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
from functools import partial
from multiprocessing import connection, parent_process
from pathlib import Path
from threading import Thread

from uvicorn import Config
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from octavo_artifact.errors import OctavoError
from octavo_serve.faces import Library
from octavo_serve.over_http.run import make_server, sibling
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.logs import configure_logs
from octavo_serve.watching.shared_folder import forget, shared_counts
from octavo_serve.watching.traces import start_traces

HEALTH_CHECK = 30
"""Seconds that a worker may be silent before it is replaced; importing the MCP SDK on a busy machine takes some."""

# The supervisor wants a configuration; what it says of servers is in the one that `make_server` makes.
_UNUSED = Config("octavo", log_config=None)

_logger = logging.getLogger(__name__)


def serve_by_processes(open_library: Callable[[], Library], settings: ServerSettings, listener: socket.socket) -> None:
    """Serve with as many processes as the settings want until SIGINT or SIGTERM, which is then as if it came now.

    `open_library` is picklable, and called in each of them. Raises ConfigError when there is no place for what they
    share, or an answer at once for each of them.
    """
    of_worker = settings.of_worker()
    with ExitStack() as stack:
        folder = stack.enter_context(shared_counts()) if settings.metrics else None
        listeners = [listener, *(sibling(listener) for _ in range(settings.workers - 1))]
        for each in listeners:
            stack.enter_context(each)
        workers = Workers(partial(WorkerProcess, open_library, of_worker), listeners, folder)
        workers.run()
    if workers.ended_by == signal.SIGINT:
        raise KeyboardInterrupt
    if workers.ended_by is not None:
        signal.signal(workers.ended_by, signal.SIG_DFL)
        signal.raise_signal(workers.ended_by)


class WorkerProcess(Process):
    """A process that answers as `run.serve` does; what it is made of is pickled into it."""

    def __init__(self, open_library: Callable[[], Library], settings: ServerSettings, listener: socket.socket) -> None:
        self._open_library = open_library
        self._settings = settings
        super().__init__(_UNUSED, [listener])

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """What the process does. When its packs cannot be opened it ends, and its successor tries again."""
        # Until it listens for it: before, it would be the end.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        configure_logs(self._settings)
        _end_with_parent()
        Thread(target=self.always_pong, daemon=True).start()
        start_traces()
        try:
            self._server = make_server(self._open_library(), self._settings)
        except OctavoError as error:
            _logger.error("a worker cannot serve: %s", error)
            sys.exit(1)
        self._server.run(sockets)

    def pong(self) -> None:
        """Answer a question of the parent: whether requests are answered."""
        self.child_conn.recv()
        self.child_conn.send(self._server is not None and self._server.started)


class Workers(Multiprocess):
    """uvicorn's supervisor, with a socket for each worker.

    On one socket the worker that is awake takes every connection that waits: 8 of 8 that came at once went to one of
    two. The parent keeps the sockets open, so what waits for a worker that died is answered by its successor.
    """

    def __init__(
        self,
        make: Callable[[socket.socket], Process],
        listeners: Sequence[socket.socket],
        folder: Path | None,
    ) -> None:
        super().__init__(_UNUSED, [])
        self.ended_by: int | None = None
        """The signal at which it ended."""
        self._make = make
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

    def handle_hup(self) -> None:
        """Let each look for new releases."""
        for process in self.processes:
            if process.pid is not None:
                os.kill(process.pid, signal.SIGHUP)

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
        process = self._make(self._listeners[number])
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
