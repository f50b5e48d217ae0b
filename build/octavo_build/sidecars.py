"""Sidecars (`*.chunks.yaml`, ExpertPack RFC-004): where an author, or the author's tool, cut a document.

    content_hash: sha256:...
    chunks:
      - {chunk_id: solar--sizing, line_range: [12, 40], context_prefix: Sizing an inverter for the house of ...}

Boundaries are authoritative: a chunk becomes a passage. Its `context_prefix` is embedded and indexed and never shown.
Lines that are not those of the document's text would be worse than none, so a sidecar that does not fit is told and
not used: another text's hash, lines outside the body, chunks that overlap, text in no chunk.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from octavo_artifact.ids import canonical_json, slugify
from octavo_artifact.schema import Document
from octavo_build.bodies import body_of
from octavo_build.body_hashes import body_hashes
from octavo_build.findings import Finding
from octavo_build.frontmatter import read_yaml
from octavo_build.values import items, mapping, text

SUFFIX = ".chunks.yaml"

MAX_PREFIX = 2000
"""Characters of a `context_prefix`."""

_LINE_END = re.compile(rb"\r\n?|\n")
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage that the sidecar wants."""

    start_byte: int
    """Where it begins in the raw file; it ends where the next one begins, the last one with the file."""
    section: str
    """Its anchor."""
    context_prefix: str


@dataclass(frozen=True, slots=True)
class _Lines:
    """What the sidecar says of one chunk."""

    name: str
    first: int
    last: int
    section: str
    context_prefix: str


def sidecar_name(path: str, written: object, prefix: str) -> str:
    """Path of a document's sidecar: what its `chunks_sidecar` says (from its member's root), else beside it."""
    return prefix + written.strip() if isinstance(written, str) else f"{path.rpartition('.')[0]}{SUFFIX}"


def read_sidecar(path: str, raw: bytes, document: Document, findings: list[Finding]) -> str:
    """The chunks of a document as the documents table has them (JSON); `[]` when the sidecar is not to be used.

    `path` and `raw` are the sidecar's.
    """
    front = read_yaml(path, raw)
    found = [*front.findings]
    chunks: list[Chunk] = []
    if front.metadata:
        line = front.lines.get("chunks", 0)
        found += _check_hash(path, front.metadata, front.lines, document)
        lines, wrong = _read_chunks(front.metadata)
        wrong += [] if wrong else _misplaced(lines, document)
        found += [Finding(path, line, "sidecar-invalid", message) for message in wrong]
    else:
        lines = []
    if lines and document.strategy == "atomic":
        found.append(Finding(path, 1, "sidecar-unused", f"{document.path} is atomic, and one passage"))
    elif lines and not any(finding.severity == "error" or finding.code in _UNFIT for finding in found):
        chunks = _placed(lines, document)
    findings += found
    return canonical_json([asdict(chunk) for chunk in chunks]).decode().rstrip("\n")


_UNFIT = frozenset({"sidecar-invalid", "sidecar-stale"})


def _check_hash(
    path: str, metadata: Mapping[str, Any], lines: Mapping[str, int], document: Document
) -> Iterator[Finding]:
    claimed = metadata.get("content_hash")
    if claimed is None:
        message = f"content_hash: missing; whether {document.path} has changed since cannot be told"
        yield Finding(path, 1, "sidecar-unchecked", message)
        return
    known = body_hashes(document.raw, document.body_offset) | {document.file_sha256}
    if not (isinstance(claimed, str) and claimed.strip().removeprefix("sha256:") in known):
        yield Finding(path, lines["content_hash"], "sidecar-stale", f"content_hash is not that of {document.path}")


def _read_chunks(metadata: Mapping[str, Any]) -> tuple[list[_Lines], list[str]]:
    """The chunks by line, and what is wrong with them."""
    chunks: list[_Lines] = []
    wrong: list[str] = []
    names: set[str] = set()
    for number, item in enumerate(items(metadata.get("chunks")), 1):
        fields = mapping(item)
        name = text(fields.get("chunk_id")) or f"chunk {number}"
        if name in names:
            wrong.append(f"{name}: the chunk_id stands twice")
        names.add(name)
        prefix = text(fields.get("context_prefix"))
        if len(prefix) > MAX_PREFIX:
            wrong.append(f"{name}: context_prefix of {len(prefix)} characters, expected at most {MAX_PREFIX}")
        place = _range(fields.get("line_range"))
        if place is None:
            wrong.append(f"{name}: line_range {_shown(fields.get('line_range'))}, expected [first, last]")
        else:
            section = slugify(name.partition("--")[2] or text(fields.get("section"))) or "section"
            chunks.append(_Lines(name, *place, section, prefix))
    if not (chunks or wrong):
        wrong.append("no chunk has a line_range")
    return sorted(chunks, key=lambda chunk: (chunk.first, chunk.last)), wrong


def _misplaced(chunks: list[_Lines], document: Document) -> list[str]:
    """Chunks that leave the body or overlap or say nothing, and text that is in no chunk."""
    body = body_of(document)
    bounds = [*body.line_starts, len(document.raw)]
    first = body.first_line
    last = first + len(body.line_starts) - 1

    def says(start: int, end: int) -> bool:
        """Whether lines `start` to `end` hold text that can be found."""
        return end >= start and bool(body.visible(bounds[start - first], bounds[end - first + 1]).strip())

    outside = [chunk for chunk in chunks if not first <= chunk.first <= chunk.last <= last]
    if outside:
        expected = f"expected lines {first} to {last}, the body of {document.path}"
        return [f"{chunk.name}: line_range [{chunk.first}, {chunk.last}], {expected}" for chunk in outside]
    wrong = [
        f"lines {after.first} to {min(before.last, after.last)} are in two chunks"
        for before, after in pairwise(chunks)
        if after.first <= before.last
    ]
    wrong += [f"{chunk.name}: has no text" for chunk in chunks if not says(chunk.first, chunk.last)]
    gap = first
    for start, end in [*((chunk.first, chunk.last) for chunk in chunks), (last + 1, last + 1)]:
        if says(gap, start - 1):
            wrong.append(f"lines {gap} to {start - 1} are in no chunk")
        gap = max(gap, end + 1)
    return wrong


def _placed(lines: list[_Lines], document: Document) -> list[Chunk]:
    starts = array("q", [0, *(match.end() for match in _LINE_END.finditer(document.raw))])
    return [
        Chunk(
            # what is blank before the first chunk belongs to it, as what is blank after a chunk belongs to that one
            start_byte=starts[chunk.first - 1] if number else document.body_offset,
            section=chunk.section,
            context_prefix=chunk.context_prefix,
        )
        for number, chunk in enumerate(lines)
    ]


def _range(value: object) -> tuple[int, int] | None:
    numbers = items(value)
    if len(numbers) != 2 or not all(isinstance(number, str) and _NUMBER.fullmatch(number) for number in numbers):
        return None
    return int(numbers[0]), int(numbers[1])


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    return repr(value if len(str(value)) < 60 else "…")
