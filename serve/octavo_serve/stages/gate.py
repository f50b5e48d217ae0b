"""Judging an answer: whether the best passages speak of what the question asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from octavo_artifact.gate import Features, Gate, features, inverse_document_frequency, is_foreign, names_in
from octavo_artifact.text import DEFAULT_LANGUAGE, MAX_TERMS, STOP_WORDS, alternatives, plain_words
from octavo_serve.candidates import Candidates, Judgement
from octavo_serve.collection import Index
from octavo_serve.lexical import LexicalIndex, stem
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
    """What a question has to do with the best passage of each pack whose gate can judge it."""
    rows = found.ranking.rows
    for part, first, own in found.asked.collection.split(rows):
        if part.gate is not None and part.slug in found.cosines:
            best = int(rows[own][0]) - first
            compared = features_of(part.lexical, found.query.text, best, found.cosines[part.slug])
            if compared is not None:
                yield part, compared


def features_of(lexical: LexicalIndex, question: str, best: int, cosine: float) -> Features | None:
    """What a question has to do with the passage in row `best`; `cosine` is the nearest window's.

    The question is read in the pack's own languages, so that a pack judges alike whatever it is searched with.

    None for a question without a topic, and for one in a language that is not the pack's: it shares no words with
    passages that may well answer it.
    """
    words = plain_words(question, stem)[:MAX_TERMS]
    terms = alternatives(question, lexical.languages, stem)[:MAX_TERMS]
    # a pack of a few pages has not even all the words that every English text has
    english = DEFAULT_LANGUAGE in lexical.languages and lexical.frequency("the") > 0
    common = STOP_WORDS if english else frozenset[str]()
    known = sum(word in common or any(map(lexical.frequency, term)) for word, term in zip(words, terms, strict=True))
    if is_foreign(known, len(words)) or all(word in STOP_WORDS for word in words):
        return None
    weights: dict[tuple[str, ...], float] = {}
    passage: dict[tuple[str, ...], float] = {}
    for term in lexical.terms(question):
        spellings = lexical.spellings(term)
        weights[term] = inverse_document_frequency(lexical.passages, max(spellings.values(), default=0))
        if times := max((lexical.occurrences(spelling, best) for spelling in spellings), default=0):
            passage[term] = times
    names = names_in(question)
    named = lexical.terms(names) if names else ()
    return features(cosine, weights, named, passage, inverse_document_frequency(lexical.passages, 0))


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
    seen: Mapping[str, Nearest] = {}
    for row, score in zip(found.ranking.rows.tolist(), found.ranking.scores.tolist(), strict=True):
        stored = found.asked.collection.hit(row)
        if stored["uri"] not in seen:
            each: Nearest = {
                "pack": stored["pack"],
                "id": stored["id"],
                "title": stored["title"],
                "score": round(score, 6),
            }
            seen = {**seen, stored["uri"]: each}
            yield each
            if len(seen) == NEAREST:
                return
