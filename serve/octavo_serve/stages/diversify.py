"""What of a ranking is worth showing: one of several that say the same, unlike ones, not all from one document."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from octavo_serve.candidates import Candidates
from octavo_serve.collection import Collection
from octavo_serve.ranking import Ranking, Rows

SAME_WORDS = 0.9
"""Share of all their words (Jaccard) that passages which say the same have in common."""

_WORD = re.compile(r"\w+")


def diversify(found: Candidates) -> Candidates:
    """Put the best of several near-duplicates before all others, keep at most so many passages of a document, and
    prefer, by MMR, what is unlike the passages before.

    Looks at the head of the ranking of each pack: three times as many passages as are asked for, and ten. All packs may
    yet be refused but one.
    """
    found = replace(found, fused=found.ranking)
    asked, parameters = found.asked, found.asked.parameters
    wanted = asked.request.max_results
    k = wanted * len(asked.collection.parts)
    head = _capped(found.ranking, asked.collection, parameters.passages_per_document, 3 * wanted + 10)
    if not parameters.diversity:
        first = head.rows[: k + 1]
        alike = _similarity(asked.collection, first) >= (parameters.duplicate_similarity or np.inf)
        if not _pairs(alike):
            return replace(found, ranking=head)  # as mostly, and a fifth of the time
    similarity = _similarity(asked.collection, head.rows)
    kept, duplicates = list(range(len(head))), dict[int, tuple[int, ...]]()
    if parameters.duplicate_similarity:
        alike = similarity >= parameters.duplicate_similarity
        kept, duplicates = _without_duplicates(head.rows, alike, lambda row: asked.collection.hit(row)["text"])
    if parameters.diversity:
        kept = _relevant_and_unlike(head, kept, similarity, parameters.diversity, k)
    if len(kept) < k:
        # what says the same again is better than an empty place: k passages that match are k results
        kept = sorted([*kept, *(place for place in range(len(head)) if place not in kept)][:k])
        shown = {int(head.rows[place]) for place in kept}
        duplicates = {row: tuple(other for other in others if other not in shown) for row, others in duplicates.items()}
    return replace(found, ranking=head.take(kept), duplicates=duplicates)


def cut(found: Candidates) -> Candidates:
    """The best of them, as many as are asked for."""
    return replace(found, ranking=found.ranking.take(range(min(found.asked.request.max_results, len(found.ranking)))))


def _capped(ranking: Ranking, collection: Collection, limit: int, k: int) -> Ranking:
    """The best `k` passages of each pack, at most `limit` of each document."""
    documents = np.array(collection.documents(ranking.rows.tolist()), dtype=np.int64)
    order = np.argsort(documents, kind="stable")
    (starts,) = np.nonzero(np.diff(documents[order], prepend=-1))
    before = np.empty(len(order), dtype=np.int64)
    before[order] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    (kept,) = np.nonzero(before < limit)
    own = [kept[mine][:k] for _, _, mine in collection.split(ranking.rows[kept])]
    return ranking.take(np.sort(np.concatenate([np.empty(0, np.int64), *own])).tolist())


def _similarity(collection: Collection, rows: Rows) -> NDArray[np.float32]:
    """Cosines between passages by their first windows, float32 [rows, rows]; 0 between encoders and without one."""
    similarity = np.zeros((len(rows), len(rows)), dtype=np.float32)
    own_vectors: defaultdict[int, list[tuple[NDArray[np.int64], NDArray[np.float32]]]] = defaultdict(list)
    for part, first, own in collection.split(rows):
        places = np.flatnonzero(own)
        own_vectors[id(part.encoder)].append((places, part.vectors.first_windows(rows[own] - first)))
    for found in own_vectors.values():
        places = np.concatenate([places for places, _ in found])
        vectors = np.concatenate([vectors for _, vectors in found])
        # row by row: a product of matrices wakes BLAS's threads, which took 11 ms for 40 passages instead of .2;
        # rounded, since what is equal must be equal
        similarity[np.ix_(places, places)] = np.round(np.vecdot(vectors[:, None], vectors[None]), 5)
    return similarity


def _pairs(alike: NDArray[np.bool_]) -> bool:
    """Whether any two are alike."""
    return bool(np.count_nonzero(alike) > np.count_nonzero(alike.diagonal()))


def _without_duplicates(
    rows: Rows, alike: NDArray[np.bool_], text: Callable[[int], str]
) -> tuple[list[int], dict[int, tuple[int, ...]]]:
    """The positions that stay, and by the row of each what it stands for."""
    words: dict[int, frozenset[str]] = {}

    def words_at(position: int) -> frozenset[str]:
        if position not in words:
            words[position] = frozenset(_WORD.findall(text(int(rows[position])).casefold()))
        return words[position]

    kept: list[int] = []
    folded: defaultdict[int, list[int]] = defaultdict(list)
    for position in range(len(rows)):
        near = np.flatnonzero(alike[position, :position]).tolist()
        twin = next((each for each in near if each in kept and _same(words_at(each), words_at(position))), None)
        if twin is None:
            kept.append(position)
        else:
            folded[int(rows[twin])].append(int(rows[position]))
    return kept, {row: tuple(others) for row, others in folded.items()}


def _same(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether texts with these words say the same: nearly all words, and the same numbers."""
    fewer, more = sorted((len(words), len(others)))
    if fewer < SAME_WORDS * more:
        return False  # most pairs, and nothing needs to be compared
    shared = len(words & others)
    return shared >= SAME_WORDS * (fewer + more - shared) and _numbers(words) == _numbers(others)


def _numbers(words: frozenset[str]) -> set[str]:
    return {word for word in words if any(map(str.isdigit, word))}


def _relevant_and_unlike(
    head: Ranking, kept: Sequence[int], similarity: NDArray[np.float32], diversity: float, k: int
) -> list[int]:
    """The `k` positions that maximal marginal relevance takes (Carbonell and Goldstein, SIGIR 1998), best first."""
    left = np.array(kept)
    chosen: list[int] = []
    nearest = np.zeros(len(left), dtype=np.float32)
    while len(chosen) < k and len(left):
        gain = (1 - diversity) * head.scores[left] - diversity * nearest
        best = int(np.argmax(gain))  # the first of equals, which stands before the others
        chosen.append(int(left[best]))
        nearest = np.maximum(nearest, similarity[left, left[best]])
        left, nearest = np.delete(left, best), np.delete(nearest, best)
    return sorted(chosen)
