"""Results as a client gets them: where each stands, how old it is, and, if asked, its exact source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from octavo_serve.candidates import Candidates
from octavo_serve.freshness import freshness
from octavo_serve.reconstruct import reconstruct
from octavo_serve.results import Hit, Reconstruction


def annotate(found: Candidates) -> Candidates:
    """Make the hits."""
    collection = found.asked.collection
    hits = [
        _hit(
            found,
            collection.hit(row),
            score,
            graph_expanded=row in found.graph_expanded,
            duplicates=[collection.hit(other)["fragment_id"] for other in found.duplicates.get(row, ())],
        )
        for row, score in zip(found.ranking.rows.tolist(), found.ranking.scores.tolist(), strict=True)
    ]
    hits += [_hit(found, stored, score, requires_expanded=True) for stored, score in found.required]
    if found.asked.request.reconstruct:
        for hit in hits:
            hit["reconstruction"] = _reconstruct(found, hit)
    return replace(found, hits=tuple(hits))


def _hit(
    found: Candidates,
    stored: dict[str, Any],
    score: float,
    *,
    requires_expanded: bool = False,
    graph_expanded: bool = False,
    duplicates: list[str] | None = None,
) -> Hit:
    stored |= cast(
        Mapping[str, Any],
        freshness(stored["verified_at"], stored.pop("refresh"), stored["expires_at"], found.asked.today),
    )
    stored["score"] = round(score, 6)
    stored["requires_expanded"] = requires_expanded
    stored["graph_expanded"] = graph_expanded
    stored["duplicates"] = duplicates or []
    return cast(Hit, stored)


def _reconstruct(found: Candidates, hit: Hit) -> Reconstruction:
    tables = next(part.tables for part in found.asked.collection.parts if part.slug == hit["pack"])
    document = tables.find(hit["id"])
    start, end = hit["byte_range"]
    file_sha256 = tables.document(document)["file_sha256"]
    shown = hit["text"].removeprefix(hit["added_text"])
    return reconstruct(tables.raw(document), (start, end), hit["span_sha256"], file_sha256, shown)
