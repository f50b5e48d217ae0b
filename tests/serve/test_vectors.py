"""The vector index over tables of two kinds: compared whole, and by partitions."""

from __future__ import annotations

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from octavo_artifact.ids import canonical_json
from octavo_artifact.manifest import Column, Manifest, VectorPartitions
from octavo_artifact.schema import EncoderSpec
from octavo_build.progress import make_progress
from octavo_build.tasks import Build, run
from octavo_build.vectors import write_vectors
from octavo_build.workers import Workers
from octavo_serve.catalog import open_catalog
from octavo_serve.ranking import Ranking
from octavo_serve.requests import SearchRequest
from octavo_serve.vectors import VectorIndex
from running import TINY

PASSAGES, DIMENSIONS = 900, 24
SILENT = 7
"""Every seventh passage has no window."""
Vectors = NDArray[np.float32]


def document(passage: int) -> int:
    return passage // 5


def unit(vectors: NDArray[np.float64]) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def windows() -> tuple[NDArray[np.int32], Vectors]:
    """Passage row and vector of each window; a passage has one to three of a topic that its document shares."""
    generator = np.random.default_rng(5)
    passages = [p for p in range(PASSAGES) if p % SILENT for _ in range(1 + p % 3)]
    topics = generator.standard_normal((40, DIMENSIONS))
    chosen = topics[[document(p) % 40 for p in passages]]
    return np.array(passages, np.int32), unit(chosen + 0.7 * generator.standard_normal(chosen.shape))


def queries(count: int = 20) -> Vectors:
    _, vectors = windows()
    near = vectors[:: len(vectors) // count][:count].astype(np.float64)
    return unit(near + 0.1 * np.random.default_rng(6).standard_normal(near.shape))


def opened(root: Path, *, indexed: bool) -> tuple[VectorIndex, Manifest]:
    passages, vectors = windows()
    hashes = [hashlib.sha256(str(row).encode()).digest() for row in range(len(passages))]
    questions = queries(300) if indexed else None
    written = write_vectors(root / "vectors.lance", passages, np.zeros_like(passages), hashes, vectors, questions)
    encoder = EncoderSpec("mini", "a" * 64, "b" * 64, DIMENSIONS, 16, "mean", True)
    manifest = Manifest("", {"slug": "p"}, encoder, {}, {}, {}, written.columns, {}, {}, index=written.index)
    return VectorIndex(root, manifest, lambda rows: [document(row) for row in rows]), manifest


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> VectorIndex:
    return opened(tmp_path_factory.mktemp("whole"), indexed=False)[0]


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory: pytest.TempPathFactory) -> VectorIndex:
    return opened(tmp_path_factory.mktemp("partitioned"), indexed=True)[0]


@pytest.fixture(scope="module", params=["whole", "partitioned"])
def index(request: pytest.FixtureRequest) -> VectorIndex:
    return request.getfixturevalue(request.param)


def best_windows(query: Vectors, allowed: NDArray[np.bool_] | None = None) -> dict[int, float]:
    """The cosine of each passage's best window, by the definition."""
    found: dict[int, float] = {}
    for passage, vector in zip(*windows(), strict=True):
        if allowed is None or allowed[passage]:
            cosine = float(np.dot(vector, query))
            found[int(passage)] = max(found.get(int(passage), -1), cosine)
    return found


def mean_of(query: Vectors, passage: int) -> float:
    return float(np.mean([v @ query for p, v in zip(*windows(), strict=True) if document(int(p)) == document(passage)]))


def best(cosines: dict[int, float], k: int) -> list[int]:
    return sorted(cosines, key=lambda passage: (-cosines[passage], passage))[:k]


def same(one: Ranking, other: Ranking) -> bool:
    return np.array_equal(one.rows, other.rows) and one.scores.tobytes() == other.scores.tobytes()


