"""Where everything lies inside an artifact, and the columns of its tables.

The compiler makes Arrow schemas of `Table`, the server and the tests compare files with it, so a column
is named in one place only.
"""

from __future__ import annotations

from dataclasses import dataclass

FORMAT = 3
"""Version of the artifact format; a reader refuses what it does not know. 1 had no freshness, no sections, no gate; 2
no languages, no literals, one encoder."""

MANIFEST = "manifest.json"
REPORT = "report.json"
VECTORS = "vectors.lance"
LEXICAL = "lexical"
POINTER = "latest.json"
ENCODERS = "encoders"
STAGING_PREFIX = ".staging-"

ENCODER_SPEC = "encoder.json"
ENCODER_MODEL = "model.onnx"
ENCODER_TOKENIZER = "tokenizer.json"
ENCODER_ENDPOINT = "endpoint.json"


@dataclass(frozen=True, slots=True)
class Table:
    """A Parquet table of the artifact."""

    file: str
    columns: dict[str, str]
    """Column name to Arrow type name; a trailing `?` means it may be null, `[]` a list of it."""
    key: tuple[str, ...]
    """Columns whose order the rows have, and by which the logical hash sorts."""


DOCUMENTS = Table(
    file="documents.parquet",
    columns={
        "path": "string",
        "id": "string",
        "uri": "string",
        "title": "string",
        "description": "string?",
        "type": "string?",
        "tags": "string[]",
        "pack": "string",
        "tier": "string",
        "strategy": "string",
        "scope": "string",
        "searchable": "bool",
        "mime_type": "string",
        "frontmatter": "string",
        "raw": "binary",
        "body_offset": "int64",
        "file_sha256": "string",
        "body_sha256": "string",
        "verified_at": "string?",
        "verified_by": "string?",
        "confidence": "string?",
        "requires": "string[]",
        "related": "string[]",
        "refresh": "string?",
        "expires_at": "string?",
        "marks": "string",
        "activation": "string?",
        "chunks": "string",
        "audience": "string",
        "language": "string?",
    },
    key=("path",),
)

PASSAGES = Table(
    file="passages.parquet",
    columns={
        "document": "int32",
        "ordinal": "int32",
        "section": "string",
        "heading_path": "string[]",
        "start_line": "int32",
        "end_line": "int32",
        "start_byte": "int64",
        "end_byte": "int64",
        "span_sha256": "string",
        "tokens": "int32",
        "prefix": "string",
        "context_prefix": "string",
        "expires_at": "string?",
        "language": "string",
    },
    key=("document", "ordinal"),
)

SECTIONS = Table(
    file="sections.parquet",
    columns={
        "document": "int32",
        "ordinal": "int32",
        "level": "int32",
        "title": "string",
        "anchor": "string",
        "start_line": "int32",
        "end_line": "int32",
    },
    key=("document", "ordinal"),
)

EDGES = Table(
    file="edges.parquet",
    columns={"source": "string", "target": "string", "kind": "string"},
    key=("source", "target", "kind"),
)

NODES = Table(
    file="nodes.parquet",
    columns={
        "id": "string",
        "title": "string",
        "type": "string?",
        "file": "string?",
        "kind": "string",
        "aliases": "string[]",
        "status": "string?",
    },
    key=("id",),
)

RESOURCES = Table(
    file="resources.parquet",
    columns={
        "uri": "string",
        "name": "string",
        "title": "string",
        "description": "string?",
        "mime_type": "string",
        "size": "int64",
        "sha256": "string",
        "document": "int32?",
        "content": "binary?",
        "start": "int64",
        "frontmatter": "string?",
    },
    key=("uri",),
)

TABLES = (DOCUMENTS, PASSAGES, SECTIONS, EDGES, NODES, RESOURCES)
