"""A release and its encoder become one file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from octavo_artifact.errors import ArtifactError
from octavo_artifact.layout import ENCODERS, MANIFEST
from octavo_artifact.manifest import fingerprint
from octavo_deploy.archive import CONTENTS, ENCODER_FILES, STEP, Contents, Writer, contents_bytes
from octavo_deploy.releases import check_release


def write_bundle(artifact: Path, target: BinaryIO, *, with_encoder: bool = True) -> tuple[Contents, Writer]:
    """Write the release in `artifact` (`dist/SLUG/DIGEST`) to `target`; the writer knows size and sha256.

    Everything is verified first. The bytes depend on the release, its encoder and the version of zstd only. Raises
    ArtifactError naming the file that is missing or wrong.
    """
    manifest = check_release(artifact)
    encoder = artifact.parent.parent / ENCODERS / fingerprint(manifest.encoder)
    names = sorted(name for name in ENCODER_FILES if with_encoder and (encoder / name).is_file())
    contents = Contents(
        manifest.slug, manifest.digest, encoder.name, {name: (encoder / name).stat().st_size for name in names}
    )
    writer = Writer(target)
    _add_bytes(writer, CONTENTS, contents_bytes(contents))
    _add_bytes(writer, f"{contents.release}/{MANIFEST}", (artifact / MANIFEST).read_bytes())
    for path, entry in sorted(manifest.files.items()):
        writer.add(f"{contents.release}/{path}", entry.size, _blocks(artifact / path))
    for name, size in contents.encoder_files.items():
        writer.add(f"{contents.encoder_folder}/{name}", size, _blocks(encoder / name))
    writer.close()
    return contents, writer


def _add_bytes(writer: Writer, name: str, data: bytes) -> None:
    writer.add(name, len(data), iter([data]))


def _blocks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while block := file.read(STEP):
                yield block
    except OSError as error:
        raise ArtifactError(f"{path.name}: cannot be read ({error.strerror})") from error
