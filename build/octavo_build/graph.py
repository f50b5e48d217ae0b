"""Edges between documents: what they require, relate to and link to, and what the pack's ontology adds.

A reference in metadata resolves to, in this order: a document's id, its exact path, a file of that name in the same
folder, the only file of that name in the pack. A wikilink is a name before it is a path, as in the editors that
write them; a Markdown link is a path and nothing else.
"""

from __future__ import annotations

import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from octavo_artifact.schema import Document, Edge, Node
from octavo_build import okf
from octavo_build.findings import Finding
from octavo_build.frontmatter import read_frontmatter
from octavo_build.graph_files import GRAPH, ONTOLOGY, read_graph, read_ontology, texts
from octavo_build.links import references_of
from octavo_build.sequences import SEQUENCE, sequence_edges

OUTSIDE = frozenset({"index", "source", "proposition", "summary", "training"})
"""Types that stand outside the graph, as navigation files do: they name everything, which says nothing. Only what they
require counts."""

_NEVER_GIVEN = frozenset({"requires", SEQUENCE})
"""Kinds of edges that come from the documents alone, whatever `_graph.yaml` says."""

_SUFFIXES = ("", ".md", ".markdown", ".mdx")
_INDEXES = ("index", "README", "_index")
_ATTACHMENTS = frozenset(
    ".avif .base .bmp .canvas .csv .gif .jpeg .jpg .json .mov .mp3 .mp4 .ogg .pdf .png .svg .txt .wav .webm .webp .yaml"
    " .yml".split()
)
"""Endings of what a wikilink may embed that is no document."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The documents of a pack and the relations between them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    findings: tuple[Finding, ...]


class Resolver:
    """Finds the document that a reference means."""

    def __init__(self, documents: Sequence[Document], source_format: str = "") -> None:
        # its specification says what a link means, to the letter
        self._is_strict = source_format == "okf"
        self._ids = {document.id: document for document in documents}
        self._paths = {document.path: document for document in documents}
        self._stems: defaultdict[str, list[Document]] = defaultdict(list)
        self._aliases: defaultdict[str, list[Document]] = defaultdict(list)
        self._folded: defaultdict[str, list[Document]] = defaultdict(list)
        for document in documents:
            self._folded[document.path.casefold()].append(document)
            self._stems[_stem(document.path)].append(document)
            for alias in _aliases(document):
                self._aliases[alias.casefold()].append(document)

    def resolve(self, reference: str, source: Document) -> list[Document]:
        """The documents meant: one when it resolves, none when nothing has that name, several when it is ambiguous."""
        reference = unicodedata.normalize("NFC", reference)
        near = inside(PurePosixPath(source.path).parent / reference)
        found = self.exact(reference) or (self._at("/".join(near)) if near else None)
        return [found] if found else self._stems.get(_stem(reference), [])

    def exact(self, reference: str) -> Document | None:
        """The document with that id or path."""
        return self._ids.get(reference) or self._at(reference)

    def wikilink(self, name: str, source: Document) -> list[Document]:
        """As `resolve`, for a wikilink: a bare name is looked for in all folders, the same folder first, and means
        the page that it stands on only when no other has that name.
        """
        name = unicodedata.normalize("NFC", name)
        if "/" in name or name in self._ids:
            return self.resolve(name, source)
        named = self._stems.get(_stem(name)) or self._aliases.get(name.casefold(), [])
        others = [document for document in named if document is not source]
        near = [d for d in others if PurePosixPath(d.path).parent == PurePosixPath(source.path).parent]
        return near if len(near) == 1 else others or named

    def link(self, path: str, source: Document) -> list[Document]:
        """As `resolve`, for a link's destination: relative to the file, or to the pack when it begins with `/`.

        It may name the document's folder. But in OKF it may also name the page that a site makes of the document, or
        the path in other letters' case where only one document has it: sites serve them.
        """
        path = unicodedata.normalize("NFC", path)
        parts = inside(PurePosixPath(source.path).parent / path)
        if parts is None:
            return []
        wanted = "/".join(parts)
        paths = [wanted, *("/".join([*parts, index]) for index in _INDEXES)]
        paths += [] if self._is_strict else _page_of(wanted)
        found = next(filter(None, map(self._at, paths)), None)
        if found is None and self._is_strict:
            return []
        if found is None:
            folded = (self._folded.get((path + suffix).casefold(), []) for path in paths for suffix in _SUFFIXES)
            return next((documents for documents in folded if len(documents) == 1), [])
        return [found]

    def _at(self, path: str) -> Document | None:
        return next((self._paths[p] for p in (path + suffix for suffix in _SUFFIXES) if p in self._paths), None)


def build_graph(
    documents: Sequence[Document], extras: Mapping[str, bytes] | None = None, source_format: str = ""
) -> Graph:
    """Nodes and edges of a pack, sorted; references that lead nowhere, or to several files, are findings.

    `extras` may hold a `_graph.yaml`, whose edges stand for most when it is true, and files `ontology.yaml`, which add
    to the graph. In the format `okf` any type is content, and fields of the frontmatter that name a file are edges of
    their own kind.
    """
    extras = extras or {}
    resolver = Resolver(documents, source_format)
    findings: list[Finding] = []
    nodes = {document.id: _node(document) for document in documents}
    edges = {edge for document in documents for edge in _edges(document, resolver, findings, source_format)}
    edges |= set(sequence_edges(documents, findings))
    if GRAPH in extras:
        given, found = read_graph(extras[GRAPH], documents)
        findings += found
        if given:
            nodes |= {node.id: _merged(node, nodes.get(node.id)) for node in given.nodes}
            edges = {edge for edge in edges if edge.kind in _NEVER_GIVEN}
            edges |= {edge for edge in given.edges if edge.kind not in _NEVER_GIVEN}
    for path in sorted(extras):
        if PurePosixPath(path).name == ONTOLOGY:
            find = partial(_find, resolver, path)
            added, found = read_ontology(path, extras[path], find, {node.id for node in nodes.values() if node.file})
            findings += found
            nodes |= {node.id: node for node in added.nodes}
            edges |= set(added.edges)
    return Graph(
        nodes=tuple(sorted(nodes.values(), key=lambda node: node.id)),
        edges=tuple(sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind))),
        findings=tuple(sorted(findings)),
    )


def _edges(document: Document, resolver: Resolver, findings: list[Finding], source_format: str) -> Iterator[Edge]:
    """The edges that begin at a document. Its references are checked even where it stands outside the graph."""
    references, unread = references_of(document)
    findings += unread
    named = [(kind, name, 0) for kind in ("requires", "related") for name in getattr(document, kind)]
    for kind, name, line in [*named, *((each.kind, each.target, each.line) for each in references)]:
        if not name:
            continue  # an anchor of the page itself
        find = {"wikilink": resolver.wikilink, "link": resolver.link}.get(kind, resolver.resolve)
        targets = find(name, document)
        if len(targets) != 1:
            if code := _code(kind, name, targets):
                where = f" ({', '.join(target.path for target in targets[:3])})" if targets else ""
                at = line or _metadata_line(document, kind)
                findings.append(Finding(document.path, at, code, f"{kind}: {name!r}{where}"))
        elif targets[0] is not document and (kind == "requires" or _joins(document, targets[0], source_format)):
            yield Edge(document.id, targets[0].id, kind)
    if source_format == "okf" and document.strategy != "navigation":
        for _, kind, path in okf.paths(json.loads(document.frontmatter)):
            # some write paths from the root without the slash that says so
            targets = resolver.link(path, document) or resolver.link(f"/{path}", document)
            if targets and targets[0] is not document:
                yield Edge(document.id, targets[0].id, kind)


def _code(kind: str, name: str, targets: Sequence[Document]) -> str | None:
    """What is wrong with a reference that does not mean one document; nothing when it may mean another kind of file."""
    if kind == "context":
        return "hint-unresolved"
    if targets:
        return "requires-ambiguous" if kind == "requires" else "link-ambiguous"
    suffix = PurePosixPath(name).suffix.casefold()
    other_file = {"link": suffix not in _SUFFIXES[1:], "wikilink": suffix in _ATTACHMENTS}.get(kind, False)
    return None if other_file else "link-unresolved"


def _metadata_line(document: Document, key: str) -> int:
    return read_frontmatter(document.path, document.raw, second_block=True).lines.get(key, 1)


def _joins(source: Document, target: Document, source_format: str) -> bool:
    """Whether a link makes an edge: an OKF listing names everything, but who links to one means it."""
    if source_format == "okf":
        return source.strategy != "navigation"
    return not (_outside(source) or _outside(target))


def _outside(document: Document) -> bool:
    return document.strategy == "navigation" or document.type in OUTSIDE


def _find(resolver: Resolver, beside: str, reference: str) -> str | None:
    """The id of the document that a file of the pack, or of a child pack, means."""
    found = resolver.exact(reference) or resolver.exact(str(PurePosixPath(beside).parent / reference))
    return found.id if found else None


def _node(document: Document) -> Node:
    metadata: dict[str, Any] = json.loads(document.frontmatter)
    status = metadata.get("lifecycle_status") or metadata.get("status")
    return Node(
        id=document.id,
        title=document.title,
        type=document.type,
        file=document.path,
        aliases=_aliases(document),
        status=status if isinstance(status, str) else None,
    )


def _merged(given: Node, own: Node | None) -> Node:
    """A node of `_graph.yaml`; of a document, only what the document does not say itself."""
    if own is None:
        return given
    return replace(own, kind=given.kind, aliases=own.aliases or given.aliases, status=own.status or given.status)


def _aliases(document: Document) -> tuple[str, ...]:
    return texts(json.loads(document.frontmatter).get("aliases"))


def _page_of(path: str) -> Iterator[str]:
    """The document's path without its ending, when `path` is that of a page made of it."""
    if path.endswith(".html"):
        yield path.removesuffix(".html")


def _stem(path: str) -> str:
    name = PurePosixPath(path).name.casefold()
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES[1:] if name.endswith(suffix)), name)


def inside(path: PurePosixPath) -> list[str] | None:
    """The parts of a path without `.` and `..`, or None when it leads out of the pack."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in (".", "/"):
            parts.append(part)
    return parts
