"""`octavo eval report`: what is said of results, and that the page says it to people only."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from lamp import HOSTILE, query, results
from octavo_artifact.errors import ConfigError
from octavo_evals.commands import EVAL
from octavo_evals.diff.releases import read_release
from octavo_evals.pages import report_page
from octavo_evals.report.charts import BOTTOM, TOP, Bin, reliability, trend
from octavo_evals.report.contents import Figure, series_of
from octavo_evals.results import Estimate, Results, ScoredPassage, write_results

BEFORE = results("a" * 64, query("won", 0.2), query("lost", 1.0), query("kept", 0.7), query("none", 0.0))
NOW = results(
    "b" * 64,
    query("won", 0.9, probability=0.8),
    query("lost", 0.1, file="storm.md", probability=0.3),
    query("kept", 0.7, probability=0.9),
    query("none", 1.0, refused=True, probability=0.1),
)


def test_results_stand_by_pack_and_query_set() -> None:
    other = results("c" * 64, query("a", 1.0), slug="a-pack")
    found = series_of([NOW, other, replace(NOW, cases=replace(NOW.cases, file="more.yaml"))])
    assert [(each.slug, each.cases) for each in found] == [
        ("a-pack", "questions.yaml"),
        ("lamp", "more.yaml"),
        ("lamp", "questions.yaml"),
    ]
    assert [each.base for each in found] == [None] * 3


def test_losses_come_first_then_wins_the_greatest_of_each_first() -> None:
    (found,) = series_of([BEFORE, NOW])
    assert [(each.query.id, each.gain) for each in found.changed] == [("lost", -0.9), ("none", 1.0), ("won", 0.7)]


def test_the_last_results_are_compared_with_those_before() -> None:
    (found,) = series_of([NOW, BEFORE, NOW])
    assert (found.base, found.last) == (BEFORE, NOW)
    assert len(found.results) == 3


def test_a_question_that_was_edited_is_not_compared() -> None:
    edited = replace(NOW, queries=(replace(NOW.queries[0], text="Another question"), *NOW.queries[1:]))
    (found,) = series_of([BEFORE, edited])
    assert found.paired == 3
    assert found.questions[0].old is None
    assert "won" not in [each.query.id for each in found.changed]


@pytest.mark.parametrize(
    ("name", "low", "high", "verdict"),
    [
        pytest.param("RR", 0.1, 0.3, "better", id="higher"),
        pytest.param("RR", -0.3, -0.1, "worse", id="lower"),
        pytest.param("false_refusal", 0.1, 0.3, "worse", id="higher where lower is better"),
        pytest.param("must_not@10", -0.3, -0.1, "better", id="lower where lower is better"),
        pytest.param("RR", -0.1, 0.3, "no clear change", id="zero inside"),
        pytest.param("RR", 0.0, 0.3, "no clear change", id="zero at the edge"),
    ],
)
def test_a_change_counts_when_its_interval_leaves_out_zero(name: str, low: float, high: float, verdict: str) -> None:
    one = Estimate(0.5, 0.4, 0.6, 10)
    assert Figure(name, one, one, Estimate((low + high) / 2, low, high, 10)).verdict == verdict


def test_expected_and_forbidden_files_are_marked() -> None:
    (found,) = series_of([NOW])
    marks = {each.query.id: [(p.expected, p.forbidden) for p in each.new.passages] for each in found.questions}
    assert marks == {"won": [(True, False)], "lost": [(False, True)], "kept": [(True, False)], "none": []}


def test_a_trend_rises_with_its_measure() -> None:
    chart = trend([Estimate(0.5, 0.4, 0.6, 9), Estimate(0.8, 0.7, 0.9, 9)], ["one", "two"])
    first, last = chart.dots
    assert first.x < last.x
    assert TOP <= last.y < first.y <= BOTTOM
    assert first.label == "one: 0.500 (0.400 to 0.600)"


def test_only_measures_that_differ_have_a_trend() -> None:
    (found,) = series_of([BEFORE, NOW])
    assert "nDCG@10" in [each.name for each in found.trends]
    (same,) = series_of([NOW, NOW])
    assert same.trends == ()


def test_reliability_is_by_confidence_and_weighted_by_count() -> None:
    found = reliability([(0.05, False), (0.85, True), (0.85, False), (1.0, True)])
    assert found.bins == (Bin(0.0, 0.1, 1, 0.05, 0.0), Bin(0.8, 0.9, 2, 0.85, 0.5), Bin(0.9, 1.0, 1, 1.0, 1.0))
    assert found.error == pytest.approx((0.05 + 2 * 0.35) / 4)
    assert found.brier == pytest.approx((0.05**2 + 0.15**2 + 0.85**2) / 4)


def test_results_without_probabilities_have_no_reliability() -> None:
    assert series_of([BEFORE])[0].reliability is None
    assert series_of([NOW])[0].reliability is not None


def test_passages_are_shown_from_the_release_that_gave_them(built: Path) -> None:
    (artifact,) = (path for path in (built / "tiny").iterdir() if path.is_dir())
    passage = next(each for each in read_release(artifact).passages if each["section"])
    shown = replace(NOW.queries[0], passages=(ScoredPassage(passage["fragment"], "wick.md", 0.5),))
    of_tiny = results(artifact.name, shown, slug="tiny")
    assert series_of([of_tiny])[0].questions[0].new.passages[0].text is None
    text = series_of([of_tiny], built)[0].questions[0].new.passages[0].text
    assert text
    assert text.startswith("#")


@pytest.mark.parametrize("slug", ["../lamp", "lamp/..", ""])
def test_results_cannot_name_a_folder_outside_dist(built: Path, slug: str) -> None:
    (found,) = series_of([results("a" * 64, query("a", 1.0), slug=slug)], built)
    assert found.questions[0].new.passages[0].text is None


@pytest.mark.parametrize("given", [[NOW], [BEFORE, NOW], [results("c" * 64, query("a", 1.0), slug=HOSTILE), NOW]])
def test_the_page_escapes_what_it_shows_and_is_the_same_each_time(given: list[Results]) -> None:
    page = report_page(series_of(given))
    assert HOSTILE not in page
    assert page.count("<script") == 1
    assert "http://" not in page
    assert "https://" not in page
    assert page == report_page(series_of(given))


def test_the_command_writes_one_file(tmp_path: Path) -> None:
    for name, each in (("before", BEFORE), ("now", NOW)):
        write_results(each, tmp_path / f"{name}.json")
    parser = argparse.ArgumentParser()
    EVAL.add_arguments(parser)
    given = ["report", f"{tmp_path}/before.json", f"{tmp_path}/now.json", "--out", f"{tmp_path}/report.html"]
    assert EVAL.run(parser.parse_args(given)) == 0
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report_page(series_of([BEFORE, NOW]))


def test_no_results_are_an_error() -> None:
    with pytest.raises(ConfigError, match="expected at least one file"):
        series_of([])


def test_measures_stand_by_name_and_cut_after_those_of_the_headline() -> None:
    one = Estimate(0.5, 0.4, 0.6, 1)
    named = replace(NOW, measures=dict.fromkeys(["R@1", "R@10", "R@3", "RR", "nDCG@10", "context_recall@10"], one))
    (found,) = series_of([named])
    assert [each.name for each in found.figures] == ["nDCG@10", "RR", "R@1", "R@3", "R@10", "context_recall@10"]


def test_a_refused_question_counts_as_right_when_the_pack_has_an_answer() -> None:
    refused = results("a" * 64, query("a", 0.0, refused=True, probability=0.1))
    (found,) = series_of([refused])
    assert found.reliability
    assert found.reliability.bins[0].right == 1.0
