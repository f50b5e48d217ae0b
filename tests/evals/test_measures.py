from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import ir_measures
import pytest
import pytrec_eval  # type: ignore[import-untyped]  # ships no types

from octavo_evals.measures import CUTS, DEEP, OF_THE_FIELD, capped_recall, of_ours, of_the_field
from octavo_evals.queries import Query, read_query_set
from octavo_evals.results import Qrel

TREC = {
    "RR": "recip_rank",
    "nDCG@10": "ndcg_cut_10",
    **{f"R@{k}": f"recall_{k}" for k in (*CUTS, DEEP)},
    **{f"Success@{k}": f"success_{k}" for k in CUTS},
}


def runs(qrels: Mapping[str, Mapping[str, int]]) -> dict[str, list[str]]:
    """A made-up ranking a question: what is relevant at drawn places among the documents of other questions."""
    draw = random.Random(5)
    documents = sorted({doc for judged in qrels.values() for doc in judged})
    made: dict[str, list[str]] = {}
    for query, judged in qrels.items():
        ranking = draw.sample(documents, 30)
        for doc in sorted(judged):
            ranking.insert(min(int(draw.expovariate(0.2)), 30), doc)
        made[query] = list(dict.fromkeys(ranking))
    made[next(iter(made))] = []
    return made


@pytest.mark.shared
@pytest.mark.parametrize("collection", ["scifact", "xquadr-en"])
def test_figures_equal_those_of_ir_measures_and_pytrec_eval(shared: Path, collection: str) -> None:
    cases = read_query_set(shared / "ir" / collection)
    qrels = {query.id: {qrel.doc_id: qrel.relevance for qrel in query.expected} for query in cases.queries}
    ranked = runs(qrels)
    ours = of_the_field(qrels, ranked)
    scored = {query: {doc: 1 / rank for rank, doc in enumerate(run, 1)} for query, run in ranked.items()}
    theirs = ir_measures.calc_aggregate(OF_THE_FIELD, qrels, scored)
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, {"recip_rank", "ndcg_cut.10", "recall.1,3,5,10,50", "success.1,3,5,10"}
    )
    trec = evaluator.evaluate(scored)
    assert ours.keys() == qrels.keys()
    for measure in OF_THE_FIELD:
        column = [ours[query][str(measure)] for query in qrels]
        assert sum(column) / len(column) == pytest.approx(theirs[measure], abs=5e-5)
        assert column == pytest.approx([trec.get(query, {}).get(TREC[str(measure)], 0.0) for query in qrels], abs=5e-5)


def test_a_question_for_which_nothing_came_back_scores_nothing() -> None:
    figures = of_the_field({"a": {"x": 1}, "b": {"y": 1}}, {"a": ["x"], "b": []})
    assert set(figures["b"].values()) == {0.0}
    assert set(of_the_field({"a": {"x": 1}}, {"a": []})["a"].values()) == {0.0}


@pytest.mark.parametrize(
    ("k", "capped", "plain"),
    [
        pytest.param(1, 1.0, 0.5, id="1 of 1"),
        pytest.param(2, 0.5, 0.5, id="1 of 2"),
        pytest.param(5, 1.0, 1.0, id="all"),
    ],
)
def test_capped_recall_is_of_what_the_top_k_could_hold(k: int, capped: float, plain: float) -> None:
    assert capped_recall(["a", "x", "b"], {"a", "b"}, k) == capped
    found = ir_measures.calc_aggregate([ir_measures.R @ k], {"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "x": 2, "b": 1}})
    assert found[ir_measures.R @ k] == plain


def test_context_recall_is_of_the_files_or_of_the_facts_if_there_are_any() -> None:
    files = Query("a", "", (Qrel("x", 1), Qrel("y", 1)))
    assert of_ours(files, ["x"], ["x", "z"], "", refused=False)["context_recall@10"] == 0.5
    facts = Query("a", "", (), facts=("two  BARS", "steam", "grind"))
    found = of_ours(facts, [], [], "At two bars\nof steam", refused=False)
    assert found == {"false_refusal": 0.0, "context_recall@10": pytest.approx(2 / 3)}


@pytest.mark.parametrize("k", [5, 10])
def test_a_file_that_must_not_be_found_is_a_violation_among_the_first(k: int) -> None:
    query = Query("a", "", (Qrel("x", 1),), must_not=("bad",))
    others = [str(number) for number in range(k - 1)]
    assert of_ours(query, [*others, "bad"], [], "", refused=False)[f"must_not@{k}"] == 1.0
    assert of_ours(query, [*others, "x", "bad"], [], "", refused=False)[f"must_not@{k}"] == 0.0


@pytest.mark.parametrize("refused", [True, False])
def test_a_refusal_is_right_or_false_by_the_question(refused: bool) -> None:
    assert of_ours(Query("a", "", (), answerable=False), [], [], "", refused=refused) == {"right_refusal": refused}
    assert of_ours(Query("a", "", (Qrel("x", 1),)), [], [], "", refused=refused)["false_refusal"] == refused
