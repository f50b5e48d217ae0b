"""What Octavo reads and rewrites of the Lance file format (2.1) by itself.

Lance names data files at random, stamps the clock, and writes hash maps in random order; the data between is
reproducible. Here a finished dataset, with or without indices, is made so as a whole, and the place of its columns
and of an index's centroids is read from the metadata. Follows `table.proto`, `file.proto`, `file2.proto` and
`index.proto` of Lance.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from octavo_artifact.errors import ArtifactError
from octavo_artifact.ids import sha256_file

_MAGIC = b"LANC"
_FILE_FOOTER = struct.Struct("<QQQIIHH4s")
"""Column metadata start, column table, global buffer table, global buffers, columns, major, minor, magic."""
_MANIFEST_FOOTER = struct.Struct("<QHH4s")
"""Manifest position, major, minor, magic."""
_TABLE_ENTRY = struct.Struct("<QQ")
"""Position and size, of a column's metadata or of a global buffer."""
_LENGTH = struct.Struct("<I")

_FIRST_VERSION = f"{2**64 - 2:020d}.manifest"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# table.proto, Manifest
_FIELDS, _FRAGMENTS, _VERSION, _INDEX_SECTION, _TIMESTAMP = 1, 2, 3, 6, 7
_MANIFEST_MAPS = (5, 16, 19)  # schema metadata, config, table metadata
_TRANSACTION = (12, 21, 23)  # name of its file, and its place in the manifest as two versions of Lance write it
# table.proto, DataFragment and DataFile
_FRAGMENT_FILES, _FILE_PATH = 2, 1
# table.proto, IndexSection and IndexMetadata; index.proto, VectorIndexDetails
_INDICES, _INDEX_UUID, _INDEX_VERSION, _INDEX_DETAILS, _INDEX_CREATED, _INDEX_FILES = 1, 1, 4, 6, 8, 10
_ANY_VALUE, _RUNTIME_HINTS, _UUID_BYTES = 2, 9, 1
# index.proto, IVF and Tensor
_IVF_CENTROIDS, _TENSOR_DATA = 4, 3
# file.proto, FileDescriptor, Schema and Field
_DESCRIPTOR_SCHEMA, _SCHEMA_METADATA, _FIELD_METADATA = 1, 5, 10
# file2.proto, ColumnMetadata and Page
_PAGES, _BUFFER_OFFSETS, _BUFFER_SIZES, _PAGE_ROWS = 2, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a protobuf message."""

    number: int
    wire: int
    payload: bytes
    """As on the wire, without the length of a length-delimited field."""


def decode(message: bytes) -> list[Field]:
    """The fields of a protobuf message, in the order they stand; raises ArtifactError when it is not one."""
    fields: list[Field] = []
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        wire = tag & 7
        if wire == _BYTES:
            size, position = _varint(message, position)
            end = position + size
        elif wire == _VARINT:
            end = _varint(message, position)[1]
        elif wire in (_FIXED64, _FIXED32):
            end = position + (8 if wire == _FIXED64 else 4)
        else:
            raise ArtifactError(f"Lance metadata: protobuf wire type {wire}, expected 0, 1, 2 or 5")
        if end > len(message):
            raise ArtifactError("Lance metadata: cut short inside a protobuf field")
        fields.append(Field(tag >> 3, wire, message[position:end]))
        position = end
    return fields


def encode(fields: Iterable[Field]) -> bytes:
    """The protobuf message of `fields`; `encode(decode(message)) == message`."""
    out = bytearray()
    for field in fields:
        out += _to_varint(field.number << 3 | field.wire)
        if field.wire == _BYTES:
            out += _to_varint(len(field.payload))
        out += field.payload
    return bytes(out)


def canonicalise(dataset: Path) -> None:
    """Give a dataset that was just written the only bytes its rows can have. Its versions become one, the latest."""
    names: dict[bytes, bytes] = {}
    for file in dataset.glob("data/*.lance"):
        _sort_file_schema(file)
        name = f"{sha256_file(file)}.lance"
        file.rename(file.with_name(name))
        names[file.name.encode()] = name.encode()
    indices = {index.name: _name_index(index) for index in dataset.glob("_indices/*")}
    versions = dataset / "_versions"
    latest, *earlier = sorted(versions.glob("*.manifest"))  # named by their distance from the last possible version
    for manifest in earlier:
        manifest.unlink()
    _rewrite_manifest(latest, names, indices)
    latest.rename(versions / _FIRST_VERSION)
    (versions / "latest_version_hint.json").unlink(missing_ok=True)
    shutil.rmtree(dataset / "_transactions", ignore_errors=True)
    for path in (dataset, *dataset.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def column_extents(file: Path, column: int, row_bytes: int) -> tuple[tuple[int, int], ...]:
    """(byte offset, rows) of each page of a fixed-width column, in row order.

    Raises ArtifactError when a page is anything but one plane of `row_bytes` a row, for then it cannot be mapped.
    """
    with file.open("rb") as data:
        data.seek(-_FILE_FOOTER.size, 2)
        table = _file_footer(data.read())[0]
        data.seek(table + column * _TABLE_ENTRY.size)
        position, size = _TABLE_ENTRY.unpack(data.read(_TABLE_ENTRY.size))
        data.seek(position)
        metadata = decode(data.read(size))
    extents: list[tuple[int, int]] = []
    for page in (field.payload for field in metadata if field.number == _PAGES):
        fields = {field.number: field.payload for field in decode(page)}
        offsets, sizes = _varints(fields.get(_BUFFER_OFFSETS, b"")), _varints(fields.get(_BUFFER_SIZES, b""))
        rows = _varint(fields[_PAGE_ROWS], 0)[0]
        if sizes != [rows * row_bytes]:
            raise ArtifactError(
                f"{file.name}: column {column} has a page of {rows} rows in buffers of {sizes} bytes, "
                f"expected one of {rows * row_bytes}"
            )
        extents.append((offsets[0], rows))
    return tuple(extents)


def centroids_extent(file: Path) -> tuple[int, int]:
    """(byte offset, bytes) of the centroids in an IVF index's `index.idx`; raises ArtifactError when it has none."""
    with file.open("rb") as data:
        data.seek(-_FILE_FOOTER.size, 2)
        data.seek(_file_footer(data.read())[1] + _TABLE_ENTRY.size)  # the second global buffer is the IVF
        position, size = _TABLE_ENTRY.unpack(data.read(_TABLE_ENTRY.size))
        data.seek(position)
        ivf = data.read(size)
    tensor, start = _find(ivf, _IVF_CENTROIDS)
    values, offset = _find(tensor, _TENSOR_DATA)
    return position + start + offset, len(values)


