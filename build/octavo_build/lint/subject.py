"""What a check sees: the pack as its adapter read it, and what only lint needs besides (lines, manifests, sidecars)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from octavo_artifact.schema import Document
from octavo_build import links
from octavo_build.bodies import body_of, format_of
from octavo_build.bodies.body import Block, Body
from octavo_build.findings import Finding
from octavo_build.frontmatter import read_frontmatter, read_yaml
from octavo_build.graph import Resolver
from octavo_build.lint.references import Reference, find_references
from octavo_build.pack import Pack
from octavo_build.sources import NO_OPTIONS, Options, read
from octavo_build.sources.expertpack import MANIFEST, child_prefix
from octavo_build.sources.files import list_files, read_files
from octavo_build.values import items, mapping, text

INDEX = "_index.md"
_YAML = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Page:
    """A document with what its author wrote around it."""

    document: Document
    inner: str
    """Its path inside the member that governs it."""
    metadata: Mapping[str, Any]
    """Scalars as written."""
    lines: Mapping[str, int]
    body: Body
    headings: tuple[Block, ...]
    references: tuple[Reference, ...]
    links: tuple[links.Reference, ...] = ()
    """All that the text refers to, of whatever kind of file; for OKF, which has no `references`."""

    @property
    def path(self) -> str:
        """Its path inside the pack."""
        return self.document.path

    @property
    def name(self) -> str:
        """Its file name."""
        return PurePosixPath(self.path).name

    @property
    def folder(self) -> str:
        """Its folder inside its member; empty at the root."""
        return self.inner.rpartition("/")[0]

    def text(self, key: str) -> str:
        """A field that is one value, else empty."""
        return text(self.metadata.get(key))

    def finding(self, code: str, message: str, key: str = "") -> Finding:
        """A finding at the line of a frontmatter key, or at the first line."""
        return Finding(self.path, self.lines.get(key, 1), code, message)


@dataclass(frozen=True, slots=True)
class Member:
    """The pack itself, or a child of a composite: what one manifest governs."""

    prefix: str
    manifest: Mapping[str, Any]
    lines: Mapping[str, int]
    pages: tuple[Page, ...]
    """All of its documents that could be read."""

    @property
    def content(self) -> tuple[Page, ...]:
        """The pages without the folders' indexes, which the official validator passes by."""
        return tuple(page for page in self.pages if page.name != INDEX)

    @property
    def schema(self) -> tuple[int, int]:
        """The declared schema version; (0, 0) when there is none to be read."""
        parts = text(self.manifest.get("schema_version")).split(".")
        numbers = [int(part) for part in parts[:2] if part.isascii() and part.isdigit() and len(part) < 5]
        return (numbers[0], numbers[1] if len(parts) > 1 else 0) if len(numbers) == len(parts[:2]) else (0, 0)

    def finding(self, code: str, message: str, key: str = "") -> Finding:
        """A finding at the line of a key of the manifest."""
        return Finding(f"{self.prefix}{MANIFEST}", self.lines.get(key, 0), code, message)


@dataclass(frozen=True, slots=True)
class Subject:
    """A pack to be checked."""

    pack: Pack
    members: tuple[Member, ...]
    """The pack itself first; a pack of another format has no other."""
    files: Mapping[str, bytes]
    """The YAML files of the pack by path, its questions (`eval/`) among them."""
    resolver: Resolver
    paths: frozenset[str] = frozenset()
    """Every file of an OKF bundle."""

    @property
    def pages(self) -> tuple[Page, ...]:
        """Every page of every member."""
        return tuple(page for member in self.members for page in member.pages)

    @property
    def content(self) -> tuple[Page, ...]:
        """The same without the folders' indexes."""
        return tuple(page for member in self.members for page in member.content)


def read_subject(root: Path, options: Options = NO_OPTIONS) -> Subject:
    """Read the pack in `root` for checking."""
    pack = read(root, options)
    if pack.source_format == "okf":
        paths = frozenset(unicodedata.normalize("NFC", path) for path in list_files(root))
        return replace(subject_of(pack), paths=paths)
    if pack.source_format != "expertpack":
        return subject_of(pack)
    folders = {"": root}
    for path in child_paths(pack.metadata):
        if (root / path / MANIFEST).is_file():
            folders[child_prefix(root, root / path)] = root / path
    files: dict[str, bytes] = {}
    found: set[Finding] = set()
    for prefix, folder in folders.items():
        read_here, findings = read_files(folder, suffixes=_YAML)
        files |= {prefix + file.path: file.raw for file in read_here}
        found |= {replace(finding, path=prefix + finding.path) for finding in findings}
    # what concerns folders was told when the documents were read
    known = {(finding.path, finding.code) for finding in pack.findings}
    new = tuple(finding for finding in found if (finding.path, finding.code) not in known)
    return subject_of(replace(pack, findings=(*pack.findings, *new)), files, tuple(folders))


def subject_of(pack: Pack, files: Mapping[str, bytes] | None = None, prefixes: Sequence[str] = ("",)) -> Subject:
    """What the checks see of a pack, its YAML files, and where its members begin (the pack itself first)."""
    files = files or {}
    unreadable = {finding.path for finding in pack.findings if finding.code == "encoding-utf16"}
    of_member: dict[str, list[Document]] = {prefix: [] for prefix in prefixes}
    for document in pack.documents:
        if document.path not in unreadable:
            owner = max((prefix for prefix in of_member if document.path.startswith(prefix)), key=len)
            of_member[owner].append(document)
    return Subject(
        pack=pack,
        members=tuple(_member(prefix, files, documents, pack) for prefix, documents in of_member.items()),
        files=files,
        resolver=Resolver(pack.documents, pack.source_format),
    )


def child_paths(manifest: Mapping[str, Any]) -> list[str]:
    """The paths of child packs that a composite's manifest names."""
    paths = [mapping(item).get("path") if isinstance(item, dict) else item for item in items(manifest.get("packs"))]
    return [path for path in paths if isinstance(path, str)]


def _member(prefix: str, files: Mapping[str, bytes], documents: Sequence[Document], pack: Pack) -> Member:
    front = read_yaml(MANIFEST, files.get(prefix + MANIFEST, b""))
    pages = tuple(_page(document, document.path.removeprefix(prefix), pack) for document in documents)
    return Member(prefix, front.metadata, front.lines, pages)


def _page(document: Document, inner: str, pack: Pack) -> Page:
    front = pack.fronts.get(document.path)
    if front is None:
        second = pack.source_format == "expertpack"
        front = read_frontmatter(document.path, document.raw, second_block=second)
    is_okf, is_markdown = pack.source_format == "okf", format_of(document).markdown
    body = body_of(document)
    return Page(
        document=document,
        inner=inner,
        metadata=front.metadata,
        lines=front.lines,
        body=body,
        headings=tuple(_headings(body.blocks)),
        references=tuple(find_references(body)) if is_markdown and not is_okf else (),
        links=tuple(links.read_references(body)[0]) if is_okf else (),
    )


def _headings(blocks: Sequence[Block]) -> list[Block]:
    found: list[Block] = []
    for block in blocks:
        found += [block] if block.kind == "heading" else _headings(block.children)
    return found
