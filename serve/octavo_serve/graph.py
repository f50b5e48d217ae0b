"""The pack's graph: what a document requires, and what a node is joined to, step by step.

Nodes and edges are read when they are first asked for, as the other tables are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

from octavo_artifact.errors import RequestError
from octavo_artifact.layout import EDGES, NODES
from octavo_artifact.manifest import Manifest
from octavo_serve.loading import loaded_once
from octavo_serve.reading import find
from octavo_serve.requests import TraverseRequest
from octavo_serve.results import GraphEdge, GraphNode, TraverseResult
from octavo_serve.tables import Tables

REQUIRES = "requires"

MAX_EDGES = 1000
"""Edges in one answer."""


@dataclass(frozen=True, slots=True)
class Step:
    """An edge as it is met from one of its ends."""

    other: str
    """Id of the node at the other end."""
    kind: str
    outwards: bool
    """Whether the edge leads to the other node."""


class Relations:
    """Lookups over the nodes and edges of an artifact. Safe to call from several threads."""

    def __init__(self, artifact: Path, counts: Mapping[str, int]) -> None:
        """Nothing is opened yet; `counts` are the manifest's."""
        self.requires = counts.get(REQUIRES, 0) > 0
        """Whether any document requires another, known without opening anything."""
        self.joins = counts.get("edges", 0) > counts.get(REQUIRES, 0)
        """Whether there are edges of any other kind."""
        self._artifact = artifact
        self.lock = RLock()

    def node(self, name: str) -> Mapping[str, Any] | None:
        """The row of the node with that id."""
        return self._nodes.get(name)

    def steps(self, name: str) -> Sequence[Step]:
        """The edges at a node: outgoing before incoming, each by the other node's id and kind."""
        return self._steps.get(name, ())

    def required(self, name: str) -> Iterator[str]:
        """Ids of the documents that a document requires, sorted; an ontology may have entities required, too."""
        ids = (step.other for step in self.steps(name) if step.outwards and step.kind == REQUIRES)
        return (other for other in ids if (self.node(other) or {}).get("file") is not None)

    def neighbours(self, names: Iterable[str]) -> frozenset[str]:
        """Ids of all that an edge joins with one of `names`, in whichever direction; `requires` has its own way."""
        return frozenset(step.other for name in names for step in self.steps(name) if step.kind != REQUIRES)

    @loaded_once
    def _nodes(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in self._read(NODES.file, list(NODES.columns))}

    @loaded_once
    def _steps(self) -> Mapping[str, Sequence[Step]]:
        rows = self._read(EDGES.file, list(EDGES.columns))
        steps: defaultdict[str, list[Step]] = defaultdict(list)
        for row in rows:
            steps[row["source"]].append(Step(row["target"], row["kind"], True))
        for row in rows:
            steps[row["target"]].append(Step(row["source"], row["kind"], False))
        return dict(steps)

    def _read(self, file: str, columns: list[str]) -> list[dict[str, Any]]:
        from pyarrow import parquet

        return parquet.read_table(self._artifact / file, columns=columns).to_pylist()


def traverse(manifest: Manifest, tables: Tables, relations: Relations, request: TraverseRequest) -> TraverseResult:
    """What a node is joined to, breadth first, at most `depth` edges away and `max_nodes` nodes in all.

    Nodes at one depth come in the order in which their edges are met: outgoing before incoming, then by id.
    Raises RequestError for a request without a name, NotFoundError for an unknown one.
    """
    start = _start(tables, relations, request)
    depths = {start: 0}
    edges: dict[tuple[str, str, str], None] = {}
    truncated = False
    queue = [start]
    for name in queue:  # grows while it is walked
        if depths[name] == request.depth:
            break
        for step in _wanted(relations.steps(name), request):
            if step.other not in depths:
                if len(depths) == request.max_nodes:
                    truncated = True
                    continue
                depths[step.other] = depths[name] + 1
                queue.append(step.other)
            edge = (name, step.other, step.kind) if step.outwards else (step.other, name, step.kind)
            if edge in edges or len(edges) < MAX_EDGES:
                edges[edge] = None
            else:
                truncated = True
    return {
        "pack": manifest.slug,
        "digest": manifest.digest,
        "start": start,
        "nodes": [_node(tables, relations, name, depth) for name, depth in depths.items()],
        "edges": [GraphEdge(source=source, target=target, kind=kind) for source, target, kind in edges],
        "truncated": truncated,
    }


def _start(tables: Tables, relations: Relations, request: TraverseRequest) -> str:
    name = request.id or request.path
    if not name:
        raise RequestError("id", "missing; give the id, path or uri of a document, or the id of a node")
    if request.id and relations.node(name):
        return name
    return tables.document(find(tables, name, "id" if request.id else "path"))["id"]


def _wanted(steps: Sequence[Step], request: TraverseRequest) -> Iterator[Step]:
    for step in steps:
        direction = "out" if step.outwards else "in"
        if request.direction in ("both", direction) and (not request.kinds or step.kind in request.kinds):
            yield step


def _node(tables: Tables, relations: Relations, name: str, depth: int) -> GraphNode:
    row = relations.node(name)
    if row is None:  # the compiler writes no such edge; an artifact made by other hands may
        return {"id": name, "title": name, "type": None, "kind": "unknown", "file": None, "uri": None, "depth": depth}
    file = row["file"]
    return {
        "id": name,
        "title": row["title"],
        "type": row["type"],
        "kind": row["kind"],
        "file": file,
        "uri": tables.document(tables.find(file))["uri"] if file is not None else None,
        "depth": depth,
    }
