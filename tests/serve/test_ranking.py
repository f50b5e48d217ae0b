from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_artifact.parameters import Fusion
from octavo_serve.ranking import Ranking, ranked
from octavo_serve.stages.fuse import FUSIONS, convex

few_scores = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=30)


def ranking(scores: dict[int, float], k: int | None = None) -> Ranking:
    return ranked(np.array(list(scores), np.int64), np.array(list(scores.values()), np.float32), k)


@given(few_scores, st.integers(1, 40))
def test_the_best_come_first_and_ties_in_row_order(scores: list[float], k: int) -> None:
    expected = sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:k]
    assert ranking(dict(enumerate(scores)), k).rows.tolist() == expected


@given(st.permutations(list(range(12))), few_scores.filter(lambda scores: len(scores) >= 12))
def test_the_order_of_the_input_does_not_matter(order: list[int], scores: list[float]) -> None:
    one, other = ranking({row: scores[row] for row in order}, 5), ranking({row: scores[row] for row in range(12)}, 5)
    assert one.rows.tolist() == other.rows.tolist()


@pytest.mark.parametrize(
    ("fusion", "expected"),
    [
        pytest.param("convex", {1: 0.25 * 0.5 + 0.75, 2: 0.75 * 0.5 / 0.9, 3: 0.25}, id="shares of the best"),
        pytest.param("minmax", {1: 0.75, 2: 0.0, 3: 0.25}, id="from the least that was found"),
        pytest.param("tmm", {1: 0.25 * 0.5 + 0.75, 2: 0.75 * 1.5 / 1.9, 3: 0.25}, id="from the least possible"),
        pytest.param("rrf", {1: 0.25 * 61 / 62 + 0.75, 2: 0.75 * 61 / 62, 3: 0.25}, id="by ranks alone"),
    ],
)
def test_fusion_weighs_scaled_scores(fusion: Fusion, expected: dict[int, float]) -> None:
    first = Ranking(np.array([3, 1]), np.array([8.0, 4.0], np.float32))
    second = Ranking(np.array([1, 2]), np.array([0.9, 0.5], np.float32))
    fused = FUSIONS[fusion]([(first, 1.0, 0.0), (second, 3.0, -1.0)])
    assert fused.rows.tolist() == sorted(expected, key=lambda row: -expected[row])
    assert fused.scores.tolist() == pytest.approx(sorted(expected.values(), reverse=True), abs=1e-6)


def test_fusion_of_nothing_is_nothing() -> None:
    assert len(convex([(ranking({}), 1.0, 0.0), (ranking({}), 2.0, 0.0)])) == 0


def test_equal_scores_all_count_as_best() -> None:
    flat = Ranking(np.array([4, 7]), np.array([2.0, 2.0], np.float32))
    assert convex([(flat, 1.0, 0.0)]).scores.tolist() == [1.0, 1.0]


@given(few_scores, few_scores, st.floats(0.1, 0.9))
def test_fused_scores_stay_between_0_and_1(first: list[float], second: list[float], weight: float) -> None:
    fused = convex([(ranking(dict(enumerate(s))), w, 0.0) for s, w in ((first, weight), (second, 1 - weight))])
    assert all(0 <= score <= 1 + 1e-6 for score in fused.scores)
