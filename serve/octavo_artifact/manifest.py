"""The manifest: read it, trust it, and check that an artifact's files are those it names.

Order of trust: a digest (from the pointer, the directory's name or the operator) vouches for the bytes of
`manifest.json`; the manifest vouches for every other file by sha256 and size. Nothing else is believed.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, cast

from octavo_artifact.errors import ArtifactError
from octavo_artifact.gate import Gate, Weights
from octavo_artifact.ids import DIGEST, SLUG, canonical_json, sha256_file, sha256_hex
from octavo_artifact.layout import (
    ENCODER_MODEL,
    ENCODER_SPEC,
    ENCODER_TOKENIZER,
    ENCODERS,
    FORMAT,
    MANIFEST,
    POINTER,
)
from octavo_artifact.schema import EncoderSpec

MAX_MANIFEST_BYTES = 64 * 2**20
MAX_PREVIOUS = 8
"""Digests that a pointer remembers."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of the artifact as the manifest names it."""

    sha256: str
    size: int
    """Bytes."""

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or self.size < 0:  # pyright: ignore[reportUnnecessaryIsInstance]  # from JSON
            raise ArtifactError(f"{MANIFEST}: a size is {self.size!r}, expected a whole number")
        if not DIGEST.fullmatch(self.sha256):
            raise ArtifactError(f"{MANIFEST}: a sha256 is {self.sha256!r}, expected 64 hex digits")


@dataclass(frozen=True, slots=True)
class Column:
    """Where a fixed-width column of `vectors.lance` lies, so that a server can map it without Lance."""

    file: str
    dtype: str
    """`float32` or `int32`, little endian."""
    width: int
    """Values a row."""
    extents: tuple[tuple[int, int], ...]
    """(byte offset, rows) of each contiguous run, in row order."""


