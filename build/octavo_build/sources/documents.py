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
from octavo_build.bodies import FORMATS, PLAIN, mime_type_of
from octavo_build.bodies.body import Facts
from octavo_build.findings import Finding
from octavo_build.frontmatter import BOM, Frontmatter, read_frontmatter, text_start
from octavo_build.sources.files import SourceFile
from octavo_build.sources.language import language_tag

INDEXES = ("index", "readme", "_index")
"""Names, without ending and in lower case, of a page that stands for its folder."""

_DATED = re.compile(r"\d{4}-\d{1,2}-\d{1,2}-(?=.)")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_document(
    file: SourceFile, slug: str, *, second_block: bool, needs_frontmatter: bool, relations: bool = True
) -> tuple[Document, Frontmatter, list[Finding]]:
    """Make a document of a file, with the defaults of the format-free fields.

    Without `relations`, `requires` and `related` of the frontmatter mean what they like, and are not read.
    The adapter then sets what its format defines (tier, strategy, ids as written) with `dataclasses.replace`.
    """
    findings = list(_check_bytes(file))
    readable = not any(finding.code == "encoding-utf16" for finding in findings)
    form = FORMATS[mime_type := mime_type_of(file.path) or PLAIN]
    front = Frontmatter({}, text_start(file.raw), ())
    if readable and form.frontmatter:
        front = read_frontmatter(file.path, file.raw, second_block=second_block)
    findings += front.findings
    if needs_frontmatter and readable and file.raw.strip() and not (front.metadata or front.findings):
        findings.append(Finding(file.path, 1, "frontmatter-missing", "the file has no frontmatter"))
    fields = Fields(file.path, front, findings)
    body = file.raw[front.body_offset :]
    title = fields.text("title")
    facts = form.facts(file.raw, front.body_offset) if readable and not title else Facts()
    if facts.fault:
        findings.append(Finding(file.path, facts.fault[0], "format-invalid", facts.fault[1]))
    document = Document(
        path=file.path,
        id=fields.text("id") or "",
        uri=document_uri(slug, file.path),
        title=title or _clean(facts.title) or title_from(file.path),
        description=fields.text("description") or _clean(facts.description) or None,
        type=fields.text("type"),
        tags=fields.texts("tags"),
        pack=slug,
        tier="searchable",
        strategy="standard",
        scope="single",
        searchable=readable and facts.fault is None,
        mime_type=mime_type,
        frontmatter=json.dumps(front.metadata, ensure_ascii=False, sort_keys=True, separators=(",", ":")),
        raw=file.raw,
        body_offset=front.body_offset,
        file_sha256=sha256_hex(file.raw),
        body_sha256=sha256_hex(body.lstrip(b"\r\n")),
        verified_at=fields.text("verified_at"),
        verified_by=fields.text("verified_by"),
        confidence=fields.text("confidence"),
        requires=fields.texts("requires") if relations else (),
        related=fields.texts("related") if relations else (),
        language=language_tag(facts.language),
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


class Fields:
    """Typed access to frontmatter; a value of another kind is a finding, never an exception."""

    def __init__(self, path: str, front: Frontmatter, findings: list[Finding]) -> None:
        self._path, self._front, self._findings = path, front, findings

    def text(self, key: str) -> str | None:
        """The field as text; None when it is empty or missing."""
        value = self._front.metadata.get(key)
        if value is None or isinstance(value, str):
            return _clean(value or "") or None
        self._refuse(key, "one value", value)
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        """The field as a list without repetitions; one value is split at its commas."""
        value = self._front.metadata.get(key)
        if value is None:
            return ()
        if isinstance(value, str):
            return tuple(filter(None, map(_clean, value.split(","))))
        if isinstance(value, list):
            items = cast(list[Any], value)
            if all(item is None or isinstance(item, str) for item in items):
                return tuple(dict.fromkeys(filter(None, (_clean(item or "") for item in items))))
        self._refuse(key, "a list of values", value)
        return ()

    def _refuse(self, key: str, expected: str, value: object) -> None:
        kind = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "one value"
        message = f"{key}: expected {expected}, found {kind}"
        self._findings.append(Finding(self._path, self._front.lines.get(key, 1), "frontmatter-value", message))


def _clean(text: str) -> str:
    """A value without the space around it, and without the byte order marks of files that were pasted together."""
    return text.replace("\ufeff", "").strip()


def title_from(path: str) -> str:
    """The title of a file that gives itself none: its name, or its folder's when it stands for the folder."""
    name = PurePosixPath(path)
    stem = name.parent.name if is_index(path) and name.parent.name else _DATED.sub("", name.stem, count=1)
    return re.sub(r"[-_]+", " ", stem).strip() or stem


def is_index(path: str) -> bool:
    """Whether the file stands for its folder."""
    return PurePosixPath(path).stem.casefold() in INDEXES


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
