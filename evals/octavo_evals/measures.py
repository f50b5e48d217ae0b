"""Measures of retrieval at file level: several passages of a file count once, at its best place.

Those with the field's names are computed by ir-measures, over the places and not over the scores. A question for which
nothing came back scores 0 and is never dropped. Ours beside them:

* `R_cap@k`: relevant files in the top k / min(k, relevant files). ir-measures' `R@k` divides by all relevant files, so
  that a question with more than k of them cannot reach 1; with k or fewer the two are equal.
* `context_recall@10`: share of the expected files that have a passage among the first ten, which is what a model is
  given; of the expected facts that their text contains, when the question lists facts.
* `must_not@5`, `must_not@10`: whether a file that must not be found is among the first five or ten, over the questions
  that name one.
* `right_refusal` over the questions that the pack cannot answer, `false_refusal` over the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ir_measures
from ir_measures import RR, R, Success, nDCG

from octavo_evals.results import Labelled

CUTS = (1, 3, 5, 10)
CONTEXT = 10
"""Passages that a search returns unless it is asked for another number."""

DEEP = 50
"""Passages that a search returns at most: how much the first stages find at all."""
FORBIDDEN = (5, 10)
"""Cuts of `must_not@k`."""

OF_THE_FIELD = (*(R @ k for k in (*CUTS, DEEP)), RR, nDCG @ 10, *(Success @ k for k in CUTS))
NAMES = (
    *map(str, OF_THE_FIELD),
    *(f"R_cap@{k}" for k in CUTS),
    f"context_recall@{CONTEXT}",
    *(f"must_not@{k}" for k in FORBIDDEN),
    "right_refusal",
    "false_refusal",
)
"""Every measure there is."""


def of_the_field(
    qrels: Mapping[str, Mapping[str, int]], runs: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """ir-measures' figures by question and measure, of ranked document ids, best first."""
    scored = {query: {doc: float(-place) for place, doc in enumerate(run)} for query, run in runs.items()}
    figures: dict[str, dict[str, float]] = {query: {} for query in qrels}
    if figures:
        for metric in ir_measures.iter_calc(OF_THE_FIELD, qrels, scored):
            figures[metric.query_id][str(metric.measure)] = metric.value
    return figures


def of_ours(
    query: Labelled, files: Sequence[str], passages: Sequence[str], text: str, *, refused: bool
) -> dict[str, float]:
    """Our figures for one question: from the files and from the files of the first passages, best first, and from the
    text of the first passages.
    """
    figures: dict[str, float] = {"false_refusal" if query.answerable else "right_refusal": float(refused)}
    relevant = {qrel.doc_id for qrel in query.expected}
    if relevant:
        figures |= {f"R_cap@{k}": capped_recall(files, relevant, k) for k in CUTS}
        figures[f"context_recall@{CONTEXT}"] = len(relevant & set(passages[:CONTEXT])) / len(relevant)
    if query.facts:
        seen = _plain(text)
        figures[f"context_recall@{CONTEXT}"] = sum(_plain(fact) in seen for fact in query.facts) / len(query.facts)
    if query.must_not:
        figures |= {f"must_not@{k}": float(not set(query.must_not).isdisjoint(files[:k])) for k in FORBIDDEN}
    return figures


def capped_recall(files: Sequence[str], relevant: set[str], k: int) -> float:
    """`R_cap@k`, for at least one relevant file."""
    return len(set(files[:k]) & relevant) / min(k, len(relevant))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
