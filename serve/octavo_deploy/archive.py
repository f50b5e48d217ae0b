"""The form of a bundle: a tar of plain files in a fixed order, in zstd frames.

Every header holds a name and a size and nothing that differs between machines: no time, no owner, mode 0644. So a
reader that knows name and size knows all 512 bytes of a header, and compares them instead of believing them: a link, a
device, a path that leads elsewhere or a second file of a name are all just not what comes next.

    bundle.json                         what is inside: see `Contents`
    SLUG/DIGEST/manifest.json           vouched for by the digest
    SLUG/DIGEST/PATH ...                vouched for by the manifest, sorted
    encoders/FINGERPRINT/NAME ...       vouched for by the manifest's encoder, sorted; perhaps none

The names are those of a `dist` folder. zstd is that of pyarrow, which the server has anyway and Python has only from
3.14 on; one thread, level 3, a frame a MiB of tar. Another version of zstd may compress to other bytes: the same
bundle is the same file where pyarrow is the same, and what is in it is the same everywhere.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, BinaryIO, cast

from octavo_artifact.errors import ArtifactError
from octavo_artifact.ids import DIGEST, SLUG, canonical_json
from octavo_artifact.layout import ENCODER_ENDPOINT, ENCODER_MODEL, ENCODER_SPEC, ENCODER_TOKENIZER, ENCODERS

FORMAT = 1
CONTENTS = "bundle.json"
ENCODER_FILES = frozenset({ENCODER_SPEC, ENCODER_MODEL, ENCODER_TOKENIZER, ENCODER_ENDPOINT})
MAX_CONTENTS = 64 * 1024
"""Bytes of `bundle.json`, and of the encoder's files that are read as JSON."""

BLOCK = 512
END = bytes(2 * BLOCK)
STEP = 2**20
"""Bytes of the tar that are compressed at a time, and that are copied at a time."""
LEVEL = 3
"""Of zstd. A release of 25 MB with its encoder becomes 22.0 MB by levels 3 to 12 alike (1: 22.7), in .03 to .25 s."""

_KINDS = {
    tarfile.DIRTYPE: "a directory",
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a bundle: `bundle.json`, its first entry."""

    slug: str
    digest: str
    encoder: str
    """Fingerprint of the encoder that the release needs."""
    encoder_files: Mapping[str, int]
    """Name to bytes of the encoder's files; empty when the bundle is without it."""

    @property
    def release(self) -> str:
        """Where the release is, in the bundle as in a dist."""
        return f"{self.slug}/{self.digest}"

    @property
    def encoder_folder(self) -> str:
        """Where the encoder is, in the bundle as in a dist."""
        return f"{ENCODERS}/{self.encoder}"


def contents_bytes(contents: Contents) -> bytes:
    """`bundle.json`."""
    return canonical_json(
        {
            "format": FORMAT,
            "slug": contents.slug,
            "digest": contents.digest,
            "encoder": {"fingerprint": contents.encoder, "files": dict(contents.encoder_files)},
        }
    )


def parse_contents(data: bytes) -> Contents:
    """Read `bundle.json`. Raises ArtifactError for another format and for anything that does not parse."""
    try:
        values = cast(dict[str, Any], json.loads(data))
        if values["format"] != FORMAT:
            raise ArtifactError(f"{CONTENTS}: format {values['format']!r}, this Octavo reads format {FORMAT}")
        encoder = values["encoder"]
        contents = Contents(values["slug"], values["digest"], encoder["fingerprint"], encoder["files"])
        if contents_bytes(contents) != data or not _is_sound(contents):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"{CONTENTS}: not that of a bundle of format {FORMAT}") from error
    return contents


def _is_sound(contents: Contents) -> bool:
    files = contents.encoder_files
    return (
        SLUG.fullmatch(contents.slug) is not None
        and contents.slug != ENCODERS
        and all(DIGEST.fullmatch(each) for each in (contents.digest, contents.encoder))
        and files.keys() <= ENCODER_FILES
        and (not files or ENCODER_SPEC in files)
        and all(type(size) is int and size >= 0 for size in files.values())
        and all(files.get(name, 0) <= MAX_CONTENTS for name in (ENCODER_SPEC, ENCODER_ENDPOINT))
    )


