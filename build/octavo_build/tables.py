"""Documents, passages and the rest as Parquet: equal rows give equal bytes.

The tables are the compiler's own intermediate results too: each stage reads the tables of the stage before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from octavo_artifact.layout import DOCUMENTS, EDGES, NODES, PASSAGES, RESOURCES, SECTIONS, Table
from octavo_artifact.schema import Document, Edge, Node, Passage, Resource, Section

Row = TypeVar("Row", Document, Passage, Section, Edge, Node, Resource)

_TABLE_OF: dict[type[Any], Table] = {
    Document: DOCUMENTS,
    Passage: PASSAGES,
    Section: SECTIONS,
    Edge: EDGES,
    Node: NODES,
    Resource: RESOURCES,
}

GROUP_BYTES = 2**20
"""Bytes of document a row group holds at least: reading one document decompresses about this much."""
HASH_BATCH = 65_536


def arrow_schema(table: Table) -> pa.Schema:
    """The Arrow schema of a table of the format."""
    return pa.schema([_field(name, spelled) for name, spelled in table.columns.items()])


def _field(name: str, spelled: str) -> pa.Field:
    kind = spelled.rstrip("?[]")
    arrow = {"string": pa.string(), "bool": pa.bool_(), "binary": pa.binary(), "int32": pa.int32(), "int64": pa.int64()}
    if spelled.endswith("[]"):
        return pa.field(name, pa.list_(pa.field("element", arrow[kind], nullable=False)), nullable=False)
    return pa.field(name, arrow[kind], nullable=spelled.endswith("?"))


def write_table(path: Path, kind: type[Row], rows: Iterable[Row]) -> None:
    """Write rows as Parquet (zstd). Documents get row groups of about GROUP_BYTES of source, so that one can be read
    without the others.
    """
    with TableWriter(path, kind) as writer:
        for row in rows:
            writer.add(row)


class TableWriter(Generic[Row]):
    """Writes what `write_table` does, of rows that come one by one, and holds no more of them than a row group."""

    def __init__(self, path: Path, kind: type[Row]) -> None:
        self._schema = arrow_schema(_TABLE_OF[kind])
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd", store_schema=False)
        self._group: list[Row] = []
        self._size, self._is_empty = 0, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Write the last group and the footer."""
        if self._group or self._is_empty:
            self._flush()
        self._writer.close()

    def add(self, row: Row) -> None:
        """Take a row; it is written with its group."""
        self._group.append(row)
        self._size += len(row.raw) if isinstance(row, Document) else 256
        if self._size >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        schema = self._schema
        columns = [pa.array([getattr(row, n) for row in self._group], schema.field(n).type) for n in schema.names]
        table = pa.Table.from_arrays(columns, schema=schema)
        self._writer.write_table(table, row_group_size=max(1, len(self._group)))
        self._group, self._size, self._is_empty = [], 0, False


def read_table(path: Path, kind: type[Row]) -> list[Row]:
    """The rows of a table as objects."""
    return list(iterate_table(path, kind))


def iterate_table(path: Path, kind: type[Row]) -> Iterator[Row]:
    """The rows of a table as objects, a row group at a time."""
    names = [field.name for field in fields(kind)]
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            columns = [
                (tuple(value) for value in column) if pa.types.is_list(table.schema.field(name).type) else column
                for name in names
                for column in (table.column(name).to_pylist(),)
            ]
            yield from (kind(*values) for values in zip(*columns, strict=True))


def logical_hash(path: Path, table: Table) -> str:
    """sha256 over a table's rows as uncompressed Arrow IPC in fixed batches, columns and rows in a set order.

    Equal for equal rows whatever codec, row groups or writer made the file.
    """
    schema = arrow_schema(table)
    names = sorted(schema.names)
    rows = pq.read_table(path).select(schema.names).cast(schema)
    rows = rows.sort_by([(name, "ascending") for name in table.key]).select(names).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema.remove_metadata()) as stream:
        stream.write_table(rows, max_chunksize=HASH_BATCH)
    return hashlib.sha256(sink.getvalue()).hexdigest()
