from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from octavo_artifact.errors import ArtifactError
from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_artifact.layout import FORMAT
from octavo_artifact.manifest import (
    Column,
    FileEntry,
    Manifest,
    VectorPartitions,
    check_files,
    fingerprint,
    manifest_bytes,
    parse_manifest,
    read_manifest,
    read_pointer,
)
from octavo_artifact.schema import EncoderSpec

ENCODER = EncoderSpec("mini", "a" * 64, "b" * 64, 4, 16, "mean", True)
MANIFEST = Manifest(
    digest="",
    pack={"slug": "p", "name": "P"},
    encoder=ENCODER,
    parameters={"x": {"y": 1}},
    libraries={"octavo": "0"},
    counts={"documents": 1},
    columns={"vector": Column("vectors.lance/data/x.lance", "float32", 4, ((0, 2), (64, 1)))},
    tables={"documents.parquet": "c" * 64},
    files={"a.txt": FileEntry(sha256_hex(b"hello"), 5)},
)


def artifact(root: Path, manifest: Manifest = MANIFEST) -> Path:
    data = manifest_bytes(manifest)
    directory = root / "p" / sha256_hex(data)
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_bytes(data)
    (directory / "a.txt").write_bytes(b"hello")
    return directory


def test_a_manifest_reads_back_as_it_was_written() -> None:
    data = manifest_bytes(MANIFEST)
    assert parse_manifest(data) == replace(MANIFEST, digest=sha256_hex(data))


def test_an_index_reads_back_as_it_was_written() -> None:
    manifest = replace(MANIFEST, index=VectorPartitions("IVF_PQ", 316, 48, 20, 0.991))
    assert parse_manifest(manifest_bytes(manifest)).index == manifest.index


@pytest.mark.parametrize(
    ("index", "message"),
    [
        pytest.param({"nprobes": 0}, "nprobes is 0, expected 1 to 316", id="none probed"),
        pytest.param({"nprobes": 317}, "nprobes is 317, expected 1 to 316", id="more than there are"),
        pytest.param({"graph": 1}, "not a manifest", id="unknown field"),
    ],
)
def test_an_index_that_cannot_be_is_refused(index: dict[str, int], message: str) -> None:
    known = {"kind": "IVF_PQ", "partitions": 316, "sub_vectors": 48, "nprobes": 20, "recall": 0.991}
    fields = json.loads(manifest_bytes(MANIFEST)) | {"index": known | index}
    with pytest.raises(ArtifactError, match=message):
        parse_manifest(canonical_json(fields))


def test_an_artifact_is_checked_from_its_directory_name_down(tmp_path: Path) -> None:
    directory = artifact(tmp_path)
    check_files(directory, read_manifest(directory))


def test_another_format_is_refused_with_its_number() -> None:
    data = canonical_json({**json.loads(manifest_bytes(MANIFEST)), "format": FORMAT + 1})
    with pytest.raises(ArtifactError, match=f"format {FORMAT + 1}, this Octavo reads format {FORMAT}"):
        parse_manifest(data)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b"\xff", b'{"format":1}', b"[" * 100_000])
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"manifest\.json"):
        parse_manifest(data)


@pytest.mark.parametrize("path", ["../a", "/a", "a/../../b", "", "a//b", "./a"])
def test_a_manifest_names_files_inside_the_artifact_only(path: str) -> None:
    fields = json.loads(manifest_bytes(MANIFEST))
    fields["files"] = {path: {"sha256": "0" * 64, "size": 0}}
    with pytest.raises(ArtifactError, match="not a path inside the artifact"):
        parse_manifest(canonical_json(fields))


def test_a_directory_with_another_name_is_refused(tmp_path: Path) -> None:
    directory = artifact(tmp_path)
    moved = directory.rename(directory.with_name("0" * 64))
    with pytest.raises(ArtifactError, match=r"the directory is named 0{64}"):
        read_manifest(moved)


@pytest.mark.parametrize("pointer", [b"", b"{}", b"[]", b'{"digest": 7}', b'{"digest": "../x"}'])
def test_what_is_no_pointer_is_refused(tmp_path: Path, pointer: bytes) -> None:
    (tmp_path / "latest.json").write_bytes(pointer)
    with pytest.raises(ArtifactError, match=re.escape(f"{tmp_path.name}/latest.json")):
        read_pointer(tmp_path)


def test_the_fingerprint_is_of_everything_but_the_name() -> None:
    assert fingerprint(ENCODER) == fingerprint(replace(ENCODER, name="other"))
    assert fingerprint(ENCODER) != fingerprint(replace(ENCODER, max_tokens=17))
    assert fingerprint(ENCODER) != fingerprint(replace(ENCODER, model_sha256="c" * 64))
