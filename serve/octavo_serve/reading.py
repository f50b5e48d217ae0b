"""Reading: one document by any of its names, and what a pack knows about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any
from urllib.parse import unquote

from octavo_artifact.errors import NotFoundError, RequestError
from octavo_artifact.manifest import Manifest
from octavo_artifact.schema import Resource
from octavo_serve.freshness import freshness, pack_freshness
from octavo_serve.requests import ReadRequest, TopicsRequest
from octavo_serve.results import ReadResult, Topic, TopicsResult
from octavo_serve.tables import Tables

MAX_CONTENT = 64_000
"""Characters of a document in one answer, about 16,000 tokens; MCP clients warn or cut at 25,000."""

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_FRAGMENT = re.compile(r"(?P<id>.+)#[^#]*:[0-9a-f]{12}")


def read(manifest: Manifest, tables: Tables, request: ReadRequest, today: date) -> ReadResult:
    """The document a request names, from `start_line` on, as many whole lines as fit an answer.

    A single line longer than an answer is cut; the resource of the document has it whole.
    Raises RequestError for a request without a name or beyond the last line, NotFoundError for an unknown name.
    """
    name = request.id or request.path
    if not name:
        raise RequestError("id", "missing; give the id, path, uri or fragment_id of a document")
    row = find(tables, name, "id" if request.id else "path")
    document = tables.document(row)
    lines = _LINE.findall(tables.raw(row))
    first = request.start_line
    if first > max(1, len(lines)):
        raise RequestError("start_line", f"the document has {len(lines)} lines")
    content, taken = _fitting(lines[first - 1 :])
    last = first - 1 + taken
    return {
        "pack": manifest.slug,
        "digest": manifest.digest,
        "path": document["path"],
        "id": document["id"],
        "uri": document["uri"],
        "title": document["title"],
        "description": document["description"],
        "type": document["type"],
        "tags": document["tags"],
        "content": content,
        "line_range": [first, last],
        "total_lines": len(lines),
        "truncated": last < len(lines) or len(content) == MAX_CONTENT,
        "content_hash": f"sha256:{document['body_sha256']}",
        "file_sha256": document["file_sha256"],
        "verified_at": document["verified_at"],
        "verified_by": document["verified_by"],
        "confidence": document["confidence"],
        "retrieval_strategy": document["strategy"],
        "requires": document["requires"],
        "related": document["related"],
        **freshness(document["verified_at"], document["refresh"], document["expires_at"], today),
    }


def find(tables: Tables, name: str, field: str) -> int:
    """The row of the document that an id, path, URI (percent-encoded or not) or fragment id names.

    Raises NotFoundError naming `field`.
    """
    fragment = _FRAGMENT.fullmatch(name)
    for candidate in (name, unquote(name), fragment["id"] if fragment else name):
        try:
            return tables.find(candidate)
        except NotFoundError:
            continue
    raise NotFoundError(field, "no document of the pack has this id, path or URI; search or list topics first")


def topics(manifest: Manifest, tables: Tables, request: TopicsRequest, today: date) -> TopicsResult:
    """The documents of a pack grouped by type, types and paths sorted."""
    grouped: dict[str, list[Topic]] = {}
    for document in tables.documents:
        kind = document["type"] or "uncategorized"
        if request.type in (None, kind):
            grouped.setdefault(kind, []).append(_topic(document, today))
    pack = manifest.pack
    return {
        "pack": {
            "slug": pack["slug"],
            "name": pack["name"],
            "type": pack["type"],
            "version": pack["version"],
            "description": pack["description"],
            "entry_point": pack["entry_point"],
            "documents": manifest.counts["documents"],
            "passages": manifest.counts["passages"],
            "freshness": pack_freshness(pack["metadata"], tables.documents, today),
        },
        "digest": manifest.digest,
        "topics": dict(sorted(grouped.items())),
    }


def resource(tables: Tables, uri: str) -> tuple[Resource, bytes]:
    """A resource and its bytes. Raises NotFoundError for a URI that names nothing of the pack."""
    listed = {resource.uri: resource for resource in tables.resources}
    found = listed.get(uri)
    if found is None:
        found = listed[tables.document(find(tables, _path_of(uri), "uri"))["uri"]]
    return found, tables.raw(found.document) if found.document is not None else found.content or b""


def _path_of(uri: str) -> str:
    """The path in a file's URI, so that any spelling of it (percent-encoded or not) is understood."""
    return unquote(uri.partition("/file/")[2]) if uri.startswith("ep://") else uri


def _topic(document: Mapping[str, Any], today: date) -> Topic:
    return {
        "id": document["id"],
        "path": document["path"],
        "title": document["title"],
        "description": document["description"],
        "retrieval_strategy": document["strategy"],
        **freshness(document["verified_at"], document["refresh"], document["expires_at"], today),
    }


def _fitting(lines: list[bytes]) -> tuple[str, int]:
    """As many lines as fit MAX_CONTENT, at least one, and their number."""
    kept: list[str] = []
    size = 0
    for line in lines:
        text = line.decode("utf-8", "replace")
        if kept and size + len(text) > MAX_CONTENT:
            break
        kept.append(text)
        size += len(text)
    return "".join(kept)[:MAX_CONTENT], len(kept)
