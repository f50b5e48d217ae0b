"""The release gate over the handbook: what it must catch, and what it must let pass."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
import tantivy

import octavo_build.cuts
import octavo_build.stages
import octavo_serve.lexical
from octavo_artifact.text import lexical_text
from octavo_build.progress import make_progress
from octavo_build.tasks import Build, run
from octavo_build.workers import Workers
from octavo_evals.judge import compare, judged
from octavo_evals.queries import read_query_set
from octavo_evals.results import Results
from octavo_evals.retrieval import RESULTS, evaluate
from octavo_evals.targets import open_target
from running import ROOT

pytestmark = pytest.mark.slow

CASES = read_query_set(ROOT / "evals/octavo/questions.yaml")
TODAY = "2026-11-30"


def built_in(root: Path) -> Path:
    """A dist with the handbook, compiled in this process."""
    with Workers(1) as workers, make_progress(quiet=True) as progress:
        build = Build([ROOT / "packs/octavo"], root / "dist", root / "state", workers, progress)
        assert run(build) == 0, build.failures
    return root / "dist"


def results(dist: Path, k: int = RESULTS) -> Results:
    return evaluate(open_target(dist, "octavo", None, date.fromisoformat(TODAY)), CASES, TODAY, k=k)


def regressed(base: Results, new: Results) -> set[str]:
    verdicts = judged(compare(base, new, across_releases=True))
    return {verdict.subject for verdict in verdicts if not verdict.passed}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_in(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def base(dist: Path) -> Results:
    return results(dist)


def test_a_rerun_of_the_same_code_passes_every_time(dist: Path, base: Results) -> None:
    assert [regressed(base, results(dist)) for _ in range(20)] == [set()] * 20


def test_one_passage_instead_of_fifty_loses_recall_and_not_the_first_place(dist: Path, base: Results) -> None:
    found = regressed(base, results(dist, k=1))
    assert {"R@3", "R@5", "R@10", "context_recall@10"} <= found
    assert not {"R@1", "Success@1", "right_refusal", "false_refusal"} & found


def test_words_that_are_not_stemmed_are_not_found(
    dist: Path, base: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unstemmed(*filters: tantivy.Filter) -> tantivy.TextAnalyzer:
        builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
        for each in filters:
            builder = builder.filter(each)
        return builder.build()

    monkeypatch.setattr(octavo_serve.lexical, "_analyzer", unstemmed)
    print(sorted(regressed(base, results(dist))))


def test_passages_without_their_headings_rank_lower(
    base: Results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def bare(title: str, heading_path: Sequence[str], tags: Sequence[str], body: str) -> str:
        return lexical_text("", (), tags, body)

    monkeypatch.setattr(octavo_build.stages, "lexical_text", bare)
    monkeypatch.setattr(octavo_build.cuts, "heading_line", lambda title, heading_path: "")
    print(sorted(regressed(base, results(built_in(tmp_path)))))
