from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from octavo_evals.bootstrap import estimate, estimates, paired


def test_an_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    values = [1.0, 0.5, 0.0, 1.0, 0.25]
    found = estimate(values)
    assert found == estimate(values)
    assert (found.mean, found.count) == (0.55, 5)
    assert 0 <= found.low < found.mean < found.high <= 1


def test_an_interval_is_narrower_over_more_questions() -> None:
    few, many = estimate([0.0, 1.0] * 10), estimate([0.0, 1.0] * 100)
    assert many.high - many.low < few.high - few.low


def test_each_measure_is_over_the_questions_that_have_it() -> None:
    found = estimates([{"RR": 1.0}, {"RR": 0.0}, {"right_refusal": 1.0}], ["RR", "right_refusal", "R@1"])
    assert {name: (one.mean, one.count) for name, one in found.items()} == {"RR": (0.5, 2), "right_refusal": (1.0, 1)}


def test_a_difference_is_taken_question_by_question() -> None:
    spread = [0.1 * number for number in range(10)]
    shifted = paired(spread, [value - 0.05 for value in spread])
    assert (shifted.low, shifted.mean, shifted.high) == (-0.05, -0.05, -0.05)


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, 100])
@pytest.mark.parametrize(
    ("values", "chances"),
    [
        pytest.param([1, 1 / 2, 1 / 3, 1 / 5, 0], [0.6, 0.15, 0.1, 0.1, 0.05], id="RR"),
        pytest.param([1, 0.63, 0.5, 0.39, 0], [0.5, 0.2, 0.1, 0.1, 0.1], id="nDCG"),
        pytest.param([-1, -0.5, 0, 0.5, 1], [0.1, 0.1, 0.5, 0.2, 0.1], id="differences"),
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_say(count: int, values: list[float], chances: list[float]) -> None:
    draw: Callable[..., np.ndarray] = np.random.default_rng(11).choice
    truth = float(np.dot(values, chances))
    found = [estimate(draw(values, count, p=chances).tolist()) for _ in range(4000)]
    covered = sum(one.low <= truth <= one.high for one in found) / len(found)
    assert 0.93 <= covered <= 0.97
