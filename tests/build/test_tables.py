from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from octavo_artifact.layout import DOCUMENTS, NODES
from octavo_artifact.schema import Document, Edge, Node
from octavo_build.tables import GROUP_BYTES, arrow_schema, logical_hash, read_table, write_table


def document(name: str, raw: bytes = b"x") -> Document:
    return Document(
        path=name, id=name, uri=f"ep://p/file/{name}", title=name, description=None, type=None, tags=("a", "b"),
        pack="p", tier="searchable", strategy="standard", scope="single", searchable=True, mime_type="text/markdown",
        frontmatter="{}", raw=raw, body_offset=0, file_sha256="", body_sha256="", verified_at=None, verified_by=None,
        confidence=None, requires=(), related=("c",),
    )  # fmt: skip


def test_rows_read_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [document("a.md"), document("b.md", b"\xff\x00")]
    write_table(tmp_path / "t", Document, rows)
    assert read_table(tmp_path / "t", Document) == rows


def test_a_table_without_rows_has_its_schema(tmp_path: Path) -> None:
    write_table(tmp_path / "t", Document, [])
    assert pq.read_schema(tmp_path / "t").names == list(DOCUMENTS.columns)
    assert read_table(tmp_path / "t", Document) == []


def test_the_stored_schema_is_the_formats(tmp_path: Path) -> None:
    write_table(tmp_path / "t", Document, [document("a.md")])
    stored, declared = pq.read_schema(tmp_path / "t"), arrow_schema(DOCUMENTS)
    assert [(field.name, field.type) for field in stored] == [(field.name, field.type) for field in declared]


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    rows = [document(f"{n}.md") for n in range(50)]
    for name in ("one", "two"):
        write_table(tmp_path / name, Document, rows)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_large_documents_stand_in_row_groups_of_their_own(tmp_path: Path) -> None:
    rows = [document("a", b"x" * GROUP_BYTES), document("b", b"y" * GROUP_BYTES), document("c"), document("d")]
    write_table(tmp_path / "t", Document, rows)
    metadata = pq.read_metadata(tmp_path / "t")
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [1, 1, 2]


def test_the_logical_hash_is_of_rows_and_not_of_their_encoding(tmp_path: Path) -> None:
    rows = [Node(f"n{n}", "t", None, None) for n in range(9)]
    write_table(tmp_path / "one", Node, rows)
    shuffled = pq.read_table(tmp_path / "one").take([8, 3, 1, 0, 2, 7, 5, 4, 6])
    pq.write_table(shuffled, tmp_path / "two", compression="snappy", row_group_size=2)
    assert logical_hash(tmp_path / "one", NODES) == logical_hash(tmp_path / "two", NODES)
    write_table(tmp_path / "three", Node, rows[:-1])
    assert logical_hash(tmp_path / "one", NODES) != logical_hash(tmp_path / "three", NODES)


def test_edges_are_rows_too(tmp_path: Path) -> None:
    write_table(tmp_path / "t", Edge, [Edge("a", "b", "requires")])
    assert read_table(tmp_path / "t", Edge) == [Edge("a", "b", "requires")]
