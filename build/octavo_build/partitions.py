"""Partitions of a large pack's vectors: so that a search looks at the near ones instead of at all.

Lance trains its indices from random samples. Here k-means runs over evenly spaced rows, in whole numbers: every product
and sum is exact in float64, in whatever order the processor, its threads or BLAS take them, so every machine finds the
same partitions, the same number to probe and the same recall.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from octavo_build.whole_numbers import UNIT, Floats, in_units

CODES = 256
"""Centroids of a sub-vector: what a byte can name."""
RECALL = 0.99
"""Share of the ten rows nearest to a question that the probed partitions hold."""

_NEAREST = 10
_ROUNDS = 10
_SAMPLE = 64
"""Rows of the sample for each centroid."""
_CODE_SAMPLE = 32
_SUB_VECTOR = 8
"""Values of a sub-vector; Lance's own default."""
_ROWS = 8_192
"""Rows that are compared at once; bounds memory to some 20 MB."""

Real = TypeVar("Real", np.float32, np.float64)


@dataclass(frozen=True, slots=True)
class Partitions:
    """Centroids, and the nearest of them to each row."""

    centroids: NDArray[np.float32]
    """[partitions, dim]; means, so shorter than unit length."""
    of_rows: NDArray[np.int32]
    """[rows]."""


@dataclass(frozen=True, slots=True)
class Probes:
    """How many partitions a search must look at."""

    count: int
    recall: float
    """Of the ten rows nearest to a question, the share that lies in the `count` nearest partitions."""


def partition(vectors: NDArray[np.float32]) -> Partitions:
    """Partitions of unit vectors, float32 [rows, dim]: as many as the square root of the rows."""
    count = max(1, round(math.sqrt(len(vectors))))
    centroids = _k_means(in_units(vectors[_spaced(len(vectors), count * _SAMPLE)]), count)
    nearest = np.concatenate([_nearest(in_units(block), centroids) for block in _blocks(vectors)])
    return Partitions((centroids / UNIT).astype(np.float32), nearest.astype(np.int32))


def codebook(vectors: NDArray[np.float32], partitions: Partitions) -> NDArray[np.float32]:
    """Centroids of the sub-vectors of what is left of each row without its partition's centroid.

    float32 [sub-vectors, CODES, values]; as many sub-vectors of at least 8 values as divide the dimensions evenly.
    """
    rows = _spaced(len(vectors), CODES * _CODE_SAMPLE)
    left = in_units(vectors[rows]) - in_units(partitions.centroids[partitions.of_rows[rows]])
    dimensions = vectors.shape[1]
    count = next(m for m in range(max(1, dimensions // _SUB_VECTOR), 0, -1) if dimensions % m == 0)
    books = [_k_means(np.ascontiguousarray(part), CODES) for part in np.split(left, count, axis=1)]
    return (np.stack(books) / UNIT).astype(np.float32)


def probes(vectors: NDArray[np.float32], partitions: Partitions, questions: NDArray[np.float32]) -> Probes:
    """The smallest number of partitions that holds RECALL of the rows nearest to `questions`, float32 [n, dim]."""
    if not len(questions):
        return Probes(len(partitions.centroids), 1.0)
    asked = in_units(questions)
    cosines = np.concatenate([asked @ in_units(block).T for block in _blocks(vectors)], axis=1)
    nearest = np.stack([_first(each, min(_NEAREST, len(vectors))) for each in cosines])
    order = np.argsort(-_affinity(asked, in_units(partitions.centroids)), axis=1, kind="stable")
    looked_at = np.argsort(order, axis=1) + 1  # the place of each partition in a question's order
    needed = np.sort(np.take_along_axis(looked_at, partitions.of_rows[nearest], axis=1), axis=None)
    count = int(needed[math.ceil(RECALL * len(needed)) - 1])
    return Probes(count, round(float(np.mean(needed <= count)), 4))


def _k_means(rows: Floats, count: int) -> Floats:
    """`count` centroids of whole-numbered `rows`, whole too; one that loses all its rows stays where it is."""
    centroids = rows[np.arange(count) * len(rows) // count]
    for _ in range(_ROUNDS):
        nearest = _nearest(rows, centroids)
        order = np.argsort(nearest, kind="stable")
        kept, starts, sizes = np.unique(nearest[order], return_index=True, return_counts=True)
        moved = centroids.copy()
        moved[kept] = np.rint(np.add.reduceat(rows[order], starts) / sizes[:, None])
        if np.array_equal(moved, centroids):
            break
        centroids = moved
    return centroids


def _nearest(rows: Floats, centroids: Floats) -> NDArray[np.int64]:
    """The nearest centroid to each row; the first of several."""
    return np.concatenate([np.argmax(_affinity(block, centroids), axis=1) for block in _blocks(rows)])


def _affinity(rows: Floats, centroids: Floats) -> Floats:
    """Greater for a nearer centroid, [rows, centroids]: the squared distance is the row's own square less this."""
    return 2 * (rows @ centroids.T) - np.square(centroids).sum(axis=1)


def _first(scores: Floats, count: int) -> NDArray[np.int64]:
    """The places of the `count` greatest, the first of equals."""
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    (places,) = np.nonzero(scores >= least)
    return places[np.argsort(-scores[places], kind="stable")[:count]]


def _blocks(rows: NDArray[Real]) -> Iterator[NDArray[Real]]:
    return (rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS))


def _spaced(rows: int, wanted: int) -> NDArray[np.int64]:
    """At most `wanted` row numbers, evenly spaced."""
    count = min(rows, wanted)
    return np.arange(count) * rows // count
