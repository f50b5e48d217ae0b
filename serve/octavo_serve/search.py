"""The search pipeline: a query in, passages with their provenance out.

The order of the stages is written once, in `STAGES`; `stages/` has a module for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, cast

from octavo_artifact.errors import ConfigError, RequestError
from octavo_artifact.gate import Features
from octavo_artifact.parameters import DEFAULTS, Retrieval, differences, read_retrieval
from octavo_serve.candidates import Asked, Candidates, Stage
from octavo_serve.collection import Collection, Index
from octavo_serve.explain import Trace, explanation
from octavo_serve.filters import filters_of
from octavo_serve.pages import page_of_hits, position_of
from octavo_serve.query import analyse
from octavo_serve.requests import SearchRequest
from octavo_serve.rerank import Reranker
from octavo_serve.results import Citation, Hit, SearchResult
from octavo_serve.stages.adjust import boost, freshness, length
from octavo_serve.stages.annotate import annotate
from octavo_serve.stages.diversify import cut, diversify
from octavo_serve.stages.expand import expand
from octavo_serve.stages.fuse import fuse
from octavo_serve.stages.gate import compare, gate
from octavo_serve.stages.rerank import rerank
from octavo_serve.stages.retrieve import encoded, lexical, vector

STAGES: tuple[Stage, ...] = (
    lexical, vector, fuse, boost, freshness, length, rerank, diversify, gate, cut, expand, annotate,
)  # fmt: skip
"""In their order, after the query was analysed. Places are given after the gate: a pack that is refused has none."""

_JUDGED = STAGES[: STAGES.index(gate)]


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """What a server's operator adds to every search."""

    retrieval: Mapping[str, object] = field(default_factory=dict[str, object])
    """Parameters that differ from the packs'."""
    reranker: Reranker | None = None
    lexical_only: bool = False
    """Whether packs whose encoder cannot be had are served, and searched by words."""


NO_OPERATOR = Operator()


def search(
    collection: Collection,
    request: SearchRequest,
    today: date,
    parameters: Retrieval = DEFAULTS,
    operator: Operator = NO_OPERATOR,
) -> SearchResult:
    """Find passages for a request.

    `parameters` are the pack's; the operator's come over them, and the request's own come last. Raises
    RequestError naming the parameter of the request that is unknown or out of its range.
    """
    if request.compact and request.reconstruct:
        raise RequestError("compact", "not together with reconstruct")
    position_of(request, collection.digest)  # a wrong cursor is told before any work
    in_force = _in_force(request, parameters, operator.retrieval)
    overrides = differences(in_force, parameters)
    asked = Asked(collection, request, filters_of(request, today), in_force, overrides, today, operator.reranker)
    if not request.query.strip():
        return _answer(Candidates(asked, analyse("", ()), reason="empty_query"), None)
    trace = Trace.begin() if request.explain else None
    found = Candidates(asked, analyse(request.query, collection.lexical.languages))
    if trace:
        trace.note("analyse", found)
    for stage in STAGES:
        found = stage(found)
        if trace:
            trace.note(stage.__name__, found)
        if found.reason:
            break
    return _answer(found, trace)


def features_of(
    collection: Collection, request: SearchRequest, today: date, parameters: Retrieval = DEFAULTS
) -> Features | None:
    """What the gate judges a request by; None when it judges nothing."""
    asked = Asked(collection, request, filters_of(request, today), parameters, {}, today)
    found = Candidates(asked, analyse(request.query, collection.lexical.languages))
    for stage in _JUDGED:
        found = stage(found)
    return next((compared for _, compared in compare(found)), None) if len(found.ranking) else None


def documents_near(index: Index, query: str | None, start: int | None) -> Mapping[int, float]:
    """How near each document is to a question, else to the document in row `start`, by row; empty when neither can be
    compared.
    """
    vector = encoded(index, query) if query else None if start is None else index.vectors.of_document(start)
    return {} if vector is None else index.vectors.documents_near(vector)


def _in_force(request: SearchRequest, parameters: Retrieval, server: Mapping[str, object]) -> Retrieval:
    try:
        asked = dict(request.retrieval)
        asked |= {name: value for name in ("gate", "graph") if (value := getattr(request, name)) is not None}
        return read_retrieval(asked, read_retrieval(server, parameters))
    except ConfigError as error:
        raise RequestError("retrieval", str(error)) from error


def _answer(found: Candidates, trace: Trace | None) -> SearchResult:
    asked = found.asked
    shown = {hit["pack"] for hit in found.hits}
    judged = (each for slug, each in found.judged.items() if slug in shown or not shown)
    best = max(judged, key=lambda each: each.probability, default=None)
    reason = found.reason or (None if found.hits else "no_relevant_passage")
    hits = [citation(hit) for hit in found.hits] if asked.request.compact else list(found.hits)
    page = page_of_hits(hits, asked.request, asked.collection.digest)
    answer: SearchResult = {
        "query": asked.request.query,
        "pack": asked.collection.slug,
        "digest": asked.collection.digest,
        "degraded": bool(found.degraded),
        "missing": list(found.degraded),
        "refused": reason is not None,
        "reason": reason,
        "answer_probability": None if best is None else round(best.probability, 4),
        "doubtful": best is not None and best.doubtful,
        "overrides": dict(asked.overrides),
        "total": len(hits),
        "truncated": page.truncated,
        "next_cursor": page.next_cursor,
        "results": cast(list[Hit], page.hits),
        "nearest": list(found.nearby),
    }
    if trace:
        answer["explanation"] = explanation(found, trace, {hit["fragment_id"] for hit in page.hits})
    return answer


def citation(hit: Hit) -> Citation:
    """What a compact answer has of a hit."""
    kept: Any = {name: hit[name] for name in Citation.__annotations__ if name in hit}
    return kept
