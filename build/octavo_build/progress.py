"""Progress of a build: bars on a terminal, plain lines elsewhere; on stderr, so that stdout stays a program's."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self


class Progress(Protocol):
    """What the build tells while it works. Called from several threads."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def stage(self, slug: str, stage: str) -> Callable[[], None]:
        """What to call when a stage is done."""
        ...

    def encoding(self, slug: str) -> Callable[[int], Callable[[int], None]]:
        """Takes the number of windows to encode, gives what to call with how many more are encoded."""
        ...


def make_progress(*, quiet: bool = False) -> Progress:
    """Bars when stderr is a terminal, lines otherwise, nothing when quiet."""
    if quiet:
        return _Lines(lambda line: None)
    return _Bars() if sys.stderr.isatty() else _Lines(lambda line: print(line, file=sys.stderr, flush=True))


class _Lines:
    """A line a stage, and one for each tenth of the encoding."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    def stage(self, slug: str, stage: str) -> Callable[[], None]:
        return lambda: self._say(f"{slug}: {stage}")

    def encoding(self, slug: str) -> Callable[[int], Callable[[int], None]]:
        def begin(total: int) -> Callable[[int], None]:
            done = said = 0

            def advance(more: int) -> None:
                nonlocal done, said
                done += more
                if total and done * 10 // total > said:
                    said = done * 10 // total
                    self._say(f"{slug}: {done} of {total} windows encoded")

            return advance

        return begin


class _Bars:
    """A bar a pack while its windows are encoded, and a line for each stage before and after."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._lock = threading.Lock()
        self._rich = Progress(
            TextColumn("[bold]{task.description:<20}"),
            TextColumn("{task.fields[stage]:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._tasks: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._rich.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._rich.stop()

    def stage(self, slug: str, stage: str) -> Callable[[], None]:
        return lambda: self._update(slug, stage=stage)

    def encoding(self, slug: str) -> Callable[[int], Callable[[int], None]]:
        def begin(total: int) -> Callable[[int], None]:
            self._update(slug, stage="encoding", total=total)
            return lambda more: self._update(slug, advance=more)

        return begin

    def _update(self, slug: str, **changes: object) -> None:
        from rich.progress import TaskID

        with self._lock:
            if slug not in self._tasks:
                self._tasks[slug] = self._rich.add_task(slug, total=None, stage="")
            self._rich.update(TaskID(self._tasks[slug]), **changes)  # type: ignore[arg-type]  # rich's keyword fields