def _find(message: bytes, number: int) -> tuple[bytes, int]:
    """The payload of the one field of that number, and where in the message it begins."""
    before = b""
    for field in decode(message):
        if field.number == number and field.wire == _BYTES:
            return field.payload, len(before) + len(encode([field])) - len(field.payload)
        before += encode([field])
    raise ArtifactError(f"Lance metadata: no field {number}")


def _file_footer(footer: bytes) -> tuple[int, int]:
    """Positions of the column table and of the global buffer table."""
    _, columns, buffers, _, _, _, _, magic = _FILE_FOOTER.unpack(footer)
    if magic != _MAGIC:
        raise ArtifactError(f"Lance data file: ends in {magic!r}, expected {_MAGIC!r}")
    return columns, buffers


def _sort_file_schema(file: Path) -> None:
    """Sort the maps of the schema in a data file. Only the order changes, so everything stays where it is."""
    with file.open("r+b") as data:
        data.seek(-_FILE_FOOTER.size, 2)
        data.seek(_file_footer(data.read())[1])
        position, size = _TABLE_ENTRY.unpack(data.read(_TABLE_ENTRY.size))  # the first global buffer is the schema
        data.seek(position)
        descriptor = _edit(data.read(size), {_DESCRIPTOR_SCHEMA: _sort_schema})
        data.seek(position)
        data.write(descriptor)


def _name_index(directory: Path) -> uuid.UUID:
    """Sort the maps in an index's files, and name it by their content instead of at random."""
    content = hashlib.sha256()
    for file in sorted(directory.iterdir()):
        _sort_file_schema(file)
        content.update(f"{file.name} {sha256_file(file)}\n".encode())
    name = uuid.UUID(bytes=content.digest()[:16], version=4)
    directory.rename(directory.with_name(str(name)))
    return name


