"""From a file to a Document: what all adapters do alike."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, cast

from octavo_artifact.ids import document_uri, sha256_hex
from octavo_artifact.schema import Document
from octavo_build.findings import Finding
from octavo_build.frontmatter import BOM, Frontmatter, read_frontmatter
from octavo_build.markdown import parse_body
from octavo_build.sources.files import SourceFile

_HEADING = re.compile(rb"(?:\A|(?<=[\r\n])) {0,3}(?:#(?:[ \t][^\r\n]*)?|=+[ \t]*)(?:\r\n?|\n|\Z)")
"""A line that is a heading of level 1, or makes one of the line above, unless it stands in some other block."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_document(
    file: SourceFile, slug: str, *, second_block: bool, needs_frontmatter: bool
) -> tuple[Document, Frontmatter, list[Finding]]:
    """Make a document of a Markdown file, with the defaults of the format-free fields.

    The adapter then sets what its format defines (tier, strategy, ids as written) with `dataclasses.replace`.
    """
    findings = list(_check_bytes(file))
    readable = not any(finding.code == "encoding-utf16" for finding in findings)
    front = read_frontmatter(file.path, file.raw, second_block=second_block) if readable else Frontmatter({}, 0, ())
    findings += front.findings
    if needs_frontmatter and readable and file.raw.strip() and not (front.metadata or front.findings):
        findings.append(Finding(file.path, 1, "frontmatter-missing", "the file has no frontmatter"))
    fields = _Fields(file.path, front, findings)
    body = file.raw[front.body_offset :]
    title = fields.text("title") or (_first_heading(file.raw, front.body_offset) if readable else "")
    document = Document(
        path=file.path,
        id=fields.text("id") or "",
        uri=document_uri(slug, file.path),
        title=title or _title_from(file.path),
        description=fields.text("description"),
        type=fields.text("type"),
        tags=fields.texts("tags"),
        pack=slug,
        tier="searchable",
        strategy="standard",
        scope="single",
        searchable=readable,
        mime_type="text/markdown",
        frontmatter=json.dumps(front.metadata, ensure_ascii=False, sort_keys=True, separators=(",", ":")),
        raw=file.raw,
        body_offset=front.body_offset,
        file_sha256=sha256_hex(file.raw),
        body_sha256=sha256_hex(body.lstrip(b"\r\n")),
        verified_at=fields.text("verified_at"),
        verified_by=fields.text("verified_by"),
        confidence=fields.text("confidence"),
        requires=fields.texts("requires"),
        related=fields.texts("related"),
    )
    return document, front, findings


def with_unique_ids(slug: str, documents: Iterable[Document]) -> tuple[tuple[Document, ...], list[Finding]]:
    """Give every document an id of its own: as written when it is the first to claim it, else from its path.

    A made id never takes one that another file wrote.
    """
    documents = sorted(documents, key=lambda document: document.path)
    written = Counter(document.id for document in documents if document.id)
    first = {document.id: document.path for document in reversed(documents) if document.id}
    taken = set(written)
    result: list[Document] = []
    findings: list[Finding] = []
    for document in documents:
        if document.id and first[document.id] == document.path:
            result.append(document)
            continue
        made = _free_id(f"{slug}/{PurePosixPath(document.path).with_suffix('')}", taken)
        taken.add(made)
        if document.id:
            message = f"id {document.id!r} is also that of {first[document.id]}; this file is {made!r}"
            findings.append(Finding(document.path, 1, "id-duplicate", message))
        result.append(replace(document, id=made))
    return tuple(result), findings


def _free_id(wanted: str, taken: set[str]) -> str:
    candidate, number = wanted, 2
    while candidate in taken:
        candidate, number = f"{wanted}-{number}", number + 1
    return candidate


class _Fields:
    """Typed access to frontmatter; a value of another kind is a finding, never an exception."""

    def __init__(self, path: str, front: Frontmatter, findings: list[Finding]) -> None:
        self._path, self._front, self._findings = path, front, findings

    def text(self, key: str) -> str | None:
        value = self._front.metadata.get(key)
        if value is None or isinstance(value, str):
            return (value or "").strip() or None
        self._refuse(key, "one value", value)
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._front.metadata.get(key)
        if value is None:
            return ()
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        if isinstance(value, list):
            items = cast(list[Any], value)
            if all(item is None or isinstance(item, str) for item in items):
                return tuple(dict.fromkeys(item.strip() for item in items if item and item.strip()))
        self._refuse(key, "a list of values", value)
        return ()

    def _refuse(self, key: str, expected: str, value: object) -> None:
        kind = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "one value"
        message = f"{key}: expected {expected}, found {kind}"
        self._findings.append(Finding(self._path, self._front.lines.get(key, 1), "frontmatter-value", message))


def _first_heading(raw: bytes, body_offset: int) -> str:
    """Text of the first heading of level 1. Only what stands before is parsed, unless that does not decide it: what
    looks like a heading may stand in code, and what a bracket in it means may be defined below.
    """
    body = raw[body_offset:]
    found = _HEADING.search(body)
    if found is None:
        return ""
    for part in (body[: found.end()], body):
        blocks = parse_body(part, 0).blocks
        text = next((block.text for block in blocks if block.kind == "heading" and block.level == 1), None)
        if text is not None and "[" not in text:
            break
    return text or ""


def _title_from(path: str) -> str:
    stem = PurePosixPath(path).stem
    return re.sub(r"[-_]+", " ", stem).strip() or stem


def _check_bytes(file: SourceFile) -> Iterator[Finding]:
    raw = file.raw
    if raw.startswith(_UTF16):
        yield Finding(file.path, 1, "encoding-utf16", "the file is UTF-16, expected UTF-8")
        return
    if raw.startswith(BOM):
        yield Finding(file.path, 1, "bom", "the file begins with a byte order mark")
    if (at := raw.find(b"\r\n")) >= 0:
        yield Finding(file.path, _line(raw, at), "crlf", "CRLF line endings")
    if (at := raw.find(b"\0")) >= 0:
        yield Finding(file.path, _line(raw, at), "control-character", "a NUL character")
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        found = f"byte 0x{raw[error.start]:02x} at offset {error.start} is not UTF-8"
        yield Finding(file.path, _line(raw, error.start), "encoding-invalid", found)


def _line(raw: bytes, offset: int) -> int:
    return 1 + len(re.findall(rb"\r\n|\r|\n", raw[:offset]))