def header(name: str, size: int) -> bytes:
    """The 512 bytes before a file of that name and size. Raises ArtifactError for what ustar has no room for."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    try:
        if not name.isprintable():
            raise ValueError("a name with control characters")
        return entry.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")
    except ValueError as error:  # UnicodeEncodeError too
        message = f"{name!r} of {size} bytes cannot be in a bundle, expected an ASCII name and less than 8 GiB"
        raise ArtifactError(message) from error


class Writer:
    """Writes the files of a bundle one after the other, in memory that does not depend on their size."""

    def __init__(self, target: BinaryIO) -> None:
        """Nothing of `target` is read or sought: it may be a pipe."""
        from pyarrow import Codec

        self._target = target
        self._codec = Codec("zstd", LEVEL)
        self._pending = bytearray()
        self._hash = sha256()
        self.size = 0
        """Bytes that were written."""

    @property
    def sha256(self) -> str:
        """Of what was written."""
        return self._hash.hexdigest()

    def add(self, name: str, size: int, blocks: Iterator[bytes]) -> None:
        """Write a file. Raises ArtifactError when its blocks are more or fewer bytes than `size`."""
        self._write(header(name, size))
        found = 0
        for block in blocks:
            found += len(block)
            self._write(block)
        if found != size:
            raise ArtifactError(f"{name}: {found} bytes, expected {size}; it was changed meanwhile")
        self._write(bytes(-size % BLOCK))

    def close(self) -> None:
        """End the archive."""
        self._write(END)
        self._emit(len(self._pending))

    def _write(self, data: bytes) -> None:
        self._pending += data
        while len(self._pending) >= STEP:
            self._emit(STEP)

    def _emit(self, length: int) -> None:
        data = self._codec.compress(bytes(self._pending[:length]), asbytes=True)
        del self._pending[:length]
        self._hash.update(data)
        self.size += len(data)
        self._target.write(data)


class Reader:
    """Reads a bundle from its beginning to its end, and believes nothing that it was not told to expect."""

    def __init__(self, source: BinaryIO) -> None:
        """Nothing of `source` is sought: it may be a pipe."""
        import pyarrow

        self._stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(source, "r"), "zstd")
        self._errors = (OSError, pyarrow.ArrowException)
        self._place = "its beginning"

    def small(self, name: str, at_most: int) -> bytes:
        """The content of the next file, which must have that name, and no more bytes than that."""
        data = self._take(BLOCK)
        found = _parsed(data)
        if found is None or found.name != name or data != header(name, found.size):
            raise ArtifactError(f"bundle: {_described(data)}, expected {name}")
        if found.size > at_most:
            raise ArtifactError(f"bundle: {name}: {found.size} bytes, expected {at_most} at most")
        return b"".join(self._content(name, found.size))

    def file(self, name: str, size: int) -> Iterator[bytes]:
        """The content of the next file, which must have that name and size, in blocks of a MiB."""
        data = self._take(BLOCK)
        if data != header(name, size):
            found = _parsed(data)
            if found is not None and data == header(name, found.size):
                raise ArtifactError(f"bundle: {name}: {found.size} bytes, expected {size}")
            raise ArtifactError(f"bundle: {_described(data)}, expected {name}")
        return self._content(name, size)

    def end(self) -> None:
        """There must be nothing more."""
        self._place = "its end"
        if (data := self._take(len(END))) != END:
            raise ArtifactError(f"bundle: {_described(data[:BLOCK])}, expected its end")
        if self._read(1):
            raise ArtifactError("bundle: found bytes behind its end")

    def _content(self, name: str, size: int) -> Iterator[bytes]:
        self._place = name
        while size:
            block = self._take(min(size, STEP))
            size -= len(block)
            yield block
            if not size and (padding := -len(block) % BLOCK) and any(self._take(padding)):
                raise ArtifactError(f"bundle: {name}: found bytes behind its content")

    def _take(self, length: int) -> bytes:
        """Exactly `length` bytes."""
        parts: list[bytes] = []
        while length:
            part = self._read(length)
            if not part:
                raise ArtifactError(f"bundle: cut short at {self._place}")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _read(self, length: int) -> bytes:
        try:
            return self._stream.read(length)
        except self._errors as error:
            raise ArtifactError(f"bundle: not zstd, damaged or cut short at {self._place}") from error


def _parsed(data: bytes) -> tarfile.TarInfo | None:
    """What a header says, whoever wrote it; None for what is no header."""
    try:
        return tarfile.TarInfo.frombuf(data, "utf-8", "replace")
    except (tarfile.HeaderError, ValueError):
        return None


def _described(data: bytes) -> str:
    found = _parsed(data)
    if found is None:
        return "found no header of tar" if any(data) else "found its end"
    name = f"{found.name[:100]!r}"
    if found.type == tarfile.REGTYPE:
        return f"found {name}"
    return f"found {name}, {_KINDS.get(found.type, 'an extension of tar')}"
