"""The search pipeline: a query in, passages with their provenance out.

The order of the stages is written once, in `search`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.gate import Features, Gate
from octavo_artifact.parameters import DEFAULTS, Retrieval
from octavo_serve.encoder import Encoder
from octavo_serve.expand import required_atoms, with_neighbours
from octavo_serve.freshness import freshness
from octavo_serve.fuse import convex
from octavo_serve.gate import compare
from octavo_serve.graph import Relations
from octavo_serve.lexical import LexicalIndex
from octavo_serve.ranking import Ranking, ranked
from octavo_serve.reconstruct import reconstruct
from octavo_serve.requests import SearchRequest
from octavo_serve.rerank import Reranker
from octavo_serve.results import Hit, Nearest, Reconstruction, SearchResult
from octavo_serve.tables import Tables
from octavo_serve.vectors import Similarity, VectorIndex

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Index:
    """What the pipeline searches: the opened parts of one artifact."""

    slug: str
    digest: str
    lexical: LexicalIndex
    vectors: VectorIndex
    encoder: Encoder
    tables: Tables
    relations: Relations
    gate: Gate | None
    reranker: Reranker | None = None


NEAREST = 3
"""Documents that a refusal names."""


def search(index: Index, request: SearchRequest, today: date, parameters: Retrieval = DEFAULTS) -> SearchResult:
    """Find passages for a request: analyse, retrieve by words and meaning, fuse, prefer fresh, cap, cut, judge, give
    places to neighbours, annotate, add what the hits require.
    """
    if not request.query.strip():
        return _answer(index, request, [], reason="empty_query")
    found = _find(index, request, today, parameters)
    kept, degraded = found.kept, found.meaning is None
    mode = request.gate or parameters.gate
    compared = _compared(index, request, found) if mode != "off" else None
    probability = index.gate.probability(compared) if index.gate and compared else None
    if mode == "refuse" and index.gate and probability is not None and probability < index.gate.refuse_below:
        return _refusal(index, request, kept, probability)
    neighbours: frozenset[int] = frozenset()
    graph = parameters.graph if request.graph is None else request.graph
    if graph and len(kept) and index.relations.joins:
        kept, neighbours = with_neighbours(kept, found.fused, index.lexical.documents, index.tables, index.relations)
    hits = [
        _hit(index, index.lexical.hit(row), score, today, graph_expanded=row in neighbours)
        for row, score in zip(kept.rows.tolist(), kept.scores.tolist(), strict=True)
    ]
    if index.relations.requires:
        required = required_atoms(hits, index.lexical, index.tables, index.relations, partial(_admits, request))
        hits += [_hit(index, stored, score, today, requires_expanded=True) for stored, score in required]
    if request.reconstruct:
        for hit in hits:
            hit["reconstruction"] = _reconstruct(index, hit)
    reason = None if hits else "no_relevant_passage"
    return _answer(index, request, hits, degraded=degraded, reason=reason, probability=probability)


@dataclass(frozen=True, slots=True)
class _Found:
    meaning: Similarity | None
    """None when the encoder failed: the answer then says that it is degraded."""
    fused: Ranking
    kept: Ranking
    """Of these, what the answer has places for."""


def _find(index: Index, request: SearchRequest, today: date, parameters: Retrieval) -> _Found:
    terms = index.lexical.terms(request.query)
    words = index.lexical.search(terms, parameters.candidates, type=request.type, tags=request.tags)
    meaning = _compare(index, request)
    fused = _fuse(words, meaning, parameters)
    fused = _prefer_fresh(index, fused, today, parameters.freshness_penalty)
    kept = cap(fused, index.lexical.documents, parameters.passages_per_document, request.max_results)
    return _Found(meaning, fused, kept)


def features_of(index: Index, request: SearchRequest, today: date, parameters: Retrieval = DEFAULTS) -> Features | None:
    """What the gate judges a request by; None when it judges nothing."""
    return _compared(index, request, _find(index, request, today, parameters))


def _compared(index: Index, request: SearchRequest, found: _Found) -> Features | None:
    if not len(found.kept) or found.meaning is None or not len(found.meaning.passages):
        return None
    best = int(found.kept.rows[0])
    return compare(index.lexical, request.query, best, float(found.meaning.passages.max()))


def cap(ranking: Ranking, documents: Callable[[list[int]], list[int]], limit: int, k: int) -> Ranking:
    """The best `k` passages, at most `limit` of each document."""
    counts: Counter[int] = Counter()
    kept: list[int] = []
    for position, document in enumerate(documents(ranking.rows.tolist())):
        if counts[document] < limit:
            counts[document] += 1
            kept.append(position)
            if len(kept) == k:
                break
    chosen = np.array(kept, dtype=np.int64)
    return Ranking(ranking.rows[chosen], ranking.scores[chosen])


def _fuse(words: Ranking, meaning: Similarity | None, parameters: Retrieval) -> Ranking:
    if meaning is None:
        return convex([(words, 1.0)])
    nearest = meaning.nearest(parameters.candidates)
    documents = meaning.of_documents(np.union1d(words.rows, nearest.rows))
    return convex(
        [
            (words, parameters.words_weight),
            (nearest, parameters.passage_weight),
            (documents, parameters.document_weight),
        ]
    )


def _prefer_fresh(index: Index, ranking: Ranking, today: date, penalty: float) -> Ranking:
    if not penalty:
        return ranking  # and the tables are not read
    past = index.tables.last_fresh_day[ranking.rows] < today.toordinal()
    return ranked(ranking.rows, np.where(past, ranking.scores * np.float32(1 - penalty), ranking.scores))


def documents_near(index: Index, query: str | None, start: int | None) -> Mapping[int, float]:
    """How near each document is to a question, else to the document in row `start`, by row; empty when neither can be
    compared.
    """
    vector = _encoded(index, query) if query else None if start is None else index.vectors.of_document(start)
    return {} if vector is None else index.vectors.documents_near(vector)


def _encoded(index: Index, query: str) -> NDArray[np.float32] | None:
    try:
        return index.encoder.encode(query)
    except Exception:  # whatever a native runtime raises, words can still be searched
        log.exception("%s: the encoder failed; searching by words only", index.slug)
        return None


def _compare(index: Index, request: SearchRequest) -> Similarity | None:
    """How near each passage is, or None when the encoder fails."""
    query = _encoded(index, request.query)
    if query is None:
        return None
    similarity = index.vectors.compare(query)
    if request.type is None and not request.tags:
        return similarity
    return similarity.where(index.tables.passages_where(request.type, request.tags))


def _admits(request: SearchRequest, document: Mapping[str, Any]) -> bool:
    return request.type in (None, document["type"]) and set(request.tags) <= set(document["tags"])


def _hit(
    index: Index,
    stored: dict[str, Any],
    score: float,
    today: date,
    *,
    requires_expanded: bool = False,
    graph_expanded: bool = False,
) -> Hit:
    stored |= freshness(stored["verified_at"], stored.pop("refresh"), stored["expires_at"], today)
    stored["score"] = round(score, 6)
    stored["requires_expanded"] = requires_expanded
    stored["graph_expanded"] = graph_expanded
    stored["digest"] = index.digest
    return cast(Hit, stored)


def _reconstruct(index: Index, hit: Hit) -> Reconstruction:
    document = index.tables.find(hit["id"])
    start, end = hit["byte_range"]
    file_sha256 = index.tables.document(document)["file_sha256"]
    shown = hit["text"].removeprefix(hit["added_text"])
    return reconstruct(index.tables.raw(document), (start, end), hit["span_sha256"], file_sha256, shown)


def _refusal(index: Index, request: SearchRequest, kept: Ranking, probability: float) -> SearchResult:
    """Nothing, and which documents were nearest."""
    nearest: dict[str, Nearest] = {}
    for row, score in zip(kept.rows.tolist(), kept.scores.tolist(), strict=True):
        stored = index.lexical.hit(row)
        nearest.setdefault(stored["id"], {"id": stored["id"], "title": stored["title"], "score": round(score, 6)})
        if len(nearest) == NEAREST:
            break
    return _answer(
        index, request, [], reason="no_relevant_passage", probability=probability, nearest=list(nearest.values())
    )


def _answer(
    index: Index,
    request: SearchRequest,
    hits: list[Hit],
    *,
    degraded: bool = False,
    reason: str | None = None,
    probability: float | None = None,
    nearest: Sequence[Nearest] = (),
) -> SearchResult:
    doubted = index.gate is not None and probability is not None and probability < index.gate.doubt_below
    return {
        "query": request.query,
        "pack": index.slug,
        "digest": index.digest,
        "degraded": degraded,
        "refused": reason is not None,
        "reason": reason,
        "answer_probability": None if probability is None else round(probability, 4),
        "doubtful": doubted,
        "results": hits,
        "nearest": list(nearest),
    }
