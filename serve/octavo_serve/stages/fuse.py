"""Fusion of rankings whose scores do not compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from octavo_artifact.parameters import Fusion
from octavo_serve.candidates import Candidates
from octavo_serve.query import Intent
from octavo_serve.ranking import EMPTY, Ranking, Rows, Scores, ranked

RRF_CONSTANT = 60
"""Of the paper; larger ones make first places count less."""

INTENT_WEIGHTS: Mapping[Intent, tuple[float, float, float]] = {"when": (1.75, 1.0, 0.8), "why": (0.8, 1.0, 0.6)}
"""Factors of the weights of words, passages and documents by kind of question, where one differs from all others: of
403 questions about six packs, those for a date or version (19) find R@1 .95 and not .84 by their words, those for a
reason (53) .89 and not .85 by the passage; nothing was gained for the other kinds."""

Signal = tuple[Ranking, float, float]
"""A ranking, its weight, and the least score that is possible in it."""


def fuse(found: Candidates) -> Candidates:
    """The signals as one ranking, by the weights in force."""
    parameters = found.asked.parameters
    factors = INTENT_WEIGHTS.get(found.query.intent, (1.0, 1.0, 1.0)) if parameters.intents else (1.0, 1.0, 1.0)
    signals = [
        (found.words, parameters.words_weight * factors[0], 0.0),
        (found.nearest, parameters.passage_weight * factors[1], -1.0),
        (found.documents, parameters.document_weight * factors[2], -1.0),
    ]
    if not len(found.nearest):
        signals = [(found.words, 1.0, 0.0)]  # the encoder failed, or cannot read the query
    ranking = FUSIONS[parameters.fusion]([signal for signal in signals if signal[1]])
    return replace(found, ranking=ranking)


def convex(signals: Sequence[Signal]) -> Ranking:
    """Merge rankings by the weighted mean of their scores, each as a share of the best of its ranking.

    A passage missing from a ranking counts 0 there. Ties go to the smaller row. Shares lose less than scaling from the
    least score (SciFact nDCG@10 .736 to .722): what the last candidate scores is chance.
    """
    return _weighted(signals, lambda ranking, least: _scaled(ranking, 0.0))


def least_to_best(signals: Sequence[Signal]) -> Ranking:
    """As `convex`, scaled from the least score of the ranking (min-max)."""
    return _weighted(signals, lambda ranking, least: _scaled(ranking, float(ranking.scores[-1])))


def theoretical_least_to_best(signals: Sequence[Signal]) -> Ranking:
    """As `convex`, scaled from the least score that is possible (TMM, Bruch et al., TOIS 2023: 0 for BM25, -1 for
    cosines).
    """
    return _weighted(signals, _scaled)


def reciprocal_rank(signals: Sequence[Signal]) -> Ranking:
    """Merge rankings by the weighted sum of 1 / (60 + rank) (Cormack et al., SIGIR 2009), scaled to 1 for the first
    of all. Ties go to the smaller row.
    """
    return _weighted(signals, lambda ranking, least: _by_rank(len(ranking)))


FUSIONS: Mapping[Fusion, Callable[[Sequence[Signal]], Ranking]] = {
    "convex": convex,
    "minmax": least_to_best,
    "tmm": theoretical_least_to_best,
    "rrf": reciprocal_rank,
}


def _weighted(signals: Sequence[Signal], score: Callable[[Ranking, float], Scores]) -> Ranking:
    if not signals:
        return EMPTY
    rows: Rows = np.unique(np.concatenate([ranking.rows for ranking, _, _ in signals]))
    total = sum(weight for _, weight, _ in signals)
    scores = np.zeros(len(rows))
    for ranking, weight, least in signals:
        if len(ranking):
            scores[np.searchsorted(rows, ranking.rows)] += weight / total * score(ranking, least)
    return ranked(rows, scores.astype(np.float32))


def _by_rank(n: int) -> Scores:
    return ((RRF_CONSTANT + 1) / (RRF_CONSTANT + np.arange(1, n + 1))).astype(np.float32)


def _scaled(ranking: Ranking, floor: float) -> Scores:
    span = ranking.scores[0] - np.float32(floor)
    if span <= 0:
        return np.ones_like(ranking.scores)
    return np.maximum((ranking.scores - np.float32(floor)) / span, np.float32(0))
