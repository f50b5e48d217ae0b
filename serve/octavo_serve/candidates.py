"""What the stages of a search hand on: frozen columns over passages, to which each stage adds its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from octavo_artifact.parameters import Retrieval
from octavo_serve.collection import Collection
from octavo_serve.filters import Filters
from octavo_serve.query import Query
from octavo_serve.ranking import EMPTY, Ranking
from octavo_serve.requests import SearchRequest
from octavo_serve.rerank import Reranker
from octavo_serve.results import Hit, Nearest


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What does not change during a search."""

    collection: Collection
    request: SearchRequest
    filters: Filters
    parameters: Retrieval
    """In force: the pack's, changed by the server's and then by the request's."""
    overrides: Mapping[str, object]
    """Those of them that are not the pack's."""
    today: date
    reranker: Reranker | None = None


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near a pack is to a query."""

    best: float
    """Cosine of the nearest window."""
    beyond: float | None
    """Cosine of the passage in place `octavo_artifact.gate.BEYOND`; None where there are fewer."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a pack's gate thinks of the best of its passages."""

    probability: float
    refused: bool
    doubtful: bool


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What a search knows so far."""

    asked: Asked
    query: Query
    words: Ranking = EMPTY
    """By BM25."""
    nearest: Ranking = EMPTY
    """By the cosine of the best window."""
    documents: Ranking = EMPTY
    """By the mean cosine of the document's windows."""
    nearness: Mapping[str, Nearness] = field(default_factory=dict[str, Nearness])
    """Of each pack, by slug; none of a pack that could not be compared."""
    degraded: tuple[str, ...] = ()
    """What could not be done: `encoder` (only words were matched), `reranker`."""
    ranking: Ranking = EMPTY
    """The one ranking, from fusion on."""
    fused: Ranking = EMPTY
    """All that was ranked, before it was thinned out: what the graph may take from."""
    duplicates: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, "tuple[int, ...]"])
    """Row of a passage to those that say the same and are not shown."""
    judged: Mapping[str, Judgement] = field(default_factory=dict[str, Judgement])
    """By slug."""
    graph_expanded: frozenset[int] = frozenset()
    """Rows that are there only for what they are joined to."""
    required: tuple[tuple[dict[str, Any], float], ...] = ()
    """Documents that the results require, as stored, with their scores."""
    hits: tuple[Hit, ...] = ()
    reason: str | None = None
    """Why nothing is returned; no stage follows that sets it."""
    nearby: tuple[Nearest, ...] = ()
    """What was nearest when nothing is returned."""


Stage = Callable[[Candidates], Candidates]
