"""Retrieval measures at file level: several passages of a file count once, at its best place."""

from __future__ import annotations

from collections.abc import Sequence


def files_of(passages: Sequence[str]) -> list[str]:
    """The files of a ranking of passages, each at its first place."""
    return list(dict.fromkeys(passages))


def recall(ranked: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """`R@k`: relevant files in the top k / min(k, number of relevant files)."""
    return len(set(ranked[:k]) & set(relevant)) / min(k, len(relevant))


def reciprocal_rank(ranked: Sequence[str], relevant: Sequence[str]) -> float:
    """`RR`: 1 / the place of the first relevant file, 0 when there is none."""
    return next((1 / place for place, file in enumerate(ranked, 1) if file in relevant), 0.0)
