"""The pack's graph: what a document requires, and what a node is joined to, step by step.

Nodes and edges are read when they are first asked for, as the other tables are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, cast

from octavo_artifact.errors import RequestError
from octavo_artifact.layout import EDGES, NODES
from octavo_artifact.manifest import Manifest
from octavo_serve.loading import loaded_once
from octavo_serve.pages import cursor_at, fitting, position_of, room, size
from octavo_serve.reading import find
from octavo_serve.requests import TraverseRequest
from octavo_serve.results import GraphEdge, GraphNode, TraverseResult
from octavo_serve.tables import Tables

REQUIRES = "requires"
SEQUENCE = "sequence"
"""From one part of a sequence to the next."""

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

    def parts_around(self, name: str) -> tuple[str | None, str | None]:
        """Ids of the parts before and after a document that is part of a sequence."""
        parts = [step for step in self.steps(name) if step.kind == SEQUENCE] if self.joins else []
        before = next((step.other for step in parts if not step.outwards), None)
        return before, next((step.other for step in parts if step.outwards), None)

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


def traverse(
    manifest: Manifest,
    tables: Tables,
    relations: Relations,
    request: TraverseRequest,
    nearness: Callable[[int | None], Mapping[int, float]],
) -> TraverseResult:
    """What a node is joined to, breadth first, at most `depth` edges away and `max_nodes` nodes in all.

    A node's score is its nearness to the question, else to the start, times `decay` for each edge on the way; a node
    without vectors takes the best of those it was reached from. Nodes below `min_score` are left out and not walked on
    from. Nodes at one depth come best first, then by id. Of a long answer a page is given, with each node its edges to
    those before it. `nearness` gives the nearness of document rows when it is told
    the row of the start, which an entity has not.
    Raises RequestError for a request without a name or with another's cursor, NotFoundError for an unknown name.
    """
    first = position_of(request, manifest.digest)
    start = _start(tables, relations, request)
    near = nearness(_row(tables, relations, start))
    depths, scores = {start: 0}, {start: 1.0}
    edges: dict[tuple[str, str, str], None] = {}
    truncated = False
    layer = [start]
    for depth in range(1, request.depth + 1):
        walked = [(name, step) for name in layer for step in _wanted(relations.steps(name), request)]
        met: dict[str, float] = {}
        for name, step in walked:
            if step.other not in scores:
                row = _row(tables, relations, step.other)
                own = None if row is None else near.get(row)
                score = scores[name] * request.decay if own is None else max(0.0, own) * request.decay**depth
                met[step.other] = max(met.get(step.other, 0.0), score)
        passing = sorted((name for name in met if met[name] >= request.min_score), key=lambda name: (-met[name], name))
        layer = passing[: request.max_nodes - len(scores)]
        truncated |= len(layer) < len(passing)
        depths |= dict.fromkeys(layer, depth)
        scores |= {name: met[name] for name in layer}
        for name, step in walked:
            if step.other in scores:
                edge = (name, step.other, step.kind) if step.outwards else (step.other, name, step.kind)
                truncated |= len(edges) == MAX_EDGES and edge not in edges
                if len(edges) < MAX_EDGES:
                    edges[edge] = None
    nodes = [_node(tables, relations, name, depths[name], score) for name, score in scores.items()]
    place = {name: number for number, name in enumerate(scores)}
    edges_of: list[list[GraphEdge]] = [[] for _ in nodes]
    for source, target, kind in edges:
        edges_of[max(place[source], place[target])].append(GraphEdge(source=source, target=target, kind=kind))
    sizes = (size(node) + size(joined) for node, joined in zip(nodes[first:], edges_of[first:], strict=True))
    last = first + fitting(sizes, room(request))
    return {
        "pack": manifest.slug,
        "digest": manifest.digest,
        "start": start,
        "nodes": nodes[first:last],
        "edges": [edge for joined in edges_of[first:last] for edge in joined],
        "total": len(nodes),
        "truncated": truncated or last < len(nodes),
        "next_cursor": cursor_at(request, manifest.digest, last) if last < len(nodes) else None,
    }


def _row(tables: Tables, relations: Relations, name: str) -> int | None:
    """The row of the document that a node is, if it is one."""
    node = relations.node(name)
    return tables.find(node["file"]) if node and node["file"] is not None else None


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


def _node(tables: Tables, relations: Relations, name: str, depth: int, score: float) -> GraphNode:
    place = {"depth": depth, "score": round(score, 6)}
    row = relations.node(name)
    if row is None:  # the compiler writes no such edge; an artifact made by other hands may
        unknown = {"id": name, "title": name, "type": None, "kind": "unknown", "file": None, "uri": None}
        return cast(GraphNode, unknown | place)
    file = row["file"]
    known = {
        "id": name,
        "title": row["title"],
        "type": row["type"],
        "kind": row["kind"],
        "file": file,
        "uri": tables.document(tables.find(file))["uri"] if file is not None else None,
    }
    return cast(GraphNode, known | place)
