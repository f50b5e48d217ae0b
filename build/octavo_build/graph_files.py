"""Graphs that an ExpertPack brings along: `_graph.yaml`, which may have become untrue, and `ontology.yaml`.

`ontology-suggestions.yaml` holds what nobody has accepted yet, and is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from octavo_artifact.schema import Document, Edge, Node
from octavo_build.findings import Finding
from octavo_build.frontmatter import read_yaml
from octavo_build.values import items, mapping, one_or_more, text

GRAPH = "_graph.yaml"
ONTOLOGY = "ontology.yaml"

ENTITY = "ontology_entity"
"""Type of an entity's node; its kind is the author's word."""


@dataclass(frozen=True, slots=True)
class Given:
    """Nodes and edges as a file states them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def read_graph(raw: bytes, documents: Sequence[Document]) -> tuple[Given | None, list[Finding]]:
    """The graph of `_graph.yaml`, or None with a finding when something in it is not what is there.

    Every node with a file must be the document of that path and id, and every edge must join two nodes.
    """
    front = read_yaml(GRAPH, raw)
    ids = {document.path: document.id for document in documents}
    nodes = [_graph_node(item) for item in _entries(front.metadata.get("nodes"))]
    edges = [_edge(item) for item in _entries(front.metadata.get("edges"))]
    known = {node.id for node in nodes}
    if front.findings:
        return None, list(front.findings)
    untrue = next(_untrue(nodes, edges, ids, known), None)
    if untrue:
        return None, [Finding(GRAPH, 0, "graph-stale", untrue)]
    return Given(tuple(nodes), tuple(edges)), []


def _untrue(
    nodes: Sequence[Node], edges: Sequence[Edge], ids: Mapping[str, str], known: Collection[str]
) -> Iterator[str]:
    if not nodes:
        yield "it has no nodes"
    for node in nodes:
        if not node.id or (node.file is None and node.kind == "document"):
            yield f"node {node.id!r}: a node of a document needs an id and a file"
        elif node.file is not None and ids.get(node.file) != node.id:
            found = ids.get(node.file)
            yield f"node {node.id!r}: {node.file!r} is " + (f"the document {found!r}" if found else "no document")
    for edge in edges:
        if not edge.kind or edge.source not in known or edge.target not in known:
            yield f"edge {edge.source!r} -> {edge.target!r} ({edge.kind!r}): expected a kind and two ids of nodes"


def _graph_node(item: Mapping[str, Any]) -> Node:
    kind = text(item.get("kind"))
    entity = item.get("type") == ENTITY
    return Node(
        id=text(item.get("id")),
        title=text(item.get("title")) or text(item.get("id")),
        type=text(item.get("type")) or None,
        file=text(item.get("file")) or None,
        kind=kind or ("term" if entity else "document"),
        aliases=texts(item.get("aliases")),
        status=text(item.get("status")) or None,
    )


def read_ontology(
    path: str, raw: bytes, find: Callable[[str], str | None], taken: Collection[str]
) -> tuple[Given, list[Finding]]:
    """Entities and relations of an `ontology.yaml`; an entry that cannot be used is a finding and left out.

    `find` gives the id of the document that a reference means; `taken` are the ids that no entity may have. A document
    that an entity names as evidence mentions it: an edge `entity_mention` from the document to the entity.
    """
    front = read_yaml(path, raw)
    findings = list(front.findings)
    nodes: dict[str, Node] = {}
    edges: list[Edge] = []

    def refuse(message: str) -> None:
        findings.append(Finding(path, 0, "ontology-invalid", message))

    for item in _entries(front.metadata.get("entities")):
        entity = text(item.get("id"))
        if not entity or entity in taken or entity in nodes:
            refuse(f"entity {entity!r}: expected an id of its own")
            continue
        nodes[entity] = Node(
            id=entity,
            title=text(item.get("label")) or entity,
            type=ENTITY,
            file=None,
            kind=text(item.get("kind")) or "term",
            aliases=texts(item.get("aliases")),
            status=text(item.get("status")) or "accepted",
        )
        for evidence in texts(item.get("evidence")):
            if document := find(evidence):
                edges.append(Edge(document, entity, "entity_mention"))
            else:
                refuse(f"entity {entity!r}: evidence {evidence!r} is no document")
    for item in _entries(front.metadata.get("relations")):
        relation = _edge(item)
        source, target = (end if end in nodes else find(end) for end in (relation.source, relation.target))
        if source and target:
            edges.append(Edge(source, target, relation.kind or "related_to"))
        else:
            missing = relation.target if source else relation.source
            refuse(f"relation {relation.source!r} -> {relation.target!r}: {missing!r} is no entity and no document")
    return Given(tuple(nodes.values()), tuple(edges)), findings


def _edge(item: Mapping[str, Any]) -> Edge:
    return Edge(text(item.get("source")), text(item.get("target")), text(item.get("kind")))


def _entries(value: object) -> list[Mapping[str, Any]]:
    return [mapping(item) for item in items(value)]


def texts(value: object) -> tuple[str, ...]:
    """A field that is one text or a list of texts, each once; anything else in it is left out."""
    return tuple(dict.fromkeys(filter(None, map(text, one_or_more(value)))))
