"""Fusion of rankings whose scores do not compare."""

from __future__ import annotations

import numpy as np

from octavo_serve.ranking import Ranking, Rows, Scores, ranked


def convex(first: Ranking, second: Ranking, weight: float) -> Ranking:
    """Merge by `(1 - weight) * first + weight * second`, each list's scores scaled to 0..1 by its minimum and maximum.

    A passage missing from a list counts 0 there (Bruch et al., TOIS 2023, with min-max in place of theoretical bounds).
    """
    rows = np.union1d(first.rows, second.rows)
    scores = (1 - weight) * _spread(first, rows) + weight * _spread(second, rows)
    return ranked(rows, scores.astype(np.float32))


def _spread(ranking: Ranking, rows: Rows) -> Scores:
    """The ranking's scaled scores laid out over `rows`, which hold all of its own."""
    scores = np.zeros(len(rows), dtype=np.float32)
    if len(ranking):
        low, high = ranking.scores.min(), ranking.scores.max()
        scaled = (ranking.scores - low) / (high - low) if high > low else np.ones_like(ranking.scores)
        scores[np.searchsorted(rows, ranking.rows)] = scaled
    return scores
