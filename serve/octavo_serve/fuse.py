"""Fusion of rankings whose scores do not compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from octavo_serve.ranking import Ranking, Rows, Scores, ranked


def convex(signals: Sequence[tuple[Ranking, float]]) -> Ranking:
    """Merge rankings by the weighted mean of their scores, each scaled to 0..1 from its floor to its best.

    A passage missing from a ranking counts 0 there (Bruch et al., TOIS 2023, with the floor in place of their
    theoretical minimum). Ties go to the smaller row.
    """
    rows = np.unique(np.concatenate([ranking.rows for ranking, _ in signals]))
    total = sum(weight for _, weight in signals)
    scores = np.zeros(len(rows))
    for ranking, weight in signals:
        scores += weight / total * _scaled(ranking, rows)
    return ranked(rows, scores.astype(np.float32))


def _scaled(ranking: Ranking, rows: Rows) -> Scores:
    """The ranking's scaled scores laid out over `rows`, which hold all of its own."""
    scores = np.zeros(len(rows), dtype=np.float32)
    if len(ranking):
        span = ranking.scores[0] - ranking.floor
        scaled = (ranking.scores - ranking.floor) / span if span > 0 else np.ones_like(ranking.scores)
        scores[np.searchsorted(rows, ranking.rows)] = scaled
    return scores
