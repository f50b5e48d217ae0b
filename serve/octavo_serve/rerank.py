"""A stand-in until the branch is merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Reranker(Protocol):
    """Whoever tells how well texts answer a query."""

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One a text, higher is better."""
        ...
