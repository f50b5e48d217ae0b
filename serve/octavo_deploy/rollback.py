"""An earlier release becomes the current one again.

The pointer remembers what was current, newest first. Rolling back goes to the newest of these that is still there and
whole, and forgets what came after it: rolling back twice goes further back, and never to a release that somebody left
because it was bad. That one stays in the `dist`; naming it goes forward again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from octavo_artifact.errors import ArtifactError
from octavo_artifact.manifest import read_pointer, read_previous
from octavo_artifact.placing import exclusive, point
from octavo_deploy.releases import check_release, find_release


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback did."""

    slug: str
    digest: str
    """The release that is current now."""
    left: str | None
    """The one that was; None when the pointer was missing or damaged."""
    skipped: tuple[str, ...]
    """Why earlier releases that are nearer were passed over."""


def roll_back(directory: Path, to: str | None = None) -> RolledBack:
    """Make an earlier release of the pack in `directory` (`dist/SLUG`) current: the one before, or what `to` means.

    It is verified first, with its encoder. Raises ArtifactError when there is none that is whole, ConfigError when
    `to` names none.
    """
    with exclusive(directory):
        try:
            left, previous = read_pointer(directory), read_previous(directory)
        except ArtifactError:
            if to is None:
                raise
            left, previous = None, ()
        skipped: list[str] = []
        artifact = _before(directory, previous, skipped) if to is None else find_release(directory, to)
        if to is not None:
            check_release(artifact)
        known = artifact.name in previous
        point(artifact, previous[previous.index(artifact.name) + 1 :] if known else None)
    return RolledBack(directory.name, artifact.name, left, tuple(skipped))


def _before(directory: Path, previous: tuple[str, ...], skipped: list[str]) -> Path:
    """The newest of the previous releases that is whole; why others are not goes into `skipped`."""
    for digest in previous:
        try:
            check_release(directory / digest)
        except ArtifactError as error:
            skipped.append(str(error))
        else:
            return directory / digest
    reason = f": {'; '.join(skipped)}" if skipped else "; name one with --to, see --list"
    raise ArtifactError(f"{directory.name}: there is no earlier release that is whole{reason}")
