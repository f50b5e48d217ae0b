"""Passages of different documents that say the same in nearly the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from octavo_evals.deep.subject import Found, Passage, Subject

NEAR = 0.8
"""Cosine from which two passages are compared word by word; copies under other headings have about .85."""
MAX_COMPARED = 200_000
"""Pairs, in the order of their passages: a few seconds."""
COMMON = 0.6
"""Part of the shorter passage's shingles that the other must have."""
SHINGLE = 4
MIN_SHINGLES = 20
"""Shorter passages are alike by chance."""
BLOCK = 1024
"""Passages that are compared with all others at once: 80 MB for 20,000 passages."""

_WORD = re.compile(r"\w+")


def check_duplicates(subject: Subject) -> Iterator[Found]:
    """Each passage that repeats one of another document, told once, at the later one."""
    shingles: dict[int, frozenset[tuple[str, ...]]] = {}
    told: set[int] = set()
    for first, second in islice(_near(subject), MAX_COMPARED):
        one, other = subject.passages[first], subject.passages[second]
        if one.path == other.path or second in told:
            continue
        for passage in (one, other):
            shingles.setdefault(passage.row, _shingles(passage))
        common = _overlap(shingles[first], shingles[second])
        if common >= COMMON:
            told.add(second)
            message = f"{common:.0%} of its words stand in {one.path}:{one.line} too"
            yield Found(other.path, other.line, "deep-duplicate", message)


def _near(subject: Subject) -> Iterator[tuple[int, int]]:
    """Rows of passages that are near in meaning, each pair once, in order."""
    rows, vectors = subject.vectors
    for start in range(0, len(rows), BLOCK):
        cosines = vectors[start : start + BLOCK] @ vectors.T
        for place, other in np.argwhere(cosines >= NEAR).tolist():
            if start + place < other:
                yield int(rows[start + place]), int(rows[other])


def _shingles(passage: Passage) -> frozenset[tuple[str, ...]]:
    words = _WORD.findall(passage.text.casefold())
    return frozenset(tuple(words[start : start + SHINGLE]) for start in range(len(words) - SHINGLE + 1))


def _overlap(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    shorter = min(len(one), len(other))
    return len(one & other) / shorter if shorter >= MIN_SHINGLES else 0.0
