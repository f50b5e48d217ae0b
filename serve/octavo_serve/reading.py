"""Reading: one document by any of its names, and what a pack knows about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, cast
from urllib.parse import unquote

from octavo_artifact.errors import NotFoundError, RequestError
from octavo_artifact.ids import normal_uri, slugify
from octavo_artifact.manifest import Manifest
from octavo_artifact.schema import Resource
from octavo_serve.freshness import freshness, pack_freshness
from octavo_serve.introduction import authority_of
from octavo_serve.requests import ReadRequest, TopicsRequest
from octavo_serve.results import Activation, ReadResult, Topic, TopicsResult
from octavo_serve.tables import Tables

MAX_CONTENT = 64_000
"""Characters of a document in one answer, about 16,000 tokens; MCP clients warn or cut at 25,000."""

_NO_ACTIVATION = {"tools": [], "constraints": [], "next": []}
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_FILE_URI = re.compile(r"ep://[^/]+/(?:file|always)/(.+)", re.DOTALL)
_FRAGMENT = re.compile(r"(?P<id>.+)#[^#]*:[0-9a-f]{12}")


def read(
    manifest: Manifest,
    tables: Tables,
    request: ReadRequest,
    today: date,
    parts_around: Callable[[str], tuple[str | None, str | None]],
) -> ReadResult:
    """The document a request names, from `start_line` on, as many whole lines as fit an answer.

    A single line longer than an answer is cut; the resource of the document has it whole. `parts_around` gives the ids
    before and after one in its sequence.
    Raises RequestError for a request without a name or beyond the last line, NotFoundError for an unknown name.
    """
    name = request.id or request.path
    if not name:
        raise RequestError("id", "missing; give the id, path, uri or fragment_id of a document")
    row = find(tables, name, "id" if request.id else "path")
    document = tables.document(row)
    lines = _LINE.findall(tables.raw(row))
    outline = tables.sections(row) if request.section else []
    place = find_section(outline, request.section) if request.section else None
    begin, end = (1, len(lines)) if place is None else _lines_of(outline, place, neighbors=request.neighbors)
    first = max(begin, request.start_line)
    if first > max(1, end):
        raise RequestError("start_line", f"what was asked for ends at line {end}")
    content, taken = _fitting(lines[first - 1 : end])
    last = first - 1 + taken
    previous, following = parts_around(document["id"])
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
        "section": outline[place]["anchor"] if place is not None else None,
        "line_range": [first, last],
        "total_lines": len(lines),
        "truncated": last < end or len(content) == MAX_CONTENT,
        "content_hash": f"sha256:{document['body_sha256']}",
        "file_sha256": document["file_sha256"],
        "verified_at": document["verified_at"],
        "verified_by": document["verified_by"],
        "confidence": document["confidence"],
        "retrieval_strategy": document["strategy"],
        "concept_scope": document["scope"],
        "tier": document["tier"],
        "requires": document["requires"],
        "related": document["related"],
        "activation": _activation(document),
        "previous": previous,
        "next": following,
        **freshness(document["verified_at"], document["refresh"], document["expires_at"], today),
    }


def find(tables: Tables, name: str, field: str) -> int:
    """The row of the document that an id, path, URI (percent-encoded or not) or fragment id names.

    Raises NotFoundError naming `field`.
    """
    fragment = _FRAGMENT.fullmatch(name)
    for candidate in (name, unquote(name), normal_uri(name), fragment["id"] if fragment else name):
        try:
            return tables.find(candidate)
        except NotFoundError:
            continue
    raise NotFoundError(field, "no document of the pack has this id, path or URI; search or list topics first")


def find_section(sections: Sequence[Mapping[str, Any]], wanted: str) -> int:
    """The place in `sections` of the one with that anchor, else of the first with that heading.

    Raises NotFoundError naming what there is.
    """
    slug = slugify(wanted)
    anchors = [section["anchor"] for section in sections]
    titles = [slugify(section["title"]) for section in sections]
    if wanted in anchors:
        return anchors.index(wanted)
    if slug and slug in titles:
        return titles.index(slug)
    known = ", ".join(anchors[:20]) or "none"
    raise NotFoundError("section", f"no section of this document has that heading or anchor; there are {known}")


def _lines_of(sections: Sequence[Mapping[str, Any]], place: int, *, neighbors: bool) -> tuple[int, int]:
    """First and last line of a section; with `neighbors`, from the heading before to the end of the one after."""
    first, last = sections[place]["start_line"], sections[place]["end_line"]
    if neighbors:
        before = sections[max(0, place - 1)]
        after = next((each for each in sections[place + 1 :] if each["start_line"] > last), None)
        first, last = before["start_line"], after["end_line"] if after else last
    return first, last


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
            "authority_boundary": authority_of(pack["metadata"]),
            "freshness": pack_freshness(pack["metadata"], tables.documents, today),
        },
        "digest": manifest.digest,
        "topics": dict(sorted(grouped.items())),
    }


def body(tables: Tables, row: int) -> str:
    """A document below its frontmatter."""
    return tables.raw(row)[tables.document(row)["body_offset"] :].decode("utf-8", "replace")


def resource(tables: Tables, uri: str) -> tuple[Resource, bytes]:
    """A resource and its bytes. Raises NotFoundError for a URI that names nothing of the pack."""
    listed = tables.resources_by_uri
    found = listed.get(uri)
    if found is None:
        try:
            found = listed[tables.document(find(tables, _path_of(uri), "uri"))["uri"]]
        except NotFoundError as error:
            # in the words of one that asked for another pack: whatever is not served is not there alike
            raise NotFoundError("uri", "not a resource of this server") from error
    if found.document is None:
        return found, found.content or b""
    return found, tables.raw(found.document)[found.start : found.start + found.size]


def _path_of(uri: str) -> str:
    """The path in a file's URI, so that any spelling of it (percent-encoded or not) is understood.

    ep-mcp has a second URI for what is always in context.
    """
    found = _FILE_URI.fullmatch(uri)
    return unquote(found[1]) if found else uri


def _topic(document: Mapping[str, Any], today: date) -> Topic:
    return {
        "id": document["id"],
        "path": document["path"],
        "title": document["title"],
        "description": document["description"],
        "retrieval_strategy": document["strategy"],
        "tier": document["tier"],
        "activation": _activation(document),
        **freshness(document["verified_at"], document["refresh"], document["expires_at"], today),
    }


def _activation(document: Mapping[str, Any]) -> Activation | None:
    written = document["activation"]
    return cast(Activation, _NO_ACTIVATION | json.loads(written)) if written else None


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
