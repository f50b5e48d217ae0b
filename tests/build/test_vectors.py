from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pytest
from numpy.typing import NDArray

from octavo_artifact.errors import ArtifactError
from octavo_artifact.manifest import Column, VectorPartitions
from octavo_build import vectors as module
from octavo_build.lance_format import column_extents, decode, encode
from octavo_build.partitions import partition, probes
from octavo_build.vectors import read_vectors, write_vectors

Rows = tuple[NDArray[np.int32], NDArray[np.int32], list[bytes], NDArray[np.float32]]


def rows(windows: int, dimensions: int = 384, passages: int = 1 << 30) -> Rows:
    generator = np.random.default_rng(7)
    return (
        np.arange(windows, dtype=np.int32) % passages,
        np.arange(windows, dtype=np.int32) % 3,
        [hashlib.sha256(str(row).encode()).digest() for row in range(windows)],
        generator.standard_normal((windows, dimensions), np.float32),
    )


def opened(root: Path) -> Any:
    """The table as LanceDB opens it; imported here, for it costs whoever collects tests two seconds."""
    import lancedb

    return lancedb.connect(root).open_table("vectors")


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def mapped(root: Path, column: Column) -> NDArray[np.generic]:
    parts = [
        np.memmap(root / column.file, np.dtype(column.dtype).newbyteorder("<"), "r", offset, (count, column.width))
        for offset, count in column.extents
    ]
    return np.concatenate(parts)


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(rows(1), id="one row"),
        pytest.param(rows(500), id="some rows"),
        pytest.param(rows(50, passages=1), id="one passage"),
        pytest.param(rows(300, dimensions=5), id="narrow rows"),
        pytest.param(rows(40_000), id="more than a page"),
    ],
)
def test_columns_can_be_mapped_without_lance(tmp_path: Path, written: Rows):
    columns = write_vectors(tmp_path / "vectors.lance", *written).columns

    assert set(columns) == {"passage", "vector"}
    assert np.array_equal(mapped(tmp_path, columns["passage"])[:, 0], written[0])
    assert np.array_equal(mapped(tmp_path, columns["vector"]), written[3])


@pytest.mark.parametrize(
    ("windows", "questions"),
    [pytest.param(2_000, None, id="plain"), pytest.param(600, rows(20)[3], id="with an index")],
)
def test_two_builds_are_equal_byte_for_byte(tmp_path: Path, windows: int, questions: NDArray[np.float32] | None):
    first, second = tmp_path / "a" / "vectors.lance", tmp_path / "another folder" / "vectors.lance"
    written = write_vectors(first, *rows(windows), questions)
    before = os.umask(0o077)
    try:
        assert write_vectors(second, *rows(windows), questions) == written
    finally:
        os.umask(before)

    assert files(first) == files(second)
    for path in (second, *second.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644)


def test_nothing_is_left_over(tmp_path: Path):
    columns = write_vectors(tmp_path / "vectors.lance", *rows(10)).columns

    assert set(files(tmp_path)) == {columns["vector"].file, "vectors.lance/_versions/18446744073709551614.manifest"}


@pytest.mark.slow
def test_lance_and_lancedb_open_the_table(tmp_path: Path):
    written = rows(100)
    write_vectors(tmp_path / "vectors.lance", *written)

    dataset = lance.dataset(tmp_path / "vectors.lance")
    dataset.validate()
    table = dataset.to_table()
    assert table.column_names == ["passage", "window", "text_sha256", "vector"]
    assert table["window"].to_pylist() == written[1].tolist()
    assert table["text_sha256"].to_pylist() == written[2]
    found = opened(tmp_path).search(written[3][17].tolist()).limit(1).to_list()
    assert found[0]["passage"] == 17


def test_a_table_without_rows_opens(tmp_path: Path):
    columns = write_vectors(tmp_path / "vectors.lance", *rows(0)).columns

    assert columns["vector"] == Column(file="", dtype="float32", width=384, extents=())
    assert columns["passage"] == Column(file="", dtype="int32", width=1, extents=())
    dataset = lance.dataset(tmp_path / "vectors.lance")
    dataset.validate()
    assert dataset.count_rows() == 0
    assert opened(tmp_path).count_rows() == 0
    hashes, vectors = read_vectors(tmp_path / "vectors.lance")
    assert (hashes, vectors.shape) == ([], (0, 384))


