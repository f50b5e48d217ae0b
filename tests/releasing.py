"""Small releases for tests of what an operator does: whole by their hashes, and of nothing that could be searched."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_artifact.manifest import FileEntry, Manifest, fingerprint, manifest_bytes
from octavo_artifact.placing import point
from octavo_artifact.schema import EncoderSpec

MODEL = {"model.onnx": b"a model" * 300, "tokenizer.json": b"{}"}
SPEC = EncoderSpec("mini", sha256_hex(MODEL["model.onnx"]), sha256_hex(MODEL["tokenizer.json"]), 4, 16, "mean", True)
REMOTE = EncoderSpec("far", "", "", 4, 16, "endpoint", True, model="far", probe=(0.5, 0.5))
FILES = {
    "documents.parquet": b"rows of documents" * 100,
    "empty.parquet": b"",
    "lexical/meta.json": b"x" * 512,
    "lexical/.managed.json": b"[]",
    "vectors.lance/data/0.lance": bytes(range(256)) * 5,
}


def tree(root: Path) -> dict[str, tuple[str, bytes]]:
    """Mode and bytes of all under a folder."""
    return {
        path.relative_to(root).as_posix(): (
            oct(path.lstat().st_mode),
            path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
        )
        for path in sorted(root.rglob("*"))
    }


def manifest_of(files: dict[str, bytes], slug: str = "p", spec: EncoderSpec = SPEC, version: str = "1") -> Manifest:
    return Manifest(
        digest="",
        pack={"slug": slug, "name": "P", "version": version},
        encoder=spec,
        parameters={},
        libraries={},
        counts={},
        columns={},
        tables={},
        files={path: FileEntry(sha256_hex(data), len(data)) for path, data in files.items()},
    )


def released(
    dist: Path, files: dict[str, bytes] = FILES, slug: str = "p", spec: EncoderSpec = SPEC, version: str = "1"
) -> Path:
    """A release of `files` in a dist, with its encoder, made current."""
    data = manifest_bytes(manifest_of(files, slug, spec, version))
    artifact = dist / slug / sha256_hex(data)
    for path, content in {**files, "manifest.json": data}.items():
        (artifact / path).parent.mkdir(parents=True, exist_ok=True)
        (artifact / path).write_bytes(content)
    encoder = dist / "encoders" / fingerprint(spec)
    encoder.mkdir(parents=True, exist_ok=True)
    endpoint = canonical_json({"url": "http://127.0.0.1:9/v1", "key_env": "", "send_dimensions": False})
    own = {"endpoint.json": endpoint} if spec.model else MODEL
    for name, content in {**own, "encoder.json": canonical_json(asdict(spec))}.items():
        (encoder / name).write_bytes(content)
    point(artifact)
    return artifact
