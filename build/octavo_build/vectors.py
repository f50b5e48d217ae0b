"""The vector table: a Lance dataset that is the same, byte for byte, in every build.

Anybody opens it with Lance or LanceDB; the server maps its two columns from the data file without either, at the
offsets that the manifest gives. That holds because each column is one plain plane of little-endian values.
"""

from __future__ import annotations

import math
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from octavo_artifact.errors import ArtifactError
from octavo_artifact.manifest import Column
from octavo_build.lance_format import canonicalise, column_extents

# 2.2 would fold a column of one repeated value (a pack of one passage) into the metadata, where nothing can map it.
_STORAGE_VERSION = "2.1"
_PLANE = {"lance-encoding:compression": "none", "lance-encoding:structural-encoding": "fullzip"}


def write_vectors(
    directory: Path,
    passages: NDArray[np.int32],
    ordinals: NDArray[np.int32],
    hashes: list[bytes],
    vectors: NDArray[np.float32],
) -> dict[str, Column]:
    """Write one row a window to `directory`, which must not exist; the columns `passage` and `vector` to map.

    `passages` and `ordinals` are int32 [windows], `hashes` the sha256 of each window's text, `vectors` float32
    [windows, dim]. Without windows the columns have no extents and no file. Raises ArtifactError when Lance laid a
    column out in another way than a plain plane.
    """
    windows, dimensions = vectors.shape
    schema = _schema(dimensions)
    table = pa.Table.from_arrays(
        [
            pa.array(passages, pa.int32()),
            pa.array(ordinals, pa.int32()),
            pa.array(hashes, pa.binary(32)),
            pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), type=schema.field("vector").type),
        ],
        schema=schema,
    )
    directory.parent.mkdir(parents=True, exist_ok=True)
    # One file, whatever the number of rows, so that one map serves them all.
    lance.write_dataset(
        table, directory, mode="create", data_storage_version=_STORAGE_VERSION, max_rows_per_file=max(windows, 1)
    )
    canonicalise(directory)
    files = list(directory.glob("data/*.lance"))
    if len(files) != min(windows, 1):
        raise ArtifactError(f"{directory.name}: {windows} rows in {len(files)} data files, expected one")
    return {
        "passage": _column(files, schema.get_field_index("passage"), passages),
        "vector": _column(files, schema.get_field_index("vector"), vectors),
    }


def read_vectors(directory: Path) -> tuple[list[bytes], NDArray[np.float32]]:
    """The sha256 of each window's text, and the vectors as float32 [windows, dim], of an artifact built earlier.

    Raises ArtifactError when Lance cannot read them.
    """
    try:
        table = lance.dataset(directory).to_table(columns=["text_sha256", "vector"])
        dimensions = table.schema.field("vector").type.list_size
        vectors = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return table["text_sha256"].to_pylist(), vectors.reshape(-1, dimensions)
    except BaseException as error:  # Lance may panic on what it cannot read, which is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        raise ArtifactError(f"{directory.name}: cannot be read as vectors ({type(error).__name__})") from error


def _schema(dimensions: int) -> pa.Schema:  # pyright: ignore[reportUnknownParameterType] # pyarrow has no types
    vector = pa.list_(pa.field("item", pa.float32(), nullable=False), dimensions)
    return pa.schema(
        [
            pa.field("passage", pa.int32(), nullable=False, metadata=_PLANE),
            pa.field("window", pa.int32(), nullable=False),
            pa.field("text_sha256", pa.binary(32), nullable=False),
            pa.field("vector", vector, nullable=False, metadata=_PLANE),
        ]
    )


def _column(files: list[Path], index: int, values: NDArray[np.generic]) -> Column:
    """Where the column lies in the only file, once what lies there was compared with what was to be written."""
    width = math.prod(values.shape[1:])
    extents: tuple[tuple[int, int], ...] = ()
    name = ""
    start = 0
    for file in files:
        name = f"{file.parent.parent.name}/{file.parent.name}/{file.name}"
        extents = column_extents(file, index, width * values.itemsize)
        for offset, rows in extents:
            found = np.memmap(file, values.dtype.newbyteorder("<"), "r", offset, (rows, *values.shape[1:]))
            if not np.array_equal(found, values[start : start + rows]):
                raise ArtifactError(f"{name}: column {index} at byte {offset} is not what was written")
            start += rows
    if start != len(values):
        raise ArtifactError(f"{name}: column {index} has {start} rows, expected {len(values)}")
    return Column(file=name, dtype=values.dtype.name, width=width, extents=extents)
