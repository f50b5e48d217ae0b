"""The vector table: a Lance dataset that is the same, byte for byte, in every build.

Anybody opens it with Lance or LanceDB; the server maps its columns from the data file without either, at the offsets
that the manifest gives. That holds because each column is one plain plane of little-endian values. A large table has an
IVF_PQ index as well: Lance and LanceDB search by it, the server by its centroids and by the column `partition`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from octavo_artifact.errors import ArtifactError
from octavo_artifact.manifest import Column, VectorPartitions
from octavo_build.lance_format import canonicalise, centroids_extent, column_extents
from octavo_build.partitions import Partitions, codebook, partition, probes

INDEXED_FROM = 50_000
"""Windows from which a pack's table gets an index. Below, comparing all of them costs less than 4 ms of CPU."""
QUESTIONS = 300
"""By which the index is measured, at most."""

# 2.2 would fold a column of one repeated value (a pack of one passage) into the metadata, where nothing can map it.
_STORAGE_VERSION = "2.1"
_VECTOR = "vector"
_INDEX = "IVF_PQ"
_PLANE = {"lance-encoding:compression": "none", "lance-encoding:structural-encoding": "fullzip"}


@dataclass(frozen=True, slots=True)
class Written:
    """What the manifest says of the table."""

    columns: dict[str, Column]
    """See `Manifest.columns`."""
    index: VectorPartitions | None


def write_vectors(  # noqa: PLR0917  # four columns of one table
    directory: Path,
    passages: NDArray[np.int32],
    ordinals: NDArray[np.int32],
    hashes: list[bytes],
    vectors: NDArray[np.float32],
    questions: NDArray[np.float32] | None = None,
) -> Written:
    """Write one row a window to `directory`, which must not exist; where its columns lie, and how it is searched.

    `passages` and `ordinals` are int32 [windows], `hashes` the sha256 of each window's text, `vectors` float32
    [windows, dim], rows unit length. With `questions`, float32 [n, dim], the table gets an index, and its probes are
    chosen by them. Without windows the columns have no extents and no file. Raises ArtifactError when Lance laid a
    column out in another way than a plain plane.
    """
    partitions = None if questions is None or not len(vectors) else partition(vectors)
    directory.parent.mkdir(parents=True, exist_ok=True)
    table = _table(passages, ordinals, hashes, vectors, partitions)
    # One file, whatever the number of rows, so that one map serves them all.
    dataset = lance.write_dataset(
        table, directory, mode="create", data_storage_version=_STORAGE_VERSION, max_rows_per_file=max(len(vectors), 1)
    )
    index = None
    if partitions and questions is not None:
        book = codebook(vectors, partitions)
        _add_index(dataset, partitions, book)
        found = probes(vectors, partitions, questions)
        index = VectorPartitions(_INDEX, len(partitions.centroids), len(book), found.count, found.recall)
    canonicalise(directory)
    files = list(directory.glob("data/*.lance"))
    if len(files) != min(len(vectors), 1):
        raise ArtifactError(f"{directory.name}: {len(vectors)} rows in {len(files)} data files, expected one")
    planes: dict[str, NDArray[np.generic]] = {"passage": passages, "vector": vectors}
    if partitions:
        planes["partition"] = partitions.of_rows
    columns = {name: _column(files, table.schema.get_field_index(name), plane) for name, plane in planes.items()}
    if partitions:
        columns["centroid"] = _centroids(directory, partitions.centroids)
    return Written(columns, index)


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


def _table(
    passages: NDArray[np.int32],
    ordinals: NDArray[np.int32],
    hashes: list[bytes],
    vectors: NDArray[np.float32],
    partitions: Partitions | None,
) -> pa.Table:
    vector = pa.list_(pa.field("item", pa.float32(), nullable=False), vectors.shape[1])
    columns = [
        (pa.field("passage", pa.int32(), nullable=False, metadata=_PLANE), pa.array(passages, pa.int32())),
        (pa.field("window", pa.int32(), nullable=False), pa.array(ordinals, pa.int32())),
        (pa.field("text_sha256", pa.binary(32), nullable=False), pa.array(hashes, pa.binary(32))),
        (
            pa.field(_VECTOR, vector, nullable=False, metadata=_PLANE),
            pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), type=vector),
        ),
    ]
    if partitions:
        field = pa.field("partition", pa.int32(), nullable=False, metadata=_PLANE)
        columns.append((field, pa.array(partitions.of_rows, pa.int32())))
    fields, arrays = zip(*columns, strict=True)
    return pa.Table.from_arrays(list(arrays), schema=pa.schema(fields))


def _add_index(dataset: lance.LanceDataset, partitions: Partitions, book: NDArray[np.float32]) -> None:
    """Add the index over given centroids and codes: left to train them, Lance draws samples at random."""
    dataset.create_index(
        _VECTOR,
        _INDEX,
        name=_VECTOR,
        metric="cosine",
        num_partitions=len(partitions.centroids),
        num_sub_vectors=len(book),
        ivf_centroids=partitions.centroids,
        pq_codebook=pa.FixedSizeListArray.from_arrays(pa.array(book.ravel()), book.shape[2]),
    )


def _centroids(directory: Path, centroids: NDArray[np.float32]) -> Column:
    """Where the index has its centroids, once they were compared with what it was given."""
    (file,) = directory.glob("_indices/*/index.idx")
    offset, size = centroids_extent(file)
    if file.read_bytes()[offset : offset + size] != centroids.astype("<f4").tobytes():
        raise ArtifactError(f"{directory.name}: the index has other centroids than it was given")
    name = file.relative_to(directory.parent).as_posix()
    return Column(file=name, dtype="float32", width=centroids.shape[1], extents=((offset, len(centroids)),))


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
