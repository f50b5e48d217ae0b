from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from octavo_build import partitions as module
from octavo_build.partitions import CODES, Partitions, codebook, partition, probes


def topics(rows: int, dimensions: int = 32, count: int = 12) -> NDArray[np.float32]:
    """Unit vectors around some centres, each row near that of its number."""
    generator = np.random.default_rng(3)
    centres = generator.standard_normal((count, dimensions))
    vectors = centres[np.arange(rows) % count] + 0.6 * generator.standard_normal((rows, dimensions))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_every_row_is_in_the_partition_of_its_nearest_centroid():
    vectors = topics(900)

    found = partition(vectors)

    assert found.centroids.shape == (30, 32)
    distances = np.linalg.norm(np.rint(vectors * 2**15)[:, None] / 2**15 - found.centroids[None], axis=2)
    assert np.array_equal(found.of_rows, distances.argmin(axis=1))


def test_centroids_are_the_means_of_topics():
    vectors = topics(1_600, count=40)

    found = partition(vectors)

    spread = np.linalg.norm(vectors - found.centroids[found.of_rows], axis=1).mean()
    assert spread < 0.8 * np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).mean()


def test_sums_are_exact_in_whatever_order_they_are_taken():
    # another order of the dimensions is another order of every sum, as another processor would take them
    vectors = topics(2_000, dimensions=384)
    order = np.random.default_rng(0).permutation(384)
    shuffled = np.ascontiguousarray(vectors[:, order])

    one, other = partition(vectors), partition(shuffled)

    assert np.array_equal(one.of_rows, other.of_rows)
    assert np.array_equal(one.centroids[:, order], other.centroids)
    assert probes(vectors, one, vectors[::50]) == probes(shuffled, other, shuffled[::50])


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch):
    vectors = topics(1_000)
    found, measured = partition(vectors), probes(vectors, partition(vectors), vectors[::9])
    monkeypatch.setattr(module, "_ROWS", 77)

    again = partition(vectors)

    assert np.array_equal(found.of_rows, again.of_rows)
    assert np.array_equal(found.centroids, again.centroids)
    assert probes(vectors, again, vectors[::9]) == measured


def test_the_probes_are_the_fewest_that_hold_the_share():
    vectors = topics(2_500, count=200)
    questions = topics(100, count=200)
    partitions = partition(vectors)

    found = probes(vectors, partitions, questions)

    assert found.recall >= module.RECALL
    assert recall(vectors, partitions, questions, found.count) == pytest.approx(found.recall, abs=1e-4)
    assert recall(vectors, partitions, questions, found.count - 1) < module.RECALL
    assert 1 < found.count < 50


def recall(vectors: NDArray[np.float32], partitions: Partitions, questions: NDArray[np.float32], count: int) -> float:
    shares: list[float] = []
    for question in questions:
        nearest = np.argsort(-(vectors @ question))[:10]
        distances = np.linalg.norm(partitions.centroids - question, axis=1)
        shares.append(float(np.isin(partitions.of_rows[nearest], np.argsort(distances)[:count]).mean()))
    return float(np.mean(shares))


def test_without_questions_every_partition_is_probed():
    vectors = topics(100)
    assert probes(vectors, partition(vectors), vectors[:0]) == module.Probes(10, 1.0)


@pytest.mark.parametrize(("dimensions", "sub_vectors"), [(384, 48), (20, 2), (13, 1), (5, 1), (33, 3)])
def test_sub_vectors_divide_the_dimensions(dimensions: int, sub_vectors: int):
    vectors = topics(300, dimensions)

    book = codebook(vectors, partition(vectors))

    assert book.shape == (sub_vectors, CODES, dimensions // sub_vectors)
    assert book.dtype == np.float32


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_few_rows_are_partitioned_too(rows: int):
    vectors = topics(rows)
    found = partition(vectors)
    assert len(found.of_rows) == rows
    assert probes(vectors, found, vectors).recall == 1.0
