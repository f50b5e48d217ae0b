"""Vectors in whole numbers: products and sums of them are exact in float64, in whatever order a machine takes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UNIT = 2.0**15
"""Values become whole numbers of this part: 384 products of two such numbers stay far below 2**53."""

Floats = NDArray[np.float64]


def in_units(vectors: NDArray[np.float32]) -> Floats:
    """Unit vectors, float32 [n, dim], or one, in UNITs."""
    return np.rint(vectors.astype(np.float64) * UNIT)
