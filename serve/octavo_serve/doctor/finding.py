"""What a check says, and about what it says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from octavo_artifact.manifest import Manifest
from octavo_serve.settings import ServerSettings

Status = Literal["ok", "warn", "fail"]
"""All is well; the server works, but hardly as it is meant; the server does not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the diagnosis."""

    check: str
    """What was looked at, in a word or two."""
    status: Status
    found: str
    expected: str | None = None
    """None when all is well."""
    step: str | None = None
    """What to do next; None when all is well."""


@dataclass(frozen=True, slots=True)
class ExaminedPack:
    """The current release of a pack, checked file by file."""

    slug: str
    artifact: Path | None
    """None when the pointer names none."""
    manifest: Manifest | None
    """None when it cannot be trusted."""
    error: str | None
    """Why the pack is not served; None when its files are those of the manifest."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is examined."""

    settings: ServerSettings
    """The server's; the defaults when the configuration is wrong."""
    environment: Mapping[str, str]
    packs: tuple[ExaminedPack, ...]
    """Of `settings.dist`, sorted by slug; empty when it cannot be read."""


Check = Callable[[Subject], Iterator[Finding]]
"""A look at one thing. It changes nothing but a folder for temporary files, and raises nothing on purpose."""
