"""A ranking of passages: what every retrieval stage takes and gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages best first; equal scores stand in row order, so that equal input gives equal output."""

    rows: Rows
    """int64 [n], passage rows, each once."""
    scores: Scores
    """float32 [n], descending; comparable only inside one ranking."""
    floor: float = 0.0
    """What a passage that is not in the ranking scores at most: 0 when all that match are in it."""

    def __len__(self) -> int:
        return len(self.rows)


def ranked(rows: Rows, scores: Scores, k: int | None = None) -> Ranking:
    """Sort by score descending, ties by row ascending, and keep the best `k`."""
    if k is not None and k < len(rows):
        # everything that ties with the k-th best stays for the sort to decide
        kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((rows, -scores))[:k]
    return Ranking(rows[order], scores[order])
