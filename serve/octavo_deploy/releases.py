"""Which releases of a pack are in a `dist`: which one is current, which ones were, and whether they are whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.ids import DIGEST, SLUG
from octavo_artifact.layout import ENCODERS, MANIFEST
from octavo_artifact.manifest import Manifest, fingerprint, pack_directories, read_encoder, read_pointer, read_previous
from octavo_artifact.placing import verify

_PREFIX = re.compile(r"[0-9a-f]{12,64}")


@dataclass(frozen=True, slots=True)
class Release:
    """A release that is in a `dist`, or that a pointer remembers."""

    digest: str
    version: str | None
    """The pack's version; None when the manifest cannot be read."""
    current: bool
    previous: int | None
    """1 for the one that was current before the current one, and so on; None for others."""
    error: str | None
    """Why it cannot be served; None when it is whole, its encoder too."""


def pack_directory(dist: Path, slug: str) -> Path:
    """The folder of a pack. Raises ConfigError when the dist has no such pack."""
    directory = dist / slug
    if not SLUG.fullmatch(slug) or not directory.is_dir():
        known = ", ".join(path.name for path in pack_directories(dist)) if dist.is_dir() else ""
        raise ConfigError(f"{slug}: no such pack in {dist}, expected one of: {known or 'there is none'}")
    return directory


def check_release(artifact: Path) -> Manifest:
    """Check a release, file by file, and its encoder. Raises ArtifactError naming the first file that is wrong."""
    manifest = verify(artifact)
    if manifest.slug != artifact.parent.name:
        raise ArtifactError(f"{artifact.parent.name}/{artifact.name[:12]}/{MANIFEST}: is of the pack {manifest.slug}")
    name = fingerprint(manifest.encoder)
    read_encoder(artifact.parent.parent / ENCODERS / name, name)
    return manifest


def list_releases(directory: Path) -> list[Release]:
    """The current release, those before it, newest first, and then all others by digest; each is checked."""
    try:
        current, previous = read_pointer(directory), read_previous(directory)
    except ArtifactError:
        current, previous = None, ()
    there = sorted(path.name for path in directory.iterdir() if DIGEST.fullmatch(path.name))
    ordered = dict.fromkeys((*((current,) if current else ()), *previous, *there))
    return [_release(directory, digest, current, previous) for digest in ordered]


def _release(directory: Path, digest: str, current: str | None, previous: tuple[str, ...]) -> Release:
    version, error = None, None
    try:
        version = str(check_release(directory / digest).pack.get("version"))
    except ArtifactError as found:
        error = str(found)
    place = previous.index(digest) + 1 if digest in previous else None
    return Release(digest, version, digest == current, place, error)


def find_release(directory: Path, written: str) -> Path:
    """The release of a pack that a digest, or the first 12 or more digits of one, means. Raises ConfigError."""
    if not _PREFIX.fullmatch(written):
        raise ConfigError(f"{written!r}, expected a digest or the first 12 or more of its 64 hex digits")
    found = [path for path in directory.iterdir() if DIGEST.fullmatch(path.name) and path.name.startswith(written)]
    if len(found) != 1:
        raise ConfigError(f"{directory.name}: {len(found)} releases begin with {written}, expected one")
    return found[0]
