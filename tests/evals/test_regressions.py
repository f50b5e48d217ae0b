"""The release gate over real releases: what it must catch, and what it must let pass."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

import octavo_build.cuts
import octavo_build.stages
import octavo_serve.query
from octavo_artifact.text import lexical_text
from octavo_build.progress import make_progress
from octavo_build.tasks import Build, run
from octavo_build.workers import Workers
from octavo_evals.judge import compare, judged
from octavo_evals.queries import Query, QuerySet, read_query_set
from octavo_evals.results import Qrel, Results
from octavo_evals.retrieval import RESULTS, evaluate
from octavo_evals.targets import open_target
from octavo_serve.lexical import stem
from running import ROOT

pytestmark = pytest.mark.slow

CASES = read_query_set(ROOT / "evals/octavo/questions.yaml")
TODAY = "2026-11-30"


def built_in(root: Path, pack: Path = ROOT / "packs/octavo") -> Path:
    """A dist with a pack, compiled in this process."""
    with Workers(1) as workers, make_progress(quiet=True) as progress:
        build = Build([pack], root / "dist", root / "state", workers, progress)
        assert run(build) == 0, build.failures
    return root / "dist"


def results(dist: Path, cases: QuerySet = CASES, k: int = RESULTS) -> Results:
    target = open_target(dist, cases.pack, None, date.fromisoformat(TODAY))
    return evaluate(target, cases, TODAY, k=k, gate=None if cases is CASES else "off")


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


DEVICES = (
    "Cedar Orchid Falcon Quartz Maple Comet Harbor Saffron Lynx Copper Willow Ember Glacier Mango Raven Tundra Velvet"
    " Zephyr Acorn Bramble"
).split()
CLEANING = "Rinse what touches milk under running water, dry it with a cloth and put it back before the next use. " * 4
DESCALING = "Let a cup of warm water with citric acid stand in it for an hour once a month, then rinse it twice. " * 4


def devices(root: Path, question: str, retrieval: str = "{}") -> tuple[Path, QuerySet]:
    """A pack of manuals that read alike: only their titles say of what they are. And a question about each."""
    pack = root / "devices"
    pack.mkdir()
    (pack / "pack.yaml").write_text(f"slug: devices\nname: Devices\nretrieval: {retrieval}\n")
    body = f"## Cleaning\n\n{CLEANING}\n\n## Descaling\n\n{DESCALING}\n"
    for name in DEVICES:
        (pack / f"{name.lower()}.md").write_text(f"---\ntitle: The {name} machine\n---\n\n{body}")
    queries = tuple(Query(name, question.format(name), (Qrel(f"{name.lower()}.md", 1),)) for name in DEVICES)
    return pack, QuerySet("devices.yaml", "devices", TODAY, queries)


def test_words_that_are_not_stemmed_are_not_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unstemmed(text: str, stemmer: str) -> list[str]:
        return stem(text, "")

    # a word that is not stemmed may be taken for a slip of another: not here
    words = "{words_weight: 1, passage_weight: 0, document_weight: 0, typo_cost: 1}"
    pack, cases = devices(tmp_path, "cleaning of {}s", words)
    dist = built_in(tmp_path, pack)
    before = results(dist, cases)
    monkeypatch.setattr(octavo_serve.query, "stem", unstemmed)
    assert before.measures["RR"].mean > 0.9
    assert {"R@1", "R@10", "RR"} <= regressed(before, results(dist, cases))


def test_passages_without_their_headings_are_not_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def bare(title: str, heading_path: Sequence[str], tags: Sequence[str], body: str) -> str:
        return lexical_text("", (), tags, body)

    def no_line(title: str, heading_path: Sequence[str]) -> str:
        return ""

    pack, cases = devices(tmp_path, "cleaning the {} machine")
    before = results(built_in(tmp_path / "with", pack), cases)
    monkeypatch.setattr(octavo_build.stages, "lexical_text", bare)
    monkeypatch.setattr(octavo_build.cuts, "heading_line", no_line)
    after = results(built_in(tmp_path / "without", pack), cases)
    assert before.measures["RR"].mean > 0.9
    assert {"R@1", "RR", "nDCG@10"} <= regressed(before, after)
