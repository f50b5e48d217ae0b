"""A pack as its adapter read it: documents, identity, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from octavo_artifact.parameters import DEFAULTS
from octavo_artifact.schema import AUDIENCES, Document, Resource
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
    """Name of the adapter: `expertpack`, `okf`, `repository` or `docs`."""
    metadata: dict[str, Any]
    """The pack's manifest as written, scalars as strings; empty when it has none."""
    documents: tuple[Document, ...]
    """Sorted by path."""
    findings: tuple[Finding, ...]
    retrieval: dict[str, Any] = field(default_factory=lambda: asdict(DEFAULTS))
    """The parameters of the search, by name."""
    audience: str = AUDIENCES[0]
    """The narrowest for which a document of it is."""
    sidecars: Mapping[str, str] = field(default_factory=dict[str, str])
    """Path of a sidecar to that of its document."""
    extras: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Path to bytes of files that say something of the documents: `_graph.yaml`, `ontology.yaml`."""
    fronts: Mapping[str, Frontmatter] = field(default_factory=dict[str, Frontmatter])
    """Frontmatter by path, where the adapter hands it on to spare lint a second reading."""


def file_resource(row: int, document: Document) -> Resource:
    """A document as MCP lists it: all bytes of its file, under its own URI."""
    return Resource(
        uri=document.uri,
        name=document.path,
        title=document.title,
        description=document.description,
        mime_type=document.mime_type,
        size=len(document.raw),
        sha256=document.file_sha256,
        document=row,
        content=None,
    )
