"""A pack as its adapter read it: documents, identity, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from octavo_artifact.schema import Document
from octavo_build.findings import Finding
from octavo_build.frontmatter import Frontmatter


@dataclass(frozen=True, slots=True)
class Pack:
    """The result of every source adapter; the rest of the compiler sees nothing else of the source."""

    slug: str
    name: str
    type: str
    version: str
    description: str
    entry_point: str | None
    """Path of the document to read first."""
    source_format: str
    """Name of the adapter: `expertpack`, `okf` or `docs`."""
    metadata: dict[str, Any]
    """The pack's manifest as written, scalars as strings; empty when it has none."""
    documents: tuple[Document, ...]
    """Sorted by path."""
    findings: tuple[Finding, ...]
    extras: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Path to bytes of files that say something of the documents: `_graph.yaml`, `ontology.yaml`."""
    fronts: Mapping[str, Frontmatter] = field(default_factory=dict[str, Frontmatter])
    """Frontmatter by path, where the adapter hands it on to spare lint a second reading."""
