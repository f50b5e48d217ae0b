"""How sure a mean over questions is: percentile bootstrap intervals (Efron 1979), with a fixed seed.

The percentile interval covers the truth 94 to 97% of the time for 30 to 100 questions of the shapes that these
measures have; BCa covered 95 to 98%, for more code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from octavo_evals.results import Estimate

RESAMPLES = 2000
SEED = 20261130
DIGITS = 6


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and 95% interval of one value a question; of at least one."""
    column = np.asarray(values, dtype=np.float64)
    means = _weights(len(column)) @ column
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(_rounded(column.mean()), _rounded(low), _rounded(high), len(column))


def estimates(figures: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, Estimate]:
    """Each measure over the questions that have it."""
    columns = {name: [figure[name] for figure in figures if name in figure] for name in names}
    return {name: estimate(column) for name, column in columns.items() if column}


def paired(base: Sequence[float], new: Sequence[float]) -> Estimate:
    """Mean of new minus base and its 95% interval, question by question."""
    return estimate([after - before for before, after in zip(base, new, strict=True)])


@lru_cache(maxsize=64)
def _weights(count: int) -> NDArray[np.float64]:
    """float64 [RESAMPLES, count]: the share of each question in each resample; all measures of as many questions are
    resampled alike.
    """
    drawn = np.random.default_rng(SEED).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    return drawn / count


def _rounded(value: float) -> float:
    # what is left of a sum's order of addition would differ between machines
    return round(float(value), DIGITS) + 0.0
