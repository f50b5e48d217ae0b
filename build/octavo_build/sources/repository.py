"""Knowledge repositories: a project's own notes, of which `export: true` and a `type` make documents.

Compatible with okf-mcp-server: the same files, addresses, names and descriptions. Where that server loses a document
(a type in another script, a file whose YAML breaks the run), this one keeps it or says what is wrong.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from octavo_artifact.ids import knowledge_uri, slugify
from octavo_artifact.schema import Document
from octavo_build.bodies.body import decode
from octavo_build.findings import Finding
from octavo_build.frontmatter import Frontmatter
from octavo_build.pack import Pack
from octavo_build.sources.adapter import Adapter, Options
from octavo_build.sources.documents import read_document, with_unique_ids
from octavo_build.sources.files import SourceFile, list_files, read_files
from octavo_build.sources.identity import PACK_FILE, Identity, ascii_slug, read_identity
from octavo_build.values import items, text

NAME = "repository"
DEFAULT_ROOTS = ("design/", "backlog/docs/", "backlog/decisions/")
MAX_DESCRIPTION = 500
"""Characters of a description that is taken from the text."""

_SUFFIX = (".md",)
_MEANT_AS_TRUE = frozenset({"true", "yes", "on", "y", "1"})
# Of a file that may have been meant for export, as far as can be known.
_IN_ANY_FILE = frozenset({"yaml-invalid", "frontmatter-unclosed", "encoding-utf16"})


@dataclass(frozen=True, slots=True)
class _Repository:
    """Where to read, and on whose behalf."""

    top: Path
    identity: Identity
    owner: str
    roots: tuple[str, ...]

    @property
    def slug(self) -> str:
        return ascii_slug(self.owner) or _code_points(self.owner) or "pack"


def top_level(folder: Path) -> Path:
    """The repository of a folder: the folder itself when it has a `pack.yaml`, else git's top level, else itself."""
    folder = folder.resolve()
    if (folder / PACK_FILE).is_file():
        return folder
    return next((each for each in (folder, *folder.parents) if os.path.exists(each / ".git")), folder)


def split_roots(text: str, separator: str = ",") -> tuple[str, ...]:
    """The roots in a list written as one text."""
    return tuple(root for part in text.split(separator) if (root := part.strip()))


def type_slug(kind: str) -> str:
    """A type's place in URIs: its letters and digits, of any script; when there are none, its code points in hex."""
    return slugify(kind) or _code_points(kind)


def id_of(metadata: Mapping[str, Any], path: str) -> str:
    """A document's id: as written, else the first word of its file's name (`doc-1 - Title.md`)."""
    written = metadata.get("id")
    if isinstance(written, str) and written.strip():
        return written.strip()
    stem = PurePosixPath(path).stem
    return next(iter(stem.split()), stem)


def description_of(metadata: Mapping[str, Any], body: bytes) -> str:
    """A document's description: as written, else the first line of its first paragraph that is no heading."""
    written = metadata.get("description")
    if isinstance(written, str) and written:
        return written
    text = decode(body).replace("\r\n", "\n")
    paragraphs = (paragraph.strip() for paragraph in text.split("\n\n"))
    first = next((each for each in paragraphs if each and not each.startswith("#")), "")
    return first.partition("\n")[0].strip()[:MAX_DESCRIPTION]


def read(root: Path, options: Options) -> Pack:
    """Read the repository that `root` is in: of the Markdown under its roots, what is exported.

    Several roots are read in their order; of documents with the same URI the first counts.
    """
    repository = _repository(root, options)
    identity, findings = repository.identity, repository.identity.findings
    exported: dict[str, Document] = {}
    types: dict[str, str] = {}
    for file in _files(repository, findings):
        document, front, found = read_document(file, repository.slug, second_block=False, needs_frontmatter=False)
        if not _is_exported(document, front, findings):
            findings += (finding for finding in found if finding.code in _IN_ANY_FILE)
            continue
        findings += found
        document = _exported(document, front, repository.owner)
        kind = document.type or ""
        if types.setdefault(type_slug(kind), kind) != kind:
            message = f"type {kind!r} and {types[type_slug(kind)]!r} are both {type_slug(kind)!r}"
            findings.append(Finding(document.path, front.lines.get("type", 1), "type-collision", message))
        first = exported.setdefault(document.uri, document)
        if first is not document:
            message = f"{document.uri} is also that of {first.path}"
            findings.append(Finding(document.path, front.lines.get("id", 1), "uri-duplicate", message))
    unique, duplicates = with_unique_ids(repository.slug, exported.values())
    return Pack(
        slug=repository.slug,
        name=identity.text("name") or repository.owner,
        type=identity.text("type") or NAME,
        version=identity.text("version") or "0",
        description=identity.text("description") or "",
        entry_point=None,
        source_format=NAME,
        retrieval=identity.retrieval(),
        metadata={**identity.metadata, "owner": repository.owner},
        documents=unique,
        findings=tuple(sorted({*findings, *duplicates})),
    )


