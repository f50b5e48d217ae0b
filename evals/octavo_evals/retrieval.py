"""Evaluate retrieval: ask every question of a query set, and say what came back and how good it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from time import perf_counter
from typing import Any

from octavo_artifact import __version__
from octavo_artifact.errors import PackError
from octavo_artifact.parameters import GateMode
from octavo_evals.bootstrap import estimates
from octavo_evals.measures import CONTEXT, NAMES, of_ours, of_the_field
from octavo_evals.queries import Query, QuerySet
from octavo_evals.results import Cases, Configuration, QueryResult, Results, ScoredDoc, ScoredPassage, cases_sha256
from octavo_evals.targets import Target

RESULTS = 50
"""Passages asked for: as many as a search may return."""

LIBRARIES = ("ir-measures", "numpy", "onnxruntime", "tantivy", "tokenizers")
"""Libraries whose version may change an answer or a figure."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a question took."""

    id: str
    seconds: float


def evaluate(
    target: Target,
    cases: QuerySet,
    today: str,
    *,
    k: int = RESULTS,
    gate: GateMode | None = None,
    timings: list[Timing] | None = None,
) -> Results:
    """Ask every question for `k` passages.

    `today` is the day by which the target tells ages; `gate` is what becomes of an improbable answer, by default as
    the pack says; `timings` receives how long each search took. `check_files` says whether the questions are about
    this pack.
    """
    queries = ask(target, cases, k, gate, timings)
    return Results(
        cases=Cases(cases.file, cases_sha256(cases.queries), len(cases.queries)),
        artifact=target.artifact,
        configuration=Configuration({**target.parameters, "k": k, "gate": gate}),
        libraries=libraries(),
        date=today,
        measures=estimates([query.measures for query in queries], NAMES),
        categories={
            category: estimates([query.measures for query in queries if query.category == category], NAMES)
            for category in sorted({query.category for query in queries})
        },
        queries=queries,
    )


def libraries() -> dict[str, str]:
    """Versions of what decides an answer or a figure."""
    return {"octavo": __version__, **{name: version(name) for name in LIBRARIES}}


def ask(
    target: Target, cases: QuerySet, k: int, gate: GateMode | None, timings: list[Timing] | None = None
) -> tuple[QueryResult, ...]:
    """What came back for each question, and how good it was; see `evaluate`."""
    mode = {} if gate is None else {"gate": gate}
    answers: dict[str, Mapping[str, Any]] = {}
    for query in cases.queries:
        start = perf_counter()
        answers[query.id] = target.search(query.text, k, {**query.filters, **mode})
        if timings is not None:
            timings.append(Timing(query.id, perf_counter() - start))
    found = {query_id: _files(answer) for query_id, answer in answers.items()}
    qrels = {
        query.id: {qrel.doc_id: qrel.relevance for qrel in query.expected} for query in cases.queries if query.expected
    }
    figures = of_the_field(qrels, {query_id: [doc.doc_id for doc in docs] for query_id, docs in found.items()})
    return tuple(
        _result(query, answers[query.id], found[query.id], figures.get(query.id, {})) for query in cases.queries
    )


def check_files(target: Target, cases: QuerySet) -> None:
    """Raises PackError when a question names a file that the pack lacks."""
    named = {path: query.id for query in reversed(cases.queries) for path in (*query.files, *query.must_not)}
    for path, query_id in sorted(named.items()):
        if not target.has(path):
            raise PackError(f"{cases.file}: {query_id}: names {path}, which {target.artifact.slug} does not have")


def _result(
    query: Query, answer: Mapping[str, Any], files: tuple[ScoredDoc, ...], figures: Mapping[str, float]
) -> QueryResult:
    first = answer["results"][:CONTEXT]
    ours = of_ours(
        query,
        [doc.doc_id for doc in files],
        [hit["source_file"] for hit in first],
        "\n".join(hit["text"] for hit in first),
        refused=answer["refused"],
    )
    return QueryResult(
        id=query.id,
        text=query.text,
        category=query.category,
        expected=query.expected,
        must_not=query.must_not,
        filters=query.filters,
        answerable=query.answerable,
        facts=query.facts,
        refused=answer["refused"],
        run=files,
        passages=tuple(ScoredPassage(hit["fragment_id"], hit["source_file"], hit["score"]) for hit in first),
        measures={name: round(value, 6) for name, value in sorted({**figures, **ours}.items())},
        answer_probability=answer.get("answer_probability"),
    )


def _files(answer: Mapping[str, Any]) -> tuple[ScoredDoc, ...]:
    """The files of an answer's passages, each at its first place."""
    places: dict[str, float] = {}
    for hit in answer["results"]:
        places.setdefault(hit["source_file"], hit["score"])
    return tuple(ScoredDoc(path, score) for path, score in places.items())[:RESULTS]
