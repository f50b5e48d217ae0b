"""Vector search over the mapped planes of `vectors.lance`; no Lance needed to serve.

Cosines are always those of the vectors themselves. A pack is compared whole, with a filter all that it allows; of a
large one whose index finds the nearest in few partitions, the windows of those only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.manifest import Column, Manifest
from octavo_serve.ranking import Ranking, Rows, Scores, ranked

Vectors = NDArray[np.float32]
Cosines = Callable[[Rows], Scores]
"""The cosines of given windows and a query."""

_BLOCK = 1024
"""Vectors that are gathered at once: 1.5 MB, which the processor still has in its cache when they are multiplied."""
_GATHERED = 5
"""Gathering a window takes this many times as long as reading it in its turn (`evals/bench/large_packs.py`)."""


@dataclass(frozen=True, slots=True)
class Similarity:
    """How near passages are to a query."""

    rows: Rows
    """int64 [n], the passages that were compared, ascending."""
    passages: Scores
    """float32 [n], cosine of the passage's best window among those compared."""
    means: Callable[[Rows], tuple[Rows, Scores]]
    """Of given passages those that have vectors and are allowed, and the mean cosine of all windows of their
    documents: whether the page is about it at all."""

    def nearest(self, k: int) -> Ranking:
        """The `k` passages whose best window is nearest."""
        return ranked(self.rows, self.passages, k)

    def of_passages(self, rows: Rows) -> Ranking:
        """Passages `rows` by their best windows; those that were not compared are left out."""
        known, places = _placed(rows, self.rows)
        return ranked(rows[known], self.passages[places])

    def of_documents(self, rows: Rows) -> Ranking:
        """Passages `rows` by the nearness of their documents; those without vectors are left out."""
        return ranked(*self.means(rows))


class VectorIndex:
    """The windows' unit vectors, and which passage and document each belongs to. Safe to use from several threads."""

    def __init__(self, artifact: Path, manifest: Manifest, documents: Callable[[Sequence[int]], Sequence[int]]) -> None:
        """Map the columns; vectors are read from disk as searches touch them.

        `documents` gives the document row of each passage row.
        """
        self._planes = _map(artifact, manifest.columns["vector"])
        # Windows stand in passage order, passages in document order: both are runs of windows.
        self._passage = _read(artifact, manifest.columns["passage"])[:, 0]
        rows, self._passage_starts = np.unique(self._passage, return_index=True)
        self._rows = rows.astype(np.int64)
        of_passage = np.array(documents(self._rows.tolist()), dtype=np.int64)
        self._documents, starts, self._document = np.unique(of_passage, return_index=True, return_inverse=True)
        self._document_starts = self._passage_starts[starts]
        self._document_sizes = np.diff(self._document_starts, append=len(self._passage))
        index = manifest.index
        pays = index is not None and index.nprobes * _GATHERED < index.partitions
        self._partitions = _Partitions(artifact, manifest, index.nprobes) if index and pays else None

    def compare(self, query: Vectors, allowed: NDArray[np.bool_] | None = None) -> Similarity:
        """Compare a query (float32 [dim], unit length) with the windows of the passages that `allowed`, bool
        [passages], admits; without it with all, or those of the nearest partitions where that is less work.
        """
        if allowed is not None:
            (windows,) = np.nonzero(allowed[self._passage])
        elif self._partitions:
            windows = self._partitions.near(query)
        else:
            every = self._every_cosine(query)
            best = np.maximum.reduceat(every, self._passage_starts) if len(every) else every
            return Similarity(self._rows, best, partial(self._means, every.__getitem__, None))
        passages = self._passage[windows]
        (starts,) = np.nonzero(np.diff(passages, prepend=-1))
        found = self._cosines(query, windows)
        best = np.maximum.reduceat(found, starts) if len(found) else found
        means = partial(self._means, partial(self._cosines, query), allowed)
        return Similarity(passages[starts].astype(np.int64), best, means)

    def documents_near(self, query: Vectors) -> dict[int, float]:
        """Mean cosine of a query and all windows of each document that has any, by document row."""
        if not len(self._documents):
            return {}
        sums = np.add.reduceat(self._every_cosine(query), self._document_starts)
        return dict(zip(self._documents.tolist(), _divided(sums, self._document_sizes).tolist(), strict=True))

    def first_windows(self, rows: Rows) -> Vectors:
        """The vectors of passages' first windows, float32 [rows, dim]; zeros for a passage that has none."""
        known, places = _placed(rows, self._rows)
        found = np.zeros((len(rows), self._planes[0].shape[1]), dtype=np.float32)
        found[known] = self._gather(self._passage_starts[places])
        return found

    def of_passages(self) -> tuple[Rows, Vectors]:
        """What each passage is about: the passages that have vectors, int64 [n], ascending, and the means of their
        windows, float32 [n, dim], unit length. Reads every vector.
        """
        if not len(self._rows):
            return self._rows, np.empty((0, 0), np.float32)
        means = np.add.reduceat(np.concatenate(self._planes), self._passage_starts, dtype=np.float64)
        return self._rows, (means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float32)

    def of_document(self, row: int) -> Vectors | None:
        """What a document is about: the mean of its windows, float32 [dim], unit length; None when it has none."""
        (found,) = np.nonzero(self._documents == row)
        if not len(found):
            return None
        mean = self._gather(self._windows_of(found)).mean(axis=0, dtype=np.float64)
        return (mean / np.linalg.norm(mean)).astype(np.float32)

    def _means(self, cosines: Cosines, allowed: NDArray[np.bool_] | None, rows: Rows) -> tuple[Rows, Scores]:
        """See `Similarity.means`; reads the windows of those documents only."""
        if allowed is not None:
            rows = rows[allowed[rows]]
        known, places = _placed(rows, self._rows)
        rows = rows[known]
        if not len(rows):
            return rows, np.empty(0, np.float32)
        documents, places = np.unique(self._document[places], return_inverse=True)
        sizes = self._document_sizes[documents]
        sums = np.add.reduceat(cosines(self._windows_of(documents)), np.cumsum(sizes) - sizes)
        return rows, _divided(sums, sizes)[places]

    def _windows_of(self, documents: Rows) -> Rows:
        """The windows of documents, one after the other."""
        return _ranges(self._document_starts[documents], self._document_sizes[documents])

    def _cosines(self, query: Vectors, windows: Rows) -> Scores:
        """The cosines of windows, to the bit those of `_every_cosine`: each is a product of its own."""
        if len(windows) * _GATHERED > len(self._passage):
            return self._every_cosine(query)[windows]
        blocks = (windows[start : start + _BLOCK] for start in range(0, len(windows), _BLOCK))
        return np.concatenate([np.empty(0, np.float32), *(np.vecdot(self._gather(block), query) for block in blocks)])

    def _every_cosine(self, query: Vectors) -> Scores:
        # vecdot, which takes row by row: a product of a matrix may depend on the number of rows and threads, and above
        # the cache's size it took 12 ms of CPU for 100,000 rows instead of 5
        return np.concatenate([np.vecdot(plane, query) for plane in self._planes])

    def _gather(self, windows: Rows) -> Vectors:
        """The vectors of windows, float32 [n, dim]."""
        if len(self._planes) == 1:
            return self._planes[0].take(windows, axis=0)
        gathered = np.empty((len(windows), self._planes[0].shape[1]), np.float32)
        start = 0
        for plane in self._planes:
            (here,) = np.nonzero((windows >= start) & (windows < start + len(plane)))
            gathered[here] = plane.take(windows[here] - start, axis=0)
            start += len(plane)
        return gathered


