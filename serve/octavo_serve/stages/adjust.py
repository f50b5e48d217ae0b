"""What besides words and meaning moves a passage up or down: exact literals, boosts, age, length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.gate import inverse_document_frequency
from octavo_artifact.literals import folded
from octavo_artifact.text import LITERALS
from octavo_serve.candidates import Candidates
from octavo_serve.ranking import Ranking, Scores, ranked

SELECTIVE = 0.05
FEW = 10
"""A literal tells passages apart when it is in at most this share of them, or in so few."""


def boost(found: Candidates) -> Candidates:
    """Passages with the query's literals and quoted words first, the rarer the more; then what the pack favours."""
    parameters = found.asked.parameters
    ranking = _with_literals(found, parameters.literal_boost) if parameters.literal_boost else found.ranking
    if parameters.boosts and len(ranking):
        collection = found.asked.collection
        documents = [collection.document(row) for row in collection.documents(ranking.rows.tolist())]
        gains = np.array([_gain(document, parameters.boosts) for document in documents], dtype=np.float32)
        scores = np.maximum(ranking.scores + gains, 0)
        ranking = ranked(ranking.rows, scores / max(1.0, float(scores.max())))
    return replace(found, ranking=ranking)


def freshness(found: Candidates) -> Candidates:
    """What is stale or expired loses a share of its score."""
    penalty = found.asked.parameters.freshness_penalty
    if not penalty or not len(found.ranking):
        return found  # and the tables are not read
    rows = found.ranking.rows
    past = np.zeros(len(rows), dtype=np.bool_)
    for part, first, own in found.asked.collection.split(rows):
        past[own] = part.tables.last_fresh_day[rows[own] - first] < found.asked.today.toordinal()
    return _lessened(found, past, penalty)


def length(found: Candidates) -> Candidates:
    """What is too short to answer anything loses a share of its score."""
    parameters = found.asked.parameters
    if not parameters.length_penalty or not len(found.ranking):
        return found
    tokens = np.array(found.asked.collection.tokens(found.ranking.rows.tolist()))
    return _lessened(found, tokens < parameters.short_passage, parameters.length_penalty)


def _lessened(found: Candidates, which: NDArray[np.bool_], share: float) -> Candidates:
    scores: Scores = found.ranking.scores
    ranking = ranked(found.ranking.rows, scores * (1 - np.float32(share) * which.astype(np.float32)))
    return replace(found, ranking=ranking)


def _with_literals(found: Candidates, weight: float) -> Ranking:
    """Scores from 0 to 1 again: half of it is the share of the literals that a passage has, by their rarity."""
    ranking = found.ranking
    shares = _shares(found)
    if not shares.any():
        return ranking
    return ranked(ranking.rows, (ranking.scores + np.float32(weight) * shares) / np.float32(1 + weight))


def _shares(found: Candidates) -> Scores:
    """Share of the query's literals and quoted words that each passage of the ranking has, by their rarity."""
    rows, lexical = found.ranking.rows, found.asked.collection.lexical
    shares = np.zeros(len(rows), dtype=np.float32)
    total = 0.0
    few = max(FEW, int(SELECTIVE * lexical.passages))
    for literal in found.query.literals:
        number = lexical.frequency(literal, LITERALS)
        if 0 < number <= few:
            rarity = inverse_document_frequency(lexical.passages, number)
            shares += np.isin(rows, lexical.with_literal(literal)) * np.float32(rarity)
            total += rarity
    if found.query.phrases and len(rows):
        texts = [folded(lexical.hit(row)["text"]) for row in rows.tolist()]
        for phrase in map(folded, found.query.phrases):
            having = np.array([phrase in text for text in texts])
            if 0 < (number := int(having.sum())) <= few:
                rarity = inverse_document_frequency(lexical.passages, number)
                shares += having * np.float32(rarity)
                total += rarity
    return shares / np.float32(total) if total else shares


def _gain(document: Mapping[str, Any], boosts: Mapping[str, float]) -> float:
    traits = [f"type:{document['type']}", f"tier:{document['tier']}", *(f"tag:{tag}" for tag in document["tags"])]
    return sum(boosts.get(trait, 0.0) for trait in traits)
