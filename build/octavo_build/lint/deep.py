"""Findings about a built artifact, made by whoever can search it.

The compiler does not know the server, so the checks are found through an entry-point group and give plain data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from octavo_artifact.errors import ConfigError
from octavo_build.findings import Finding
from octavo_build.lint.checks import Options
from octavo_build.lint.codes import DEEP

GROUP = "octavo.deep_lint"


Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is, and of how much."""


class Find(Protocol):
    """What an entry point of the group is: see `octavo_evals.deep.checks.find`."""

    def __call__(
        self, artifact: Path, *, top: int, codes: frozenset[str], today: date | None, progress: Progress
    ) -> dict[str, Any]:
        """`{slug, documents, findings}`, each finding with `path, line, code, message`."""
        ...


@dataclass(frozen=True, slots=True)
class Deep:
    """What was found in one artifact."""

    slug: str
    documents: int
    findings: tuple[Finding, ...]


def check_artifact(artifact: Path, top: int, options: Options) -> Deep:
    """Run the checks whose codes are told.

    Raises ConfigError when they are not installed or the path is no artifact, ArtifactError when it is damaged.
    """
    codes = frozenset(DEEP) - options.without
    wanted = codes & options.only if options.only else codes
    find = _checks()
    with _progress() as progress:
        found = find(artifact, top=top, codes=wanted, today=options.today, progress=progress)
    findings = tuple(sorted(Finding(**finding) for finding in found["findings"]))
    return Deep(found["slug"], found["documents"], findings)


def _checks() -> Find:
    install = "install them with: pip install 'octavo[evals]'"
    try:
        return next(iter(entry_points(group=GROUP))).load()
    except StopIteration as error:
        raise ConfigError(f"--deep: its checks are not installed; {install}") from error
    except ModuleNotFoundError as error:
        raise ConfigError(f"--deep: its checks need {error.name}; {install}") from error


@contextmanager
def _progress() -> Generator[Progress]:
    """A bar on a terminal, which is gone when the work is done; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda doing, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn()
    with Bars(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("opening", total=None)
        yield lambda doing, done, total: bar.update(task, description=doing, completed=done, total=total)