def test_a_small_pack_is_compared_whole(whole: VectorIndex):
    for query in queries():
        cosines = best_windows(query)
        ranking = whole.compare(query).nearest(25)
        assert ranking.rows.tolist() == best(cosines, 25)
        assert ranking.scores.tolist() == pytest.approx([cosines[row] for row in ranking.rows.tolist()], abs=1e-6)


def test_partitions_find_what_comparing_all_finds(partitioned: VectorIndex, whole: VectorIndex):
    found = [
        np.isin(whole.compare(query).nearest(10).rows, partitioned.compare(query).nearest(10).rows).mean()
        for query in queries()
    ]
    assert np.mean(found) >= 0.98


def test_partitions_leave_most_windows_alone(partitioned: VectorIndex, whole: VectorIndex):
    query = queries()[3]
    assert 10 < len(partitioned.compare(query).rows) < len(whole.compare(query).rows) / 2


def test_where_most_partitions_must_be_seen_all_are(tmp_path: Path, whole: VectorIndex):
    _, manifest = opened(tmp_path, indexed=True)
    assert manifest.index is not None
    many = replace(manifest, index=replace(manifest.index, nprobes=manifest.index.partitions // 2))
    index = VectorIndex(tmp_path, many, lambda rows: [document(row) for row in rows])
    for query in queries():
        assert same(index.compare(query).nearest(PASSAGES), whole.compare(query).nearest(PASSAGES))


def test_a_passage_has_the_same_score_whichever_way_it_was_found(partitioned: VectorIndex, whole: VectorIndex):
    for query in queries():
        few, all_ = partitioned.compare(query), whole.compare(query)
        scores = dict(zip(all_.rows.tolist(), all_.passages.tolist(), strict=True))
        assert few.passages.tolist()[0] <= scores[few.rows.tolist()[0]]
        top = few.nearest(5)
        assert top.scores.tolist() == [scores[row] for row in top.rows.tolist()]
        rows = np.arange(PASSAGES)
        assert same(few.of_documents(rows), all_.of_documents(rows))


def test_a_filter_is_applied_before_ranking(index: VectorIndex):
    for divisor in (2, 100):
        allowed = np.arange(PASSAGES) % divisor == 1
        for query in queries():
            cosines = best_windows(query, allowed)
            ranking = index.compare(query, allowed).nearest(30)
            assert ranking.rows.tolist() == best(cosines, 30)


def test_a_document_counts_all_its_windows_whatever_the_filter(index: VectorIndex):
    query = queries()[0]
    allowed = np.arange(PASSAGES) % 5 == 1
    for similarity in (index.compare(query), index.compare(query, allowed)):
        ranking = similarity.of_documents(np.array([701, 36, 31, 35, 21]))
        assert SILENT * 5 == 35
        expected = {row: mean_of(query, row) for row in (701, 36, 31)}
        assert ranking.rows.tolist() == best(expected, 3)
        assert ranking.scores.tolist() == pytest.approx([expected[row] for row in ranking.rows.tolist()], abs=1e-6)


def test_passages_that_the_filter_refuses_have_no_document(index: VectorIndex):
    allowed = np.arange(PASSAGES) == 36
    similarity = index.compare(queries()[0], allowed)
    assert similarity.of_documents(np.array([31, 36, 41])).rows.tolist() == [36]


def test_nothing_allowed_is_nothing_found(index: VectorIndex):
    similarity = index.compare(queries()[0], np.zeros(PASSAGES, np.bool_))
    assert len(similarity.nearest(10)) == len(similarity.of_documents(np.arange(9))) == 0


def test_a_pack_without_windows_finds_nothing(tmp_path: Path):
    columns = {"vector": Column("", "float32", 24, ()), "passage": Column("", "int32", 1, ())}
    manifest = replace(opened(tmp_path, indexed=False)[1], columns=columns)
    index = VectorIndex(tmp_path, manifest, lambda rows: [0 for _ in rows])
    for similarity in (index.compare(queries()[0]), index.compare(queries()[0], np.ones(3, np.bool_))):
        assert len(similarity.nearest(10)) == len(similarity.of_documents(np.arange(3))) == 0
    assert index.documents_near(queries()[0]) == {}
    assert index.of_document(0) is None


def test_equal_windows_stand_in_row_order(tmp_path: Path):
    passages = np.arange(400, dtype=np.int32)
    vectors = np.repeat(unit(np.random.default_rng(1).standard_normal((4, DIMENSIONS))), 100, axis=0)
    written = write_vectors(tmp_path / "vectors.lance", passages, passages, [b"0" * 32] * 400, vectors, vectors[::100])
    manifest = replace(opened(tmp_path / "other", indexed=True)[1], columns=written.columns, index=written.index)
    index = VectorIndex(tmp_path, manifest, lambda rows: rows)
    assert index.compare(vectors[200]).nearest(30).rows.tolist() == list(range(200, 230))


def test_threads_do_not_matter(index: VectorIndex):
    asked = np.tile(queries(), (10, 1))

    def nearest(query: Vectors) -> Ranking:
        return index.compare(query).nearest(50)

    alone = [nearest(query) for query in asked]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(nearest, asked))
    assert all(same(one, other) for one, other in zip(alone, together, strict=True))


def test_documents_and_their_nearness(index: VectorIndex):
    query = queries()[1]
    near = index.documents_near(query)
    assert sorted(near) == list(range(PASSAGES // 5))
    assert near[7] == pytest.approx(mean_of(query, 36), abs=1e-6)
    about = index.of_document(7)
    assert about is not None
    mine = np.array([v for p, v in zip(*windows(), strict=True) if document(int(p)) == 7], np.float64)
    assert about == pytest.approx(unit(mine.mean(axis=0)), abs=1e-6)
    assert index.of_document(PASSAGES) is None


def test_a_table_of_several_pages_is_searched_as_one(tmp_path: Path):
    index, manifest = opened(tmp_path, indexed=True)
    column = manifest.columns["vector"]
    ((offset, rows),) = column.extents
    cut = replace(column, extents=((offset, 100), (offset + 100 * 4 * DIMENSIONS, rows - 100)))
    pages = VectorIndex(
        tmp_path,
        replace(manifest, columns={**manifest.columns, "vector": cut}),
        lambda rows: [document(row) for row in rows],
    )
    everything = np.arange(PASSAGES)
    for query in queries():
        assert same(index.compare(query).nearest(40), pages.compare(query).nearest(40))
        assert same(index.compare(query).of_documents(everything), pages.compare(query).of_documents(everything))
    one, other = index.of_document(11), pages.of_document(11)
    assert one is not None
    assert other is not None
    assert np.array_equal(one, other)


@pytest.mark.slow
def test_a_pack_of_many_windows_is_built_with_an_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with Workers(1) as workers, make_progress(bars=False) as progress:
        for name, least in (("whole", 10**6), ("indexed", 2), ("again", 2)):
            build = Build([TINY], tmp_path / name, tmp_path / f"{name}-state", workers, progress, indexed_from=least)
            assert run(build) == 0
            assert not build.failures
    said = re.findall(r"tiny: IVF_PQ index of (\d+) partitions; the nearest (\d+) hold", capsys.readouterr().err)

    whole, indexed = (open_catalog(tmp_path / name).choose(None) for name in ("whole", "indexed"))

    assert whole.manifest.index is None
    index = indexed.manifest.index
    assert isinstance(index, VectorPartitions)
    assert said == [(str(index.partitions), str(index.nprobes))] * 2
    assert set(indexed.manifest.columns) == {"passage", "vector", "partition", "centroid"}
    assert (tmp_path / "indexed/tiny/latest.json").read_bytes() == (tmp_path / "again/tiny/latest.json").read_bytes()
    request = SearchRequest(query="overview", gate="off")
    first, second = ([h["fragment_id"] for h in pack.search(request)["results"]] for pack in (whole, indexed))
    assert first[0] == second[0]
    assert canonical_json(indexed.search(request)) == canonical_json(indexed.search(request))
