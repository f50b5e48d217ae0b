"""The packs: whether they can be served from where they are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from octavo_artifact.errors import ArtifactError, OctavoError
from octavo_artifact.layout import ENCODERS, MANIFEST, STAGING_PREFIX
from octavo_artifact.manifest import (
    Manifest,
    check_files,
    fingerprint,
    pack_directories,
    read_manifest,
    read_pointer,
)
from octavo_serve.doctor.finding import ExaminedPack, Finding, Subject

TEXT = "how do I begin?"
"""What encoders are tried with."""


def examine_packs(dist: Path | None) -> tuple[ExaminedPack, ...]:
    """The packs of a dist, each checked as a server does; none when the folder cannot be read."""
    try:
        return tuple(map(_examined, pack_directories(dist))) if dist else ()
    except OSError:
        return ()


def _examined(directory: Path) -> ExaminedPack:
    artifact: Path | None = None
    manifest: Manifest | None = None
    try:
        artifact = directory / read_pointer(directory)
        manifest = read_manifest(artifact)
        if manifest.slug != directory.name:
            raise ArtifactError(f"{directory.name}/{MANIFEST}: is of the pack {manifest.slug}")
        check_files(artifact, manifest)
    except OctavoError as error:
        return ExaminedPack(directory.name, artifact, manifest, str(error))
    return ExaminedPack(directory.name, artifact, manifest, None)


def dist(subject: Subject) -> Iterator[Finding]:
    """The folder of releases must be there and readable; no server needs one that asks another for passages."""
    folder, answers = subject.settings.dist, subject.settings.answers
    if folder is None and answers and answers.retriever:
        yield Finding("dist", "ok", "none: another server finds the passages of answers")
        return
    if folder is None:
        yield Finding(
            "dist", "fail", "none is named", "a folder of releases", "name it: DIST, or `dist` in octavo.yaml"
        )
        return
    try:
        with os.scandir(folder) as entries:
            next(entries, None)
    except OSError as error:
        step = "name another, or let this user read it (folders 0755, files 0644)"
        yield Finding("dist", "fail", f"{folder}: {error.strerror}", "a folder that can be read", step)
        return
    if not subject.packs:
        step = "`octavo unbundle FILE DIST`, or `octavo build PACK --out DIST`"
        yield Finding("dist", "fail", f"{folder}: no pack", "a folder for each pack", step)
    else:
        yield Finding("dist", "ok", f"{folder}: {', '.join(pack.slug for pack in subject.packs)}")


def packs(subject: Subject) -> Iterator[Finding]:
    """Every file of every current release must be the one that its digest vouches for."""
    for pack in subject.packs:
        if pack.error or not pack.manifest:
            step = f"`octavo rollback {pack.slug}`, or bring the release again"
            yield Finding("pack", "fail", f"{pack.slug}: {pack.error}", "the files of the manifest", step)
        else:
            count = len(pack.manifest.files) + 1
            yield Finding("pack", "ok", f"{pack.slug} {pack.manifest.digest[:12]}: {count} files verified")


def encoders(subject: Subject) -> Iterator[Finding]:
    """Every encoder must be there and encode; one behind an endpoint must answer with the weights of the build."""
    from octavo_serve.encoder import open_encoder

    folder = subject.settings.dist
    needed = {fingerprint(pack.manifest.encoder): pack.manifest.encoder for pack in subject.packs if pack.manifest}
    status = "warn" if subject.settings.lexical_only else "fail"
    for name, spec in sorted(needed.items()):
        if folder is None:
            return
        try:
            vector = open_encoder(folder / ENCODERS / name, name).encode(TEXT)
        except OctavoError as error:
            step = "bring it (`octavo bundle` does), mend the endpoint, or serve words only: `lexical_only: true`"
            yield Finding("encoder", status, str(error), "the encoder of the build", step)
        except Exception as error:  # onnxruntime's share no base but Exception
            found = f"{spec.name} {name[:12]} fails ({type(error).__name__})"
            yield Finding("encoder", status, found, "a vector", "see `processor` above, and bring it again")
        else:
            yield Finding("encoder", "ok", f"{spec.name} {name[:12]}: {len(vector)} dimensions")


def indexes(subject: Subject) -> Iterator[Finding]:
    """What is whole must open too, and answer: by words, for encoders have a check of their own."""
    from octavo_serve.catalog import OpenPack
    from octavo_serve.encoder import AbsentEncoder
    from octavo_serve.requests import SearchRequest

    for pack in subject.packs:
        if pack.error or not pack.manifest or not pack.artifact:
            continue
        try:
            opened = OpenPack(pack.artifact, AbsentEncoder(pack.manifest.encoder, "not asked"), pack.manifest)
            opened.search(SearchRequest(query=TEXT, gate="off"))
        except OctavoError as error:
            step = "see `libraries` above; build the pack again"
            yield Finding("search", "fail", f"{pack.slug}: {error}", "an index that opens", step)
        else:
            yield Finding("search", "ok", f"{pack.slug} answers")


def leftovers(subject: Subject) -> Iterator[Finding]:
    """What a killed build or unbundling left takes room."""
    folder = subject.settings.dist
    found = _staging(folder) if folder else []
    if found:
        step = "nothing, if a build is running; else the next build or unbundling sweeps them"
        yield Finding("leftovers", "warn", ", ".join(found), f"no {STAGING_PREFIX}* in the dist", step)


def _staging(folder: Path) -> list[str]:
    found: list[Path] = []
    for place in (folder, folder / ENCODERS, *_directories(folder)):
        try:
            found += [path for path in place.iterdir() if path.name.startswith(STAGING_PREFIX)]
        except OSError:
            continue
    return sorted({path.relative_to(folder).as_posix() for path in found})


def _directories(folder: Path) -> list[Path]:
    try:
        return pack_directories(folder)
    except OSError:
        return []


def space(subject: Subject) -> Iterator[Finding]:
    """A release is a full copy: the next one needs room for as much as this one."""
    folder = subject.settings.dist
    sizes = {
        pack.slug: sum(entry.size for entry in pack.manifest.files.values()) for pack in subject.packs if pack.manifest
    }
    if folder is None or not sizes:
        return
    largest = max(sizes, key=lambda slug: (sizes[slug], slug))
    free = shutil.disk_usage(folder).free
    if free < sizes[largest]:
        found = f"{free:,} bytes are free, the release of {largest} has {sizes[largest]:,}"
        step = "remove old releases, never a current one: `octavo rollback SLUG --list`"
        yield Finding("disk", "warn", found, "room for the next release", step)
    else:
        yield Finding("disk", "ok", f"{free:,} bytes are free")


def writable(subject: Subject) -> Iterator[Finding]:
    """The server never writes; where it cannot, nobody who breaks into it can change what it says."""
    folder = subject.settings.dist
    if folder is None or not folder.is_dir():
        return
    if os.access(folder, os.W_OK):
        who = "root, who" if os.geteuid() == 0 else "this user, who"
        step = "serve as a user that owns nothing there, or mount it read-only (and run this as that user)"
        yield Finding("dist rights", "warn", f"{who} runs this, may write {folder}", "reading only", step)
    else:
        yield Finding("dist rights", "ok", "may be read and not written")
