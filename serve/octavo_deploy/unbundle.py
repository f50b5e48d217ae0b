"""A bundle becomes a release in a `dist` folder, at once or not at all.

Nothing in a bundle says where a byte goes: the names come from the manifest, which the digest vouches for, and all is
written below one staging folder, `dist/.staging-…`. What is whole is renamed into place: the encoder, the release, and
last the pointer moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from shutil import disk_usage
from typing import BinaryIO, cast

from octavo_artifact.endpoint import read_endpoint
from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.ids import sha256_hex
from octavo_artifact.layout import ENCODERS, MANIFEST, STAGING_PREFIX
from octavo_artifact.manifest import (
    MAX_MANIFEST_BYTES,
    Manifest,
    fingerprint,
    parse_manifest,
    read_encoder,
)
from octavo_artifact.placing import (
    clear_disk_errors,
    exclusive,
    held,
    is_intact,
    make_directories,
    make_directory,
    make_parents,
    point,
    reveal,
    settle,
    sync_directory,
    write,
)
from octavo_deploy.archive import CONTENTS, MAX_CONTENTS, Contents, Reader, parse_contents

_RELEASE = "release"
_ENCODER = "encoder"


@dataclass(frozen=True, slots=True)
class Unbundled:
    """What an unbundling did."""

    slug: str
    digest: str
    encoder: str
    """Fingerprint."""
    wrote_release: bool
    """False when it was there already, and whole."""
    wrote_encoder: bool


def unbundle(source: BinaryIO, dist: Path, *, expect: str | None = None, make_current: bool = True) -> Unbundled:
    """Put the release in `source` into `dist` (made when missing), and its encoder where that is not there yet.

    `expect` is the digest, or its beginning, that the release must have. Raises ArtifactError naming the first file
    that is not as the digest says, ConfigError when the release is another one or `dist` cannot be written.
    """
    reader = Reader(source)
    contents = parse_contents(reader.small(CONTENTS, MAX_CONTENTS))
    if expect is not None and not contents.digest.startswith(expect):
        raise ConfigError(f"bundle: holds {contents.slug} {contents.digest}, expected {expect}")
    data = reader.small(f"{contents.release}/{MANIFEST}", MAX_MANIFEST_BYTES)
    manifest = _trusted(data, contents)
    try:
        if not dist.is_dir():
            make_directories(dist)
        with held(dist), clear_disk_errors(contents.slug):
            staging = dist / f"{STAGING_PREFIX}{contents.digest[:16]}"
            make_directory(staging)
            done = _receive(reader, contents, manifest, dist, staging)
            if done.wrote_release:
                write(staging / _RELEASE / MANIFEST, data)
            _place(done, dist, staging, make_current=make_current)
    except OSError as error:
        raise ConfigError(f"{dist}: cannot be written ({error.strerror}); no release is damaged") from error
    return done


def _trusted(data: bytes, contents: Contents) -> Manifest:
    """The manifest, which must be the one that `bundle.json` announces."""
    label = f"bundle: {contents.release}/{MANIFEST}"
    if (found := sha256_hex(data)) != contents.digest:
        raise ArtifactError(f"{label}: sha256 is {found}, expected {contents.digest}")
    manifest = parse_manifest(data)
    pack = cast(object, manifest.pack)  # from JSON: perhaps no mapping
    if not isinstance(pack, dict) or manifest.pack.get("slug") != contents.slug:
        raise ArtifactError(f"{label}: is of another pack than {contents.slug}, which {CONTENTS} names")
    if (found := fingerprint(manifest.encoder)) != contents.encoder:
        raise ArtifactError(f"{label}: its encoder is {found}, {CONTENTS} names {contents.encoder}")
    folders = {str(parent) for path in manifest.files for parent in PurePosixPath(path).parents}
    if wrong := sorted(manifest.files.keys() & {*folders, MANIFEST}):
        raise ArtifactError(f"{label}: names {wrong[0]!r}, expected another name for a file")
    return manifest


def _receive(reader: Reader, contents: Contents, manifest: Manifest, dist: Path, staging: Path) -> Unbundled:
    """Read the bundle to its end; what is not in `dist` yet is in `staging` afterwards, verified."""
    release = None if is_intact(dist / contents.release) else staging / _RELEASE
    encoder = None if _is_usable(dist / contents.encoder_folder) else staging / _ENCODER
    if encoder and not contents.encoder_files:
        raise ArtifactError(f"bundle: is without {contents.encoder_folder}, which {dist.name} has not either")
    sizes = [entry.size for entry in manifest.files.values() if release]
    sizes += [size for size in contents.encoder_files.values() if encoder]
    if (free := disk_usage(dist).free) < sum(sizes):
        raise ConfigError(f"bundle: needs {sum(sizes)} bytes, the disk has {free}; no release is damaged")
    for folder in filter(None, (release, encoder)):
        make_directory(folder)
    for path, entry in sorted(manifest.files.items()):
        name = f"{contents.release}/{path}"
        found = _store(reader.file(name, entry.size), release, path)
        if found != entry.sha256:
            raise ArtifactError(f"bundle: {name}: sha256 is {found}, the manifest says {entry.sha256}")
    for name, size in sorted(contents.encoder_files.items()):
        _store(reader.file(f"{contents.encoder_folder}/{name}", size), encoder, name)
    reader.end()
    if encoder:
        _check_encoder(encoder, contents.encoder)
    return Unbundled(contents.slug, contents.digest, contents.encoder, release is not None, encoder is not None)


def _store(blocks: Iterator[bytes], folder: Path | None, path: str) -> str:
    """Write a file below `folder`, or nowhere; its sha256."""
    digest = sha256()
    if folder is None:
        for block in blocks:
            digest.update(block)
        return digest.hexdigest()
    target = folder / path
    make_parents(target, folder)
    with target.open("xb") as file:
        for block in blocks:
            digest.update(block)
            file.write(block)
        settle(file)
    return digest.hexdigest()


def _place(done: Unbundled, dist: Path, staging: Path, *, make_current: bool) -> None:
    """Rename what was staged into its place, and then move the pointer."""
    artifact = dist / done.slug / done.digest
    if done.wrote_encoder:
        with exclusive(dist / ENCODERS):
            reveal(staging / _ENCODER, dist / ENCODERS / done.encoder)
    with exclusive(artifact.parent):
        if done.wrote_release:
            reveal(staging / _RELEASE, artifact)
        sync_directory(dist)
        if make_current:
            point(artifact)


def _check_encoder(directory: Path, name: str) -> None:
    """Raises ArtifactError when a server could not open it."""
    if read_encoder(directory, name).model:
        read_endpoint(directory, name)


def _is_usable(directory: Path) -> bool:
    try:
        _check_encoder(directory, directory.name)
    except ArtifactError:
        return False
    return True
