"""The end of a build: hash the parts, write the manifest last, and put the release in its place.

How it is put there, at once or not at all, is in `octavo_artifact.placing`.
"""

from __future__ import annotations

from pathlib import Path

from octavo_artifact.ids import sha256_hex
from octavo_artifact.layout import MANIFEST, STAGING_PREFIX
from octavo_artifact.manifest import Manifest, manifest_bytes
from octavo_artifact.placing import copy, is_intact, make_directory, reveal, write


def seal(parts: Path, manifest: Manifest, pack: Path) -> Path:
    """Make the release of `manifest` from the files in `parts`, under `pack` (`dist/<slug>`); returns its directory.

    An intact release of the same digest is left as it is; a damaged one is replaced.
    """
    data = manifest_bytes(manifest)
    digest = sha256_hex(data)
    target = pack / digest
    if is_intact(target):
        return target
    staging = pack / f"{STAGING_PREFIX}{digest[:16]}"
    make_directory(staging)
    for path in sorted(manifest.files):
        copy(parts / path, staging / path, staging)
    write(staging / MANIFEST, data)
    reveal(staging, target)
    return target