def _repository(root: Path, options: Options) -> _Repository:
    top = top_level(root)
    identity = read_identity(top)
    owner = options.get("owner", "").strip() or identity.text("owner") or top.name
    roots = split_roots(options.get("roots", "")) or _written_roots(identity) or DEFAULT_ROOTS
    return _Repository(top, identity, owner, roots)


def _written_roots(identity: Identity) -> tuple[str, ...]:
    written = identity.metadata.get("roots")
    if isinstance(written, str):
        return split_roots(written)
    folders = items(written)
    if written is not None and not (folders and all(isinstance(folder, str) for folder in folders)):
        identity.refuse("roots", "expected a list of folders")
        return ()
    return tuple(filter(None, map(text, folders)))


def _files(repository: _Repository, findings: list[Finding]) -> Iterator[SourceFile]:
    """The Markdown under the roots, each file once."""
    seen: set[str] = set()
    for under in _folders(repository, findings):
        files, walked = read_files(repository.top, suffixes=_SUFFIX, under=under)
        findings += walked
        for file in files:
            if file.path not in seen:
                seen.add(file.path)
                yield file


def _folders(repository: _Repository, findings: list[Finding]) -> Iterator[str]:
    """The roots that are folders of the repository, relative to its top, each with a final `/` (the top is empty)."""
    for root in repository.roots:
        relative = os.path.relpath(os.path.normpath(repository.top / root), repository.top)
        if reason := _why_not(repository.top / relative, repository.top):
            shown = PurePath(root).name if os.path.isabs(root) else root  # no host's path in a report
            findings.append(Finding("", 0, "root-skipped", f"{shown!r} {reason}"))
        else:
            yield "" if relative == "." else f"{relative}/"


def _why_not(folder: Path, top: Path) -> str | None:
    """What keeps a root from being read."""
    try:
        if not folder.resolve().is_relative_to(top):
            return "leads out of the repository"
    except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL
        return "cannot be read"
    return None if folder.is_dir() else "is no folder of the repository"


def _is_exported(document: Document, front: Frontmatter, findings: list[Finding]) -> bool:
    """Whether a file opted in: `export` is YAML's true, and there is a type."""
    written = front.metadata.get("export")
    line = front.lines.get("export", 1)
    if "export" in front.flags:
        if document.type is None:
            findings.append(Finding(document.path, line, "export-untyped", "export is true, and type is missing"))
        return document.type is not None
    if isinstance(written, str) and written.strip().casefold() in _MEANT_AS_TRUE:
        message = f"export is the text {written!r}, expected true without quotes"
        findings.append(Finding(document.path, line, "export-value", message))
    return False


def _exported(document: Document, front: Frontmatter, owner: str) -> Document:
    name = id_of(front.metadata, document.path)
    title = front.metadata.get("title")
    return replace(
        document,
        id=name,
        uri=knowledge_uri(owner, type_slug(document.type or ""), name),
        title=document.title if isinstance(title, str) and title.strip() else PurePosixPath(document.path).stem,
        description=description_of(front.metadata, document.raw[document.body_offset :]),
        # in other people's frontmatter `requires` and `related` mean what they like
        requires=(),
        related=(),
    )


def _code_points(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "-".join(f"u{ord(character):x}" for character in folded if not character.isspace())


def _slug(root: Path, options: Options) -> str:
    return _repository(root, options).slug


def _list_files(root: Path, options: Options) -> list[Path]:
    repository = _repository(root, options)
    found = {path for under in _folders(repository, []) for path in list_files(repository.top, under)}
    names: Sequence[str] = [PACK_FILE, *sorted(path for path in found if path.casefold().endswith(_SUFFIX))]
    return [repository.top / name for name in names]


ADAPTER = Adapter(NAME, lambda root: False, _slug, read, _list_files, top_level)  # only where somebody says so
