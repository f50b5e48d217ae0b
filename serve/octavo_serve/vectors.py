"""Exact vector search over the mapped planes of `vectors.lance`; no Lance needed to serve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.manifest import Column, Manifest
from octavo_serve.ranking import Ranking, ranked


class VectorIndex:
    """The windows' unit vectors, and which passage each belongs to."""

    def __init__(self, artifact: Path, manifest: Manifest) -> None:
        """Map the columns; the pages are read from disk as searches touch them."""
        self._planes = _map(artifact, manifest.columns["vector"])
        passages = np.concatenate([plane[:, 0] for plane in _map(artifact, manifest.columns["passage"])])
        # Windows stand in passage order: one slice of rows a passage, whose best window is the passage's score.
        self.rows, self._starts = np.unique(passages.astype(np.int64), return_index=True)

    def scores(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of each passage's best window with the query: float32, aligned with `rows`."""
        if not len(self.rows):
            return np.empty(0, dtype=np.float32)
        windows = np.concatenate([plane @ query for plane in self._planes])
        return np.maximum.reduceat(windows, self._starts)

    def search(self, query: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None = None) -> Ranking:
        """The `k` passages nearest to the query, of those that `allowed` (bool [passages]) admits."""
        scores = self.scores(query)
        if allowed is None:
            return ranked(self.rows, scores, k)
        kept = allowed[self.rows]
        return ranked(self.rows[kept], scores[kept], k)


def _map(artifact: Path, column: Column) -> list[NDArray[np.float32]]:
    dtype = np.dtype(column.dtype).newbyteorder("<")
    return [
        np.memmap(artifact / column.file, dtype, "r", offset, (rows, column.width)) for offset, rows in column.extents
    ] or [np.empty((0, column.width), dtype)]
