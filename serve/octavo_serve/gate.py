"""Judging an answer: whether its best passage speaks of what the question asks."""

from __future__ import annotations

from octavo_artifact.gate import Features, features, inverse_document_frequency, is_foreign, names_in
from octavo_artifact.text import STOP_WORDS
from octavo_serve.lexical import LexicalIndex


def compare(lexical: LexicalIndex, query: str, best: int, cosine: float) -> Features | None:
    """What a question has to do with the passage in row `best`; `cosine` is the nearest window's.

    None for a question without a topic, and for one in a language that is not the pack's: it shares no words with
    passages that may well answer it.
    """
    words = lexical.words(query)
    # a pack of a few pages has not even all the words that every English text has
    common = STOP_WORDS if lexical.frequency("the") else frozenset[str]()
    known = sum(word in common or lexical.frequency(word) > 0 for word in words)
    if is_foreign(known, len(words)) or not lexical.has_topic(query):
        return None
    weights: dict[str, float] = {}
    passage: dict[str, float] = {}
    for term in lexical.terms(query):
        spellings = lexical.spellings(term)
        weights[term] = inverse_document_frequency(lexical.passages, max(spellings.values(), default=0))
        if times := max((lexical.occurrences(spelling, best) for spelling in spellings), default=0):
            passage[term] = times
    named = lexical.terms(names) if (names := names_in(query)) else ()
    return features(cosine, weights, named, passage, inverse_document_frequency(lexical.passages, 0))
