"""How a release comes into a `dist` folder, at once or not at all: staged, renamed into place, pointed to.

A release is first a staging folder beside its final place; only a rename makes it visible, only a second rename makes
it current. Killed at any moment, a build or an unbundling leaves the old release current or the new one, and perhaps a
staging folder that the next one sweeps. The compiler and whoever carries releases to a server both write by this.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.layout import POINTER, STAGING_PREFIX
from octavo_artifact.manifest import (
    Manifest,
    check_files,
    pointer_bytes,
    read_manifest,
    read_pointer,
    read_previous,
)

DIRECTORY_MODE = 0o755
FILE_MODE = 0o644


def verify(artifact: Path) -> Manifest:
    """Check a release against its own manifest; raises ArtifactError naming the first file that differs."""
    manifest = read_manifest(artifact)
    check_files(artifact, manifest)
    return manifest


def point(artifact: Path, previous: Sequence[str] | None = None) -> None:
    """Make a release the current one of its pack, atomically; nothing changes when it is that already.

    `previous` are the digests that the pointer remembers, newest first; by default what was current until now, and
    what that one remembered. A pointer that is missing or damaged remembers nothing.
    """
    pack = artifact.parent
    try:
        current, remembered = read_pointer(pack), read_previous(pack)
    except ArtifactError:
        current, remembered = None, ()
    if current == artifact.name:
        return
    if previous is None:
        previous = [digest for digest in (current, *remembered) if digest and digest != artifact.name]
    staging = pack / f"{STAGING_PREFIX}{POINTER}"
    write(staging, pointer_bytes(artifact.name, previous))
    os.replace(staging, pack / POINTER)
    sync_directory(pack)


def install(files: Mapping[str, bytes], target: Path) -> None:
    """Put a directory of files in its place in one rename, also where a damaged one is: what releases share."""
    staging = target.parent / f"{STAGING_PREFIX}{target.name[:16]}"
    make_directory(staging)
    for name, data in sorted(files.items()):
        write(staging / name, data)
    reveal(staging, target)


def reveal(staging: Path, target: Path) -> None:
    """Make a complete staging directory visible; one that is in its place goes aside, to be swept."""
    _sync_directories(staging)
    if target.exists():
        os.rename(target, target.parent / f"{STAGING_PREFIX}damaged-{target.name[:16]}")
    os.rename(staging, target)
    sync_directory(target.parent)


@contextmanager
def exclusive(directory: Path) -> Generator[None]:
    """Hold `directory` (made when missing) against other writers, and sweep what a killed one left in it."""
    make_directories(directory)
    with held(directory):
        yield


@contextmanager
def held(directory: Path) -> Generator[None]:
    """`exclusive` of a directory that is there, whose mode is somebody else's choice."""
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


def make_directories(directory: Path) -> None:
    """Make `directory` and what is missing above it, for everybody to read."""
    missing = [path for path in directory.parents if not path.exists()]
    for path in (*reversed(missing), directory):
        path.mkdir(exist_ok=True)
        path.chmod(DIRECTORY_MODE)


@contextmanager
def clear_disk_errors(what: str) -> Generator[None]:
    """Turn a full disk, whichever library met it, into one clear line."""
    try:
        yield
    except Exception as error:  # Lance, Arrow, SQLite and Tantivy each raise a class of their own
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if full or "No space left on device" in str(error) or "disk is full" in str(error):
            message = f"{what}: the disk is full; no release is damaged. Free some space and try again"
            raise ConfigError(message) from error
        raise


def is_intact(artifact: Path) -> bool:
    """Whether a release is there, every file as its manifest says."""
    if not artifact.exists():
        return False
    try:
        verify(artifact)
    except ArtifactError:
        return False
    return True


def make_directory(path: Path) -> None:
    """Make an empty directory, for everybody to read; what is in its place is removed."""
    if path.exists():
        _remove(path)
    path.mkdir()
    path.chmod(DIRECTORY_MODE)


def copy(source: Path, target: Path, root: Path) -> None:
    """Copy a file to `target`, below `root`, to stay."""
    make_parents(target, root)
    with source.open("rb") as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer, 2**20)
        settle(writer)


def make_parents(target: Path, root: Path) -> None:
    """Make the directories between `root` and `target`, for everybody to read."""
    for parent in reversed(target.relative_to(root).parents[:-1]):
        directory = root / parent
        if not directory.exists():
            directory.mkdir()
            directory.chmod(DIRECTORY_MODE)


def write(path: Path, data: bytes) -> None:
    """Write a file to stay."""
    with path.open("wb") as writer:
        writer.write(data)
        settle(writer)


def settle(writer: BinaryIO) -> None:
    """End the writing of a file: on the disk, and for everybody to read."""
    writer.flush()
    os.fchmod(writer.fileno(), FILE_MODE)
    os.fsync(writer.fileno())


def sync_directory(path: Path) -> None:
    """Bring the names in a directory to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(directory: Path) -> None:
    for leftover in sorted(directory.glob(f"{STAGING_PREFIX}*")):
        _remove(leftover)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _sync_directories(root: Path) -> None:
    for directory, _, _ in os.walk(root, topdown=False):
        sync_directory(Path(directory))
