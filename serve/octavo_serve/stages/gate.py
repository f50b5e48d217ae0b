"""Judging an answer: whether the best passages speak of what the question asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from octavo_artifact.gate import (
    LOOKED_AT,
    Features,
    Gate,
    features,
    inverse_document_frequency,
    is_foreign,
    names_in,
)
from octavo_artifact.text import DEFAULT_LANGUAGE, MAX_TERMS, STOP_WORDS, Term
from octavo_serve.candidates import Candidates, Judgement, Nearness
from octavo_serve.collection import Index
from octavo_serve.lexical import LexicalIndex
from octavo_serve.query import Query, analyse
from octavo_serve.ranking import Ranking
from octavo_serve.results import Nearest

NEAREST = 3
"""Documents that a refusal names."""


def gate(found: Candidates) -> Candidates:
    """Judge the best passage of each pack by the pack's own gate.

    A pack that is refused gives nothing to the answer; when all are, the answer is a refusal that says what was
    nearest.
    """
    parameters = found.asked.parameters
    if not len(found.ranking):
        return replace(found, reason="no_relevant_passage")
    if parameters.gate == "off":
        return found
    judged = {part.slug: _judge(part.gate, compared, parameters.refuse_below) for part, compared in compare(found)}
    refusing = {slug for slug, each in judged.items() if each.refused} if parameters.gate == "refuse" else set[str]()
    found = replace(found, judged=judged)
    if not refusing:
        return found
    left = _without(found, refusing)
    if len(left):
        return replace(found, ranking=left)
    return replace(found, reason="no_relevant_passage", nearby=tuple(_nearest(found)))


def compare(found: Candidates) -> Iterator[tuple[Index, Features]]:
    """What a question has to do with the best passages of each pack whose gate can judge it."""
    rows = found.ranking.rows
    for part, first, own in found.asked.collection.split(rows):
        nearness = found.nearness.get(part.slug)
        if part.gate is None or nearness is None:
            continue
        best = (rows[own][:LOOKED_AT] - first).tolist()
        compared = features_of(part.lexical, _read(found, part), best, nearness)
        if compared is not None:
            yield part, compared


def _read(found: Candidates, part: Index) -> Query:
    """The query in a pack's own languages, so that it judges alike whatever it is searched with."""
    languages = part.lexical.languages
    alike = languages == found.asked.collection.lexical.languages
    return found.query if alike else analyse(found.query.text, languages)


def features_of(lexical: LexicalIndex, query: Query, best: Sequence[int], nearness: Nearness) -> Features | None:
    """What a question has to do with the passages in the rows `best`; see `octavo_artifact.gate.Features`.

    None for a question without a topic, and for one in a language that is not the pack's: it shares no words with
    passages that may well answer it.
    """
    words = query.words[:MAX_TERMS]
    # a pack of a few pages has not even all the words that every English text has
    english = DEFAULT_LANGUAGE in lexical.languages and lexical.frequency("the") > 0
    common = STOP_WORDS if english else frozenset[str]()
    known = sum(word in common or any(map(lexical.frequency, term)) for word, term in words)
    if is_foreign(known, len(words)) or all(word in STOP_WORDS for word, _ in words):
        return None
    spellings = {term: lexical.spellings(term) for term in query.terms}
    weights = {
        term: inverse_document_frequency(lexical.passages, max(found.values(), default=0))
        for term, found in spellings.items()
    }
    every = [spelling for found in spellings.values() for spelling in found]
    names = names_in(query.text)
    named = frozenset(lexical.terms(names)) if names else frozenset[Term]()
    passages: list[dict[Term, int]] = []
    for has in lexical.occurrences(every, best):
        times = {term: max(has.get(each, 0) for each in found) for term, found in spellings.items() if found}
        passages.append({term: found for term, found in times.items() if found})
        if weights.keys() - named <= passages[-1].keys():
            break  # nothing is covered better than wholly
    return features(nearness.best, nearness.beyond, weights, named, passages)


def _judge(gate: Gate | None, compared: Features, threshold: float) -> Judgement:
    assert gate is not None  # `compare` gives no other
    probability = gate.probability(compared)
    refuse_below = threshold if threshold >= 0 else gate.refuse_below
    return Judgement(probability, probability < refuse_below, probability < max(gate.doubt_below, refuse_below))


def _without(found: Candidates, slugs: set[str]) -> Ranking:
    rows = found.ranking.rows
    refused = np.zeros(len(rows), dtype=np.bool_)
    for part, _, own in found.asked.collection.split(rows):
        refused |= own & (part.slug in slugs)
    return found.ranking.take(np.flatnonzero(~refused).tolist())


def _nearest(found: Candidates) -> Iterator[Nearest]:
    """The first documents of a ranking."""
    seen: set[str] = set()
    for row, score in zip(found.ranking.rows.tolist(), found.ranking.scores.tolist(), strict=True):
        stored = found.asked.collection.hit(row)
        if stored["uri"] not in seen:
            seen.add(stored["uri"])
            yield {
                "pack": stored["pack"],
                "id": stored["id"],
                "title": stored["title"],
                "score": round(score, 6),
            }
            if len(seen) == NEAREST:
                return
