from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from octavo_serve.ranking import Ranking, ranked
from octavo_serve.stages.fuse import convex

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


def test_fusion_weighs_scaled_scores() -> None:
    first = Ranking(np.array([3, 1]), np.array([8.0, 4.0], np.float32))
    second = Ranking(np.array([1, 2]), np.array([0.9, 0.5], np.float32), floor=0.5)
    fused = convex([(first, 1.0, 0.0), (second, 3.0, -1.0)])
    assert fused.rows.tolist() == [1, 3, 2]
    assert np.allclose(fused.scores, [0.5 * 0.25 + 0.75, 0.25, 0.0])


def test_fusion_of_nothing_is_nothing() -> None:
    assert len(convex([(ranking({}), 1.0, 0.0), (ranking({}), 2.0, 0.0)])) == 0


def test_equal_scores_all_count_as_best() -> None:
    flat = Ranking(np.array([4, 7]), np.array([2.0, 2.0], np.float32), floor=2.0)
    assert convex([(flat, 1.0, 0.0)]).scores.tolist() == [1.0, 1.0]


@given(few_scores, few_scores, st.floats(0.1, 0.9))
def test_fused_scores_stay_between_0_and_1(first: list[float], second: list[float], weight: float) -> None:
    fused = convex([(ranking(dict(enumerate(s))), w, 0.0) for s, w in ((first, weight), (second, 1 - weight))])
    assert all(0 <= score <= 1 + 1e-6 for score in fused.scores)
