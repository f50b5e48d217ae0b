"""Whether a passage says what a sentence claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Encode = Callable[[str], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found."""

    supported: bool
    reason: str | None
    score: float
    span: tuple[int, int]


def check(sentence: str, passage: str, encode: Encode | None = None, context: str = "") -> Verdict:
    """Placeholder."""
    said = set(passage.lower().split())
    words = sentence.lower().split()
    score = sum(word in said for word in words) / max(1, len(words))
    return Verdict(score > 0.5, None if score > 0.5 else "terms", score, (0, len(passage)))
