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

    def __len__(self) -> int:
        return len(self.rows)

    def top(self, k: int) -> Ranking:
        """The best `k`."""
        return Ranking(self.rows[:k], self.scores[:k])


def ranked(rows: Rows, scores: Scores, k: int | None = None) -> Ranking:
    """Sort by score descending, ties by row ascending, and keep the best `k`."""
    if k is not None and k < len(rows):
        # everything that ties with the k-th best stays for the sort to decide
        floor = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = scores >= floor
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((rows, -scores))[:k]
    return Ranking(rows[order], scores[order])