def unit(windows: int) -> Rows:
    passages, ordinals, hashes, vectors = rows(windows)
    return passages, ordinals, hashes, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_table_with_an_index_has_one_version_and_nothing_left_over(tmp_path: Path):
    written = write_vectors(tmp_path / "vectors.lance", *unit(600), unit(20)[3])

    index = Path(written.columns["centroid"].file).parent
    assert set(files(tmp_path)) == {
        written.columns["vector"].file,
        "vectors.lance/_versions/18446744073709551614.manifest",
        f"{index}/auxiliary.idx",
        f"{index}/index.idx",
    }


def test_partitions_and_centroids_can_be_mapped_without_lance(tmp_path: Path):
    vectors = unit(600)[3]
    written = write_vectors(tmp_path / "vectors.lance", *unit(600), unit(20)[3])

    partitions = partition(vectors)
    assert np.array_equal(mapped(tmp_path, written.columns["partition"])[:, 0], partitions.of_rows)
    assert np.array_equal(mapped(tmp_path, written.columns["centroid"]), partitions.centroids)
    assert np.array_equal(mapped(tmp_path, written.columns["vector"]), vectors)
    measured = probes(vectors, partitions, unit(20)[3])
    assert written.index == VectorPartitions("IVF_PQ", 24, 48, measured.count, measured.recall)


def test_lance_and_lancedb_search_by_the_index(tmp_path: Path):
    vectors = unit(600)[3]
    write_vectors(tmp_path / "vectors.lance", *unit(600), unit(20)[3])

    dataset = lance.dataset(tmp_path / "vectors.lance")
    dataset.validate()
    nearest: dict[str, object] = {"column": "vector", "q": vectors[17], "k": 3, "nprobes": 24, "refine_factor": 20}
    plan = dataset.scanner(nearest=nearest).explain_plan()
    assert "ANNSubIndex" in plan
    found = dataset.to_table(nearest=nearest)["passage"].to_pylist()
    assert found == np.argsort(-(vectors @ vectors[17]))[:3].tolist()
    table = opened(tmp_path)
    assert [(each.name, each.index_type, each.columns) for each in table.list_indices()] == [
        ("vector", "IvfPq", ["vector"])
    ]
    assert table.search(vectors[17].tolist()).limit(1).to_list()[0]["passage"] == 17


def test_an_index_of_no_rows_is_none(tmp_path: Path):
    assert write_vectors(tmp_path / "vectors.lance", *rows(0), rows(20)[3]).index is None


@pytest.mark.parametrize("windows", [1, 40_000])
def test_vectors_are_read_back(tmp_path: Path, windows: int):
    written = rows(windows)
    write_vectors(tmp_path / "vectors.lance", *written)

    hashes, vectors = read_vectors(tmp_path / "vectors.lance")

    assert hashes == written[2]
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, written[3])


def test_damaged_vectors_are_refused(tmp_path: Path):
    write_vectors(tmp_path / "vectors.lance", *rows(10))
    for manifest in tmp_path.rglob("*.manifest"):
        manifest.write_bytes(b"x" * 100)

    with pytest.raises(ArtifactError, match=r"vectors\.lance: cannot be read as vectors"):
        read_vectors(tmp_path / "vectors.lance")


def test_a_layout_that_cannot_be_mapped_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_STORAGE_VERSION", "2.2")

    with pytest.raises(ArtifactError, match="column 0 has a page of 50 rows"):
        write_vectors(tmp_path / "vectors.lance", *rows(50, passages=1))


def test_a_packed_column_is_refused(tmp_path: Path):
    columns = write_vectors(tmp_path / "vectors.lance", *rows(1_000)).columns

    with pytest.raises(ArtifactError, match="column 1 has a page of 1000 rows in buffers of"):
        column_extents(tmp_path / columns["vector"].file, 1, 4)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"\x0b", id="unknown wire type"),
        pytest.param(b"\x0a\x05ab", id="cut bytes"),
        pytest.param(b"\x08\xff", id="cut number"),
        pytest.param(b"\x09abc", id="cut fixed64"),
    ],
)
def test_what_is_no_protobuf_is_refused(message: bytes):
    with pytest.raises(ArtifactError, match="Lance metadata"):
        decode(message)


def test_decoding_and_encoding_keep_every_byte():
    message = b"\x08\xac\x02" + b"\x12\x03abc" + b"\x1d1234" + b"\x2112345678" + b"\xfa\x01\x00"

    assert encode(decode(message)) == message