class _Partitions:
    """Which windows lie in which partition, and which partitions are near."""

    def __init__(self, artifact: Path, manifest: Manifest, probes: int) -> None:
        self._centroids = _read(artifact, manifest.columns["centroid"])
        self._half_squares = np.vecdot(self._centroids, self._centroids) / 2
        of_window = _read(artifact, manifest.columns["partition"])[:, 0]
        self._windows = np.argsort(of_window, kind="stable")
        self._sizes = np.bincount(of_window, minlength=len(self._centroids))
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._probes = probes

    def near(self, query: Vectors) -> Rows:
        """The windows of the partitions that a search looks at, ascending."""
        distances = self._half_squares - np.vecdot(self._centroids, query)
        nearest = np.argsort(distances, kind="stable")[: self._probes]
        return np.sort(self._windows[_ranges(self._starts[nearest], self._sizes[nearest])], kind="stable")


def _ranges(starts: Rows, sizes: Rows) -> Rows:
    """The numbers of ranges, one after the other."""
    return np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)


def _placed(rows: Rows, among: Rows) -> tuple[NDArray[np.bool_], Rows]:
    """Which of `rows` are in `among`, which is ascending, and the places there of those that are."""
    places = np.searchsorted(among, rows)
    known = places < len(among)
    known[known] = among[places[known]] == rows[known]
    return known, places[known]


def _divided(sums: Scores, sizes: Rows) -> Scores:
    return sums / sizes.astype(np.float32)


def _map(artifact: Path, column: Column) -> list[NDArray[Any]]:
    dtype = np.dtype(column.dtype).newbyteorder("<")
    return [
        np.asarray(np.memmap(artifact / column.file, dtype, "r", offset, (rows, column.width)))
        for offset, rows in column.extents
    ] or [np.empty((0, column.width), dtype)]


def _read(artifact: Path, column: Column) -> NDArray[Any]:
    """A column in memory of its own, where every value is aligned."""
    return np.concatenate(_map(artifact, column))
