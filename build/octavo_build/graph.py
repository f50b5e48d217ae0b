"""Edges between documents: what they require and what they relate to.

A reference resolves to, in this order: a document's id, its exact path, a file of that name in the same folder, the
only file of that name in the pack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from octavo_artifact.schema import Document, Edge, Node
from octavo_build.findings import Finding


@dataclass(frozen=True, slots=True)
class Graph:
    """The documents of a pack and the relations between them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    findings: tuple[Finding, ...]


class Resolver:
    """Finds the document that a reference means."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._ids = {document.id: document for document in documents}
        self._paths = {document.path: document for document in documents}
        self._stems: defaultdict[str, list[Document]] = defaultdict(list)
        for document in documents:
            self._stems[_stem(document.path)].append(document)

    def resolve(self, reference: str, source: Document) -> list[Document]:
        """The documents meant: one when it resolves, none when nothing has that name, several when it is ambiguous."""
        exact = self._ids.get(reference) or self._paths.get(reference) or self._paths.get(f"{reference}.md")
        if exact:
            return [exact]
        folder = PurePosixPath(source.path).parent
        relative = PurePosixPath(*_normal(folder / reference)).as_posix()
        near = self._paths.get(relative) or self._paths.get(f"{relative}.md")
        return [near] if near else self._stems.get(_stem(reference), [])


def build_graph(documents: Sequence[Document]) -> Graph:
    """Nodes and edges of a pack, sorted; references that lead nowhere, or to several files, are findings."""
    resolver = Resolver(documents)
    edges: set[Edge] = set()
    findings: list[Finding] = []
    for document in documents:
        for kind, references in (("requires", document.requires), ("related", document.related)):
            for reference in references:
                targets = resolver.resolve(reference, document)
                if len(targets) == 1:
                    edges.add(Edge(document.id, targets[0].id, kind))
                    continue
                code = "link-ambiguous" if targets else "link-unresolved"
                where = f" ({', '.join(target.path for target in targets[:3])})" if targets else ""
                findings.append(Finding(document.path, 1, code, f"{kind}: {reference!r}{where}"))
    nodes = [Node(document.id, document.title, document.type, document.path) for document in documents]
    return Graph(
        nodes=tuple(sorted(nodes, key=lambda node: node.id)),
        edges=tuple(sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind))),
        findings=tuple(sorted(findings)),
    )


def _stem(path: str) -> str:
    name = PurePosixPath(path).name
    return name.removesuffix(".md").casefold()


def _normal(path: PurePosixPath) -> list[str]:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part not in (".", ".."):
            parts.append(part)
    return parts
