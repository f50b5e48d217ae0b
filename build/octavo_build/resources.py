"""What MCP lists of a pack: its manifest, its file list, every file with its true type, its skills."""

from __future__ import annotations

from pathlib import PurePosixPath

from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_artifact.schema import Document, Resource
from octavo_build.findings import Finding
from octavo_build.pack import Pack
from octavo_build.skills import skill_resources

JSON = "application/json"


def list_resources(pack: Pack) -> tuple[list[Resource], list[Finding]]:
    """All resources of a pack, sorted by URI, and what is wrong with its skills.

    A file's bytes stay in the documents table.
    """
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
        *(_file(row, document) for row, document in enumerate(pack.documents)),
    ]
    skills, findings = skill_resources(pack)
    return sorted([*made, *skills], key=lambda resource: resource.uri), findings


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


def _file(row: int, document: Document) -> Resource:
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
