"""What MCP lists of a pack: its manifest, its overview, its file list, every file with its true
type, its skills.

Of a knowledge repository it lists what okf-mcp-server does: the bodies of the documents and nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from octavo_artifact.ids import KNOWLEDGE, canonical_json, sha256_hex
from octavo_artifact.schema import Document, Resource
from octavo_build.findings import Finding
from octavo_build.pack import Pack, file_resource
from octavo_build.skills import skill_resources
from octavo_build.sources.repository import NAME as REPOSITORY

JSON = "application/json"


def list_resources(pack: Pack) -> tuple[list[Resource], list[Finding]]:
    """All resources of a pack, sorted by URI, and what is wrong with its skills.

    A file's bytes stay in the documents table.
    """
    listed = [
        _body(row, document) if document.uri.startswith(KNOWLEDGE) else file_resource(row, document)
        for row, document in enumerate(pack.documents)
    ]
    skills, findings = skill_resources(pack)
    made = [] if pack.source_format == REPOSITORY else _made(pack)
    return sorted([*made, *listed, *skills], key=lambda resource: resource.uri), findings


def _made(pack: Pack) -> list[Resource]:
    manifest = {
        "slug": pack.slug,
        "name": pack.name,
        "type": pack.type,
        "version": pack.version,
        "description": pack.description,
        "entry_point": pack.entry_point,
        "source_format": pack.source_format,
        "metadata": pack.metadata,
    }
    files = [_file_row(document) for document in pack.documents]
    made = [
        _generated(pack, "manifest", "What the pack says of itself", manifest),
        _generated(pack, "files", "The pack's files with type, tags and size", files),
        *(_overview(pack, row, document) for row, document in enumerate(pack.documents) if _is_entry(pack, document)),
    ]
    if boundary := pack.metadata.get("authority_boundary"):
        made.append(_generated(pack, "authority", "What the pack may be relied on for", boundary))
    return made


def _is_entry(pack: Pack, document: Document) -> bool:
    return document.path == pack.entry_point


def _overview(pack: Pack, row: int, document: Document) -> Resource:
    """The document to read first, under a name that every pack has."""
    return replace(file_resource(row, document), uri=f"ep://{pack.slug}/overview", name="overview")


def _generated(pack: Pack, name: str, description: str, value: object) -> Resource:
    content = canonical_json(value)
    return Resource(
        uri=f"ep://{pack.slug}/{name}",
        name=name,
        title=f"{pack.name}: {name}",
        description=description,
        mime_type=JSON,
        size=len(content),
        sha256=sha256_hex(content),
        document=None,
        content=content,
    )


def _body(row: int, document: Document) -> Resource:
    body = document.raw[document.body_offset :]
    content = body.strip()  # as okf-mcp-server gives it, so that hashes agree
    return replace(
        file_resource(row, document),
        name=document.title,
        size=len(content),
        sha256=sha256_hex(content),
        start=len(document.raw) - len(body.lstrip()),
    )


def _file_row(document: Document) -> dict[str, object]:
    return {
        "path": document.path,
        "id": document.id,
        "uri": document.uri,
        "title": document.title,
        "type": document.type,
        "tags": list(document.tags),
        "size": len(document.raw),
        "searchable": document.searchable,
        "retrieval_strategy": document.strategy,
        "tier": document.tier,
        "folder": PurePosixPath(document.path).parent.as_posix(),
    }
