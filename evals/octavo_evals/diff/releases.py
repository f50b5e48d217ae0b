"""Which release is meant, and its rows: every table is read once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.ids import DIGEST, SLUG, fragment_id
from octavo_artifact.layout import DOCUMENTS, EDGES, PASSAGES, POINTER, REPORT, SECTIONS, Table
from octavo_artifact.manifest import Manifest, check_files, read_manifest, read_pointer
from octavo_artifact.schema import Edge

_NAMED = re.compile(rf"(?P<slug>{SLUG.pattern})@(?P<digest>[0-9a-f]{{6,64}})")
_UNREAD = frozenset({"marks", "chunks"})


@dataclass(frozen=True, slots=True)
class Release:
    """The rows of one checked artifact."""

    artifact: Path
    manifest: Manifest
    documents: Sequence[Mapping[str, Any]]
    passages: Sequence[Mapping[str, Any]]
    """Rows of `layout.PASSAGES`, and `fragment`, the passage's fragment id."""
    sections: Sequence[Mapping[str, Any]]
    edges: frozenset[Edge]
    findings: Sequence[Mapping[str, Any]]
    """What the build found, as `report.json` has it."""


def resolve(name: str, dist: Path) -> Path:
    """The artifact that `dist/SLUG/DIGEST`, `dist/SLUG` (the current one) or `SLUG@DIGEST` means.

    A digest after `@` may be cut after six digits or more; it is looked up in `dist`. Raises ConfigError or
    ArtifactError when there is none, or more than one.
    """
    path = Path(name)
    named = _NAMED.fullmatch(name)
    if named and not path.exists():
        return _by_digest(dist / named["slug"], named["digest"])
    if DIGEST.fullmatch(path.name) and path.is_dir():
        return path.resolve()
    if (path / POINTER).is_file():
        return path.resolve() / read_pointer(path)
    raise ConfigError(f"{name}: no release; expected dist/SLUG/DIGEST, dist/SLUG or SLUG@DIGEST")


def _by_digest(pack: Path, prefix: str) -> Path:
    found = sorted(path.name for path in pack.glob(f"{prefix}*") if DIGEST.fullmatch(path.name))
    if len(found) == 1:
        return pack.resolve() / found[0]
    if found:
        raise ConfigError(f"{pack.name}@{prefix}: {len(found)} releases begin so; give more digits")
    there = ", ".join(sorted(path.name[:12] for path in pack.glob("*") if DIGEST.fullmatch(path.name))) or "none"
    raise ArtifactError(f"{pack.name}@{prefix}: no such release in {pack.parent.name}; there are: {there}")


def read_release(artifact: Path) -> Release:
    """Check every file of an artifact and read its rows. Raises ArtifactError for the first that is damaged."""
    manifest = read_manifest(artifact)
    check_files(artifact, manifest)
    documents = _rows(artifact, DOCUMENTS)
    passages = _rows(artifact, PASSAGES)
    for passage in passages:
        owner = documents[passage["document"]]["id"]
        passage["fragment"] = fragment_id(owner, passage["section"], passage["span_sha256"])
    return Release(
        artifact=artifact,
        manifest=manifest,
        documents=documents,
        passages=passages,
        sections=_rows(artifact, SECTIONS),
        edges=frozenset(Edge(**row) for row in _rows(artifact, EDGES)),
        findings=json.loads((artifact / REPORT).read_bytes())["findings"],
    )


def _rows(artifact: Path, table: Table) -> list[dict[str, Any]]:
    from pyarrow import parquet

    columns = [name for name in table.columns if name not in _UNREAD]
    return parquet.read_table(artifact / table.file, columns=columns).to_pylist()
