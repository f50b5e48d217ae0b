"""What a build tells while it works: bars on a terminal, plain lines elsewhere; on stderr, so that stdout stays a
program's.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from octavo_artifact.manifest import VectorPartitions
from octavo_build.findings import Finding

if TYPE_CHECKING:
    from rich.progress import TaskID

SHOWN = 3
"""Findings of one code that are shown; report.json has all."""


class Progress(Protocol):
    """What the build tells. Called from several threads."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def stage(self, slug: str, stage: str) -> None:
        """A stage is done."""
        ...

    def encoding(self, slug: str, total: int) -> Callable[[int], None]:
        """`total` windows are to be encoded; gives what to call with how many more are."""
        ...

    def indexed(self, slug: str, index: VectorPartitions) -> None:
        """The windows got an index."""
        ...

    def findings(self, slug: str, findings: Sequence[Finding]) -> None:
        """What is wrong with the pack; notes are left to report.json."""
        ...


def make_progress(*, quiet: bool = False, bars: bool = True) -> Progress:
    """Nothing when quiet; bars on a terminal if wanted; else lines."""
    if quiet:
        return _Lines(lambda line: None)
    if bars and sys.stderr.isatty():
        return _Bars()
    return _Lines(lambda line: print(line, file=sys.stderr, flush=True))


def _grouped(slug: str, findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Lines about findings, by code, each with the severity it is about."""
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.severity != "note":
            by_code.setdefault(finding.code, []).append(finding)
    for code, same in sorted(by_code.items()):
        severity = same[0].severity
        yield f"{slug}: {severity} {code} ({len(same)}): {same[0].advice}", severity
        for finding in same[:SHOWN]:
            yield f"  {finding.path}:{finding.line}: {finding.message}", ""
        if len(same) > SHOWN:
            yield f"  and {len(same) - SHOWN} more, in report.json", ""


def _index_line(slug: str, index: VectorPartitions) -> str:
    return (
        f"{slug}: {index.kind} index of {index.partitions} partitions; the nearest {index.nprobes} hold "
        f"{index.recall:.1%} of the ten windows nearest to a question"
    )


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

    def stage(self, slug: str, stage: str) -> None:
        self._say(f"{slug}: {stage}")

    def encoding(self, slug: str, total: int) -> Callable[[int], None]:
        done = said = 0

        def advance(more: int) -> None:
            nonlocal done, said
            done += more
            if total and done * 10 // total > said:
                said = done * 10 // total
                self._say(f"{slug}: {done} of {total} windows encoded")

        return advance

    def indexed(self, slug: str, index: VectorPartitions) -> None:
        self._say(_index_line(slug, index))

    def findings(self, slug: str, findings: Sequence[Finding]) -> None:
        for line, _ in _grouped(slug, findings):
            self._say(line)


_STYLES = {"error": "red", "warning": "yellow"}


class _Bars:
    """A line a pack: its stage, and a bar while its windows are encoded."""

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
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._rich.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._rich.stop()

    def stage(self, slug: str, stage: str) -> None:
        self._rich.update(self._task(slug), stage=stage)

    def encoding(self, slug: str, total: int) -> Callable[[int], None]:
        task = self._task(slug)
        self._rich.update(task, stage="encoding", total=total)
        return lambda more: self._rich.update(task, advance=more)

    def indexed(self, slug: str, index: VectorPartitions) -> None:
        self._rich.console.print(_index_line(slug, index), markup=False, highlight=False)

    def findings(self, slug: str, findings: Sequence[Finding]) -> None:
        for line, severity in _grouped(slug, findings):
            self._rich.console.print(line, style=_STYLES.get(severity), markup=False, highlight=False)

    def _task(self, slug: str) -> TaskID:
        with self._lock:
            if slug not in self._tasks:
                self._tasks[slug] = self._rich.add_task(slug, total=None, stage="")
            return self._tasks[slug]
