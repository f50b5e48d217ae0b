"""Candidates by words and by meaning: two rankings that know nothing of each other."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.gate import BEYOND
from octavo_artifact.text import LATIN
from octavo_serve.candidates import Candidates, Nearness
from octavo_serve.collection import Index
from octavo_serve.query import Query
from octavo_serve.ranking import Ranking

log = logging.getLogger(__name__)


def lexical(found: Candidates) -> Candidates:
    """Passages that have words of the query."""
    asked, query = found.asked, found.query
    words = asked.collection.lexical.search(
        query.terms,
        asked.parameters.candidates,
        asked.filters,
        literals=query.literals,
        phrases=query.phrase_terms,
        typo_cost=asked.parameters.typo_cost,
    )
    return replace(found, words=words)


def vector(found: Candidates) -> Candidates:
    """Passages that are near in meaning, and how near the documents of all candidates are.

    An encoder that cannot read the query is not asked where there are words to go by: what it says is noise (nDCG@10
    of XQuAD-R in Chinese .47 with it, .84 without).

    Packs of one encoder are compared by cosines. Where encoders differ, cosines do not compare: each pack's are then
    put on the scale between what other questions and its own headings find in it, which its calibration measured.
    """
    asked = found.asked
    k = asked.parameters.candidates
    collection = asked.collection
    readers = [part for part in collection.parts if not len(found.words) or _reads(part, found.query)]
    compared = [
        (part, part.vectors.compare(query, part.tables.passages_where(asked.filters) if asked.filters else None))
        for part in readers
        if (query := encoded(part, found.query.text)) is not None
    ]
    degraded = found.degraded if len(compared) == len(readers) else (*found.degraded, "encoder")
    if not compared:
        return replace(found, degraded=degraded)
    alike = len({id(part.encoder) for part, _ in compared}) == 1
    own_nearest = [(part, similarity.nearest(max(k, BEYOND))) for part, similarity in compared]
    nearest = collection.merged(
        [(part, _on_own_scale(part, each.head(k), alike=alike)) for part, each in own_nearest], k
    )
    rows = np.union1d(found.words.rows, nearest.rows)
    similarities = {part.slug: similarity for part, similarity in compared}
    candidates = [
        (part, similarities[part.slug], rows[own] - first)
        for part, first, own in collection.split(rows)
        if part.slug in similarities
    ]
    # a passage that only its words brought has its own cosine too, not none
    near = [(part, _on_own_scale(part, each.of_passages(own), alike=alike)) for part, each, own in candidates]
    means = [(part, _on_own_scale(part, each.of_documents(own), alike=alike)) for part, each, own in candidates]
    return replace(
        found,
        nearest=collection.merged(near),
        documents=collection.merged(means),
        nearness={part.slug: _nearness(each) for part, each in own_nearest},
        degraded=degraded,
    )


def _reads(part: Index, query: Query) -> bool:
    """Whether a pack's encoder was trained for texts in the script of the query, as far as that is known."""
    return query.latin or not part.reads or any(language not in LATIN for language in part.reads)


def encoded(part: Index, text: str) -> NDArray[np.float32] | None:
    """The vector of a query for a pack, float32 [dim]; None when its encoder fails."""
    known = part.encoder.failure
    try:
        return part.encoder.encode(text)
    except Exception as error:  # whatever a native runtime raises, words can still be searched
        if part.encoder.failure != known or known is None:
            log.warning("%s: the encoder failed; searching by words only (%r)", part.slug, error)
        return None


def _nearness(nearest: Ranking) -> Nearness:
    beyond = float(nearest.scores[BEYOND - 1]) if len(nearest) >= BEYOND else None
    return Nearness(float(nearest.scores[0]) if len(nearest) else -1.0, beyond)


def _on_own_scale(part: Index, ranking: Ranking, *, alike: bool) -> Ranking:
    if alike or part.gate is None or not len(ranking):
        return ranking
    low, span = part.gate.unrelated, part.gate.own - part.gate.unrelated
    return Ranking(ranking.rows, ((ranking.scores - low) / span).astype(np.float32))
