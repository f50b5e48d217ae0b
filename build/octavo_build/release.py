"""The end of a build: hash the parts, write the manifest last, rename into place, verify, move the pointer.

A release is first a staging folder beside its final place; only a rename makes it visible, only a second rename makes
it current. Killed at any moment, a build leaves the old release current or the new one, and perhaps a staging folder
that the next build of the pack sweeps.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_artifact.layout import MANIFEST, POINTER, STAGING_PREFIX
from octavo_artifact.manifest import Manifest, check_files, manifest_bytes, read_manifest

DIRECTORY_MODE = 0o755
FILE_MODE = 0o644


def seal(parts: Path, manifest: Manifest, pack: Path) -> Path:
    """Make the release of `manifest` from the files in `parts`, under `pack` (`dist/<slug>`); returns its directory.

    An intact release of the same digest is left as it is; a damaged one is replaced.
    """
    data = manifest_bytes(manifest)
    digest = sha256_hex(data)
    target = pack / digest
    if _is_intact(target):
        return target
    staging = pack / f"{STAGING_PREFIX}{digest[:16]}"
    _make_directory(staging)
    for path in sorted(manifest.files):
        _copy(parts / path, staging / path, staging)
    _write(staging / MANIFEST, data)
    _reveal(staging, target)
    return target


def verify(artifact: Path) -> Manifest:
    """Check a release against its own manifest; raises ArtifactError naming the first file that differs."""
    manifest = read_manifest(artifact)
    check_files(artifact, manifest)
    return manifest


def point(artifact: Path) -> None:
    """Make a release the current one of its pack, atomically."""
    pack = artifact.parent
    data = canonical_json({"digest": artifact.name})
    pointer = pack / POINTER
    if pointer.exists() and pointer.read_bytes() == data:
        return
    staging = pack / f"{STAGING_PREFIX}{POINTER}"
    _write(staging, data)
    os.replace(staging, pointer)
    _sync_directory(pack)


def install(files: Mapping[str, bytes], target: Path) -> None:
    """Put a directory of files in its place in one rename, also where a damaged one is: what releases share."""
    staging = target.parent / f"{STAGING_PREFIX}{target.name[:16]}"
    _make_directory(staging)
    for name, data in sorted(files.items()):
        _write(staging / name, data)
    _reveal(staging, target)


def _reveal(staging: Path, target: Path) -> None:
    """Make a complete staging directory visible; one that is in its place goes aside, to be swept."""
    _sync_directories(staging)
    if target.exists():
        os.rename(target, target.parent / f"{STAGING_PREFIX}damaged-{target.name[:16]}")
    os.rename(staging, target)
    _sync_directory(target.parent)


@contextmanager
def exclusive(directory: Path) -> Generator[None]:
    """Hold `directory` (made when missing) against other builds, and sweep what a killed one left in it."""
    missing = [path for path in directory.parents if not path.exists()]
    for path in (*reversed(missing), directory):
        path.mkdir(exist_ok=True)
        path.chmod(DIRECTORY_MODE)
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        _sweep(directory)
        try:
            yield
        finally:
            _sweep(directory)  # a failed build too, whose half release may be what fills the disk
    finally:
        os.close(handle)


@contextmanager
def clear_disk_errors(what: str) -> Generator[None]:
    """Turn a full disk, whichever library met it, into one clear line."""
    try:
        yield
    except Exception as error:  # Lance, Arrow, SQLite and Tantivy each raise a class of their own
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if full or "No space left on device" in str(error) or "disk is full" in str(error):
            message = f"{what}: the disk is full; no release is damaged. Free some space and build again"
            raise ConfigError(message) from error
        raise


def _sweep(directory: Path) -> None:
    for leftover in sorted(directory.glob(f"{STAGING_PREFIX}*")):
        _remove(leftover)


def _is_intact(artifact: Path) -> bool:
    if not artifact.exists():
        return False
    try:
        verify(artifact)
    except ArtifactError:
        return False
    return True


def _make_directory(path: Path) -> None:
    if path.exists():
        _remove(path)
    path.mkdir()
    path.chmod(DIRECTORY_MODE)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _copy(source: Path, target: Path, root: Path) -> None:
    for parent in reversed(target.relative_to(root).parents[:-1]):
        directory = root / parent
        if not directory.exists():
            directory.mkdir()
            directory.chmod(DIRECTORY_MODE)
    with source.open("rb") as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer, 2**20)
        _settle(writer)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as writer:
        writer.write(data)
        _settle(writer)


def _settle(writer: BinaryIO) -> None:
    writer.flush()
    os.fchmod(writer.fileno(), FILE_MODE)
    os.fsync(writer.fileno())


def _sync_directories(root: Path) -> None:
    for directory, _, _ in os.walk(root, topdown=False):
        _sync_directory(Path(directory))


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
