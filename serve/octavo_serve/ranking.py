"""A ranking of passages: what every retrieval stage takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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

    def take(self, positions: Sequence[int]) -> Ranking:
        """Only those at these positions, in this order."""
        chosen = np.array(positions, dtype=np.int64)
        return Ranking(self.rows[chosen], self.scores[chosen])

    def head(self, k: int) -> Ranking:
        """The best `k`."""
        return Ranking(self.rows[:k], self.scores[:k])

    def rank_of(self, row: int) -> int | None:
        """1 for the best; None when it is not there."""
        (found,) = np.nonzero(self.rows == row)
        return int(found[0]) + 1 if len(found) else None


EMPTY = Ranking(np.empty(0, np.int64), np.empty(0, np.float32))


def ranked(rows: Rows, scores: NDArray[np.floating[Any]], k: int | None = None) -> Ranking:
    """Sort by score descending, ties by row ascending, and keep the best `k`."""
    if k is not None and k < len(rows):
        # everything that ties with the k-th best stays for the sort to decide
        kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((rows, -scores))[:k]
    return Ranking(rows[order], scores[order].astype(np.float32, copy=False))