@dataclass(frozen=True, slots=True)
class VectorPartitions:
    """How the windows of a large pack lie in partitions, so that a search may look at the nearest ones only."""

    kind: str
    """Of the index in `vectors.lance`, which Lance and LanceDB search by: `IVF_PQ`."""
    partitions: int
    sub_vectors: int
    """Bytes that stand for a vector in that index; the server compares the vectors themselves."""
    nprobes: int
    """Partitions that a search must look at for that recall; a server that finds them too many compares all."""
    recall: float
    """Of the ten windows nearest to questions made of the pack's headings, the share that lies in them."""

    def __post_init__(self) -> None:
        if not 0 < self.nprobes <= self.partitions:
            raise ArtifactError(f"{MANIFEST}: index: nprobes is {self.nprobes}, expected 1 to {self.partitions}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """`manifest.json` of one artifact."""

    digest: str
    """sha256 of the manifest's bytes; not a field of the file."""
    pack: dict[str, Any]
    """slug, name, type, version, description, entry_point, source_format, metadata (as written)."""
    encoder: EncoderSpec
    parameters: dict[str, Any]
    libraries: dict[str, str]
    counts: dict[str, int]
    columns: dict[str, Column]
    """`passage` int32 [windows] and `vector` float32 [windows, dim]; with an `index` also `partition` int32 [windows]
    and `centroid` float32 [partitions, dim]."""
    tables: dict[str, str]
    """Logical sha256 of each table: equal for equal rows, whatever codec wrote them."""
    files: dict[str, FileEntry]
    gate: Gate | None = None
    """How answers are judged; None when the pack has nothing to find, or its cosines tell nothing apart."""
    index: VectorPartitions | None = None
    """None where every window is compared."""

    @property
    def slug(self) -> str:
        """Slug of the pack."""
        return self.pack["slug"]


def fingerprint(encoder: EncoderSpec) -> str:
    """Identity of an encoder: sha256 of everything that decides a vector, its name left out.

    A field that has its default is left out too, so that a later one does not rename the encoders of before.
    """
    defaults = {each.name: each.default for each in fields(EncoderSpec)}
    decides = {name: value for name, value in asdict(encoder).items() if value != defaults[name]}
    del decides["name"]
    return sha256_hex(canonical_json(decides))


def read_spec(values: dict[str, Any]) -> EncoderSpec:
    """An encoder's spec from its JSON. Raises TypeError for what is none."""
    return EncoderSpec(probe=tuple(values.pop("probe", ())), **values)


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as it stands in the artifact; `digest` is the sha256 of these bytes."""
    values = asdict(manifest)
    del values["digest"]
    return canonical_json({"format": FORMAT, **values})


def parse_manifest(data: bytes) -> Manifest:
    """Read a manifest; its digest is computed, whether it is the expected one is the caller's question.

    Raises ArtifactError for another format version and for anything that does not parse.
    """
    try:
        values = cast(dict[str, Any], json.loads(data))
        found = values.pop("format")
        if found != FORMAT:
            raise ArtifactError(f"{MANIFEST}: format {found!r}, this Octavo reads format {FORMAT}")
        return Manifest(
            digest=sha256_hex(data),
            encoder=read_spec(values.pop("encoder")),
            columns={name: _column(column) for name, column in values.pop("columns").items()},
            files={_inside(path): FileEntry(**entry) for path, entry in values.pop("files").items()},
            gate=read_gate(values.pop("gate", None)),
            index=read_index(values.pop("index", None)),
            **values,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"{MANIFEST}: not a manifest of format {FORMAT} ({type(error).__name__})") from error


def read_manifest(artifact: Path) -> Manifest:
    """The manifest of the artifact in `artifact`, whose directory must be named by its digest.

    Raises ArtifactError naming `manifest.json` when it is missing, damaged or stands in the wrong directory.
    """
    path = artifact / MANIFEST
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise ArtifactError(f"{_label(artifact)}/{MANIFEST}: not a regular file")
        if status.st_size > MAX_MANIFEST_BYTES:
            raise ArtifactError(f"{_label(artifact)}/{MANIFEST}: larger than {MAX_MANIFEST_BYTES} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{_label(artifact)}/{MANIFEST}: cannot be read ({error.strerror})") from error
    digest = sha256_hex(data)
    if digest != artifact.name:
        raise ArtifactError(
            f"{_label(artifact)}/{MANIFEST}: sha256 is {digest}, the directory is named {artifact.name}; "
            "the manifest was changed, or the directory renamed"
        )
    return parse_manifest(data)


def check_files(artifact: Path, manifest: Manifest) -> None:
    """Compare every file with the manifest by size and sha256.

    Raises ArtifactError naming the first file, in path order, that is missing, extra, of another kind or changed.
    """
    label = _label(artifact)
    try:
        found = dict(_walk(artifact))
    except OSError as error:
        path = Path(str(error.filename)).relative_to(artifact).as_posix()
        raise ArtifactError(f"{label}/{path}: cannot be read ({error.strerror})") from error
    found.pop(MANIFEST, None)
    for path in sorted(found.keys() | manifest.files.keys()):
        entry = manifest.files.get(path)
        if entry is None:
            raise ArtifactError(f"{label}/{path}: not named by the manifest")
        if path not in found:
            raise ArtifactError(f"{label}/{path}: missing")
        status = found[path]
        if not stat.S_ISREG(status.st_mode):
            raise ArtifactError(f"{label}/{path}: not a regular file")
        if status.st_size != entry.size:
            raise ArtifactError(f"{label}/{path}: {status.st_size} bytes, the manifest says {entry.size}")
        try:
            sha256 = sha256_file(artifact / path)
        except OSError as error:
            raise ArtifactError(f"{label}/{path}: cannot be read ({error.strerror})") from error
        if sha256 != entry.sha256:
            raise ArtifactError(f"{label}/{path}: sha256 is {sha256}, the manifest says {entry.sha256}")


def read_pointer(pack: Path) -> str:
    """The digest that `latest.json` of the pack directory names.

    Raises ArtifactError when the pointer is missing or not a pointer.
    """
    return _pointer(pack)[0]


def read_previous(pack: Path) -> tuple[str, ...]:
    """The digests that were current before the one that `latest.json` names, newest first; empty for an old pointer.

    Raises ArtifactError when the pointer is missing or not a pointer.
    """
    return _pointer(pack)[1]


def pointer_bytes(digest: str, previous: Sequence[str]) -> bytes:
    """`latest.json`: what is current, and what was, newest first, each once and the first MAX_PREVIOUS of them."""
    kept = list(dict.fromkeys(previous))[:MAX_PREVIOUS]
    return canonical_json({"digest": digest, **({"previous": kept} if kept else {})})


def _pointer(pack: Path) -> tuple[str, tuple[str, ...]]:
    path = pack / POINTER
    try:
        values = json.loads(path.read_bytes())
        digest, previous = values["digest"], tuple(values.get("previous", ()))
    except OSError as error:
        raise ArtifactError(f"{pack.name}/{POINTER}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"{pack.name}/{POINTER}: not a pointer, expected a JSON object with a digest") from error
    if not all(isinstance(each, str) and DIGEST.fullmatch(each) for each in (digest, *previous)):
        raise ArtifactError(f"{pack.name}/{POINTER}: digest is not 64 hex digits")
    return digest, previous


def read_encoder(directory: Path, expected: str) -> EncoderSpec:
    """The encoder stored in `encoders/<fingerprint>/`, its files checked against its spec.

    Raises ArtifactError naming the file when the encoder is missing, damaged or another one.
    """
    label = f"encoders/{expected}"
    if not directory.is_dir():
        raise ArtifactError(f"{label}/{ENCODER_SPEC}: missing; expected the encoder that the release was built with")
    try:
        spec = read_spec(json.loads((directory / ENCODER_SPEC).read_bytes()))
        found = fingerprint(spec)
        if found != expected:
            raise ArtifactError(f"{label}/{ENCODER_SPEC}: fingerprint is {found}, expected {expected}")
        for file, sha256 in ((ENCODER_MODEL, spec.model_sha256), (ENCODER_TOKENIZER, spec.tokenizer_sha256)):
            if sha256 and sha256_file(directory / file) != sha256:
                raise ArtifactError(f"{label}/{file}: sha256 is not the {sha256} its spec names")
    except OSError as error:
        name = Path(str(error.filename)).name
        raise ArtifactError(f"{label}/{name}: cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ArtifactError(f"{label}/{ENCODER_SPEC}: not an encoder spec") from error
    return spec


def pack_directories(dist: Path) -> list[Path]:
    """The pack directories of `dist`, sorted by slug: those that are named by a slug and hold a pointer or a release.

    One without its pointer is for the caller to tell: a pack that only vanished would not be missed.
    """
    return sorted(path for path in dist.iterdir() if SLUG.fullmatch(path.name) and path.is_dir() and _is_pack(path))


def _is_pack(path: Path) -> bool:
    try:
        names = os.listdir(path)
    except OSError:
        return True  # what cannot be read is told too
    return POINTER in names or (path.name != ENCODERS and any(map(DIGEST.fullmatch, names)))


def _column(values: dict[str, Any]) -> Column:
    extents = tuple((offset, rows) for offset, rows in values.pop("extents"))
    return Column(**values, extents=extents)


def read_gate(values: dict[str, Any] | None) -> Gate | None:
    """A gate from its JSON. Raises KeyError or TypeError for what is none, ArtifactError for impossible numbers."""
    if values is None:
        return None
    return Gate(weights=Weights(**values.pop("weights")), roc=tuple(values.pop("roc")), **values)


def read_index(values: dict[str, Any] | None) -> VectorPartitions | None:
    """An index from its JSON. Raises TypeError for what is none, ArtifactError for impossible numbers."""
    return None if values is None else VectorPartitions(**values)


def _inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or str(PurePosixPath(path)) != path:
        raise ArtifactError(f"{MANIFEST}: {path!r} is not a path inside the artifact")
    return path


def _label(artifact: Path) -> str:
    """The artifact as messages name it: pack and digest, never a path of the host."""
    return f"{artifact.parent.name}/{artifact.name[:12]}"


def _walk(root: Path, prefix: str = "") -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name, entry.stat(follow_symlinks=False)
