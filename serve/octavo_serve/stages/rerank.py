"""Asking the server's cross-encoder about the head of the ranking."""

from __future__ import annotations

from dataclasses import replace

from octavo_serve import rerank as reranking
from octavo_serve.candidates import Candidates


def rerank(found: Candidates) -> Candidates:
    """The best passages in the order of the reranker, where the server has one and the pack wants it."""
    asked = found.asked
    if asked.reranker is None or not asked.parameters.rerank:
        return found

    def texts(rows: list[int]) -> list[str]:
        return [asked.collection.hit(row)["text"] for row in rows]

    done = reranking.rerank(asked.reranker, found.query.text, found.ranking, texts)
    missing = found.degraded if done.degraded is None else (*found.degraded, "reranker")
    return replace(found, ranking=done.ranking, degraded=missing)
