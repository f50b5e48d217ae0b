"""Exact vector search over the mapped planes of `vectors.lance`; no Lance needed to serve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.manifest import Column, Manifest
from octavo_serve.ranking import Ranking, Rows, Scores, ranked


@dataclass(frozen=True, slots=True)
class Similarity:
    """How near each passage is to a query."""

    rows: Rows
    """int64 [n], the passages that have vectors, ascending."""
    passages: Scores
    """float32 [n], cosine of the passage's best window."""
    documents: Scores
    """float32 [n], mean cosine of all windows of the passage's document: whether the page is about it at all."""

    def where(self, allowed: NDArray[np.bool_]) -> Similarity:
        """Only those passages that `allowed` (bool [passages]) admits."""
        kept = allowed[self.rows]
        return Similarity(self.rows[kept], self.passages[kept], self.documents[kept])

    @property
    def best(self) -> float:
        """Cosine of the nearest window; -1 when there is none."""
        return float(self.passages.max()) if len(self.passages) else -1.0

    def nearest(self, k: int) -> Ranking:
        """The `k` passages whose best window is nearest."""
        ranking = ranked(self.rows, self.passages, k)
        return replace(ranking, floor=float(ranking.scores[-1])) if len(ranking) else ranking

    def of_documents(self, rows: Rows) -> Ranking:
        """Passages `rows` by the nearness of their documents; those without vectors are left out."""
        found = np.intersect1d(self.rows, rows, assume_unique=True, return_indices=True)[1]
        ranking = ranked(self.rows[found], self.documents[found])
        return replace(ranking, floor=float(ranking.scores[-1])) if len(ranking) else ranking


class VectorIndex:
    """The windows' unit vectors, and which passage and document each belongs to."""

    def __init__(self, artifact: Path, manifest: Manifest, documents: Callable[[Sequence[int]], Sequence[int]]) -> None:
        """Map the columns; vectors are read from disk as searches touch them.

        `documents` gives the document row of each passage row.
        """
        self._planes = _map(artifact, manifest.columns["vector"])
        passages = np.concatenate([plane[:, 0] for plane in _map(artifact, manifest.columns["passage"])])
        # Windows stand in passage order, passages in document order: both are runs of windows.
        self._rows, self._passage_starts = np.unique(passages.astype(np.int64), return_index=True)
        of_passage = np.array(documents(self._rows.tolist()), dtype=np.int64)
        self._documents, starts, self._document = np.unique(of_passage, return_index=True, return_inverse=True)
        self._document_starts = self._passage_starts[starts]
        self._document_sizes = np.diff(self._document_starts, append=len(passages)).astype(np.float32)

    def compare(self, query: NDArray[np.float32], allowed: NDArray[np.bool_] | None = None) -> Similarity:
        """Compare a query (float32 [dim], unit length) with every window of the passages that are allowed."""
        similarity = self._compare(query)
        return similarity if allowed is None else similarity.where(allowed)

    def first_windows(self, rows: Rows) -> NDArray[np.float32]:
        """The vectors of passages' first windows, float32 [rows, dim]; zeros for a passage that has none."""
        places = np.searchsorted(self._rows, rows)
        found = np.zeros((len(rows), self._planes[0].shape[1]), dtype=np.float32)
        for at, (row, place) in enumerate(zip(rows.tolist(), places.tolist(), strict=True)):
            if place < len(self._rows) and self._rows[place] == row:
                found[at] = self._window(int(self._passage_starts[place]))
        return found

    def _window(self, place: int) -> NDArray[np.float32]:
        for plane in self._planes:
            if place < len(plane):
                return plane[place]
            place -= len(plane)
        raise IndexError(place)

    def _compare(self, query: NDArray[np.float32]) -> Similarity:
        if not len(self._rows):
            return Similarity(self._rows, np.empty(0, np.float32), np.empty(0, np.float32))
        windows = np.concatenate([plane @ query for plane in self._planes])
        best: Scores = np.maximum.reduceat(windows, self._passage_starts)
        means = (np.add.reduceat(windows, self._document_starts) / self._document_sizes).astype(np.float32)
        return Similarity(self._rows, best, means[self._document])

    def documents_near(self, query: NDArray[np.float32]) -> dict[int, float]:
        """Mean cosine of a query and all windows of each document that has any, by document row."""
        similarity = self.compare(query)
        rows = self._documents[self._document].tolist()
        return dict(zip(rows, similarity.documents.tolist(), strict=True))

    def of_passages(self) -> tuple[Rows, NDArray[np.float32]]:
        """What each passage is about: the passages that have vectors, int64 [n], ascending, and the means of their
        windows, float32 [n, dim], unit length. Reads every vector.
        """
        if not len(self._rows):
            return self._rows, np.empty((0, 0), np.float32)
        means = np.add.reduceat(np.concatenate(self._planes), self._passage_starts, dtype=np.float64)
        return self._rows, (means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float32)

    def of_document(self, row: int) -> NDArray[np.float32] | None:
        """What a document is about: the mean of its windows, float32 [dim], unit length; None when it has none."""
        (found,) = np.nonzero(self._documents == row)
        if not len(found):
            return None
        first = int(self._document_starts[found[0]])
        last = first + int(self._document_sizes[found[0]])
        mean = np.concatenate(self._planes)[first:last].mean(axis=0, dtype=np.float64)
        return (mean / np.linalg.norm(mean)).astype(np.float32)


def _map(artifact: Path, column: Column) -> list[NDArray[np.float32]]:
    dtype = np.dtype(column.dtype).newbyteorder("<")
    return [
        np.memmap(artifact / column.file, dtype, "r", offset, (rows, column.width)) for offset, rows in column.extents
    ] or [np.empty((0, column.width), dtype)]
