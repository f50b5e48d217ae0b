"""What a sub-command of `octavo` is. Packages offer theirs in the entry-point group `octavo.commands`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

GROUP = "octavo.commands"


@dataclass(frozen=True, slots=True)
class Command:
    """A sub-command; its module must import quickly, what `run` needs is imported inside it."""

    name: str
    summary: str
    """One line, as `octavo --help` lists it."""
    description: str
    """A paragraph for `octavo NAME --help`: what it does, what it prints, its exit codes."""
    examples: tuple[str, ...]
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    """Returns the exit code; raises OctavoError for what a person can act on."""
    extra: str | None = None
    """The extra whose packages `run` imports, `pip install 'octavo[extra]'`; None for the base install."""