def _rewrite_manifest(file: Path, names: Mapping[bytes, bytes], indices: Mapping[str, uuid.UUID]) -> None:
    """Give data files and indices their new names, and drop the clock, the transaction and earlier versions.

    The file is the indices' metadata, if there are any, and the manifest, each after its length.
    """
    data = file.read_bytes()
    position, major, minor, magic = _MANIFEST_FOOTER.unpack(data[-_MANIFEST_FOOTER.size :])
    if magic != _MAGIC:
        raise ArtifactError(f"Lance manifest: ends in {magic!r}, expected {_MAGIC!r}")
    fields = decode(data[position + _LENGTH.size : -_MANIFEST_FOOTER.size])
    section = b""
    for field in fields:
        if field.number == _INDEX_SECTION:
            section = _with_length(_rewrite_indices(_message_at(data, _varint(field.payload, 0)[0]), indices))
    manifest = _edit(
        encode(field for field in fields if field.number not in _TRANSACTION),
        {
            _FIELDS: _sort_field,
            _FRAGMENTS: lambda fragment: _edit(
                fragment, {_FRAGMENT_FILES: lambda file: _edit(file, {_FILE_PATH: names.__getitem__})}
            ),
            _VERSION: lambda _: _to_varint(1),
            _INDEX_SECTION: lambda _: _to_varint(0),
            _TIMESTAMP: lambda _: b"",
        },
        _MANIFEST_MAPS,
    )
    footer = _MANIFEST_FOOTER.pack(len(section), major, minor, magic)
    file.write_bytes(section + _with_length(manifest) + footer)


def _rewrite_indices(section: bytes, names: Mapping[str, uuid.UUID]) -> bytes:
    """The metadata of the indices under their new names, of the first version and without the clock."""

    def rename(identifier: bytes) -> bytes:
        return _edit(identifier, {_UUID_BYTES: lambda old: names[str(uuid.UUID(bytes=old))].bytes})

    def sort_hints(details: bytes) -> bytes:
        return _edit(details, {_ANY_VALUE: lambda value: _edit(value, {}, (_RUNTIME_HINTS,))})

    edits: dict[int, Callable[[bytes], bytes]] = {
        _INDEX_UUID: rename,
        _INDEX_VERSION: lambda _: _to_varint(1),
        _INDEX_DETAILS: sort_hints,
        _INDEX_CREATED: lambda _: _to_varint(0),
    }
    return _edit(section, {_INDICES: lambda index: _edit(index, edits, (_INDEX_FILES,))}, (_INDICES,))


def _message_at(data: bytes, position: int) -> bytes:
    (size,) = _LENGTH.unpack_from(data, position)
    return data[position + _LENGTH.size : position + _LENGTH.size + size]


def _with_length(message: bytes) -> bytes:
    return _LENGTH.pack(len(message)) + message


def _sort_schema(schema: bytes) -> bytes:
    return _edit(schema, {_FIELDS: _sort_field}, (_SCHEMA_METADATA,))


def _sort_field(field: bytes) -> bytes:
    return _edit(field, {}, (_FIELD_METADATA,))


def _edit(message: bytes, edits: Mapping[int, Callable[[bytes], bytes]], maps: Iterable[int] = ()) -> bytes:
    """The message with `edits` applied to payloads by field number, and the entries of each of `maps` sorted."""
    fields = [
        replace(field, payload=edits[field.number](field.payload)) if field.number in edits else field
        for field in decode(message)
    ]
    for number in maps:
        entries = iter(sorted(field.payload for field in fields if field.number == number))
        fields = [replace(field, payload=next(entries)) if field.number == number else field for field in fields]
    return encode(fields)


def _varints(packed: bytes) -> list[int]:
    values: list[int] = []
    position = 0
    while position < len(packed):
        value, position = _varint(packed, position)
        values.append(value)
    return values


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """The value that begins at `position`, and the position after it."""
    value = shift = 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ArtifactError("Lance metadata: cut short inside a number")


def _to_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
